"""What holds for all tests."""

import signal

# A shell starts what it runs in the background with interrupts ignored, and CI may be run so; some tests send one.
signal.signal(signal.SIGINT, signal.default_int_handler)
