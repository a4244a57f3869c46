"""The Python array API standard, version 2024.12, over tensors. Complex numbers and fft are not there."""

import builtins as _builtins
import math as _math

from . import _array_api_linalg as linalg
from . import _volta as _v
from ._array_api_elementwise import *  # noqa: F403
from ._array_api_elementwise import __all__ as _elementwise
from ._array_api_more import *  # noqa: F403
from ._array_api_more import __all__ as _more
from ._tensor import asarray  # noqa: F401
from ._volta import (  # noqa: F401
    Tensor,
    bfloat16,
    bool,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
)

__array_api_version__ = "2024.12"
e, inf, nan, pi, newaxis = _math.e, _math.inf, _math.nan, _math.pi, None

_SIGNED, _UNSIGNED = [int8, int16, int32, int64], [uint8, uint16, uint32, uint64]
_FLOATING = [float32, float64]


def _shape(shape):
    return (shape,) if isinstance(shape, int) else tuple(shape)


# Creation


def arange(start, /, stop=None, step=1, *, dtype=None, device=None):
    start, stop = (0, start) if stop is None else (start, stop)
    if step == 0:
        raise ValueError("arange: a step of 0")
    if (stop - start) * step <= 0:
        whole = not _any(not isinstance(n, int) for n in (start, stop, step))
        kind = dtype or (int64 if whole else _v.get_default_dtype())
        return _v.empty(0, dtype=kind, device=device)
    return _v.arange(start, stop, step, dtype=dtype, device=device)


def empty(shape, *, dtype=None, device=None):
    return _v.empty(_shape(shape), dtype=dtype, device=device)


def empty_like(x, /, *, dtype=None, device=None):
    return _v.empty_like(x, dtype=dtype, device=device)


def eye(n_rows, n_cols=None, /, *, k=0, dtype=None, device=None):
    n_cols = n_rows if n_cols is None else n_cols
    k = _diagonal(k, n_rows, n_cols)
    rows = _v.arange(n_rows).unsqueeze(1)
    return (rows + k == _v.arange(n_cols)).to(dtype or _v.get_default_dtype()).to(device or "cpu")


def full(shape, fill_value, *, dtype=None, device=None):
    if dtype is None:
        kinds = {"bool": bool, "int": int64}
        dtype = kinds.get(type(fill_value).__name__, _v.get_default_dtype())
    return _v.full(_shape(shape), fill_value, dtype=dtype, device=device)


def full_like(x, /, fill_value, *, dtype=None, device=None):
    return _v.full(x.shape, fill_value, dtype=dtype or x.dtype, device=device or x.device)


