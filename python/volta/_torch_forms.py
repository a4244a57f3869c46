"""Arguments of PyTorch's that the op list does not have: each function over the op of its name."""

import collections
import functools

from . import _volta
from ._tensor_names import _kept, _spread
from ._volta import Tensor


def _words(function):
    """The function with NumPy's `axis` and `keepdims`, which PyTorch takes too."""

    @functools.wraps(function)
    def named(*args, **kwargs):
        for word, own in (("axis", "dim"), ("keepdims", "keepdim")):
            if word in kwargs:
                kwargs[own] = kwargs.pop(word)
        return function(*args, **kwargs)

    return named


class HistogramResult(collections.namedtuple("HistogramResult", "hist bin_edges")):
    """What `histogram` gives."""

    counts = property(lambda self: self.hist)
    edges = property(lambda self: self.bin_edges)


def div(input, other, *, rounding_mode=None):
    """The quotient; with `rounding_mode` "trunc" or "floor" rounded, integers staying integers."""
    if rounding_mode is None:
        return _volta.div(input, other)
    if rounding_mode == "floor":
        return _volta.floor_divide(input, other)
    if rounding_mode != "trunc":
        raise ValueError(f"div(): rounding_mode is None, 'trunc' or 'floor', not {rounding_mode!r}")
    dtype = _volta.result_type(input, other)
    if dtype.is_floating_point:
        return _volta.trunc(_volta.div(input, other))
    return _volta.floor_divide(_volta.sub(input, _volta.fmod(input, other)), other)


divide = true_divide = div
clip = _volta.clamp  # either bound may be missing


def round(input, *, decimals=0):
    """The nearest whole number, of two the even one; with `decimals` the nearest of so many digits."""
    if decimals == 0:
        return _volta.round(input)
    if not input.dtype.is_floating_point:
        raise _volta.DTypeError("round: decimals are of floats, not of integers")
    scale = 10.0 ** abs(decimals)
    return _volta.round(input * scale) / scale if decimals > 0 else _volta.round(input / scale) * scale


@_words
def diff(input, n=1, dim=-1, prepend=None, append=None):
    """Differences of neighbours, n times over, with more put before or after."""
    if n == 0:
        return input
    parts = [x for x in (prepend, input, append) if x is not None]
    return _volta.diff(parts[0] if len(parts) == 1 else _volta.cat(parts, dim), n, dim)


def nonzero(input, *, as_tuple=False):
    """Where the elements are that are not 0: a row for each, or with `as_tuple` the indices of each axis."""
    return tuple(_volta.where(input)) if as_tuple else _volta.nonzero(input)


@_words
def argsort(input, dim=-1, descending=False, stable=True):
    """The indices that sort. Sorting is always stable."""
    return _volta.argsort(input, dim, descending)


def bucketize(input, boundaries, *, out_int32=False, right=False):
    """In which of the intervals between sorted boundaries each element lies."""
    found = _volta.bucketize(input if isinstance(input, Tensor) else _volta.tensor(input), boundaries, right=right)
    return found.to(_volta.int32) if out_int32 else found


def searchsorted(sorted_sequence, input, *, out_int32=False, right=False, side=None, sorter=None):
    """Where values go in sorted rows: before the first that is not less, or with `right` after the last that is not more."""
    if side not in (None, "left", "right"):
        raise ValueError(f"searchsorted(): side is 'left' or 'right', not {side!r}")
    if side == "left" and right:
        raise ValueError("searchsorted(): side 'left' and right=True contradict each other")
    if sorter is not None:
        sorted_sequence = sorted_sequence.gather(-1, sorter)
    found = _volta.searchsorted(sorted_sequence, input, right=right or side == "right")
    return found.to(_volta.int32) if out_int32 else found


def cdist(x1, x2, p=2.0, compute_mode=None):
    """Distances between all rows. `compute_mode` is accepted and changes nothing."""
    return _volta.cdist(x1, x2, p)


def logit(input, eps=None):
    """log(x / (1 - x)), with `eps` of x between eps and 1 - eps."""
    if eps is None:
        return _volta.logit(input)
    if not input.dtype.is_floating_point:
        input = input.to(_volta.get_default_dtype())
    low, high = eps, 1 - eps
    # Also where low is above high: what is below low is low.
    return _volta.logit(_volta.where(input < low, low, _volta.where(input > high, high, input)))


@_words
def repeat_interleave(input, repeats, dim=None, *, output_size=None):
    """Each element several times over. `output_size`, which PyTorch wants to know on a GPU, is not needed."""
    return _volta.repeat_interleave(input, repeats, dim)


@_words
def unique_consecutive(input, return_inverse=False, return_counts=False, dim=None):
    """The first of each run of equal elements, and where asked for the run of each and how long it is."""
    result = _volta.unique_consecutive(input, return_inverse, return_counts, dim)
    given = [result[0], *(x for x, wanted in ((result[1], return_inverse), (result[2], return_counts)) if wanted)]
    return given[0] if len(given) == 1 else tuple(given)


@_words
def norm(input, p="fro", dim=None, keepdim=False, dtype=None):
    """The p-norm of all elements, or along axes; "fro" is 2, "nuc" the sum of a matrix's singular values."""
    if dtype is not None:
        input = input.to(dtype)
    if p != "nuc":
        return _volta.norm(input, 2 if p in ("fro", None) else p, dim, keepdim)
    if dim is not None:
        input = input.movedim(tuple(dim), (-2, -1))
    from .array_api import linalg

    total = linalg.svdvals(input).sum(-1)
    return total if not keepdim else total.reshape(_with_ones(input.ndim, dim, total.shape))


def _with_ones(count, dim, shape):
    axes = {d % count for d in (dim if dim is not None else (-2, -1))}
    rest = iter(shape)
    return [1 if i in axes else next(rest) for i in range(count)]


