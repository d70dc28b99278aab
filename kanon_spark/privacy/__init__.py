"""Privacy models beyond k: what a class must hold, judged from its histogram of sensitive values."""
