"""Workflows of the command line, one verb a file: from files to a model, and its use."""
