"""Session, stages and the runner."""
