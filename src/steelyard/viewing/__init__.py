"""The web page of a folder of runs: finished ones with their headlines and reports, running ones as they progress."""
