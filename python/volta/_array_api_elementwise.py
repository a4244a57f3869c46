"""The element-wise functions of the array API: the ops of the same meaning, with the standard's signatures."""

import operator as _operator

from . import _volta as _v
from ._volta import Tensor

# The standard's name: ours.
_UNARY = {
    name: name
    for name in [
        "abs",
        "acos",
        "acosh",
        "asin",
        "asinh",
        "atan",
        "atanh",
        "ceil",
        "cos",
        "cosh",
        "exp",
        "expm1",
        "floor",
        "isfinite",
        "isinf",
        "isnan",
        "log",
        "log1p",
        "log2",
        "log10",
        "logical_not",
        "positive",
        "reciprocal",
        "round",
        "signbit",
        "sin",
        "sinh",
        "square",
        "sqrt",
        "tan",
        "tanh",
        "trunc",
    ]
} | {"bitwise_invert": "bitwise_not", "negative": "neg"}
_BINARY = {
    name: name
    for name in [
        "add",
        "atan2",
        "bitwise_and",
        "bitwise_left_shift",
        "bitwise_or",
        "bitwise_right_shift",
        "bitwise_xor",
        "copysign",
        "hypot",
        "logaddexp",
        "logical_and",
        "logical_or",
        "logical_xor",
        "maximum",
        "minimum",
        "nextafter",
        "pow",
        "remainder",
    ]
} | {
    "divide": "div",
    "equal": "eq",
    "greater": "gt",
    "greater_equal": "ge",
    "less": "lt",
    "less_equal": "le",
    "multiply": "mul",
    "not_equal": "ne",
    "subtract": "sub",
}
__all__ = [*_UNARY, *_BINARY, "clip", "conj", "floor_divide", "imag", "real", "sign"]


def _unary(name, op):
    def apply(x, /):
        return op(x)

    apply.__name__ = apply.__qualname__ = name
    apply.__doc__ = op.__doc__
    return apply


def _binary(name, op):
    def apply(x1, x2, /):
        return op(x1, x2)

    apply.__name__ = apply.__qualname__ = name
    apply.__doc__ = op.__doc__
    return apply


globals().update({name: _unary(name, getattr(_v, op)) for name, op in _UNARY.items()})
globals().update({name: _binary(name, getattr(_v, op)) for name, op in _BINARY.items()})


def floor_divide(x1, x2, /):
    """x1 // x2: unlike volta.floor_divide, the rounded quotient also where one of them is infinite."""
    return _operator.floordiv(x1, x2)


def sign(x, /):
    """-1, 0 or 1, and NaN of NaN. volta.sign leaves a zero's sign: a sum with 0 takes it away."""
    return _v.sign(x) + 0 if x.dtype.is_floating_point else _v.sign(x)


def clip(x, /, min=None, max=None):
    """x held within bounds, of x's dtype."""
    bounds = [b.to(x.dtype) if isinstance(b, Tensor) else b for b in (min, max)]
    if bounds[0] is None and bounds[1] is None:
        return x.clone()
    return _v.clamp(x, min=bounds[0], max=bounds[1]).to(x.dtype)


def conj(x, /):
    """x itself: there are no complex numbers."""
    return x


def real(x, /):
    """x itself: there are no complex numbers."""
    return x


def imag(x, /):
    """Zeros: there are no complex numbers."""
    return _v.zeros_like(x)
