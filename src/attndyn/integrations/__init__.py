"""attndyn inside other people's training loops; each integration needs its own package."""
