"""Loss metrics."""
