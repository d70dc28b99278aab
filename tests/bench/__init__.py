"""Measurements: loss on Adult beside the peers' (`quality`), time and memory beside Spark's own floor (`scale`)."""
