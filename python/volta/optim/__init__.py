"""Optimizers and learning-rate schedules of the library, with PyTorch's names and settings."""

from . import lr_scheduler, swa_utils  # noqa: F401
from .lr_scheduler import *  # noqa: F403
from .optimizer import _MAKERS, Optimizer, ParamGroup  # noqa: F401

for _name, _make in _MAKERS.items():
    if "params" in _make.__text_signature__.split(",")[0]:
        _members = {"__module__": __name__, "__doc__": _make.__doc__, "_make": staticmethod(_make)}
        globals()[_name] = type(_name, (Optimizer,), _members)
