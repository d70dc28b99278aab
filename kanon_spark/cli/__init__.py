"""The kanon command."""
