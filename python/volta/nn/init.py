"""Initialisation of parameters in place, without recording."""

from .. import _volta
from .._grad_mode import no_grad

# PyTorch's keywords, where the library has others.
_KEYWORDS = {
    "uniform_": {"a": "from_", "b": "to"},
    "trunc_normal_": {"a": "low", "b": "high"},
    "constant_": {"val": "value"},
}


def _quiet(fill):
    theirs = _KEYWORDS.get(fill.__name__, {})

    def filled(*args, **kwargs):
        kwargs = {theirs.get(name, name): value for name, value in kwargs.items()}
        with no_grad():
            return fill(*args, **kwargs)

    filled.__name__ = filled.__qualname__ = fill.__name__
    filled.__doc__ = fill.__doc__
    return filled


_FUNCTIONS = _volta._modules["volta.nn.init"]
globals().update({name: _quiet(fill) for name, fill in _FUNCTIONS.items()})
__all__ = list(_FUNCTIONS)
