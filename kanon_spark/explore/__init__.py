"""Looking before deciding: a first draft of a configuration, and methods compared."""
