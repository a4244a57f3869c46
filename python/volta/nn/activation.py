"""Activations as layers: each a function of the same meaning with its settings."""

from .. import _volta
from .layers import _Stateless
from .module import Module
from .parameter import Parameter

# Layer: the function and its settings; "inplace" is taken and changes nothing but memory.
_INPLACE = {"inplace": False}
_ACTIVATIONS = {
    "ReLU": ("relu", _INPLACE),
    "ReLU6": ("relu6", _INPLACE),
    "SELU": ("selu", _INPLACE),
    "SiLU": ("silu", _INPLACE),
    "Mish": ("mish", _INPLACE),
    "Hardswish": ("hardswish", _INPLACE),
    "Hardsigmoid": ("hardsigmoid", _INPLACE),
    "Sigmoid": ("sigmoid", {}),
    "Tanh": ("tanh", {}),
    "Softsign": ("softsign", {}),
    "Tanhshrink": ("tanhshrink", {}),
    "LogSigmoid": ("logsigmoid", {}),
    "GELU": ("gelu", {"approximate": "none"}),
    "GLU": ("glu", {"dim": -1}),
    "ELU": ("elu", {"alpha": 1.0, **_INPLACE}),
    "CELU": ("celu", {"alpha": 1.0, **_INPLACE}),
    "LeakyReLU": ("leaky_relu", {"negative_slope": 0.01, **_INPLACE}),
    "Hardtanh": ("hardtanh", {"min_val": -1.0, "max_val": 1.0, **_INPLACE}),
    "Hardshrink": ("hardshrink", {"lambd": 0.5}),
    "Softshrink": ("softshrink", {"lambd": 0.5}),
    "Softplus": ("softplus", {"beta": 1.0, "threshold": 20.0}),
    "Threshold": ("threshold", {"threshold": ..., "value": ..., **_INPLACE}),
    "Softmax": ("softmax", {"dim": None}),
    "Softmin": ("softmin", {"dim": None}),
    "LogSoftmax": ("log_softmax", {"dim": None}),
}
__all__ = [*_ACTIVATIONS, "PReLU", "RReLU", "Softmax2d"]


def _forward(function):
    apply = getattr(_volta, function)

    def forward(self, input):
        return apply(input, *self._given().values())

    return forward


for _name, (_function, _settings) in _ACTIVATIONS.items():
    globals()[_name] = type(
        _name,
        (_Stateless,),
        {
            "__module__": __name__,
            "__doc__": getattr(_volta, _function).__doc__,
            "_settings": _settings,
            "forward": _forward(_function),
        },
    )


class PReLU(Module):
    """Slopes below 0 that are learned."""

    def __init__(self, num_parameters=1, init=0.25, device=None, dtype=None):
        super().__init__()
        self.num_parameters = num_parameters
        self.weight = Parameter(
            _volta.full((num_parameters,), init, dtype=dtype or _volta.get_default_dtype(), device=device)
        )

    def forward(self, input):
        return _volta.prelu(input, self.weight)

    def extra_repr(self):
        return f"num_parameters={self.num_parameters}"


class RReLU(_Stateless):
    """Slopes below 0 that are drawn while training."""

    _settings = {"lower": 1 / 8, "upper": 1 / 3, **_INPLACE}

    def forward(self, input):
        return _volta.rrelu(input, self.lower, self.upper, self.training)


class Softmax2d(Module):
    """Softmax over the channels of images."""

    def forward(self, input):
        if input.ndim not in (3, 4):
            raise ValueError(f"Softmax2d: images have 3 or 4 axes, not shape {tuple(input.shape)}")
        return _volta.softmax(input, -3)
