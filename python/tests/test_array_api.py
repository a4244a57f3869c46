"""The array API 2024.12: names, signatures, dtypes and values, against array-api-strict and NumPy."""

import inspect

import array_api_strict as strict
import numpy as np
import pytest

import volta as v
from volta import array_api as xp

REAL = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64"]
COMPLEX = {"complex64", "complex128"}
NUMERIC, FLOATING = REAL[1:], ["float32", "float64"]
INTEGERS = REAL[1:9]


def names_of(namespace):
    skipped = COMPLEX | {
        "linalg",
        "fft",
        "Device",
        "ArrayAPIStrictFlags",
        "set_array_api_strict_flags",
        "get_array_api_strict_flags",
        "reset_array_api_strict_flags",
        "asarray",
    }
    return [
        n for n in namespace.__all__ if n not in skipped and not n.startswith("__") and callable(getattr(namespace, n))
    ]


def test_every_name_is_there_with_its_parameters():
    strict.set_array_api_strict_flags(api_version="2024.12")
    for name in [n for n in names_of(strict) if n[0].islower() and not isinstance(getattr(strict, n), type)]:
        assert hasattr(xp, name), name
        ours, theirs = getattr(xp, name), getattr(strict, name)
        if name in ("finfo", "iinfo", "result_type", "from_dlpack", "int8") or not inspect.isfunction(theirs):
            continue
        wanted = {p.name: p for p in inspect.signature(theirs).parameters.values() if p.kind == p.KEYWORD_ONLY}
        have = inspect.signature(ours).parameters
        for keyword, parameter in wanted.items():
            assert keyword in have, f"{name}({keyword}=)"
            if "Undef" not in str(parameter.default):
                assert str(have[keyword].default) == str(parameter.default), f"{name}({keyword}=)"
    for name in ("e", "pi", "inf", "nan", "newaxis", "__array_api_version__"):
        assert hasattr(xp, name)
    assert xp.__array_api_version__ == "2024.12" and v.ones(1).__array_namespace__() is xp
    with pytest.raises(ValueError):
        v.ones(1).__array_namespace__(api_version="1999.12")


def test_inspection():
    info = xp.__array_namespace_info__()
    assert info.capabilities()["boolean indexing"] and info.default_device() in info.devices()
    assert set(info.dtypes()) == set(REAL) and set(info.dtypes(kind="unsigned integer")) == set(REAL[5:9])
    assert (
        info.dtypes(kind=("bool", "signed integer"))["bool"] == xp.bool
        and info.default_dtypes()["integral"] == xp.int64
    )
    assert info.dtypes(kind="complex floating") == {}


def np_of(x):
    return np.asarray(x)


def sample(dtype, shape, seed=0):
    return np.asarray(draw(dtype, shape, np.random.default_rng(seed)))


def draw(dtype, shape, rng):
    if dtype == "bool":
        return np.asarray(rng.integers(0, 2, shape), bool)
    if dtype.startswith("float"):
        return np.asarray(rng.normal(size=shape) * 3, dtype)
    low = 0 if dtype.startswith("u") else -20
    return np.asarray(rng.integers(low, 21, shape), dtype)


def check(name, *arrays, rtol=0.0, **options):
    """The same call here and in array-api-strict: the same dtype, shape and values."""

    def call(namespace):
        def convert(a):
            return namespace.asarray(a) if isinstance(a, (np.ndarray, np.generic)) else a

        return getattr(namespace, name)(*map(convert, arrays), **{k: convert(a) for k, a in options.items()})

    theirs, ours = call(strict), call(xp)
    many = isinstance(theirs, (tuple, list))
    for a, b in zip(ours if many else [ours], theirs if many else [theirs], strict=True):
        b = np.asarray(b._array) if hasattr(b, "_array") else np.asarray(b)
        assert a.shape == b.shape, name
        # The default float is float32 here and float64 there.
        assert a.dtype.name == b.dtype.name or (a.dtype.name, b.dtype.name) == ("float32", "float64"), (
            name,
            a.dtype,
            b.dtype,
        )
        np.testing.assert_allclose(np_of(a), b, rtol=rtol, atol=0, err_msg=name)


