"""Memory shared with NumPy and others: buffers, DLPack, lifetimes, and input that is refused."""

import array
import datetime
import gc
import subprocess
import sys

import numpy as np
import pytest

import volta as v

DTYPES = [
    "float16",
    "float32",
    "float64",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "bool",
]


@pytest.mark.parametrize("dtype", DTYPES)
def test_arrays_are_shared_both_ways(dtype):
    a = np.arange(12).reshape(3, 4).astype(dtype)
    for view in (a, a.T, a[::2], a[:, ::-1], a[1:, 1:3], a[:0], a[0, 0:1]):
        for x in (v.from_numpy(view), v.from_dlpack(view), v.asarray(view)):
            assert x.shape == view.shape and x.dtype.name == dtype
            np.testing.assert_array_equal(np.asarray(x), view)
            if view.size:
                assert x.data_ptr() == view.__array_interface__["data"][0]
    x = v.from_numpy(a)
    x[0, 1] = 1
    assert a[0, 1] == 1
    for back in (np.asarray(x), x.numpy(), np.from_dlpack(x), np.array(x, copy=False)):
        assert back.__array_interface__["data"][0] == x.data_ptr() and back.dtype == a.dtype
    assert np.asarray(x[:, ::-1]).strides == a[:, ::-1].strides


def test_lifetimes():
    x = v.from_numpy(np.full(1000, 7.0))
    gc.collect()
    assert x.sum().item() == 7000
    y = np.asarray(v.full((1000,), 3.0))
    z = np.from_dlpack(v.full((1000,), 4.0))
    memory = memoryview(v.full((1000,), 5.0))
    gc.collect()
    assert y.sum() == 3000 and z.sum() == 4000 and memory[999] == 5.0

    class Owner(np.ndarray):
        gone = False

        def __del__(self):
            Owner.gone = True

    owner = np.zeros(4).view(Owner)
    x = v.from_numpy(owner)
    row = x[1:]
    del owner, x
    gc.collect()
    assert not Owner.gone
    del row
    gc.collect()
    assert Owner.gone


def test_other_buffers():
    a = array.array("d", [1.0, 2.0])
    x = v.from_numpy(a)
    x[0] = 5
    assert a[0] == 5
    assert v.tensor(b"\x01\x02").tolist() == [1, 2] and v.asarray(bytearray(b"ab")).tolist() == [97, 98]


def test_arrays_are_copied_by_tensor():
    a = np.zeros(3)
    x = v.tensor(a)
    x += 1
    assert a.sum() == 0
    assert v.tensor(np.float32([1, 2]), dtype=v.int8).tolist() == [1, 2]


@pytest.mark.parametrize(
    "bad",
    [
        np.zeros(2, "c16"),
        np.array(["a"]),
        np.array([object()]),
        np.zeros(2, ">f8"),
        np.array(["2020-01-01"], "M8[D]"),
        np.zeros(2, [("a", "f4")]),
    ],
    ids=lambda a: str(a.dtype),
)
def test_dtypes_that_are_not_there(bad):
    for make in (v.from_numpy, v.tensor, v.from_dlpack):
        with pytest.raises((TypeError, ValueError, BufferError)):
            make(bad)


def test_memory_that_is_refused():
    fixed = np.zeros(3)
    fixed.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        v.from_numpy(fixed)
    assert not np.shares_memory(np.asarray(v.from_dlpack(fixed)), fixed)
    with pytest.raises(BufferError):
        v.from_dlpack(fixed, copy=False)
    packed = np.zeros(3, dtype=[("a", "i1"), ("b", "f8")])["b"]
    with pytest.raises((ValueError, BufferError)):
        v.from_numpy(packed)
    with pytest.raises((ValueError, BufferError)):
        v.from_numpy(np.frombuffer(bytearray(17), dtype="f8", offset=1, count=2))
    with pytest.raises(TypeError):
        v.from_numpy([1, 2])
    with pytest.raises(TypeError):
        v.from_dlpack(3)


