"""Data sets and loaders."""

from . import data  # noqa: F401
