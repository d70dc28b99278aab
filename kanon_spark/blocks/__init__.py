"""Cutting signatures into bounded blocks."""
