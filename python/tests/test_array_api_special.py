"""The array API at the edges: special numbers, extreme integers, numbers as operands, odd arguments, empty arrays."""

import enum
import inspect
import itertools
import math
import operator

import numpy as np
import pytest

import volta as v
from volta import array_api as xp

INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
FLOATING = ["float32", "float64"]
INF, NAN = math.inf, math.nan
NUMBERS = [
    NAN,
    -NAN,
    INF,
    -INF,
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    -0.5,
    1.5,
    -1.5,
    2.0,
    -2.0,
    3.0,
    -3.0,
    2.5,
    7.25,
    1e30,
    -1e-30,
]


def dtype_of(name):
    return getattr(xp, name)


def assert_same(ours, theirs, name, rtol=0.0):
    """Equal numbers, with NaN where NaN is and zeros of the same sign."""
    ours, theirs = np.asarray(ours), np.asarray(theirs)
    assert ours.shape == theirs.shape and ours.dtype == theirs.dtype, (name, ours.dtype, theirs.dtype)
    np.testing.assert_allclose(ours, theirs, rtol=rtol, atol=0, err_msg=name)
    if ours.dtype.kind == "f":
        zero = theirs == 0
        assert (np.signbit(ours) == np.signbit(theirs))[zero].all(), name


UNARY = (
    "abs acos acosh asin asinh atan atanh ceil cos cosh exp expm1 floor isfinite isinf isnan log log1p log2 log10 "
    "negative positive reciprocal round sign signbit sin sinh sqrt square tan tanh trunc"
).split()
BINARY = (
    "add atan2 copysign divide equal greater greater_equal hypot less less_equal logaddexp maximum minimum multiply "
    "nextafter not_equal remainder subtract"
).split()


@pytest.mark.parametrize("dtype", FLOATING)
def test_functions_of_special_numbers(dtype):
    rtol = 1e-12 if dtype == "float64" else 2e-6
    numbers = np.array([*NUMBERS, 88.0, -88.0, 2.0**23 + 1, 1e-30, -1e30], dtype)
    first, second = (a.ravel() for a in np.meshgrid(numbers[:20], numbers[:20], indexing="ij"))
    with np.errstate(all="ignore"):
        for name in UNARY:
            theirs = getattr(np, name)(numbers)
            assert_same(getattr(xp, name)(xp.asarray(numbers)), theirs, name, rtol)
            assert_same(getattr(xp, name)(xp.asarray(numbers)[3]), theirs[3], name, rtol)
        for name in BINARY:
            theirs = getattr(np, name)(first, second)
            assert_same(getattr(xp, name)(xp.asarray(first), xp.asarray(second)), theirs, name, rtol)


# x1, x2 and x1 // x2: the rounded quotient. Python and NumPy have NaN or -1 where one is infinite.
QUOTIENTS = [
    (INF, 2.0, INF),
    (INF, -2.0, -INF),
    (-INF, 0.5, -INF),
    (-INF, -3.0, INF),
    (INF, INF, NAN),
    (-INF, INF, NAN),
    (3.0, INF, 0.0),
    (3.0, -INF, -0.0),
    (-3.0, INF, -0.0),
    (-3.0, -INF, 0.0),
    (0.0, -INF, -0.0),
    (0.0, 0.0, NAN),
    (-0.0, 2.0, -0.0),
    (2.0, 0.0, INF),
    (-2.0, 0.0, -INF),
    (2.0, -0.0, -INF),
    (NAN, 1.0, NAN),
    (1.0, NAN, NAN),
    (7.0, -2.0, -4.0),
    (1.0, 0.1, 9.0),
]


