"""What the command line does, for programs too: read, train, measure, search, ask, export."""
