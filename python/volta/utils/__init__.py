"""Data sets and loaders, checkpoints of computations."""

from . import checkpoint, data  # noqa: F401
