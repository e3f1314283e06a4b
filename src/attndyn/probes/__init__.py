"""What is read off a model at a checkpoint. Observing changes nothing."""
