"""Reading sources and publishing releases."""
