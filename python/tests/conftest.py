"""What several files of tests share."""

import signal

import pytest


@pytest.fixture
def interruptible():
    """What Python does of itself, unless it was started in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
