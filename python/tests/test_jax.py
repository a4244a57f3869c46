"""Memory shared with JAX by DLPack, shown by addresses: dtypes, layouts, lifetimes, and what is refused."""

import gc
import weakref

import numpy as np
import pytest

import volta as v

jax = pytest.importorskip("jax")
jnp = jax.numpy


@pytest.fixture(autouse=True)
def wide_numbers():
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", before)


DTYPES = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 bfloat16 float32 float64".split()


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_is_shared_both_ways(dtype):
    theirs = jnp.asarray([[0, 1, 2], [3, 4, 5]], dtype)
    x = v.from_dlpack(theirs)
    assert x.data_ptr() == theirs.unsafe_buffer_pointer()
    assert x.shape == (2, 3) and x.dtype.name == dtype and x.float().tolist() == theirs.astype("float32").tolist()
    mine = v.arange(6).reshape(2, 3).to(getattr(v, dtype))
    for take in (jnp.from_dlpack, jax.dlpack.from_dlpack):
        y = take(mine)
        assert y.unsafe_buffer_pointer() == mine.data_ptr()
        assert y.shape == (2, 3) and y.dtype == dtype and y.astype("float32").tolist() == mine.float().tolist()
    back = v.from_dlpack(jnp.from_dlpack(mine))
    assert back.data_ptr() == mine.data_ptr() and v.asarray(theirs).data_ptr() == theirs.unsafe_buffer_pointer()


@pytest.mark.parametrize("dtype", ["complex64", "complex128", "float8_e4m3fn", "float8_e5m2"])
def test_dtypes_that_only_jax_has(dtype):
    with pytest.raises(BufferError, match="dtype"):
        v.from_dlpack(jnp.zeros(2, dtype))


def test_layouts():
    x = v.arange(24, dtype=v.float32).reshape(2, 3, 4)
    for view in (x, x[1], x[1, 2:], x.transpose(0, 2), x[:0], x[0, 0, 0], v.zeros(0, 3), v.tensor(2.0)):
        y = jnp.from_dlpack(view)
        assert y.shape == view.shape and y.tolist() == view.tolist()
        if view.numel() and view.is_contiguous() and view.data_ptr() % 64 == 0:  # others JAX copies
            assert y.unsafe_buffer_pointer() == view.data_ptr()
    # JAX takes the axes in any order, but no gaps, repetitions and steps backwards: it says so, and a copy has none.
    for view in (x[:, ::2], x.flip(0), x[0, 0, :1].expand(5)):
        try:
            y = jnp.from_dlpack(view)
        except Exception as error:
            assert "strid" in str(error)
            y = jnp.from_dlpack(view.contiguous())
        assert y.tolist() == view.tolist()


def test_lifetimes():
    theirs = jnp.arange(1000.0)
    gone = weakref.ref(theirs)
    x = v.from_dlpack(theirs)[1:]
    del theirs
    gc.collect()
    jnp.zeros(1000).block_until_ready()
    assert x.sum().item() == 499500
    del x
    gc.collect()
    assert gone() is None

    y = jnp.from_dlpack(v.full((1000,), 3.0))
    gc.collect()
    v.zeros(1000)
    assert y.sum() == 3000

    @jax.jit
    def double(a):
        return a * 2

    z = v.from_dlpack(double(jnp.from_dlpack(v.ones(4))))
    gc.collect()
    assert z.tolist() == [2, 2, 2, 2]


def test_what_is_written_and_what_is_not():
    mine = v.zeros(3)
    y = jnp.from_dlpack(mine)
    mine[0] = 7
    assert y.tolist() == [7, 0, 0]  # shared; JAX takes its arrays for constant, so that this is for the careful
    theirs = jnp.zeros(3)
    with pytest.raises(ValueError, match="read-only"):
        v.from_numpy(theirs)  # its buffer says that it is read-only; its capsules do not
    copied = v.tensor(theirs)
    copied += 1
    assert theirs.tolist() == [0, 0, 0]
    assert v.from_dlpack(theirs, copy=True).data_ptr() != theirs.unsafe_buffer_pointer()
    assert v.from_dlpack(theirs, copy=False).data_ptr() == theirs.unsafe_buffer_pointer()
    own = jnp.from_dlpack(v.ones(3), copy=True)
    assert own.tolist() == [1, 1, 1]
    with pytest.raises((BufferError, TypeError), match="detach|copy"):
        jnp.from_dlpack(v.ones(2, requires_grad=True))
    with pytest.raises(TypeError, match="copy"):
        v.from_dlpack(theirs, copy="no")


def test_read_only_flags_of_capsules():
    """Of a producer that sets the flag: a copy, or an error where a copy is forbidden."""
    fixed = np.arange(3.0)
    fixed.flags.writeable = False
    x = v.from_dlpack(fixed)
    x += 1
    assert fixed.tolist() == [0, 1, 2] and x.tolist() == [1, 2, 3]
    with pytest.raises(BufferError, match="read-only"):
        v.from_dlpack(fixed, copy=False)


def test_operators_take_arrays_of_jax():
    a, x = jnp.asarray([1.0, 2.0]), v.tensor([3.0, 4.0], dtype=v.float64)
    for y in (x + a, a + x):
        assert isinstance(y, v.Tensor) and y.tolist() == [4, 6]
