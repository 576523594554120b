"""Runs: the driver, what it records, the models that come of it and their files."""
