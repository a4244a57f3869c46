"""The array API's functions over axes: manipulation, searching, sorting, sets, statistics, products."""

from collections import namedtuple

from . import _volta as _v
from ._volta import Tensor, int64, uint64

__all__ = [
    "all",
    "any",
    "argmax",
    "argmin",
    "argsort",
    "concat",
    "count_nonzero",
    "cumulative_prod",
    "cumulative_sum",
    "diff",
    "expand_dims",
    "flip",
    "isin",
    "matmul",
    "matrix_transpose",
    "max",
    "mean",
    "min",
    "moveaxis",
    "nonzero",
    "permute_dims",
    "prod",
    "repeat",
    "reshape",
    "roll",
    "searchsorted",
    "sort",
    "squeeze",
    "stack",
    "std",
    "sum",
    "take",
    "take_along_axis",
    "tensordot",
    "tile",
    "unique_all",
    "unique_counts",
    "unique_inverse",
    "unique_values",
    "unstack",
    "var",
    "vecdot",
    "where",
]


def _accumulated(x, dtype):
    """The dtype in which sums and products are made, unless told otherwise: whole numbers do not wrap early."""
    if dtype is not None:
        return x.to(dtype)
    if x.dtype.is_floating_point or x.dtype in (int64, uint64):
        return x
    return x.to(int64 if x.dtype.is_signed or x.dtype == _v.bool else uint64)


# Manipulation


def concat(arrays, /, *, axis=0):
    kind = _v.result_type(*arrays)
    if axis is None:
        return _v.cat([x.to(kind).flatten() for x in arrays])
    return _v.cat([x.to(kind) for x in arrays], axis)


def expand_dims(x, /, axis=0):
    axes = (axis,) if isinstance(axis, int) else tuple(axis)
    rank = x.ndim + len(axes)
    for a in axes:
        if not -rank <= a < rank:
            raise IndexError(f"expand_dims: axis {a} is out of range for {rank} axes")
    for a in sorted(a % rank for a in axes):
        x = x.unsqueeze(a)
    return x


def flip(x, /, *, axis=None):
    axes = tuple(range(x.ndim)) if axis is None else axis
    return x.flip(axes) if axes != () else x.clone()


def matrix_transpose(x, /):
    return x.mT


def moveaxis(x, source, destination, /):
    return _v.movedim(x, source, destination) if x.ndim else x


def permute_dims(x, /, axes):
    return x.permute(tuple(axes))


def repeat(x, repeats, /, *, axis=None):
    if isinstance(repeats, Tensor) and repeats.ndim == 0:
        repeats = int(repeats)
    if isinstance(repeats, Tensor) and len(repeats) == 1:
        repeats = int(repeats[0])
    if isinstance(repeats, Tensor):
        repeats = repeats.to(int64)
    return _v.repeat_interleave(x, repeats, axis)


def reshape(x, /, shape, *, copy=None):
    y = x.reshape(tuple(shape))
    if copy is False and not y.shares_storage(x):
        raise ValueError("reshape: this shape needs a copy")
    return y.clone() if copy and y.shares_storage(x) else y


def roll(x, /, shift, *, axis=None):
    if axis is None:
        return _v.roll(x.flatten(), shift, 0).reshape(x.shape)
    if isinstance(shift, int) and isinstance(axis, tuple):
        shift = (shift,) * len(axis)
    return _v.roll(x, shift, axis)


def squeeze(x, /, axis):
    axes = (axis,) if isinstance(axis, int) else tuple(axis)
    for a in axes:
        if not -x.ndim <= a < x.ndim:
            raise IndexError(f"squeeze: axis {a} is out of range for {x.ndim} axes")
        if x.shape[a] != 1:
            raise ValueError(f"squeeze: axis {a} of shape {x.shape} is not of size 1")
    return x.squeeze(axes) if axes else x


def stack(arrays, /, *, axis=0):
    kind = _v.result_type(*arrays)
    return _v.stack([x.to(kind) for x in arrays], axis)


def tile(x, repetitions, /):
    return _v.tile(x, tuple(repetitions)) if repetitions else x.clone()


def unstack(x, /, *, axis=0):
    return _v.unbind(x, axis)


# Indexing, searching, sorting


def take(x, indices, /, *, axis=None):
    if axis is None:
        if x.ndim != 1:
            raise ValueError("take: an axis is wanted where x is not a vector")
        axis = 0
    axis = _axis(axis, x)
    taken = _v.index_select(x, axis, _positive(indices.flatten(), x.shape[axis]))
    return taken if indices.ndim == 1 else taken.reshape(x.shape[:axis] + indices.shape + x.shape[axis + 1 :])


def take_along_axis(x, indices, /, *, axis=-1):
    return _v.take_along_dim(x, _positive(indices, x.shape[axis]), axis)


def _axis(axis, x):
    if not -x.ndim <= axis < x.ndim:
        raise IndexError(f"axis {axis} is out of range for {x.ndim} axes")
    return axis % x.ndim


def _positive(indices, size):
    """Indices that count from the end as those from the beginning."""
    indices = indices.to(int64)
    return _v.where(indices < 0, indices + size, indices)


def argmax(x, /, *, axis=None, keepdims=False):
    return _argument(_v.argmax, x, axis, keepdims)


def argmin(x, /, *, axis=None, keepdims=False):
    return _argument(_v.argmin, x, axis, keepdims)


def _argument(op, x, axis, keepdims):
    y = op(x, axis, keepdim=keepdims and axis is not None)
    return y.reshape((1,) * x.ndim) if keepdims and axis is None else y


def count_nonzero(x, /, *, axis=None, keepdims=False):
    return sum(x != 0, axis=axis, keepdims=keepdims)


