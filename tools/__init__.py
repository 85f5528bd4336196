"""Programs for people who work on turncap; not part of the distribution."""