@pytest.mark.parametrize("dtype", FLOATING)
def test_rounded_quotients(dtype):
    for a, b, expected in QUOTIENTS if dtype == "float64" else QUOTIENTS[:-1]:
        for shape in ((), (3,)):
            x, y, z = (xp.full(shape, n, dtype=dtype_of(dtype)) for n in (a, b, expected))
            for quotient in (
                xp.floor_divide(x, y),
                xp.floor_divide(x, b),
                xp.floor_divide(a, y),
                x // y,
                x // b,
                a // y,
                operator.ifloordiv(xp.asarray(x, copy=True), y),
                operator.ifloordiv(xp.asarray(x, copy=True), b),
            ):
                assert_same(quotient, z, f"{a} // {b}")
    x = v.tensor([5.0, 7.0], requires_grad=True)
    (x // 2 * x).sum().backward()
    assert x.grad.tolist() == [2.0, 3.0]
    whole = xp.asarray([7, -7])
    same = whole
    whole //= 2
    assert same.tolist() == [3, -4] and same.dtype == xp.int64


def test_powers():
    for a, b, expected in [
        (NAN, 0.0, 1.0),
        (NAN, -0.0, 1.0),
        (1.0, INF, 1.0),
        (-1.0, -INF, 1.0),
        (0.5, INF, 0.0),
        (0.5, -INF, INF),
        (-INF, 3.0, -INF),
        (-INF, 2.5, INF),
        (-INF, 0.5, INF),
        (-INF, -3.0, -0.0),
        (-INF, -2.0, 0.0),
        (-0.0, 3.0, -0.0),
        (-0.0, 0.5, 0.0),
        (-0.0, -3.0, -INF),
        (-0.0, -2.5, INF),
        (-2.0, 0.5, NAN),
        (2.0, NAN, NAN),
    ]:
        x, y, z = (xp.asarray([n], dtype=xp.float64) for n in (a, b, expected))
        for power in (
            xp.pow(x, y),
            xp.pow(x, b),
            xp.pow(a, y),
            x**y,
            x**b,
            a**y,
            operator.ipow(xp.asarray(x, copy=True), y),
        ):
            assert_same(power, z, f"{a} ** {b}")


def test_signs_of_nan():
    number = complex(xp.asarray(NAN))
    assert math.isnan(number.real) and math.isnan(number.imag) and complex(xp.asarray(True)) == 1
    for dtype, sign in itertools.product(FLOATING, (1.0, -1.0)):
        x = xp.asarray([math.copysign(NAN, sign)], dtype=dtype_of(dtype))
        assert bool(xp.signbit(x)[0]) == (sign < 0)
        assert float(xp.copysign(xp.ones(1, dtype=dtype_of(dtype)), x)[0]) == sign


def wrapped(n, bits, signed):
    n &= (1 << bits) - 1
    return n - (1 << bits) if signed and n >> (bits - 1) else n


@pytest.mark.parametrize("dtype", INTEGERS)
def test_extreme_integers(dtype):
    limits = np.iinfo(dtype)
    low, high, bits = int(limits.min), int(limits.max), limits.bits
    numbers = sorted({low, low + 1, 0, 1, 3, bits - 1, bits, high // 2 + 1, high - 1, high})

    def wrap(n):
        return wrapped(n, bits, low < 0)

    rules = {
        "add": (operator.add, lambda a, b: wrap(a + b)),
        "subtract": (operator.sub, lambda a, b: wrap(a - b)),
        "multiply": (operator.mul, lambda a, b: wrap(a * b)),
        "floor_divide": (operator.floordiv, lambda a, b: wrap(a // b) if b else None),
        "remainder": (operator.mod, lambda a, b: a % b if b else None),
        "bitwise_and": (operator.and_, lambda a, b: a & b),
        "bitwise_xor": (operator.xor, lambda a, b: wrap(a ^ b)),
        "bitwise_left_shift": (operator.lshift, lambda a, b: (wrap(a << b) if b < bits else 0) if b >= 0 else None),
        "bitwise_right_shift": (operator.rshift, lambda a, b: a >> b if b >= 0 else None),
        "equal": (operator.eq, lambda a, b: a == b),
        "less": (operator.lt, lambda a, b: a < b),
    }
    for name, (op, rule) in rules.items():
        right = [b for b in numbers if rule(1, b) is not None]
        pairs = [(a, b) for a in numbers for b in right]
        x, y = (xp.asarray([p[i] for p in pairs], dtype=dtype_of(dtype)) for i in (0, 1))
        expected = [rule(a, b) for a, b in pairs]
        for result in (getattr(xp, name)(x, y), op(x, y)):
            assert result.tolist() == expected, name
            assert result.dtype == (xp.bool if name in ("equal", "less") else dtype_of(dtype))
        y = xp.asarray(right, dtype=dtype_of(dtype))
        for a in numbers:
            for result in (getattr(xp, name)(a, y), op(a, y)):
                assert result.tolist() == [rule(a, b) for b in right], (name, a)


def test_numbers_as_operands():
    for dtype in [*INTEGERS, *FLOATING]:
        x = xp.asarray([1, 2, 3], dtype=dtype_of(dtype))
        number = 2 if dtype in INTEGERS else 2.5
        chosen = xp.where(x > 2, x, number)
        assert chosen.dtype == x.dtype and chosen.tolist() == [number, number, 3]
        assert xp.where(x > 2, number, x).tolist() == [1, 2, number]
        assert xp.clip(x, 2, None).tolist() == [2, 2, 3] and xp.clip(x, max=2).dtype == x.dtype
        assert xp.searchsorted(x, 2).tolist() == 1 and xp.searchsorted(x, 2, side="right").shape == ()
        assert xp.searchsorted(xp.flip(x), 3, sorter=xp.asarray([2, 1, 0])).tolist() == 2
        assert xp.result_type(x, number) == x.dtype
    assert xp.clip(xp.asarray([1.0, NAN]), NAN, 2).tolist()[0] != 1.0
    assert xp.clip(xp.ones(3), xp.zeros((2, 1)), 5).shape == (2, 3)
    assert xp.isin(xp.asarray([1, 2]), 2).tolist() == [False, True]


@pytest.mark.parametrize("dtype", [*INTEGERS, *FLOATING])
def test_linspace_is_exact_at_its_ends(dtype):
    if dtype in INTEGERS:
        low, high = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
        ends = [(low, high), (high, low), (high, high), (high - 3, high - 1)]
    else:
        largest = float(np.finfo(dtype).max)
        ends = [(0.0, 1.0), (0.1, 0.7), (-largest, largest), (largest, largest / 3), (1e-40, 0.0)]
    for (start, stop), num in itertools.product(ends, (1, 2, 3, 50)):
        x = xp.linspace(start, stop, num, dtype=dtype_of(dtype))
        first, last = (xp.asarray(n, dtype=dtype_of(dtype)) for n in (start, stop))
        assert x.shape == (num,) and x.dtype == dtype_of(dtype) and x[0] == first
        assert num == 1 or x[-1] == last
        open_end = xp.linspace(start, stop, num, dtype=dtype_of(dtype), endpoint=False)
        longer = xp.linspace(start, stop, num + 1, dtype=dtype_of(dtype))
        assert_same(open_end, longer[:-1], "linspace")
    assert xp.linspace(0, 1, 0).shape == (0,)


def test_any_diagonal():
    for rows, columns, k in itertools.product((0, 1, 3), (None, 0, 2, 5), (0, 1, -1, 7, -9, 2**63, -(2**64), 10**30)):
        expected = np.eye(rows, columns, max(min(k, 99), -99), dtype="float32")
        assert_same(xp.eye(rows, columns, k=k), expected, "eye")
    x = xp.reshape(xp.arange(6), (2, 3))
    assert xp.tril(x, k=10**30).tolist() == x.tolist() and xp.triu(x, k=10**30).tolist() == [[0, 0, 0]] * 2


def test_asarray_of_all_kinds():
    pair = xp.asarray([1.0, 2.0], dtype=xp.float64)
    assert xp.asarray([pair[0], pair[1]]).dtype == xp.float64
    assert xp.asarray(xp.unstack(xp.ones((3, 2), dtype=xp.uint8))).shape == (3, 2)
    assert xp.asarray(range(3)).tolist() == [0, 1, 2]
    for array in (
        np.array(2.5),
        np.float64(2.5),
        np.int8(3),
        np.bool_(True),
        np.arange(3, dtype="int8"),
        np.ones((2, 3))[:, ::-1],
    ):
        for copy in (None, True):
            assert_same(xp.asarray(array, copy=copy), array, "asarray")
    assert xp.zeros((np.int64(2), np.uint8(1))).shape == (2, 1) and v.ones(4).reshape(np.int32(2), 2).shape == (2, 2)
    assert xp.broadcast_to(xp.ones(3), (np.int64(2), np.int64(3))).shape == (2, 3)
    array = np.zeros(2)
    xp.asarray(array, copy=True)[0] = 5
    assert array[0] == 0
    assert xp.asarray([2**64 - 1], dtype=xp.uint64).tolist() == [2**64 - 1]
    for call in (lambda: xp.asarray([1, 2], copy=False), lambda: xp.asarray(pair, dtype=xp.float32, copy=False)):
        with pytest.raises(ValueError):
            call()
    with pytest.raises(TypeError):
        xp.asarray(1j)


def test_masks_with_axes_of_size_0():
    for shape, mask in itertools.product(
        [(), (3,), (2, 3), (0,), (2, 0)], [(0,), (2, 0), (0, 3), (0, 0), (4,), (0, 4), (2, 3, 1), (3, 2)]
    ):
        x, key = xp.ones(shape), xp.zeros(mask, dtype=xp.bool)
        fits = len(mask) <= len(shape) and all(m in (n, 0) for m, n in zip(mask, shape, strict=False))
        if fits:
            assert x[key].shape == (0, *shape[len(mask) :])
            x[key] = 7.0
            assert bool(xp.all(x == 1))
        else:
            with pytest.raises(IndexError):
                x[key]


def test_indices_of_tensors_and_numbers():
    base = np.arange(24).reshape(2, 3, 4)
    x, rows = xp.asarray(base), np.array([[1, 0], [0, 1]])
    for key in [
        (rows,),
        (rows, 1),
        (0, rows),
        (rows, rows, 2),
        (1, rows, 3),
        (-1, -rows),
        (rows, ...),
        (..., rows),
        (rows, None),
    ]:
        ours = tuple(xp.asarray(k) if isinstance(k, np.ndarray) else k for k in key)
        assert_same(x[ours], base[key], str(key))
    assert x[xp.asarray(1, dtype=xp.uint8)].tolist() == base[1].tolist()


def test_places():
    x = xp.reshape(xp.arange(6), (2, 3))
    assert xp.take(x, xp.asarray([-1, 0]), axis=-1).tolist() == [[2, 0], [5, 3]]
    assert xp.take(x, xp.asarray([[0, 1], [2, 2]]), axis=1).shape == (2, 2, 2)
    assert xp.expand_dims(x, axis=(0, -1)).shape == (1, 2, 3, 1) and xp.expand_dims(x, 1).shape == (2, 1, 3)
    for axis in (3, -4, 9):
        with pytest.raises(IndexError):
            xp.expand_dims(x, axis=axis)


class Place(enum.Enum):
    cpu = 1


def test_dlpack_arguments():
    x = xp.ones((2, 2))
    for copy, version, place in itertools.product(
        (None, True, False), (None, (0, 0), (1, 0), (2, 0)), (None, (1, 0), (Place.cpu, 0))
    ):
        x.__dlpack__(copy=copy, max_version=version, dl_device=place)
    for copy, device in itertools.product((None, True, False), (None, "cpu", x.device)):
        y = xp.from_dlpack(x, copy=copy, device=device)
        assert (
            y.device == x.device and y.tolist() == x.tolist() and (y.data_ptr() == x.data_ptr()) == (copy is not True)
        )
    with pytest.raises(BufferError):
        x.__dlpack__(dl_device=(2, 0))


def test_dtypes_beside_other_things():
    for dtype in ("bool", *INTEGERS, *FLOATING):
        assert not (dtype_of(dtype) == None) and dtype_of(dtype) != None and dtype_of(dtype) != dtype  # noqa: E711
    assert v.device("cpu") != None and v.device("cpu") not in (None, 3)  # noqa: E711
    assert xp.can_cast(xp.int8, xp.int16) and xp.can_cast(xp.ones(1, dtype=xp.uint8), xp.int16)
    for source, target in [
        ("int16", "int8"),
        ("bool", "int8"),
        ("int8", "float32"),
        ("float64", "float32"),
        ("int8", "bool"),
    ]:
        assert not xp.can_cast(dtype_of(source), dtype_of(target))
    for kind in ("number", 3, None, ("bool", 3)):
        with pytest.raises((TypeError, ValueError)):
            xp.isdtype(xp.int8, kind)
    assert None not in xp.__array_namespace_info__().default_dtypes().values()


def test_native_functions_have_signatures():
    for name, parameters in {
        "from_dlpack": "(x, /, *, device=None, copy=None)",
        "finfo": "(type, /)",
        "iinfo": "(type, /)",
        "result_type": "(*arrays_and_dtypes)",
    }.items():
        assert str(inspect.signature(getattr(xp, name))) == parameters


def test_reductions_of_nothing_and_nan():
    nothing = xp.asarray([], dtype=xp.float32)
    for name, expected in {"mean": NAN, "std": NAN, "var": NAN, "sum": 0.0, "prod": 1.0}.items():
        assert_same(getattr(xp, name)(nothing), np.float32(expected), name)
    for name in ("max", "min", "mean", "prod", "std", "sum", "var"):
        for numbers in ([NAN], [1.0, NAN], [*range(40), NAN], [NAN, INF]):
            assert math.isnan(float(getattr(xp, name)(xp.asarray(numbers))))
    values = xp.unique_all(xp.asarray([NAN, 1.0, NAN, -0.0, 0.0]))
    assert values.counts.tolist() == [2, 1, 1, 1] and math.isnan(float(values.values[-1]))
