"""Lists that change while they are read, memory that is replaced while others look, values that hold themselves."""

import copy
import io
import pickle

import numpy as np
import pytest

import volta as v
from volta import nn, optim


class Clears:
    """A number whose conversion empties the list that it is in."""

    def __init__(self, within):
        self.within = within

    def __float__(self):
        self.within.clear()
        return 1.0

    def __index__(self):
        self.within.clear()
        return 1


@pytest.mark.parametrize(
    "use",
    [
        v.tensor,
        v.zeros,
        lambda given: v.ones(5)[given],
        lambda given: v.ones(5, 5, 5).permute(given),
        lambda given: nn.functional.interpolate(v.ones(1, 1, 4, 4), scale_factor=given),
    ],
)
def test_lists_that_change_while_they_are_read(use):
    given = []
    given.extend([Clears(given), 2, 3])
    with pytest.raises((IndexError, TypeError)):
        use(given)


def test_lists_that_lie_of_their_length():
    class Lies(list):
        def __len__(self):
            return 10**9

    class Fails(list):
        def __len__(self):
            raise LookupError("mine")

    with pytest.raises(IndexError):
        v.tensor(Lies([1, 2]))
    for call in (v.tensor, v.ones, lambda x: v.ones(2, 2).sum(x), lambda x: v.ones(2).reshape(x)):
        with pytest.raises((LookupError, TypeError)):
            call(Fails([1, 2]))


def test_memory_that_is_replaced_stays_for_those_who_look():
    for look in (np.asarray, memoryview, np.from_dlpack):
        x = v.ones(1000)
        seen = look(x)
        x.data = v.zeros(5)
        others = [v.full((1000,), 9.0) for _ in range(4)]
        assert np.asarray(seen).sum() == 1000 and x.shape == (5,) and len(others) == 4


def test_values_that_hold_themselves():
    entries, items = {}, []
    entries["me"] = entries
    items.append(items)
    for value in (entries, items, {"a": [items]}):
        with pytest.raises(RecursionError):
            v.save(value, io.BytesIO())
    with pytest.raises(OverflowError):
        v.save({"n": 2**70}, io.BytesIO())


@pytest.mark.parametrize("given", [3, "text", [v.ones(3)], np.ones(3)], ids=lambda x: type(x).__name__)
def test_hooks_that_return_something_else(given):
    x = v.ones(3, requires_grad=True) * 1
    x.register_hook(lambda g: given)
    with pytest.raises(TypeError, match="a hook returns a Tensor or None"):
        x.sum().backward()


def test_capsules_asked_for_with_nonsense():
    x = v.ones(3)
    for options in ({"max_version": "a"}, {"max_version": ()}, {"max_version": (2**80, 0)}, {"dl_device": 3}):
        with pytest.raises(TypeError, match="pair of ints"):
            x.__dlpack__(**options)
    with pytest.raises(TypeError, match="copy"):
        v.from_dlpack(x, copy=3)

    class Producer:
        device = "a"

        def __dlpack__(self, **_):
            return v.ones(2).__dlpack__()

        def __dlpack_device__(self):
            return self.device

    with pytest.raises(TypeError, match="pair of ints"):
        v.from_dlpack(Producer())


def test_tensors_that_were_never_made():
    class Bare(v.Tensor):
        def __init__(self):
            pass

    kept = [v.ones(3) for _ in range(8)]
    del kept  # their objects are used again
    for bare in (Bare(), v.Tensor.__new__(v.Tensor)):
        for call in (
            lambda x: x + 1,
            lambda x: 1 + x,
            lambda x: x.sum(),
            lambda x: v.relu(x),
            lambda x: x[0],
            len,
            list,
            bool,
            repr,
            memoryview,
            lambda x: v.cat([x]),
            lambda x: v.tensor([x]),
            lambda x: v.ones(2)[x],
            lambda x: v.save(x, io.BytesIO()),
        ):
            with pytest.raises((v.Error, TypeError, BufferError)):
                call(bare)
    with pytest.raises(TypeError):
        v.Tensor.__new__(int)
    with pytest.warns(RuntimeWarning, match="uninitialized"), pytest.raises(TypeError):
        optim.SGD([v.Tensor.__new__(v.Tensor)], lr=0.1)
    with pytest.raises(TypeError):
        v._volta._Part.__new__(v._volta._Part).__get__(nn.Linear(1, 1))


def test_what_can_be_pickled_and_copied():
    generator = v.Generator(3)
    v.rand(5, generator=generator)
    for again in (pickle.loads(pickle.dumps(generator)), copy.deepcopy(generator)):
        assert again.get_state() == generator.get_state()
    packed = nn.utils.rnn.pack_sequence([v.ones(3), v.ones(2)])
    again = copy.deepcopy(packed)
    assert again.data.tolist() == packed.data.tolist() and again.lengths() == packed.lengths()
    assert list(again.batch_sizes) == list(packed.batch_sizes)
    for whole in (optim.SGD([nn.Parameter(v.ones(1))], lr=0.1), v.no_grad()):
        with pytest.raises(TypeError, match="pickle"):
            pickle.dumps(whole)
