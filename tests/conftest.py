"""Settings of all tests."""

import signal

# Shells ignore SIGINT in background jobs, as CI may; some tests send one.
signal.signal(signal.SIGINT, signal.default_int_handler)
