"""Shared utilities: argument checks, rows of matrices, chunks, progress bars."""
