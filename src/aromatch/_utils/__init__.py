"""Shared utilities: argument checks, rows of matrices, progress bars."""