def nonzero(x, /):
    if x.ndim == 0:
        raise ValueError("nonzero: a 0-d tensor has no indices")
    return _v.unbind(_v.nonzero(x), 1)


def searchsorted(x1, x2, /, *, side="left", sorter=None):
    if side not in ("left", "right"):
        raise ValueError(f"searchsorted: side {side!r} is not one of left, right")
    x1 = x1 if sorter is None else take(x1, sorter)
    if not isinstance(x2, Tensor):
        x2 = _v.full((), x2, dtype=_v.result_type(x1, x2), device=x1.device)
    kind = _v.result_type(x1, x2)
    return _v.searchsorted(x1.to(kind), x2.to(kind), right=side == "right")


def isin(x1, x2, /, *, invert=False):
    return _v.isin(x1, x2, invert=invert)


def where(condition, x1, x2, /):
    return _v.where(condition, x1, x2)


def sort(x, /, *, axis=-1, descending=False, stable=True):
    return _v.sort(x, axis, descending, True).values


def argsort(x, /, *, axis=-1, descending=False, stable=True):
    return _v.sort(x, axis, descending, True).indices


# Sets

_All = namedtuple("unique_all_result", ["values", "indices", "inverse_indices", "counts"])
_Counts = namedtuple("unique_counts_result", ["values", "counts"])
_Inverse = namedtuple("unique_inverse_result", ["values", "inverse_indices"])


def unique_all(x, /):
    flat = x.flatten()
    values, inverse, counts = _v.unique(flat, True, True, True)
    order = _v.arange(flat.shape[0]).to(x.device)
    first = _v.full((values.shape[0],), flat.shape[0], dtype=int64, device=x.device)
    indices = first.scatter_reduce(0, inverse.flatten(), order, "amin")
    return _All(values, indices, inverse.reshape(x.shape), counts)


def unique_counts(x, /):
    result = _v.unique(x.flatten(), True, False, True)
    return _Counts(result.values, result.counts)


def unique_inverse(x, /):
    result = _v.unique(x.flatten(), True, True, False)
    return _Inverse(result.values, result.inverse.reshape(x.shape))


def unique_values(x, /):
    return _v.unique(x.flatten()).values


# Statistics


def all(x, /, *, axis=None, keepdims=False):
    return (x != 0) if axis == () else _v.all(x, axis, keepdims)


def any(x, /, *, axis=None, keepdims=False):
    return (x != 0) if axis == () else _v.any(x, axis, keepdims)


def cumulative_prod(x, /, *, axis=None, dtype=None, include_initial=False):
    return _cumulative(_v.cumprod, _v.ones, x, axis, dtype, include_initial)


def cumulative_sum(x, /, *, axis=None, dtype=None, include_initial=False):
    return _cumulative(_v.cumsum, _v.zeros, x, axis, dtype, include_initial)


def _cumulative(op, start, x, axis, dtype, include_initial):
    if axis is None:
        if x.ndim > 1:
            raise ValueError("an axis is wanted where x has more than one")
        axis = 0
    wide = _accumulated(x, dtype)
    result = op(wide, axis).to(wide.dtype)
    if not include_initial:
        return result
    shape = list(x.shape)
    shape[axis] = 1
    return _v.cat([start(shape, dtype=wide.dtype, device=x.device), result], axis)


def diff(x, /, *, axis=-1, n=1, prepend=None, append=None):
    if n == 0:  # before anything is added, as in NumPy
        return _v.diff(x, 0, axis)
    parts = [p for p in (prepend, x, append) if p is not None]
    return _v.diff(_v.cat(parts, axis) if len(parts) > 1 else x, n, axis)


def max(x, /, *, axis=None, keepdims=False):
    return x.clone() if axis == () else _v.amax(x, axis, keepdims)


def min(x, /, *, axis=None, keepdims=False):
    return x.clone() if axis == () else _v.amin(x, axis, keepdims)


def mean(x, /, *, axis=None, keepdims=False):
    return x.clone() if axis == () else _v.mean(x, axis, keepdims)


def prod(x, /, *, axis=None, dtype=None, keepdims=False):
    wide = _accumulated(x, dtype)
    return wide.clone() if axis == () else _v.prod(wide, axis, keepdims).to(wide.dtype)


def sum(x, /, *, axis=None, dtype=None, keepdims=False):
    wide = _accumulated(x, dtype)
    return wide.clone() if axis == () else _v.sum(wide, axis, keepdims).to(wide.dtype)


def std(x, /, *, axis=None, correction=0.0, keepdims=False):
    return _spread(_v.std_dev, x, axis, correction, keepdims)


def var(x, /, *, axis=None, correction=0.0, keepdims=False):
    return _spread(_v.var, x, axis, correction, keepdims)


def _spread(op, x, axis, correction, keepdims):
    if axis == ():  # of single elements
        return op(x.unsqueeze(-1), -1, correction)
    return op(x, axis, correction, keepdims)


# Products


def matmul(x1, x2, /):
    kind = _v.result_type(x1, x2)
    return _v.matmul(x1.to(kind), x2.to(kind))


def tensordot(x1, x2, /, *, axes=2):
    kind = _v.result_type(x1, x2)
    x1, x2 = x1.to(kind), x2.to(kind)
    if isinstance(axes, int):
        return _v.tensordot(x1, x2, axes)
    return _v.tensordot(x1, x2, list(axes[0]), list(axes[1]))


def vecdot(x1, x2, /, *, axis=-1):
    kind = _v.result_type(x1, x2)
    x1, x2 = x1.to(kind), x2.to(kind)
    if x1.shape[axis] != x2.shape[axis]:
        raise ValueError(f"vecdot: axis {axis} of {x1.shape} and {x2.shape} differs")
    return (x1.movedim(axis, -1) * x2.movedim(axis, -1)).sum(-1).to(kind)
