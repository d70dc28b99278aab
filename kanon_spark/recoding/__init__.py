"""Classes to published tuples, and back onto the rows."""
