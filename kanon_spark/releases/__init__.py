"""Manifest, lock and housekeeping of releases."""
