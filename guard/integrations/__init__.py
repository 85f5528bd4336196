"""Frameworks, a file each: import the one you use. Nothing is imported here."""
