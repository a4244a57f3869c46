"""Tensors: creation, operators, indexing as NumPy has it, conversions, copies, texts."""

import copy
import gc
import itertools
import pickle
import random
import weakref

import numpy as np
import pytest

import volta as v

DTYPES = [
    v.float16,
    v.float32,
    v.float64,
    v.int8,
    v.int16,
    v.int32,
    v.int64,
    v.uint8,
    v.uint16,
    v.uint32,
    v.uint64,
    v.bool,
]


def test_creation_infers_dtypes_and_shapes():
    assert v.tensor([1, 2]).dtype == v.int64
    assert v.tensor([1, 2.5]).dtype == v.float32
    assert v.tensor([True, False]).dtype == v.bool
    assert v.tensor([]).dtype == v.float32 and v.tensor([]).shape == (0,)
    assert v.tensor([[[1], [2]]]).shape == (1, 2, 1)
    assert v.tensor(3).shape == ()
    assert v.tensor([1, 2], dtype=v.uint8).dtype == v.uint8
    assert v.tensor([v.tensor(1.0), v.tensor(2.0)]).tolist() == [1.0, 2.0]
    assert v.tensor(np.float32(2.5)).item() == 2.5
    assert v.tensor([np.int64(3), np.float64(0.5)]).tolist() == [3.0, 0.5]
    assert v.zeros(2, 3).shape == v.zeros((2, 3)).shape == v.zeros([2, 3]).shape == (2, 3)
    assert v.full((2,), 7).tolist() == [7, 7]
    assert v.arange(5).tolist() == [0, 1, 2, 3, 4]
    assert v.arange(1, 2, 0.5).tolist() == [1.0, 1.5]


@pytest.mark.parametrize("bad", [[[1, 2], [3]], [1, [2]], [[1], 2], [[], [1]]])
def test_ragged_lists_are_refused(bad):
    with pytest.raises(v.ShapeError, match="ragged"):
        v.tensor(bad)


@pytest.mark.parametrize("bad", [object(), "text", [None], [1, "a"], [1j], {1: 2}])
def test_what_is_no_number_is_refused(bad):
    with pytest.raises(TypeError):
        v.tensor(bad)


def test_numbers_that_do_not_fit_are_refused():
    with pytest.raises(ValueError):
        v.tensor([300], dtype=v.uint8)
    with pytest.raises(OverflowError):
        v.tensor([2**70])
    assert v.tensor([2**63], dtype=v.uint64).item() == 2**63


