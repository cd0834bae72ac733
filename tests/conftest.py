"""What all tests need."""

import signal

# A shell's job in the background, as `make test` starts one, ignores Ctrl-C; some tests press it.
signal.signal(signal.SIGINT, signal.default_int_handler)