def test_tensors_that_are_not_handed_out():
    x = v.tensor([1.0], requires_grad=True)
    for take in (np.asarray, memoryview, np.from_dlpack, lambda t: t.numpy()):
        with pytest.raises((BufferError, v.AutogradError, RuntimeError)):
            take(x)
    assert x.numpy(force=True).tolist() == [1.0]
    with pytest.raises((BufferError, TypeError)):
        memoryview(v.ones(2, dtype=v.bfloat16))
    with pytest.raises(BufferError):
        bytes_of = memoryview(v.ones(2, 2).T)
        np.frombuffer(bytes_of)


def test_capsules_are_used_once():
    for version in (None, (1, 0), (2, 0), (0, 8)):
        capsule = v.ones(3).__dlpack__(max_version=version)
        assert v.from_dlpack(capsule).tolist() == [1, 1, 1]
        with pytest.raises(BufferError, match="used before"):
            v.from_dlpack(capsule)
    v.ones(3).__dlpack__()
    gc.collect()
    with pytest.raises(BufferError):
        v.from_dlpack(datetime.datetime_CAPI)


def test_dlpack_copies_and_devices():
    x = v.ones(3)
    assert x.__dlpack_device__() == (1, 0)
    y = v.from_dlpack(x)
    assert y.shares_storage(x) or y.data_ptr() == x.data_ptr()
    assert v.from_dlpack(x, copy=True).data_ptr() != x.data_ptr()
    with pytest.raises(BufferError):
        x.__dlpack__(dl_device=(2, 0))
    b = v.tensor([1.5, 2.5], dtype=v.bfloat16)
    assert v.from_dlpack(b).dtype == v.bfloat16 and v.from_dlpack(b).tolist() == [1.5, 2.5]


def test_operators_take_arrays():
    a, x = np.array([1.0, 2.0]), v.tensor([3.0, 4.0], dtype=v.float64)
    for y in (x + a, a + x):
        assert isinstance(y, v.Tensor) and y.tolist() == [4, 6]
    assert (a - x).tolist() == [-2, -2] and (x == a + 2).tolist() == [True, True] and (a < x).tolist() == [True, True]
    assert (x * np.array(2.0)).tolist() == (np.float32(2) * x).tolist() == [6, 8]
    x += a
    assert x.tolist() == [4, 6] and a.tolist() == [1, 2]
    with pytest.raises(TypeError):
        x + np.array(["a", "b"])
    assert format(v.tensor(2.5), ".3f") == "2.500" and f"{v.tensor([1])}" == "tensor([1])"


def test_asarray():
    a = np.zeros(3)
    x = v.asarray(a)
    x[0] = 1
    assert a[0] == 1 and v.asarray(x) is x
    assert v.asarray(a, copy=True).data_ptr() != x.data_ptr()
    assert v.asarray(a, dtype=v.int8).dtype == v.int8
    for bad in (lambda: v.asarray([1], copy=False), lambda: v.asarray(a, dtype=v.int8, copy=False)):
        with pytest.raises(ValueError):
            bad()


def test_numpy_is_not_needed():
    code = (
        "import sys; sys.modules['numpy'] = None; import volta as v; x = v.tensor([1.0, 2.0]); "
        "assert (x + 1).tolist() == [2.0, 3.0]; assert memoryview(x)[1] == 2.0; print(x)"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.startswith("tensor(")


def test_interpreter_ends_with_live_tensors():
    code = (
        "import numpy as np, volta as v; a = v.from_numpy(np.zeros(10)); b = np.asarray(v.ones(3)); "
        "x = v.ones(3, requires_grad=True); x.register_hook(lambda g: g); y = (x * 2).sum(); "
        "v.keep = [a, b, x, y]; c = v.ones(2).__dlpack__()"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_fork_after_use():
    code = (
        "import os, volta as v\nx = v.rand(300, 300); y = (x @ x).sum().item()\npid = os.fork()\n"
        "if pid == 0:\n    os._exit(0 if abs((x @ x).sum().item() - y) == 0 else 3)\n"
        "assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
