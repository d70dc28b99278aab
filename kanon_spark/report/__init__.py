"""Console and HTML reports."""
