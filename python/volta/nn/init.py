"""Initialisation of parameters in place, without recording."""

from .. import _volta
from .._grad_mode import no_grad


def _quiet(fill):
    def filled(*args, **kwargs):
        with no_grad():
            return fill(*args, **kwargs)

    filled.__name__ = filled.__qualname__ = fill.__name__
    filled.__doc__ = fill.__doc__
    return filled


_FUNCTIONS = _volta._modules["volta.nn.init"]
globals().update({name: _quiet(fill) for name, fill in _FUNCTIONS.items()})
__all__ = list(_FUNCTIONS)
