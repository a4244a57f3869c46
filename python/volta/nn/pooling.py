"""Pooling and its reverse, over the functions of the same names."""

from . import functional as F
from .layers import _Stateless

__all__ = []

# The settings of each function, for one, two and three axes.
_POOLS = {
    "MaxPool{}d": (
        "max_pool{}d",
        {"kernel_size": ..., "stride": None, "padding": 0, "dilation": 1, "return_indices": False, "ceil_mode": False},
    ),
    "AvgPool{}d": (
        "avg_pool{}d",
        {
            "kernel_size": ...,
            "stride": None,
            "padding": 0,
            "ceil_mode": False,
            "count_include_pad": True,
            "divisor_override": None,
        },
    ),
    "LPPool{}d": ("lp_pool{}d", {"norm_type": ..., "kernel_size": ..., "stride": None, "ceil_mode": False}),
    "AdaptiveAvgPool{}d": ("adaptive_avg_pool{}d", {"output_size": ...}),
    "AdaptiveMaxPool{}d": ("adaptive_max_pool{}d", {"output_size": ..., "return_indices": False}),
}
_UNPOOL = {"kernel_size": ..., "stride": None, "padding": 0}
_FRACTIONAL = {
    "kernel_size": ...,
    "output_size": None,
    "output_ratio": None,
    "return_indices": False,
    "_random_samples": None,
}


class _Pool(_Stateless):
    _hidden = ("return_indices", "count_include_pad", "divisor_override")

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        if "stride" in self._settings and self.stride is None:
            self.stride = self.kernel_size

    def forward(self, input):
        return getattr(F, self._function)(input, **self._given())


class _MaxUnpool(_Pool):
    _settings = _UNPOOL

    def forward(self, input, indices, output_size=None):
        sizes = None if output_size is None else list(output_size)[-self._axes :]
        return getattr(F, f"max_unpool{self._axes}d")(input, indices, **self._given(), output_size=sizes)


class _FractionalMaxPool(_Stateless):
    _settings = _FRACTIONAL

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        if (self.output_size is None) == (self.output_ratio is None):
            raise ValueError(f"{type(self).__name__}: either output_size or output_ratio is given")

    def forward(self, input):
        given = self._given()
        return getattr(F, f"fractional_max_pool{self._axes}d")(
            input, random_samples=given.pop("_random_samples"), **given
        )


def _define(name, base, **members):
    globals()[name] = type(name, (base,), {"__module__": __name__, **members})
    __all__.append(name)


for _n in (1, 2, 3):
    for _pattern, (_function, _settings) in _POOLS.items():
        _name = _function.format(_n)
        _define(
            _pattern.format(_n),
            _Pool,
            _settings=_settings,
            _function=_name,
            __doc__=f"Pooling as {_name} has it.",
        )
    _define(f"MaxUnpool{_n}d", _MaxUnpool, _axes=_n, __doc__="Maxima back at their places, 0 elsewhere.")
    if _n > 1:
        _define(f"FractionalMaxPool{_n}d", _FractionalMaxPool, _axes=_n, __doc__="Max pooling in random windows.")