var_mean, std_mean = _spread("var_mean"), _spread("std_mean")


def cov(input, *, correction=1, fweights=None, aweights=None):
    """Covariances of rows of observations, which may count or weigh differently."""
    if aweights is not None and input.dtype.is_floating_point and aweights.dtype.is_floating_point:
        dtype = _volta.result_type(input, aweights)
        input, aweights = input.to(dtype), aweights.to(dtype)
    return _volta.cov(input, correction=correction, fweights=fweights, aweights=aweights)


def _at_least(name):
    function = getattr(_volta, name)

    def at_least(*tensors):
        if len(tensors) == 1 and isinstance(tensors[0], Tensor):
            return function(tensors[0])
        given = tensors[0] if len(tensors) == 1 else tensors
        return tuple(function(x) for x in given)

    at_least.__name__ = at_least.__qualname__ = name
    at_least.__doc__ = function.__doc__
    return at_least


atleast_1d, atleast_2d, atleast_3d = (_at_least(f"atleast_{n}d") for n in (1, 2, 3))


def histogram(input, bins=100, *, range=None, weight=None, density=False):
    """How many elements lie in each bin, or what they weigh; bins are equal parts of a range, or given by their edges."""
    if weight is None and not density and not isinstance(bins, Tensor):
        return HistogramResult(*_volta.histogram(input, bins, range))
    edges = bins if isinstance(bins, Tensor) else _volta.histogram(input, bins, range).edges
    x = input.flatten()
    count = edges.numel() - 1
    place = _volta.searchsorted(edges, x, right=True) - 1
    place = _volta.where(x == edges[-1], count - 1, place)  # the last bin has both its edges
    inside = (x >= edges[0]) & (x <= edges[-1])
    weights = _volta.ones_like(x) if weight is None else weight.flatten()
    total = _volta.zeros(count, dtype=input.dtype, device=input.device)
    total = total.index_add(0, place[inside], weights[inside].to(input.dtype))
    if density:
        total = total / (total.sum() * _volta.diff(edges))
    return HistogramResult(total, edges)


def squeeze(input, *dim, **words):
    """Without axes of size 1: all of them, or those that are named. An empty list names none."""
    if len(dim) == 1 and isinstance(dim[0], (tuple, list)) and not dim[0]:
        return input.view(input.shape)
    return _volta.squeeze(input, *dim, **words)


@_words
def tensor_split(input, indices_or_sections=None, dim=0, *, indices=None, sections=None):
    """Parts as equal as can be, or between indices; a tensor may say either."""
    given = next(x for x in (indices_or_sections, indices, sections) if x is not None)
    return _volta.tensor_split(input, given.tolist() if isinstance(given, Tensor) else given, dim)


@_words
def take_along_dim(input, indices, dim=None):
    """Elements at the indices along an axis; negative ones count from its end."""
    if not indices.dtype.is_floating_point and indices.dtype.is_signed:
        size = input.numel() if dim is None else input.shape[dim]
        indices = _volta.where((indices < 0) & (indices >= -size), indices + size, indices)
    return _volta.take_along_dim(input, indices, dim)


def scatter(input, dim, index, src=None, *, value=None, reduce=None):
    """The elements of src, or a value, at the indices; with `reduce` "add" or "multiply" combined with what is there."""
    src = value if src is None else src
    if reduce is None:
        return _volta.scatter(input, dim, index, src)
    if reduce not in ("add", "multiply"):
        raise ValueError(f"scatter(): reduce is 'add' or 'multiply', not {reduce!r}")
    if not isinstance(src, Tensor):
        src = _volta.full(index.shape, src, dtype=input.dtype, device=input.device)
    return _volta.scatter_reduce(input, dim, index, src, reduce="sum" if reduce == "add" else "prod")


def _clamp_in_place(name):
    function = getattr(_volta.Tensor, "clamp_")

    def clamp_(self, min=None, max=None):
        if max is None or min is None:
            return self.copy_(_volta.clamp(_kept(self), min, max))
        return function(self, min, max)

    clamp_.__name__, clamp_.__qualname__ = name, f"Tensor.{name}"
    clamp_.__doc__ = function.__doc__
    return clamp_


def _in_place(name):
    function, plain = globals()[name], getattr(Tensor, name + "_", None)

    def changed(self, *args, **kwargs):
        if plain and len(args) < _ARGUMENTS.get(name, 1) and not kwargs:
            return plain(self, *args)
        return self.copy_(function(_kept(self), *args, **kwargs))

    changed.__name__, changed.__qualname__ = name + "_", f"Tensor.{name}_"
    changed.__doc__ = f"{name} in place."
    return changed


# How many arguments the op itself takes in place.
_ARGUMENTS = {"div": 2, "divide": 2, "true_divide": 2, "scatter": 4}
FUNCTIONS = """clip div divide true_divide round diff nonzero argsort bucketize searchsorted cdist logit repeat_interleave
unique_consecutive norm var_mean std_mean atleast_1d atleast_2d atleast_3d histogram squeeze tensor_split
take_along_dim scatter cov""".split()
METHODS = """div divide true_divide round diff nonzero argsort logit repeat_interleave unique_consecutive norm
histogram squeeze tensor_split take_along_dim scatter cov""".split()


def define():
    """Adds the methods to Tensor."""
    for name in METHODS:
        setattr(Tensor, name, globals()[name])
    for name in ("div", "divide", "true_divide", "round", "logit", "scatter"):
        setattr(Tensor, name + "_", _in_place(name))
    for name in ("clamp_", "clip_"):
        setattr(Tensor, name, _clamp_in_place(name))
    Tensor.clip = Tensor.clamp
