"""The generated functions and methods: signatures, keywords, overloads, values against NumPy."""

import inspect
import threading
import time

import numpy as np
import pytest

import volta as v
from volta import _volta

FUNCTIONS = {name: f for name, f in vars(_volta).items() if type(f).__name__ == "Function"}


def test_every_op_has_a_signature_and_a_text():
    assert len(FUNCTIONS) > 300
    for name, f in FUNCTIONS.items():
        assert f.__name__ == name and f.__doc__.startswith(name + "("), name
        if f.__text_signature__ is not None:
            inspect.signature(f)
    assert str(inspect.signature(v.softmax)) == "(input, dim, dtype=None)"
    assert str(inspect.signature(v.conv2d)).startswith(
        "(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1"
    )
    assert str(inspect.signature(v.cross_entropy)) == (
        "(input, target, weight=None, reduction='mean', ignore_index=-100, label_smoothing=0)"
    )


UNARY = {
    "abs": "abs",
    "exp": "exp",
    "log": "log",
    "sqrt": "sqrt",
    "sin": "sin",
    "cos": "cos",
    "tan": "tan",
    "tanh": "tanh",
    "sinh": "sinh",
    "cosh": "cosh",
    "floor": "floor",
    "ceil": "ceil",
    "trunc": "trunc",
    "round": "round",
    "sign": "sign",
    "square": "square",
    "log1p": "log1p",
    "expm1": "expm1",
    "log2": "log2",
    "log10": "log10",
    "exp2": "exp2",
    "acos": "arccos",
    "asin": "arcsin",
    "atan": "arctan",
    "asinh": "arcsinh",
    "acosh": "arccosh",
    "atanh": "arctanh",
    "isnan": "isnan",
    "isinf": "isinf",
    "isfinite": "isfinite",
    "neg": "negative",
    "reciprocal": "reciprocal",
    "deg2rad": "deg2rad",
    "rad2deg": "rad2deg",
    "signbit": "signbit",
    "logical_not": "logical_not",
    "sinc": "sinc",
}
BINARY = {
    "add": "add",
    "sub": "subtract",
    "mul": "multiply",
    "div": "divide",
    "maximum": "maximum",
    "minimum": "minimum",
    "fmax": "fmax",
    "fmin": "fmin",
    "fmod": "fmod",
    "remainder": "remainder",
    "floor_divide": "floor_divide",
    "atan2": "arctan2",
    "hypot": "hypot",
    "copysign": "copysign",
    "nextafter": "nextafter",
    "logaddexp": "logaddexp",
    "logaddexp2": "logaddexp2",
    "heaviside": "heaviside",
    "eq": "equal",
    "lt": "less",
    "ge": "greater_equal",
    "logical_and": "logical_and",
    "logical_xor": "logical_xor",
}
SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.5, -3.5, 1e-3, 7.0, np.inf, -np.inf, np.nan]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", UNARY)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_unary_as_numpy(name, dtype):
    x = np.array(SPECIAL, dtype=dtype)
    for array in (x, x[::-1], np.stack([x, x]).T):
        ours = getattr(v, name)(v.tensor(array))
        as_method = getattr(v.tensor(array), name)()
        # NumPy's own functions are good to a few units in the last place.
        np.testing.assert_allclose(
            np.asarray(ours), getattr(np, UNARY[name])(array), rtol=8 * np.finfo(dtype).eps, atol=0
        )
        np.testing.assert_array_equal(np.asarray(ours), np.asarray(as_method))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_binary_as_numpy(name, dtype):
    a, b = np.meshgrid(np.array(SPECIAL, dtype=dtype), np.array(SPECIAL, dtype=dtype))
    ours = getattr(v, name)(v.tensor(a), v.tensor(b))
    np.testing.assert_allclose(np.asarray(ours), getattr(np, BINARY[name])(a, b), rtol=8 * np.finfo(dtype).eps, atol=0)


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64])
def test_integers_as_numpy(dtype):
    rng = np.random.default_rng(0)
    a, b = rng.integers(1, 100, (5, 6)).astype(dtype), rng.integers(1, 100, (6,)).astype(dtype)
    x, y = v.tensor(a), v.tensor(b)
    for name in ("add", "sub", "mul", "floor_divide", "remainder", "maximum", "bitwise_and", "bitwise_xor"):
        ours = getattr(v, name)(x, y)
        theirs = getattr(np, {"sub": "subtract", "mul": "multiply"}.get(name, name))(a, b)
        assert ours.dtype.name == theirs.dtype.name
        np.testing.assert_array_equal(np.asarray(ours), theirs)


