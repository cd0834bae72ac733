"""What all tests need."""

import signal

from hypothesis import settings

from tests.examples import examples

# A shell's job in the background, as `make test` starts one, ignores Ctrl-C; some tests press it.
signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile("polyplane", max_examples=examples(100))  # of tests that name no number
settings.load_profile("polyplane")