UNARY = {
    "abs": NUMERIC,
    "ceil": NUMERIC,
    "floor": NUMERIC,
    "trunc": NUMERIC,
    "round": NUMERIC,
    "negative": REAL[1:5] + FLOATING,
    "positive": NUMERIC,
    "sign": NUMERIC,
    "square": NUMERIC,
    "isfinite": NUMERIC,
    "isinf": NUMERIC,
    "isnan": NUMERIC,
    "logical_not": ["bool"],
    "bitwise_invert": ["bool", *INTEGERS],
    "signbit": FLOATING,
} | {
    n: FLOATING
    for n in (
        "acos",
        "acosh",
        "asin",
        "asinh",
        "atan",
        "atanh",
        "cos",
        "cosh",
        "exp",
        "expm1",
        "log",
        "log1p",
        "log2",
        "log10",
        "reciprocal",
        "sin",
        "sinh",
        "sqrt",
        "tan",
        "tanh",
    )
}
BINARY = {
    n: NUMERIC
    for n in (
        "add",
        "subtract",
        "multiply",
        "maximum",
        "minimum",
        "less",
        "less_equal",
        "greater",
        "greater_equal",
        "floor_divide",
        "remainder",
        "pow",
    )
} | {
    "equal": REAL,
    "not_equal": REAL,
    "divide": FLOATING,
    "atan2": FLOATING,
    "copysign": FLOATING,
    "hypot": FLOATING,
    "logaddexp": FLOATING,
    "nextafter": FLOATING,
    "bitwise_and": ["bool", *INTEGERS],
    "bitwise_or": ["bool", *INTEGERS],
    "bitwise_xor": ["bool", *INTEGERS],
    "logical_and": ["bool"],
    "logical_or": ["bool"],
    "logical_xor": ["bool"],
}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", UNARY)
def test_unary(name):
    for dtype in UNARY[name]:
        eps = np.finfo(dtype).eps if dtype in FLOATING else 0
        for shape in ((), (0,), (7,), (2, 3)):
            check(name, sample(dtype, shape), rtol=8 * eps)
        if dtype in FLOATING:
            check(name, np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1, -1], dtype), rtol=8 * eps)


def promotes(a, b):
    kinds = {a[0], b[0]}
    if a == b:
        return True
    if "f" in kinds:
        return kinds == {"f"}
    return "b" not in kinds and not ("uint64" in (a, b) and not (a[0] == b[0] == "u"))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", BINARY)
def test_binary(name):
    for first in BINARY[name]:
        for second in BINARY[name]:
            if not promotes(first, second):
                continue
            a, b = sample(first, (4, 1, 3)), sample(second, (2, 1), seed=1)
            if name in ("floor_divide", "remainder") and "float32" not in (first, second):
                b = np.where(b == 0, np.ones_like(b), b)
            if name == "pow" and second not in FLOATING:
                a, b = a % np.array(4, a.dtype), np.abs(b) % np.array(5, b.dtype)
            check(name, a, b, rtol=8 * np.finfo("float32").eps if first in FLOATING else 0)


@pytest.mark.parametrize("name", ["bitwise_left_shift", "bitwise_right_shift"])
def test_shifts(name):
    for dtype in INTEGERS:
        check(name, sample(dtype, (5,)), np.arange(5).astype(dtype))


