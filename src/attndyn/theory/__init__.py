"""What can be computed from the data alone, before anything is trained."""
