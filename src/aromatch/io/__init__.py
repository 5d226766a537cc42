"""Readers of items and logs, and the container of model files."""