@pytest.mark.parametrize("dtype", REAL)
def test_operators_with_numbers(dtype):
    a = sample(dtype, (3, 4))
    x = xp.asarray(a)
    if dtype == "bool":
        assert (x & True).dtype == (True | x).dtype == xp.bool and (x == True).dtype == xp.bool  # noqa: E712
        return
    for number in (2, *([2.5] if dtype in FLOATING else [])):
        for y in (x + number, number + x, x - number, number - x, x * number, x % number, x // number):
            assert y.dtype == x.dtype
        np.testing.assert_allclose(np_of(x + number), a + np.array(number, dtype), rtol=1e-6)
        assert (x < number).dtype == xp.bool


@pytest.mark.parametrize("dtype", REAL)
def test_reductions(dtype):
    a = sample(dtype, (3, 1, 4))
    for axis in (None, 0, 1, -1, (0, 2), (0, 1, 2), ()):
        for keepdims in (False, True):
            options = {"axis": axis, "keepdims": keepdims}
            eps = np.finfo(dtype).eps if dtype in FLOATING else 0
            for name in ("all", "any"):
                check(name, a, **options)
            check("count_nonzero", a, **options)
            if dtype == "bool":
                continue
            for name in ("max", "min"):
                check(name, a, **options)
            for name in ("sum", "prod"):
                check(name, a, rtol=64 * eps, **options)
            if dtype in FLOATING and axis != ():
                check("mean", a, rtol=1e4 * eps, **options)
                for correction in (0, 1.0):
                    check(
                        "var", a + 1, correction=correction, rtol=64 * eps, **options
                    ) if a.size > 1 and axis != 1 else None
                    check(
                        "std", a + 1, correction=correction, rtol=64 * eps, **options
                    ) if a.size > 1 and axis != 1 else None
    if dtype != "bool":
        check("sum", a, dtype=None)
        for axis in (None, 0, 2):
            check("argmax", a, axis=axis)
            check("argmin", a, axis=axis, keepdims=True)
        for include in (False, True):
            check("cumulative_sum", a, axis=2, include_initial=include, rtol=1e-6)
            check("cumulative_prod", a, axis=-1, include_initial=include, rtol=1e-6)
        check("cumulative_sum", a[0, 0], rtol=1e-6)


@pytest.mark.parametrize("dtype", REAL)
def test_manipulation(dtype):
    a, b = sample(dtype, (2, 3, 4)), sample(dtype, (2, 3, 4), 1)
    x, y = xp.asarray(a), xp.asarray(b)
    check("permute_dims", a, (2, 0, 1))
    check("reshape", a, (4, -1))
    check("reshape", a, (24,), copy=True)
    check("flip", a)
    check("flip", a, axis=(0, 2))
    check("flip", a, axis=-1)
    check("roll", a, 5)
    check("roll", a, (1, -1), axis=(0, 2))
    check("roll", a, 2, axis=1)
    check("expand_dims", a, axis=-2)
    check("squeeze", a[:, :1], 1)
    check("moveaxis", a, 0, -1)
    check("moveaxis", a, (0, 1), (2, 0))
    check("repeat", a, 2, axis=1)
    check("repeat", a[0, 0], np.array([1, 0, 2, 3]))
    check("tile", a, (2, 1, 1, 2))
    check("tile", a, (2,))
    check("unstack", a, axis=1)
    check("matrix_transpose", a)
    check("broadcast_to", a[:, :1], (5, 2, 3, 4))
    check("take", a, np.array([2, 0, 2]), axis=1)
    check("take_along_axis", a, np.array([[[0, -1]]]) % 4 * np.ones((2, 3, 1), dtype=int), axis=2)
    check("tril", a, k=1)
    check("triu", a, k=-1)
    for axis in (0, 2, -1, None):
        np.testing.assert_array_equal(np_of(xp.concat([x, y], axis=axis)), np.concatenate([a, b], axis=axis))
    np.testing.assert_array_equal(np_of(xp.stack([x, y], axis=1)), np.stack([a, b], axis=1))
    pair = xp.broadcast_arrays(x[:, :1], y)
    assert [p.shape for p in pair] == [(2, 3, 4)] * 2
    grids = xp.meshgrid(x[0, 0], y[0, :, 0])
    assert [g.shape for g in grids] == [(3, 4)] * 2
    with pytest.raises(ValueError):
        xp.squeeze(x, 1)
    with pytest.raises(ValueError):
        xp.reshape(x.mT, (24,), copy=False)


@pytest.mark.parametrize("dtype", REAL[1:])
def test_sorting_searching_sets(dtype):
    a = sample(dtype, (4, 9)) % np.array(5, dtype)
    for descending in (False, True):
        check("sort", a, axis=0, descending=descending)
        check("argsort", a, axis=1, descending=descending)
    check("nonzero", a)
    check("where", a > 2, a, a[:1])
    line = np.sort(a[0])
    for side in ("left", "right"):
        check("searchsorted", line, a[1], side=side)
    for name in ("unique_counts", "unique_inverse", "unique_values"):
        ours, theirs = getattr(xp, name)(xp.asarray(a)), getattr(strict, name)(strict.asarray(a))
        if name == "unique_values":
            ours, theirs = [ours], [theirs]
        for p, q in zip(ours, theirs, strict=True):
            np.testing.assert_array_equal(np_of(p), q._array)
    values, indices, inverse, counts = xp.unique_all(xp.asarray(a))
    np.testing.assert_array_equal(a.reshape(-1)[np_of(indices)], np_of(values))
    np.testing.assert_array_equal(np_of(values)[np_of(inverse)], a)
    assert int(counts.sum()) == a.size
    check("diff", a, axis=0)
    check("diff", a, n=2)
    check("diff", a, prepend=a[:, :1], append=a[:, :2])
    check("diff", a, n=0, prepend=a[:, :1])
    check("clip", a, 1, 3)
    check("clip", a, min=2)
    check("clip", a, max=np.array(2, dtype))


@pytest.mark.parametrize("dtype", NUMERIC)
def test_products(dtype):
    a, b = sample(dtype, (2, 3, 4)) % np.array(4, dtype), sample(dtype, (2, 4, 5), 1) % np.array(4, dtype)
    eps = 16 * np.finfo(dtype).eps if dtype in FLOATING else 0
    for p, q in ((a, b), (a[0, 0], b[0, :, 0]), (a, b[0, :, 0]), (a[0, 0], b)):
        check("matmul", p, q, rtol=eps)
    check("tensordot", a, b, axes=((2,), (1,)), rtol=eps)
    check("tensordot", a[0], b[0], axes=1, rtol=eps)
    check("tensordot", a, a, axes=3, rtol=4 * eps)
    check("vecdot", a, a[:1], rtol=eps)
    check("vecdot", a, a, axis=-2, rtol=eps)


def test_creation():
    for name, args, options in [
        ("arange", (5,), {}),
        ("arange", (2, 9, 3), {}),
        ("arange", (5, 0, -2), {}),
        ("arange", (0,), {}),
        ("arange", (3, 3), {}),
        ("zeros", ((2, 3),), {}),
        ("ones", (4,), {}),
        ("full", ((2,), 7), {}),
        ("full", ((2,), True), {}),
        ("full", ((), 2.5), {}),
        ("eye", (3,), {}),
        ("eye", (3, 4), {"k": -1}),
        ("linspace", (0, 1, 5), {}),
        ("linspace", (0, 1, 5), {"endpoint": False}),
        ("linspace", (2.0, 3.0, 1), {}),
    ]:
        check(name, *args, rtol=1e-6, **options)
        if name != "linspace":
            for dtype in ("int16", "float64"):
                ours = getattr(xp, name)(*args, dtype=getattr(xp, dtype), **options)
                theirs = getattr(strict, name)(*args, dtype=getattr(strict, dtype), **options)
                np.testing.assert_allclose(np_of(ours), theirs._array)
                assert ours.dtype.name == dtype
    x = xp.ones((2, 3), dtype=xp.int8)
    for name in ("zeros_like", "ones_like", "empty_like"):
        assert getattr(xp, name)(x).dtype == xp.int8 and getattr(xp, name)(x, dtype=xp.float64).dtype == xp.float64
    assert xp.full_like(x, 3).dtype == xp.int8 and xp.full_like(x, 3).shape == (2, 3)
    assert xp.asarray([[1, 2], [3, 4]]).dtype == xp.int64 and xp.asarray(1.0).dtype == xp.float32
    assert xp.asarray(True).dtype == xp.bool and xp.asarray([1, 2], dtype=xp.float32).dtype == xp.float32


def test_dtypes():
    for first in REAL:
        for second in REAL:
            if promotes(first, second):
                ours = xp.result_type(getattr(xp, first), getattr(xp, second))
                assert ours.name == np.result_type(first, second).name
                assert xp.can_cast(getattr(xp, first), ours)
            theirs = strict.isdtype(getattr(strict, first), getattr(strict, second))
            assert xp.isdtype(getattr(xp, first), getattr(xp, second)) == theirs
        for kind in (
            "bool",
            "signed integer",
            "unsigned integer",
            "integral",
            "real floating",
            "complex floating",
            "numeric",
            ("bool", "integral"),
        ):
            assert xp.isdtype(getattr(xp, first), kind) == strict.isdtype(getattr(strict, first), kind)
    for dtype in FLOATING:
        ours, theirs = xp.finfo(getattr(xp, dtype)), np.finfo(dtype)
        assert (ours.bits, ours.eps, ours.max, ours.min) == (theirs.bits, theirs.eps, theirs.max, theirs.min)
        assert ours.smallest_normal == theirs.smallest_normal
    for dtype in INTEGERS:
        ours, theirs = xp.iinfo(getattr(xp, dtype)), np.iinfo(dtype)
        assert (ours.bits, ours.max, ours.min) == (theirs.bits, theirs.max, theirs.min)
    x = xp.asarray([1.7, -2.3])
    assert xp.astype(x, xp.int32).tolist() == [1, -2] and xp.astype(x, xp.float32, copy=False) is not None
    assert not xp.astype(x, x.dtype).shares_storage(x)


def test_einops_works():
    einops = pytest.importorskip("einops.array_api")
    x = v.randn(2, 3, 4)
    assert einops.rearrange(x, "b c t -> b (c t)").shape == (2, 12)
    assert v.allclose(einops.reduce(x, "b c t -> b c", "mean"), x.mean(-1))
    assert einops.repeat(x, "b c t -> b c t r", r=2).shape == (2, 3, 4, 2)
