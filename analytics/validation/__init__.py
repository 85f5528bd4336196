"""Are the thresholds right? Gates, rates, words and what is still needed, by the method of docs/method.md."""