def test_operators_and_their_reflections():
    a = v.tensor([4.0, 9.0])
    assert (a + 1).tolist() == (1 + a).tolist() == [5, 10]
    assert (10 - a).tolist() == [6, 1] and (a - 10).tolist() == [-6, -1]
    assert (36 / a).tolist() == [9, 4] and (a * 2).tolist() == (2 * a).tolist()
    assert (2**a).tolist() == [16, 512] and (a**0.5).tolist() == [2, 3]
    assert (a // 2).tolist() == [2, 4] and (19 // a).tolist() == [4, 2]
    assert (a % 4).tolist() == [0, 1] and (19 % a).tolist() == [3, 1]
    assert (-a).tolist() == [-4, -9] and abs(-a).tolist() == (+a).tolist() == [4, 9]
    i = v.tensor([6, 3])
    assert (i & 2).tolist() == [2, 2] and (1 | i).tolist() == [7, 3] and (i ^ 1).tolist() == [7, 2]
    assert (i << 1).tolist() == [12, 6] and (i >> 1).tolist() == [3, 1] and (~i).tolist() == [-7, -4]
    assert (a == 4).tolist() == [True, False] and (a != 4).tolist() == [False, True]
    assert (4 < a).tolist() == [False, True] and (a <= 4).tolist() == [True, False]
    assert (v.ones(2, 3) @ v.ones(3, 1)).tolist() == [[3], [3]]
    assert (a == None) is False and (a == "text") is False  # noqa: E711


def test_in_place_operators_keep_the_object():
    a = b = v.tensor([1.0, 2.0])
    a += 1
    a *= v.tensor([2.0, 3.0])
    a -= 1
    a /= 2
    assert a is b and a.tolist() == [1.5, 4.0]
    assert a.add_(1) is a and a.exp_() is a
    i = v.tensor([1, 2])
    with pytest.raises(v.DTypeError):
        i += 0.5


def test_promotion_takes_numbers_as_weak():
    for dtype in (v.float16, v.bfloat16, v.float32, v.float64):
        assert (v.ones(2, dtype=dtype) + 1.5).dtype == dtype
    assert (v.ones(2, dtype=v.int8) + 1).dtype == v.int8
    assert (v.ones(2, dtype=v.int8) + v.ones((), dtype=v.int16)).dtype == v.int16
    assert (v.ones(2, dtype=v.uint8) * 1.5).dtype == v.float32
    assert (v.ones(2, dtype=v.int64) / 2).dtype == v.float32
    assert v.result_type(v.int8, v.uint8) == v.int16 and v.result_type(v.float16, 1) == v.float16
    assert v.result_type(1, 2.0) == v.float32


def test_types_that_do_not_fit_operators():
    for bad in ("text", [1], None, object()):
        with pytest.raises(TypeError):
            v.ones(2) + bad


INDICES = [
    0,
    -1,
    2,
    slice(None),
    slice(1, None),
    slice(None, None, -1),
    slice(3, 0, -2),
    slice(-2, None),
    None,
    ...,
    slice(10, 20),
    slice(2, 2),
]


def same(ours, theirs):
    theirs = np.asarray(theirs)
    assert ours.shape == theirs.shape
    np.testing.assert_array_equal(np.asarray(ours), theirs)


@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_basic_indices_as_numpy(count):
    array = np.arange(3 * 4 * 5).reshape(3, 4, 5)
    tensor = v.tensor(array)
    choices = list(itertools.product(INDICES, repeat=count))
    for key in random.Random(count).sample(choices, min(len(choices), 300)):
        try:
            expected = array[key]
        except IndexError:
            with pytest.raises(IndexError):
                tensor[key]
            continue
        same(tensor[key], expected)


ADVANCED = [
    [0, 2, 1],
    [[0, 1], [2, 0]],
    [-1, 0],
    np.array([1, 2]),
    np.array([True, False, True]),
    ([0, 1], [1, 2]),
    ([0, 1], slice(None), [0, 4]),
    (slice(None), [3, 0]),
    (..., [0, 2]),
    ([True, False, True], 1),
    (None, [0, 1]),
    ([0, 1], None, [1, 2]),
    (np.array([[0], [2]]), np.array([0, 3])),
    [],
    (slice(1, None), [0, 0, 3], slice(None, None, -1)),
]


@pytest.mark.parametrize("key", ADVANCED, ids=str)
def test_lists_and_masks_as_numpy(key):
    array = np.arange(3 * 4 * 5).reshape(3, 4, 5)
    numpy_key = key if not isinstance(key, list) or key else np.array([], dtype=int)
    same(v.tensor(array)[key], array[numpy_key])
    changed, tensor = array.copy(), v.tensor(array)
    changed[numpy_key] = -7
    tensor[key] = -7
    same(tensor, changed)


def test_masks():
    array = np.arange(12).reshape(3, 4)
    tensor = v.tensor(array)
    same(tensor[tensor > 5], array[array > 5])
    same(tensor[True], array[True])
    same(tensor[False], array[False])
    same(tensor[v.tensor([True, False, True])], array[[True, False, True]])
    tensor[tensor % 2 == 0] = 0
    array[array % 2 == 0] = 0
    same(tensor, array)


def test_assignment_writes_through_views():
    x = v.zeros(3, 4)
    x[1] = 1
    x[:, 2] = v.tensor([5.0, 6.0, 7.0])
    x[0, ::2] = [8.0, 9.0]
    x[-1, -1] += 3
    row = x[2]
    row[0] = 4
    assert x.tolist() == [[8, 0, 9, 0], [1, 1, 6, 1], [4, 0, 7, 3]]
    with pytest.raises(ValueError):
        x[0] = v.zeros(5)
    with pytest.raises(TypeError):
        del x[0]


@pytest.mark.parametrize("key", ["a", 1.5, (0, 1.5), 3, -4, (0, 0, 0), (..., ...), {1}, 2**70], ids=str)
def test_bad_indices(key):
    with pytest.raises((IndexError, TypeError)):
        v.zeros(3, 4)[key]


def test_slices_take_any_bounds():
    same(v.arange(5)[-(2**80) : 2**80], np.arange(5))
    with pytest.raises(ValueError):
        v.arange(5)[::0]


def test_iteration_and_length():
    assert [row.tolist() for row in v.tensor([[1, 2], [3, 4]])] == [[1, 2], [3, 4]]
    assert len(v.zeros(3, 2)) == 3
    a, b = v.tensor([1, 2])
    assert a.item() == 1 and b.item() == 2
    for what in (len, iter):
        with pytest.raises(TypeError):
            what(v.tensor(1))
    assert 3 in v.tensor([1, 3]) and 4 not in v.tensor([1, 3])


def test_conversions_to_python():
    assert bool(v.tensor(1)) and not bool(v.tensor([0.0]))
    assert int(v.tensor(2.9)) == 2 and float(v.tensor([3])) == 3.0 and complex(v.tensor(1.5)) == 1.5
    assert [10, 20, 30][v.tensor(1)] == 20
    assert v.tensor(2**63, dtype=v.uint64).item() == 2**63 and v.tensor(True).item() is True
    with pytest.raises(ValueError, match="ambiguous"):
        bool(v.tensor([1, 2]))
    with pytest.raises(ValueError):
        bool(v.tensor([]))
    for bad in (v.tensor(1.0), v.tensor([1, 2]), v.tensor(True)):
        with pytest.raises(TypeError):
            [1, 2][bad]
    with pytest.raises(v.Error):
        v.zeros(2).item()


@pytest.mark.parametrize("dtype", DTYPES, ids=repr)
def test_lists_round_trip(dtype):
    values = [[0, 1, 1], [1, 0, 1]]
    x = v.tensor(values, dtype=dtype)
    assert x.tolist() == values and x.T.tolist() == [list(r) for r in zip(*values)]
    assert v.zeros(0, 3, dtype=dtype).tolist() == [] and v.zeros(2, 0, dtype=dtype).tolist() == [[], []]


def test_size_is_a_number_and_a_method():
    x = v.zeros(2, 3)
    assert x.size == 6 and isinstance(x.size, int)
    assert x.size() == (2, 3) and x.size(0) == 2 and x.size(-1) == 3 and x.size(dim=1) == 3
    assert x.ndim == x.dim() == 2 and x.numel() == 6 and x.stride() == (3, 1) and x.stride(0) == 3


def test_texts():
    assert repr(v.tensor([1.0, 2.5])) == "tensor([1.0, 2.5])"
    assert repr(v.tensor([[1, 2], [3, 4]])) == "tensor([[1, 2],\n        [3, 4]])"
    assert repr(v.tensor([True, False])).replace(" ", "") == "tensor([True,False])"
    assert repr(v.tensor([1], dtype=v.int8)) == "tensor([1], dtype=int8)"
    assert "requires_grad=True" in repr(v.tensor([1.0], requires_grad=True))
    assert repr(v.float32) == "volta.float32" and repr(v.device("cpu")) == "device('cpu')"
    assert "..." in repr(v.zeros(10000))


@pytest.mark.parametrize("dtype", [*DTYPES, v.bfloat16], ids=repr)
def test_copies_and_pickles(dtype):
    x = v.tensor([[1, 0, 1], [0, 1, 1]], dtype=dtype)
    for other in (pickle.loads(pickle.dumps(x.T)), copy.deepcopy(x.T)):
        assert other.dtype == dtype and (other == x.T).all() and not other.shares_storage(x)
    assert copy.copy(x).shares_storage(x)
    assert pickle.loads(pickle.dumps(dtype)) == dtype
    assert pickle.loads(pickle.dumps(v.relu)) is v.relu


def test_copies_keep_requires_grad():
    x = v.tensor([1.0], requires_grad=True)
    assert copy.deepcopy(x).requires_grad and pickle.loads(pickle.dumps(x)).requires_grad
    assert not copy.deepcopy(x * 2).requires_grad or (x * 2).requires_grad


def test_tensors_are_freed():
    x = v.zeros(3)
    alive = weakref.ref(x)
    del x
    gc.collect()
    assert alive() is None


def test_errors_say_their_kind():
    with pytest.raises(v.Error) as caught:
        v.ones(2, 3) @ v.ones(2, 3)
    assert caught.value.kind == "shape" and caught.value.op == "matmul" and isinstance(caught.value, ValueError)
    with pytest.raises(IndexError) as caught:
        v.zeros(2)[5]
    assert isinstance(caught.value, v.Error) and caught.value.kind == "index"
    with pytest.raises(v.DTypeError):
        v.ones(2, dtype=v.int64).mean()
    with pytest.raises(v.DeviceError if not v.cuda.is_available() else ()):
        v.zeros(2, device="cuda")
    with pytest.raises(v.Error):
        v.device("nonsense")


def test_to_a_device_and_a_dtype():
    x = v.tensor([1.5, 2.5])
    as_other = x.to(v.tensor([1], dtype=v.int16))
    assert as_other.dtype is v.int16 and as_other.tolist() == [1, 2]
    for y in (
        x.to("cpu", v.float64),
        x.to(v.float64, "cpu"),
        x.to(v.device("cpu"), v.float64, True),
        x.to(device="cpu", dtype=v.float64),
        x.to(dtype=v.float64, device="cpu", non_blocking=True),
        x.to(v.float64, non_blocking=True),
    ):
        assert y.dtype is v.float64 and y.device == v.device("cpu")
        np.testing.assert_array_equal(np.asarray(y), np.array([1.5, 2.5]))
    assert x.to("cpu", non_blocking=True).shares_storage(x) and x.to("cpu", None).dtype is v.float32
    with pytest.raises(TypeError):
        x.to("cpu", "cpu")
    with pytest.raises(v.DeviceError):
        x.to("cuda:7", v.float64)


def test_rows_in_reverse():
    x = v.arange(6).reshape(3, 2)
    assert [row.tolist() for row in reversed(x)] == [[4, 5], [2, 3], [0, 1]] and list(reversed(v.ones(0))) == []
