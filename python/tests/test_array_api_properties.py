"""The array API by properties: what Hypothesis draws, every function, dtype and odd shape, gives what NumPy gives."""

import math
import operator

import numpy as np
import pytest

import volta as v
from volta import array_api as xp

hypothesis = pytest.importorskip("hypothesis")
from hypothesis import HealthCheck, given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402
from hypothesis.extra import array_api as strategies  # noqa: E402
from hypothesis.extra import numpy as hn  # noqa: E402

INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
FLOATING = ["float32", "float64"]
NUMERIC, ALL = INTEGERS + FLOATING, ["bool", *INTEGERS, *FLOATING]
# The same examples in each run.
EXAMPLES = settings(max_examples=30, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
RTOL = {"float32": 4e-6, "float64": 1e-13}
SMALLEST = {"float32": 2e-45, "float64": 0.0}
pytestmark = pytest.mark.filterwarnings("ignore")


def properties(test):
    return EXAMPLES(given(st.data())(test))


def shapes(min_dims=0, max_dims=4, min_side=0):
    return hn.array_shapes(min_dims=min_dims, max_dims=max_dims, min_side=min_side, max_side=4)


def dtype_of(name):
    return getattr(xp, name)


def tensor(a):
    return xp.asarray(np.ascontiguousarray(a) if a.ndim else a)


def same(ours, theirs, what=None, rtol=0.0, atol=0.0):
    """One dtype and shape, equal numbers, NaN where NaN is, zeros of the same sign."""
    theirs = np.asarray(theirs)
    assert isinstance(ours, v.Tensor) and ours.shape == theirs.shape, (what, ours.shape, theirs.shape)
    ours = np.asarray(ours)
    assert ours.dtype == theirs.dtype, (what, ours.dtype, theirs.dtype)
    if ours.dtype.kind != "f":
        np.testing.assert_array_equal(ours, theirs, err_msg=str(what))
        return
    np.testing.assert_allclose(ours.astype("f8"), theirs.astype("f8"), rtol=rtol, atol=atol, err_msg=str(what))
    zeros = (ours == 0) & (theirs == 0)
    assert (np.signbit(ours) == np.signbit(theirs))[zeros].all(), (what, "sign of 0")


def promotes(a, b):
    if a == b:
        return True
    if "f" in (a[0], b[0]):
        return a[0] == b[0]
    return "b" not in (a[0], b[0]) and not ("uint64" in (a, b) and not a[0] == b[0] == "u")


def numbers(dtype):
    if dtype == "bool":
        return st.booleans()
    if dtype in INTEGERS:
        return st.integers(int(np.iinfo(dtype).min), int(np.iinfo(dtype).max))
    return st.floats(width=int(dtype[5:]))


def small(dtype):
    """Whole numbers whose sums and products are exact in any order."""
    low = 0 if dtype[0] == "u" else -4
    return st.integers(low, 4).map(float if dtype in FLOATING else int)


EXACT = "abs ceil floor trunc round positive sign square isfinite isinf isnan negative".split()
INEXACT = (
    "acos acosh asin asinh atan atanh cos cosh exp expm1 log log1p log2 log10 reciprocal sin sinh sqrt tan tanh"
).split()
UNARY = (
    dict.fromkeys(EXACT, NUMERIC)
    | dict.fromkeys([*INEXACT, "signbit"], FLOATING)
    | {"logical_not": ["bool"], "bitwise_invert": ["bool", *INTEGERS]}
)
UNARY_OPERATORS = {"abs": operator.abs, "negative": operator.neg, "positive": operator.pos}
UNARY_OPERATORS["bitwise_invert"] = operator.inv


@pytest.mark.parametrize("name", UNARY)
@properties
def test_unary(name, data):
    dtype = data.draw(st.sampled_from(UNARY[name]))
    a = data.draw(hn.arrays(dtype, shapes()))
    if name in ("sin", "cos", "tan"):
        a = np.where(np.abs(a) < 1e5, a, np.zeros_like(a))
    rtol = RTOL.get(dtype, 0.0) if name in INEXACT else 0.0
    atol = 1e3 * SMALLEST.get(dtype, 0.0) + (rtol / 10 if name in ("sin", "cos", "tan") else 0)
    expected = getattr(np, name)(a)
    same(getattr(xp, name)(tensor(a)), expected, name, rtol * (100 if name == "tan" else 1), atol if rtol else 0.0)
    if name in UNARY_OPERATORS:
        same(UNARY_OPERATORS[name](tensor(a)), expected, name)


BITWISE = "bitwise_and bitwise_or bitwise_xor".split()
ARITHMETIC = (
    "add subtract multiply maximum minimum less less_equal greater greater_equal floor_divide remainder pow".split()
)
BINARY = (
    dict.fromkeys(ARITHMETIC, NUMERIC)
    | dict.fromkeys("equal not_equal".split(), ALL)
    | dict.fromkeys("divide atan2 copysign hypot logaddexp nextafter".split(), FLOATING)
    | dict.fromkeys(BITWISE, ["bool", *INTEGERS])
    | dict.fromkeys("logical_and logical_or logical_xor".split(), ["bool"])
    | dict.fromkeys("bitwise_left_shift bitwise_right_shift".split(), INTEGERS)
)
OPERATORS = {
    "add": "add",
    "subtract": "sub",
    "multiply": "mul",
    "divide": "truediv",
    "floor_divide": "floordiv",
    "remainder": "mod",
    "pow": "pow",
    "bitwise_and": "and",
    "bitwise_or": "or",
    "bitwise_xor": "xor",
    "bitwise_left_shift": "lshift",
    "bitwise_right_shift": "rshift",
}
COMPARISONS = {
    "less": "lt",
    "less_equal": "le",
    "greater": "gt",
    "greater_equal": "ge",
    "equal": "eq",
    "not_equal": "ne",
}


def defined(name, a, b):
    """Operands for which the standard says the result and NumPy gives it."""
    if name in ("floor_divide", "remainder"):
        if b.dtype.kind in "iu":
            return a, np.where(b == 0, np.ones_like(b), b)
        return (np.where(np.isfinite(x), x, np.ones_like(x)) for x in (a, b))
    if name == "pow" and b.dtype.kind in "iu":
        return a, np.abs(b % np.array(5, b.dtype))
    return a, np.where(b < 0, np.zeros_like(b), b) if "shift" in name else b


def tolerances(name, dtype):
    if name not in ("pow", "atan2", "hypot", "logaddexp", "divide", "remainder", "floor_divide"):
        return {}
    return {"rtol": 10 * RTOL.get(dtype, 0.0), "atol": 10 * SMALLEST.get(dtype, 0.0)}


def check_binary(name, first, second, expected):
    """The function and its operator, of tensors or of a tensor and a number."""
    near = tolerances(name, expected.dtype.name)
    same(getattr(xp, name)(first, second), expected, (name, first, second), **near)
    symbol = COMPARISONS.get(name, OPERATORS.get(name))
    if symbol:
        same(getattr(operator, f"__{symbol}__")(first, second), expected, (symbol, first, second), **near)
    if (
        name in OPERATORS
        and isinstance(first, v.Tensor)
        and (first.dtype.name, first.shape)
        == (
            expected.dtype.name,
            expected.shape,
        )
    ):
        x = xp.asarray(first, copy=True)
        y = getattr(operator, f"__i{symbol}__")(x, second)
        assert y is x
        same(y, expected, (f"{symbol} in place", first, second), **near)


@pytest.mark.parametrize("name", BINARY)
@properties
def test_binary(name, data):
    kind = data.draw(st.sampled_from(BINARY[name]))
    other = data.draw(st.sampled_from([d for d in BINARY[name] if promotes(kind, d)]))
    drawn = data.draw(hn.mutually_broadcastable_shapes(num_shapes=2, max_dims=4, max_side=4, min_side=0))
    a, b = (data.draw(hn.arrays(d, s)) for d, s in zip((kind, other), drawn.input_shapes, strict=True))
    a, b = defined(name, a, b)
    check_binary(name, tensor(a), tensor(b), getattr(np, name)(a, b))


@pytest.mark.parametrize("name", BINARY)
@properties
def test_binary_with_a_number(name, data):
    dtype = data.draw(st.sampled_from(BINARY[name]))
    a, number = data.draw(hn.arrays(dtype, shapes())), np.asarray(data.draw(numbers(dtype)), dtype)
    x, y = defined(name, a, number)
    check_binary(name, tensor(x), y.item(), np.asarray(getattr(np, name)(x, y)))
    x, y = defined(name, number, a)
    check_binary(name, x.item(), tensor(y), np.asarray(getattr(np, name)(x, y)))


@properties
def test_basic_indices(data):
    dtype, shape = data.draw(st.sampled_from(ALL)), data.draw(shapes())
    a = data.draw(hn.arrays(dtype, shape))
    key = data.draw(hn.basic_indices(shape, allow_newaxis=True))
    same(tensor(a)[key], a[key], key)
    x, b, target = xp.asarray(tensor(a), copy=True), a.copy(), np.asarray(a[key])
    fits = {target.shape, target.shape[1:], (), (1,) * target.ndim}
    values = data.draw(st.one_of(numbers(dtype), hn.arrays(dtype, st.sampled_from(sorted(fits)))))
    x[key], b[key] = tensor(values) if isinstance(values, np.ndarray) else values, values
    same(x, b, (key, values))


@properties
def test_indices_of_tensors(data):
    dtype, shape = data.draw(st.sampled_from(ALL)), data.draw(shapes(min_dims=1, min_side=1))
    a, chosen = data.draw(hn.arrays(dtype, shape)), data.draw(shapes(max_dims=2))
    keys = []
    for size in shape[: data.draw(st.integers(1, len(shape)))]:
        kind = data.draw(st.sampled_from(["int64", "int32", "uint8", "int8"]))
        places = hn.arrays(kind, chosen, elements=st.integers(0, size - 1))
        keys.append(data.draw(st.one_of(st.integers(-size, size - 1), places)))
    same(tensor(a)[tuple(tensor(k) if isinstance(k, np.ndarray) else k for k in keys)], a[tuple(keys)], keys)


@properties
def test_masks(data):
    dtype, shape = data.draw(st.sampled_from(ALL)), data.draw(shapes())
    a = data.draw(hn.arrays(dtype, shape))
    mask = data.draw(hn.arrays("bool", shape[: data.draw(st.integers(0, len(shape)))]))
    same(tensor(a)[tensor(mask)], a[mask], mask)
    x, b = xp.asarray(tensor(a), copy=True), a.copy()
    for values in (
        data.draw(numbers(dtype)),
        data.draw(hn.arrays(dtype, a[mask].shape)),
        data.draw(hn.arrays(dtype, ())),
    ):
        x[tensor(mask)], b[mask] = tensor(values) if isinstance(values, np.ndarray) else values, values
        same(x, b, (mask, values))


def axes(rank, several=True):
    one = [st.none(), *([st.integers(-rank, rank - 1)] if rank else [])]
    some = st.lists(st.integers(0, rank - 1), unique=True).map(tuple) if rank else st.just(())
    return st.one_of(*one, *([some] if several else []))


REDUCTIONS = (
    dict.fromkeys("sum prod max min argmax argmin".split(), NUMERIC)
    | dict.fromkeys("all any count_nonzero".split(), ALL)
    | dict.fromkeys("mean std var".split(), FLOATING)
)


@pytest.mark.parametrize("name", REDUCTIONS)
@properties
def test_reductions(name, data):
    dtype = data.draw(st.sampled_from(REDUCTIONS[name]))
    shape = data.draw(shapes(min_side=1 if "m" in name[:4] and name != "sum" else 0))
    exact = name in ("sum", "prod", "mean", "std", "var") and dtype in FLOATING
    a = data.draw(hn.arrays(dtype, shape, elements=small(dtype) if exact else None))
    options = {"axis": data.draw(axes(len(shape), "arg" not in name)), "keepdims": data.draw(st.booleans())}
    if name in ("std", "var"):
        options["correction"] = data.draw(st.sampled_from([0, 0.5]))
        expected = np.asarray(getattr(np, name)(a.astype("f8"), **options)).astype(dtype)
        same(getattr(xp, name)(tensor(a), **options), expected, (a, options), 1e-5, 1e-6)
        return
    if name in ("sum", "prod"):
        chosen = data.draw(st.sampled_from([None, dtype, "float64"]))
        natural = dtype if dtype in FLOATING else "uint64" if dtype[0] == "u" else "int64"
        ours = getattr(xp, name)(tensor(a), dtype=chosen and dtype_of(chosen), **options)
        same(ours, getattr(np, name)(a, dtype=chosen or natural, **options), (a, options), 1e-6)
        return
    same(getattr(xp, name)(tensor(a), **options), getattr(np, name)(a, **options), (a, options), 1e-6, 1e-6)


@pytest.mark.parametrize("name", ["cumulative_sum", "cumulative_prod"])
@properties
def test_scans(name, data):
    dtype, shape = data.draw(st.sampled_from(NUMERIC)), data.draw(shapes(min_dims=1))
    a, rank = data.draw(hn.arrays(dtype, shape, elements=small(dtype))), len(shape)
    axis = data.draw(st.sampled_from([None, 0, -1]) if rank == 1 else st.integers(-rank, rank - 1))
    natural = dtype if dtype in FLOATING else "uint64" if dtype[0] == "u" else "int64"
    chosen, options = data.draw(st.sampled_from([None, dtype, "float64"])), {"axis": axis}
    options["include_initial"] = data.draw(st.booleans())
    ours = getattr(xp, name)(tensor(a), dtype=chosen and dtype_of(chosen), **options)
    same(ours, getattr(np, name)(a, dtype=chosen or natural, **options), (a, options), 1e-6)


@properties
def test_shapes(data):
    dtype, shape = data.draw(st.sampled_from(ALL)), data.draw(shapes())
    a, rank = data.draw(hn.arrays(dtype, shape)), len(shape)
    x = tensor(a)
    order = tuple(i - rank * data.draw(st.booleans()) for i in data.draw(st.permutations(range(rank))))
    same(xp.permute_dims(x, order), np.permute_dims(a, order), order)
    axis = data.draw(axes(rank))
    same(xp.flip(x, axis=axis), np.flip(a, axis=axis), axis)
    axis = data.draw(st.integers(-rank - 1, rank))
    same(xp.expand_dims(x, axis=axis), np.expand_dims(a, axis), axis)
    ones = tuple(i for i in range(rank) if shape[i] == 1)
    same(xp.squeeze(x, ones), np.squeeze(a, ones))
    for shape_of in ((a.size,), shape[::-1], (1, *shape)):
        same(xp.reshape(x, shape_of, copy=data.draw(st.sampled_from([None, True]))), np.reshape(a, shape_of))
    wider = tuple(data.draw(st.integers(0, 3)) if n == 1 else n for n in (1, *shape))
    same(xp.broadcast_to(x, wider), np.broadcast_to(a, wider), wider)
    times = data.draw(st.lists(st.integers(0, 3), max_size=4).map(tuple))
    same(xp.tile(x, times), np.tile(a, times), times)
    source = data.draw(st.lists(st.integers(0, rank - 1), unique=True)) if rank else []
    places = data.draw(st.permutations(range(rank)))[: len(source)]
    same(xp.moveaxis(x, tuple(source), tuple(places)), np.moveaxis(a, source, places), (source, places))
    if rank >= 2:
        k = data.draw(st.integers(-6, 6))
        same(xp.tril(x, k=k), np.tril(a, k), k)
        same(xp.triu(x, k=k), np.triu(a, k), k)
        same(xp.matrix_transpose(x), np.matrix_transpose(a))
    if rank == 0:
        return
    axis, shift = data.draw(st.one_of(st.none(), st.integers(-rank, rank - 1))), data.draw(st.integers(-9, 9))
    same(xp.roll(x, shift, axis=axis), np.roll(a, shift, axis=axis), (shift, axis))
    counts = hn.arrays("int32", (a.size if axis is None else shape[axis],), elements=st.integers(0, 3))
    for count in (data.draw(st.integers(0, 3)), data.draw(counts)):
        ours = tensor(count) if isinstance(count, np.ndarray) else count
        same(xp.repeat(x, ours, axis=axis), np.repeat(a, count, axis=axis), (count, axis))
    several = data.draw(st.lists(st.integers(-rank, rank - 1), min_size=1, max_size=rank).map(tuple))
    shifts = tuple(data.draw(st.integers(-9, 9)) for _ in several)
    same(xp.roll(x, shifts, axis=several), np.roll(a, shifts, axis=several), (shifts, several))
    axis = data.draw(st.integers(-rank, rank - 1))
    for ours, theirs in zip(xp.unstack(x, axis=axis), np.unstack(a, axis=axis), strict=True):
        same(ours, theirs, axis)


@properties
def test_joining(data):
    kind = data.draw(st.sampled_from(ALL))
    other = data.draw(st.sampled_from([d for d in ALL if promotes(kind, d)]))
    shape = data.draw(shapes(min_dims=1))
    axis, longer = data.draw(st.one_of(st.none(), st.integers(-len(shape), len(shape) - 1))), list(shape)
    if axis is not None:
        longer[axis] = data.draw(st.integers(0, 4))
    a, b = data.draw(hn.arrays(kind, shape)), data.draw(hn.arrays(other, tuple(longer)))
    same(xp.concat([tensor(a), tensor(b)], axis=axis), np.concat([a, b], axis=axis), axis)
    b, axis = data.draw(hn.arrays(other, shape)), data.draw(st.integers(-len(shape) - 1, len(shape)))
    same(xp.stack((tensor(a), tensor(b)), axis=axis), np.stack([a, b], axis=axis), axis)
    mask, number = data.draw(hn.arrays("bool", shape)), np.asarray(data.draw(numbers(kind)), kind)
    same(xp.where(tensor(mask), tensor(a), tensor(b)), np.where(mask, a, b))
    same(xp.where(tensor(mask), number.item(), tensor(a)), np.where(mask, number, a))
    lines = [data.draw(hn.arrays(kind, (data.draw(st.integers(0, 3)),))) for _ in range(data.draw(st.integers(1, 4)))]
    for indexing in ("xy", "ij"):
        grids = xp.meshgrid(*map(tensor, lines), indexing=indexing)
        for ours, theirs in zip(grids, np.meshgrid(*lines, indexing=indexing), strict=True):
            same(ours, theirs, indexing)


def ordered(dtype):
    return st.floats(width=int(dtype[5:]), allow_nan=False).map(lambda x: x + 0.0) if dtype in FLOATING else None


@properties
def test_sorting_searching_and_sets(data):
    dtype, shape = data.draw(st.sampled_from(NUMERIC)), data.draw(shapes(min_dims=1, max_dims=3))
    a, axis = (
        data.draw(hn.arrays(dtype, shape, elements=ordered(dtype))),
        data.draw(st.integers(-len(shape), len(shape) - 1)),
    )
    a = a + np.zeros_like(a)  # -0 and 0 are equal: either may come first
    x, size = tensor(a), shape[axis]
    same(xp.sort(x, axis=axis), np.sort(a, axis=axis, stable=True))
    same(xp.sort(x, axis=axis, descending=True), np.flip(np.sort(a, axis=axis), axis))
    same(xp.argsort(x, axis=axis), np.argsort(a, axis=axis, stable=True))
    backwards = size - 1 - np.flip(np.argsort(np.flip(a, axis), axis=axis, stable=True), axis)
    same(xp.argsort(x, axis=axis, descending=True), backwards)
    ours, theirs = xp.unique_all(x), np.unique_all(a)
    for part in ("values", "counts", "inverse_indices"):
        same(getattr(ours, part), getattr(theirs, part), part)
    same(xp.reshape(x, (-1,))[ours.indices] if a.size else ours.values, theirs.values)
    for part, expected in zip(xp.nonzero(x), np.nonzero(a), strict=True):
        same(part, expected)
    line, asked = np.sort(a.reshape(-1)), data.draw(hn.arrays(dtype, shapes(max_dims=2), elements=ordered(dtype)))
    order = np.argsort(a.reshape(-1), stable=True)
    for side in ("left", "right"):
        expected = np.asarray(np.searchsorted(line, asked, side=side))
        same(xp.searchsorted(tensor(line), tensor(asked), side=side), expected, side)
        same(xp.searchsorted(tensor(a.reshape(-1)), tensor(asked), side=side, sorter=tensor(order)), expected, side)
    n = data.draw(st.integers(0, 3))
    whole = np.where(np.abs(a) < 1000, a, np.zeros_like(a)).round().astype(dtype)
    same(xp.diff(tensor(whole), axis=axis, n=n) + 0, np.diff(whole, axis=axis, n=n) + 0, n)
    if size:
        places = hn.arrays("int64", (data.draw(st.integers(0, 4)),), elements=st.integers(0, size - 1))
        indices = data.draw(places)
        same(xp.take(x, tensor(indices), axis=axis), np.take(a, indices, axis=axis), indices)
        at = list(shape)
        at[axis] = data.draw(st.integers(0, 4))
        indices = data.draw(hn.arrays("int64", tuple(at), elements=st.integers(-size, size - 1)))
        same(xp.take_along_axis(x, tensor(indices), axis=axis), np.take_along_axis(a, indices, axis=axis), indices)


@properties
def test_clip(data):
    dtype = data.draw(st.sampled_from(NUMERIC))
    drawn = data.draw(hn.mutually_broadcastable_shapes(num_shapes=3, max_dims=3, max_side=3, min_side=0))
    a, b, c = (
        data.draw(hn.arrays(dtype, s, elements=ordered(dtype))) + np.asarray(0, dtype) for s in drawn.input_shapes
    )
    low, high = np.minimum(b, c), np.maximum(b, c)
    same(xp.clip(tensor(a), tensor(low), tensor(high)), np.clip(a, low, high), (a, low, high))
    same(xp.clip(tensor(a), max=tensor(high)), np.clip(a, None, high), (a, high))
    number = np.asarray(data.draw(ordered(dtype) or numbers(dtype)), dtype)
    same(xp.clip(tensor(a), number.item()), np.clip(a, number, None), (a, number))


@properties
def test_conversions_and_creation(data):
    source, target = data.draw(st.sampled_from(ALL)), data.draw(st.sampled_from(ALL))
    shape = data.draw(shapes())
    a = data.draw(hn.arrays(source, shape))
    if source in FLOATING and target in INTEGERS:
        limits = np.iinfo(target)
        a = np.where(np.isfinite(a) & (a >= limits.min) & (a < limits.max), a, np.zeros_like(a))
    same(xp.astype(tensor(a), dtype_of(target)), a.astype(target), (a, target))
    number, dtype = data.draw(numbers(source)), dtype_of(source)
    same(xp.full(shape, number, dtype=dtype), np.full(shape, number, dtype=source))
    same(xp.full_like(xp.empty(shape, dtype=dtype), number), np.full(shape, number, dtype=source))
    for name in ("zeros", "ones"):
        same(getattr(xp, name)(shape, dtype=dtype), getattr(np, name)(shape, dtype=source))
        same(getattr(xp, f"{name}_like")(tensor(a)), getattr(np, f"{name}_like")(a))
    rows, columns, k = data.draw(st.tuples(st.integers(0, 5), st.none() | st.integers(0, 5), st.integers(-7, 7)))
    same(xp.eye(rows, columns, k=k, dtype=dtype), np.eye(rows, columns, k=k, dtype=source))
    if 0 not in shape:
        same(xp.asarray(a.tolist(), dtype=dtype), a)


@properties
def test_ranges(data):
    dtype = data.draw(st.sampled_from(INTEGERS))
    bounds = st.integers(0 if dtype[0] == "u" else -100, 100)
    start, stop, step = data.draw(bounds), data.draw(bounds), data.draw(st.integers(-9, 9).filter(bool))
    same(
        xp.arange(start, stop, step, dtype=dtype_of(dtype)),
        np.arange(start, stop, step, dtype=dtype),
        (start, stop, step),
    )
    first, count = data.draw(numbers("int64")), data.draw(st.integers(0, 9))
    last = min(first + 3 * count, 2**63 - 1)
    assert xp.arange(first, last, 3).tolist() == list(range(first, last, 3))
    dtype = data.draw(st.sampled_from(FLOATING))
    ends = st.floats(width=int(dtype[5:]), allow_nan=False, allow_infinity=False)
    start, stop, num = data.draw(ends), data.draw(ends), data.draw(st.integers(0, 50))
    x = xp.linspace(start, stop, num, dtype=dtype_of(dtype))
    assert x.shape == (num,) and x.dtype == dtype_of(dtype) and (num == 0 or x[0] == start)
    assert num < 2 or float(x[-1]) == stop
    if math.isfinite(float(np.asarray(stop, dtype) - np.asarray(start, dtype))):
        scale = max(abs(start), abs(stop))
        near = {"rtol": 1e-5, "atol": scale * 1e-5}
        same(x + 0, np.linspace(start, stop, num, dtype=dtype) + 0, (start, stop, num), **near)


@properties
def test_products(data):
    kind = data.draw(st.sampled_from(NUMERIC))
    other = data.draw(st.sampled_from([d for d in NUMERIC if promotes(kind, d)]))
    n, m, k = (data.draw(st.integers(0, 4)) for _ in range(3))
    drawn = data.draw(hn.mutually_broadcastable_shapes(num_shapes=2, max_dims=2, max_side=3, min_side=0))
    first, second = drawn.input_shapes
    a = data.draw(hn.arrays(kind, (*first, n, m), elements=small(kind)))
    b = data.draw(hn.arrays(other, (*second, m, k), elements=small(other)))
    line = data.draw(hn.arrays(other, (m,), elements=small(other)))
    for p, q in ((a, b), (a, line), (line, b), (line, line)):
        same(xp.matmul(tensor(p), tensor(q)) + 0, np.asarray(np.matmul(p, q)) + 0)
        same(tensor(p) @ tensor(q) + 0, np.asarray(p @ q) + 0)
    p = data.draw(hn.arrays(kind, (*first, m), elements=small(kind)))
    q = data.draw(hn.arrays(other, (*second, m), elements=small(other)))
    same(xp.vecdot(tensor(p), tensor(q)) + 0, np.asarray(np.vecdot(p, q)) + 0)
    p = data.draw(hn.arrays(kind, (n, m, k), elements=small(kind)))
    q = data.draw(hn.arrays(other, (m, k, n), elements=small(other)))
    for pairs in (0, 2, ((0, -1), (2, 1))):
        same(xp.tensordot(tensor(p), tensor(q), axes=pairs) + 0, np.tensordot(p, q, axes=pairs) + 0, pairs)


@properties
def test_arrays_that_hypothesis_makes_itself(data):
    """Its strategies build tensors through the namespace alone, as the conformance suite does."""
    namespace = strategies.make_strategies_namespace(xp)
    dtypes = st.sampled_from([dtype_of(name) for name in ALL])
    x = data.draw(namespace.arrays(dtypes, namespace.array_shapes(min_dims=0, min_side=0)))
    key = data.draw(namespace.indices(x.shape, allow_newaxis=True))
    same(x[key], np.asarray(x)[key], key)
