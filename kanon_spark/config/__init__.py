"""Configuration: pydantic models, loader, pre-flight."""
