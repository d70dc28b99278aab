"""Independent check of what was written."""