def linspace(start, stop, /, num, *, dtype=None, device=None, endpoint=True):
    if num == 0:
        return empty(0, dtype=dtype, device=device)
    last = num - 1 if endpoint else num
    if dtype is not None and isdtype(dtype, "integral") and isinstance(start, int) and isinstance(stop, int):
        # Python's integers are exact where a double has too few bits for 64.
        steps = [start + (stop - start) * i // (last or 1) for i in range(num)]
        return _v.tensor(steps, dtype=dtype, device=device)
    if _math.isinf(float(stop) - float(start)):  # twice the steps between the halves do not overflow
        return linspace(start / 2, stop / 2, num, dtype=dtype, device=device, endpoint=endpoint) * 2
    return _v.linspace(start, stop, last + 1, dtype=dtype, device=device)[:num]


def meshgrid(*arrays, indexing="xy"):
    if indexing not in ("xy", "ij"):
        raise ValueError(f"meshgrid: indexing {indexing!r} is not one of xy, ij")
    if not arrays:
        return []
    if len(arrays) == 1:
        return [arrays[0].clone()]
    return list(_v.meshgrid(arrays, indexing))


def ones(shape, *, dtype=None, device=None):
    return _v.ones(_shape(shape), dtype=dtype, device=device)


def ones_like(x, /, *, dtype=None, device=None):
    return _v.ones_like(x, dtype=dtype, device=device)


def tril(x, /, *, k=0):
    return _v.tril(x, _diagonal(k, *x.shape[-2:]))


def triu(x, /, *, k=0):
    return _v.triu(x, _diagonal(k, *x.shape[-2:]))


def _diagonal(k, rows=0, columns=0):
    """The diagonal k, or the first one beyond the matrix: any int is allowed, however large."""
    return _builtins.max(-rows, _builtins.min(k, columns))


def from_dlpack(x, /, *, device=None, copy=None):
    return _v.from_dlpack(x, device=device, copy=copy)


def zeros(shape, *, dtype=None, device=None):
    return _v.zeros(_shape(shape), dtype=dtype, device=device)


def zeros_like(x, /, *, dtype=None, device=None):
    return _v.zeros_like(x, dtype=dtype, device=device)


# Data types


def astype(x, dtype, /, *, copy=True, device=None):
    y = x.to(dtype)
    y = y if device is None else y.to(device)
    return y.clone() if copy and y.shares_storage(x) else y


def isdtype(dtype, kind):
    if isinstance(kind, tuple):
        return _any(isdtype(dtype, k) for k in kind)
    if isinstance(kind, str):
        return kind != "complex floating" and _v._isdtype(dtype, kind)
    if not isinstance(kind, _v.dtype):
        raise TypeError(f"isdtype: a kind is a str, a dtype or a tuple of such, not {type(kind).__name__}")
    return dtype == kind


def _any(values):
    return next((True for v in values if v), False)


def can_cast(from_, to, /):
    """Whether the table of promotions leads from one dtype to the other: within a kind, to all of its values."""
    source = from_.dtype if isinstance(from_, Tensor) else from_
    kinds = ("bool", "integral", "real floating")
    if not _any(isdtype(source, kind) and isdtype(to, kind) for kind in kinds):
        return False
    try:
        return _v.result_type(source, to) == to
    except TypeError:
        return False


def result_type(*arrays_and_dtypes):
    return _v.result_type(*arrays_and_dtypes)


def finfo(type, /):
    return _v.finfo(type)


def iinfo(type, /):
    return _v.iinfo(type)


def broadcast_to(x, /, shape):
    return _v.broadcast_to(x, _shape(shape))


def broadcast_arrays(*arrays):
    shape = broadcast_shapes(*(x.shape for x in arrays))
    return [_v.broadcast_to(x, shape) for x in arrays]


def broadcast_shapes(*shapes):
    """The shape that several broadcast to."""
    result = []
    for i in range(1, _rank(shapes) + 1):
        sizes = {s[-i] for s in shapes if len(s) >= i} - {1}
        if len(sizes) > 1:
            raise ValueError(f"shapes {shapes} do not broadcast")
        result.append(sizes.pop() if sizes else 1)
    return tuple(reversed(result))


def _rank(shapes):
    return sorted([0, *(len(s) for s in shapes)])[-1]


# Inspection


class _Info:
    """What the namespace offers."""

    def capabilities(self):
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 12}

    def default_device(self):
        return _v.device("cpu")

    def default_dtypes(self, *, device=None):
        return {"real floating": _v.get_default_dtype(), "integral": int64, "indexing": int64}

    def devices(self):
        return [_v.device("cpu")] + [_v.device(f"cuda:{i}") for i in range(_v._cuda_device_count())]

    def dtypes(self, *, device=None, kind=None):
        known = [bool, *_SIGNED, *_UNSIGNED, *_FLOATING]
        if isinstance(kind, tuple):
            known = [d for d in known if _any(isdtype(d, k) for k in kind)]
        elif kind is not None:
            known = [d for d in known if isdtype(d, kind)]
        return {d.name: d for d in known}


def __array_namespace_info__():
    return _Info()


_CREATION = [
    "arange",
    "asarray",
    "empty",
    "empty_like",
    "eye",
    "from_dlpack",
    "full",
    "full_like",
    "linspace",
    "meshgrid",
    "ones",
    "ones_like",
    "tril",
    "triu",
    "zeros",
    "zeros_like",
]
_DTYPES = [
    "astype",
    "broadcast_arrays",
    "broadcast_shapes",
    "broadcast_to",
    "can_cast",
    "finfo",
    "iinfo",
    "isdtype",
    "result_type",
    "bool",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "float32",
    "float64",
]
__all__ = [
    "e",
    "inf",
    "nan",
    "newaxis",
    "pi",
    "__array_api_version__",
    "__array_namespace_info__",
    "linalg",
    *_CREATION,
    *_DTYPES,
    *_elementwise,
    *_more,
]