def test_reductions_as_numpy():
    a = np.random.default_rng(1).normal(size=(3, 4, 5))
    x = v.tensor(a)
    for axis in (None, 0, -1, (0, 2), [1]):
        numpy_axis = tuple(axis) if isinstance(axis, list) else axis
        for name in ("sum", "mean", "prod", "amax", "amin"):
            for keep in (False, True):
                ours = getattr(x, name)(dim=axis, keepdim=keep)
                np.testing.assert_allclose(
                    np.asarray(ours), getattr(np, name)(a, axis=numpy_axis, keepdims=keep), rtol=1e-12
                )
        np.testing.assert_allclose(
            np.asarray(x.var(axis, correction=1)), np.var(a, axis=numpy_axis, ddof=1), rtol=1e-12
        )
        np.testing.assert_allclose(np.asarray(x.std(axis, correction=0)), np.std(a, axis=numpy_axis), rtol=1e-12)
    assert x.argmax().item() == a.argmax() and v.argmin(x, 1).tolist() == a.argmin(1).tolist()


def test_overloads():
    x = v.tensor([[3.0, 1.0], [2.0, 4.0]])
    assert x.max().item() == 4
    values, indices = x.max(1)
    assert values.tolist() == [3, 4] and indices.tolist() == [0, 1]
    result = x.max(dim=0, keepdim=True)
    assert result.values.tolist() == [[3, 4]] and result.indices.shape == (1, 2)
    assert x.max(v.full((2, 2), 2.5)).tolist() == [[3, 2.5], [2.5, 4]]
    assert [p.shape for p in x.split(1)] == [(1, 2), (1, 2)]
    assert [p.shape for p in v.arange(6).split([1, 5])] == [(1,), (5,)]
    assert x.to(v.float64).dtype == v.float64 and x.to("cpu") is not None and x.to(float).dtype == v.float64
    assert (
        x.clamp(min=2).amin().item() == 2
        and x.clamp(max=2).amax().item() == 2
        and x.clamp(2, 3).tolist() == [[3, 2], [2, 3]]
    )
    assert x.clamp(None, 2).amax().item() == 2 and x.clip(2, 3).tolist() == [[3, 2], [2, 3]]
    assert v.gelu(x, approximate="tanh").shape == (2, 2)


def test_shapes_as_lists_or_numbers():
    x = v.arange(24)
    for y in (
        x.reshape(2, 3, 4),
        x.reshape((2, 3, 4)),
        x.reshape([2, -1, 4]),
        x.view(2, 3, 4),
        x.reshape(shape=(2, 3, 4)),
    ):
        assert y.shape == (2, 3, 4)
    y = x.reshape(2, 3, 4)
    assert y.permute(2, 0, 1).shape == y.permute((2, 0, 1)).shape == (4, 2, 3)
    assert v.ones(1, 3).expand(2, 3).shape == (2, 3) and v.ones(3).repeat(2, 2).shape == (2, 6)
    assert y.flip(0, 1).tolist() == y.flip((0, 1)).tolist() and y.transpose(0, 1).shape == (3, 2, 4)
    assert v.roll(v.arange(4), 1, 0).tolist() == [3, 0, 1, 2] and x.squeeze().shape == (24,)


def test_options_are_keywords():
    x, w = v.randn(1, 2, 8, 8), v.randn(4, 2, 3, 3)
    assert v.conv2d(x, w, stride=2, padding=1).shape == (1, 4, 4, 4)
    assert v.conv2d(x, w, None, 2, 1).shape == (1, 4, 4, 4)
    assert v.conv2d(x, w, padding="same").shape == (1, 4, 8, 8)
    assert v.max_pool2d(x, 2).shape == (1, 2, 4, 4) and v.max_pool2d(x, (2, 4), stride=(2, 1)).shape == (1, 2, 4, 5)
    assert v.interpolate(x, scale_factor=2.0, mode="bilinear").shape == (1, 2, 16, 16)
    logits, labels = v.randn(4, 3), v.tensor([0, 1, 2, 1])
    assert v.cross_entropy(logits, labels, reduction="none", label_smoothing=0.1).shape == (4,)
    q = v.randn(2, 4, 8)
    assert v.scaled_dot_product_attention(q, q, q, is_causal=True).shape == (2, 4, 8)
    assert v.einsum("ij,jk->ik", [v.ones(2, 3), v.ones(3, 4)]).shape == (2, 4)
    assert v.topk(v.arange(5), k=2, largest=False).values.tolist() == [0, 1]


def test_bad_calls_say_what_is_wrong():
    x = v.ones(2)
    for call, text in [
        (lambda: v.softmax(x), "misses the argument 'dim'"),
        (lambda: v.softmax(x, 0, None, 1), "at most 3"),
        (lambda: v.softmax(x, dim=0, place=1), "no argument 'place'"),
        (lambda: x.sum(dim="a"), "'dim' must be"),
        (lambda: v.relu(3.0), "must be a Tensor"),
        (lambda: v.softmax(x, 0, dim=0), "'dim' twice"),
        (lambda: v.cat([x, 1]), "list of Tensors"),
        (lambda: x.to(), "misses"),
    ]:
        with pytest.raises(TypeError, match=text):
            call()
    with pytest.raises(ValueError, match="reduction 'avg' is not one of"):
        v.mse_loss(x, x, reduction="avg")


