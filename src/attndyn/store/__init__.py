"""The run folder: everything a report shows is read from it."""