def test_numpys_words_are_taken():
    x = v.tensor([[1.0, 2.0], [3.0, 4.0]])
    assert x.sum(axis=1, keepdims=True).tolist() == [[3], [7]] and v.softmax(x, axis=0).shape == (2, 2)


def test_results_with_several_parts():
    counts = v.unique(v.tensor([3, 1, 3]), return_counts=True)
    assert counts[0].tolist() == [1, 3] and counts[1].tolist() == [1, 2]
    assert v.unique(v.tensor([3, 1, 3])).tolist() == [1, 3]
    low, high = v.aminmax(v.tensor([3.0, 1.0]))
    assert low.item() == 1 and high.item() == 3
    assert isinstance(v.arange(4).split(2), tuple)


def test_random_numbers_follow_the_seed():
    v.manual_seed(5)
    a = v.rand(4)
    v.manual_seed(5)
    assert v.rand(4).tolist() == a.tolist()
    g = v.Generator(5)
    assert v.rand(4, generator=g).tolist() == a.tolist() != v.rand(4, generator=g).tolist()
    assert v.zeros(4).uniform_(2, 3, generator=g).amin().item() >= 2


def test_other_threads_run_while_an_op_does():
    x = v.rand(1500, 1500)
    ticks = []
    stop = threading.Event()

    def tick():
        while not stop.is_set():
            ticks.append(time.perf_counter())
            time.sleep(0.0005)

    thread = threading.Thread(target=tick)
    thread.start()
    began = time.perf_counter()
    for _ in range(3):
        x @ x
    ended = time.perf_counter()
    stop.set()
    thread.join()
    inside = [t for t in ticks if began < t < ended]
    # With the lock held, there would be at most one tick between two products.
    assert len(inside) > 8, f"{len(inside)} ticks in {ended - began:.3f} s"


def test_threads_share_tensors():
    x = v.rand(64, 64)
    expected = (x @ x).sum().item()
    results = []

    def work():
        for _ in range(50):
            results.append((x @ x).sum().item())

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(results) == 200 and set(results) == {expected}


@pytest.mark.parametrize("name", ["sum", "mean", "prod", "cumsum", "cumprod", "nansum"])
def test_results_in_a_dtype(name):
    a = np.random.default_rng(0).integers(1, 5, (3, 4)).astype(np.float32) + np.float32(0.3)
    x, f = v.tensor(a), getattr(v, name)
    axis = {} if name.startswith("cum") else {"keepdims": True}
    expected = getattr(np, name)(a, axis=1, dtype=np.float64, **axis)
    for y in (f(x, 1, **{"keepdim": True} if axis else {}, dtype=v.float64), getattr(x, name)(dim=1, dtype=v.float64)):
        assert y.dtype is v.float64
        np.testing.assert_allclose(np.asarray(y).reshape(expected.shape), expected, rtol=1e-15)
    assert f(x, 1, dtype=None).dtype is v.float32
    if name == "mean":
        with pytest.raises(v.DTypeError, match="needs floats"):
            x.mean(dtype=v.int32)
    else:
        assert f(x, 1, dtype=v.int32).dtype is v.int32
        np.testing.assert_array_equal(
            np.asarray(f(x, 1, dtype=v.int32)), getattr(np, name)(a.astype(np.int32), axis=1, dtype=np.int32)
        )


def test_a_dtype_keeps_what_the_input_would_lose():
    assert v.full((300,), 100, dtype=v.uint8).sum(dtype=v.uint8).item() == 30000 % 256
    assert v.full((4096,), 100.0, dtype=v.float16).sum(dtype=v.float32).item() == 409600
    x = v.ones(3, dtype=v.float16).requires_grad_()
    x.sum(dtype=v.float64).backward()
    assert x.grad.dtype is v.float16 and x.grad.tolist() == [1, 1, 1]


@pytest.mark.parametrize("low, high", [(0, 0), (-1, 1), (0.25, 0.75), (2, 2), (5, 9)])
def test_histc(low, high):
    a = np.random.default_rng(1).standard_normal(1000).astype(np.float32)
    span = (low, high) if low != high else (a.min(), a.max())
    expected, _ = np.histogram(a, 7, span)
    for y in (v.histc(v.tensor(a), 7, low, high), v.tensor(a).reshape(10, 100).histc(bins=7, min=low, max=high)):
        assert y.dtype is v.float32
        np.testing.assert_array_equal(np.asarray(y), expected)
    assert v.histc(v.full((4,), 3.0), 4).tolist() == [0, 0, 4, 0]
    assert v.histc(v.zeros(0), 3).tolist() == [0, 0, 0]
