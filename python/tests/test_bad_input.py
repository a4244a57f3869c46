"""Bad input gives an exception with a text, never a crash: types, lists, arrays, capsules, hooks, forks, shutdown."""

import gc
import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import volta as v
from volta import nn, optim

WRONG_ARRAYS = {
    "complex": np.ones(2, np.complex64),
    "datetime": np.array(["2020-01-01"], "datetime64[D]"),
    "timedelta": np.array([1], "timedelta64[s]"),
    "object": np.array([None, 1], object),
    "text": np.array(["a", "bc"]),
    "bytes": np.array([b"a", b"bc"]),
    "big-endian": np.ones(2, ">f4"),
    "big-endian integers": np.ones(2, ">i2"),
    "record": np.zeros(2, [("a", "f4"), ("b", "i4")]),
    "long double": np.ones(2, np.longdouble),
}


@pytest.mark.parametrize("name", WRONG_ARRAYS)
def test_arrays_without_a_counterpart(name):
    array = WRONG_ARRAYS[name]
    for take in (v.from_numpy, v.tensor, v.asarray, v.as_tensor, v.from_dlpack, lambda a: v.tensor([a, a])):
        with pytest.raises((TypeError, ValueError, BufferError, RuntimeError)) as caught:
            take(array)
        assert str(caught.value)


def test_odd_memory():
    raw = np.zeros(33, np.uint8)
    misaligned = raw[1:33].view(np.float32)
    with pytest.raises(ValueError, match="aligned"):
        v.from_numpy(misaligned)
    fields = np.zeros(3, [("a", "i1"), ("b", "<f4")])["b"]  # strides that are no multiples of an element
    with pytest.raises(ValueError):
        v.from_numpy(fields)
    frozen = np.ones(3, np.float32)
    frozen.flags.writeable = False
    with pytest.raises((ValueError, BufferError, TypeError), match="read-only|writ"):
        v.from_numpy(frozen)
    assert v.tensor(frozen).tolist() == [1, 1, 1]  # a copy is allowed
    assert v.from_numpy(np.arange(6).reshape(2, 3)[:, ::-1]).tolist() == [[2, 1, 0], [5, 4, 3]]
    assert v.from_numpy(np.zeros((0, 3))).shape == (0, 3)
    assert v.from_numpy(np.array(2.0)).item() == 2
    deep = np.zeros((1,) * 20)
    with pytest.raises((ValueError, v.Error)):
        v.from_numpy(deep)
    with pytest.raises(TypeError):
        v.from_numpy([1, 2])


def loop():
    x = []
    x.append(x)
    return x


class Lies:
    """A sequence, array or number that does not keep its word."""

    def __len__(self):
        return 3

    def __getitem__(self, index):
        raise KeyError(index)

    def __float__(self):
        raise ZeroDivisionError

    def __index__(self):
        raise ZeroDivisionError


@pytest.mark.parametrize(
    "data",
    [
        [[1, 2], [3]],
        [[1, 2], 3],
        [1, [2]],
        [[], [1]],
        [v.ones(2), v.ones(3)],
        [v.ones(2), 1],
        "text",
        None,
        [None],
        {"a": 1},
        {1, 2},
        object(),
        [object()],
        2**80,
        [1, 2**70],
        -(2**70),
        1j,
        loop(),
        Lies(),
        [Lies()],
        iter([1, 2]),
    ],
    ids=lambda x: type(x).__name__,
)
def test_data_that_is_no_tensor(data):
    with pytest.raises((TypeError, ValueError, OverflowError, ZeroDivisionError, v.Error)) as caught:
        v.tensor(data)
    assert str(caught.value) or isinstance(caught.value, ZeroDivisionError)


def test_numbers_that_do_not_fit():
    for number, dtype in ((300, v.uint8), (-1, v.uint16), (2**40, v.int32)):
        with pytest.raises((ValueError, OverflowError)):
            v.tensor(number, dtype=dtype)
        with pytest.raises((ValueError, OverflowError)):
            v.tensor([0, number], dtype=dtype)
    with pytest.raises(OverflowError):
        v.ones(2) + 2**80
    with pytest.raises(OverflowError):
        v.ones(2**70)
    with pytest.raises((MemoryError, v.Error, OverflowError)):
        v.empty(2**40, 2**20)
    with pytest.raises((ValueError, v.Error)):
        v.ones(-1)


@pytest.mark.parametrize(
    "call",
    [
        lambda: v.ones(2) + "a",
        lambda: v.ones(2) @ None,
        lambda: v.relu("a"),
        lambda: v.relu(),
        lambda: v.relu(v.ones(1), v.ones(1), v.ones(1)),
        lambda: v.cat(3),
        lambda: v.cat([1, 2]),
        lambda: v.cat([v.ones(1), None]),
        lambda: v.ones("a"),
        lambda: v.ones(2, dtype="float33"),
        lambda: v.ones(2, device=object()),
        lambda: v.ones(2).reshape(None),
        lambda: v.ones(2).sum(dim="a"),
        lambda: v.ones(2).to(object()),
        lambda: v.nn.functional.relu(3),
        lambda: v.nn.functional.max_pool2d(3, 2),
        lambda: v.autograd.grad(3, 4),
        lambda: v.ones(2, requires_grad=True).register_hook(3),
        lambda: v.ones(2).backward("a"),
        lambda: v.ones(2)["a"],
        lambda: v.ones(2)[object()],
        lambda: v.ones(2)[1.5],
        lambda: v.ones(2).__setitem__(0, "a"),
        lambda: v.ones(2).__setitem__(0, [[1]] * 5),
        lambda: nn.Parameter("a"),
        lambda: nn.Parameter(None, 3, 4),
        lambda: nn.Linear("a", 2),
        lambda: nn.Linear(2.5, 2),
        lambda: nn.Conv2d(1, 1, "a"),
        lambda: optim.SGD(3, lr=0.1),
        lambda: optim.SGD([nn.Parameter(v.ones(1))], lr="fast"),
        lambda: optim.SGD([{"lr": 0.1}], lr=0.1),
        lambda: optim.lr_scheduler.StepLR(3, 1),
        lambda: optim.lr_scheduler.LambdaLR(optim.SGD([nn.Parameter(v.ones(1))], lr=0.1), 3),
        lambda: v.save({"a": 3}, "x.safetensors"),
        lambda: v.save(3, "x.safetensors"),
        lambda: v.save({1: v.ones(1)}, "x.safetensors"),
        lambda: v.load(3.5),
        lambda: v.manual_seed("a"),
        lambda: v.gradcheck(3, v.ones(1)),
        lambda: v.einsum(3, v.ones(1)),
        lambda: v.where("a", 1, 2),
    ],
)
def test_calls_with_wrong_types(call):
    with pytest.raises((TypeError, ValueError, IndexError, v.Error)) as caught:
        call()
    assert str(caught.value)


def test_capsules_are_used_once():
    for version in (None, (1, 0)):
        x = v.arange(3)
        capsule = x.__dlpack__(max_version=version)
        y = v.from_dlpack(capsule)
        assert y.shares_storage(x) or y.data_ptr() == x.data_ptr()
        for _ in range(2):
            with pytest.raises(BufferError, match="used"):
                v.from_dlpack(capsule)
        unused = v.zeros(1000).__dlpack__(max_version=version)
        del unused, capsule, x
        gc.collect()
        assert y.tolist() == [0, 1, 2]
    for bad in (3, None, object(), "capsule"):
        with pytest.raises(TypeError):
            v.from_dlpack(bad)

    class Producer:
        def __dlpack__(self, **_):
            return 3

        def __dlpack_device__(self):
            return (1, 0)

    with pytest.raises((TypeError, BufferError)):
        v.from_dlpack(Producer())


def test_functions_of_python_that_fail():
    x = v.ones(2, requires_grad=True)

    def bad(*_):
        raise LookupError("mine")

    class Fails(v.autograd.Function):
        @staticmethod
        def forward(ctx, a):
            return a * 1

        @staticmethod
        def backward(ctx, g):
            raise LookupError("mine")

    class Wrong(Fails):
        @staticmethod
        def backward(ctx, g):
            return "text"

    layer = nn.Linear(2, 2)
    layer.register_full_backward_hook(bad)
    hooked = x * 1
    hooked.register_hook(bad)
    opt = optim.SGD([x], lr=0.1)
    for call in (
        lambda: hooked.sum().backward(),
        lambda: Fails.apply(x).sum().backward(),
        lambda: layer(x.reshape(1, 2)).sum().backward(),
        lambda: v.autograd.checkpoint(bad, x),
        lambda: v.gradcheck(bad, v.ones(1, dtype=v.float64, requires_grad=True)),
        lambda: v.jacobian(bad, v.ones(1)),
        lambda: opt.step(bad),
        lambda: optim.lr_scheduler.LambdaLR(opt, bad),
        lambda: list(v.utils.data.DataLoader([1, 2], collate_fn=bad)),
        lambda: list(v.utils.data.DataLoader([1, 2], collate_fn=bad, num_workers=2)),
    ):
        with pytest.raises(LookupError, match="mine"):
            call()
    with pytest.raises((TypeError, RuntimeError)):
        Wrong.apply(x).sum().backward()
    (x * 2).sum().backward()  # the library goes on
    assert x.grad is not None


def run(program, **options):
    code = textwrap.dedent(program)
    environment = {**os.environ, "PYTHONMALLOC": "debug", "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=100, env=environment, **options
    )


def test_forks_after_use():
    done = run("""
        import os, volta as v
        x = v.rand(300, 300)
        big = (x @ x).sum().item()
        children = []
        for _ in range(3):
            child = os.fork()
            if child == 0:
                y = v.rand(300, 300, requires_grad=True)
                (y @ x).tanh().sum().backward()
                ok = (x @ x).sum().item() == big and y.grad is not None
                os._exit(0 if ok else 1)
            children.append(child)
        assert all(os.waitpid(c, 0)[1] == 0 for c in children)
        assert (x @ x).sum().item() == big
        print("fine")
    """)
    assert done.returncode == 0 and done.stdout == "fine\n", done.stderr


def test_shutdown_with_everything_alive():
    done = run("""
        import threading, sys, volta as v, numpy as np
        from volta import nn, optim, autograd
        net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
        opt = optim.Adam(net.parameters())
        schedule = optim.lr_scheduler.LambdaLR(opt, lambda t: 0.9 ** t)
        x = v.rand(5, 4, requires_grad=True)
        y = net(x)
        y.register_hook(lambda g: g)
        net.register_full_backward_hook(lambda m, gi, go: None)
        kept = net(x).sum()              # a graph with Python functions in it
        array, theirs = np.asarray(v.ones(3)), v.from_numpy(np.ones(3))
        capsule = v.ones(3).__dlpack__()
        view = memoryview(v.ones(3))
        class Cycle: pass
        c = Cycle(); c.me = c; c.x = kept; c.f = lambda: c
        sys.leftover = [kept, array, theirs, capsule, view, c, opt, schedule]
        def forever():
            while True: (v.rand(64, 64) @ v.rand(64, 64)).sum()
        threading.Thread(target=forever, daemon=True).start()
        class AtExit:
            def __del__(self): v.ones(2).sum()
        at_exit = AtExit()
        print("fine", flush=True)
    """)
    assert done.returncode == 0 and done.stdout.startswith("fine"), (done.returncode, done.stderr)
    assert "leaked" not in done.stderr and "Fatal" not in done.stderr, done.stderr


def test_errors_of_a_thread_stay_there():
    done = run("""
        import threading, volta as v
        def work():
            for _ in range(200):
                try: v.ones(2) @ v.ones(3)
                except ValueError: pass
        ts = [threading.Thread(target=work) for _ in range(4)]
        [t.start() for t in ts]; [t.join() for t in ts]
        print("fine")
    """)
    assert done.returncode == 0 and done.stdout == "fine\n", done.stderr


def test_a_second_import_is_an_error():
    done = run("""
        import sys, volta as v
        x = v.ones(2)
        for name in [n for n in sys.modules if n.split(".")[0] == "volta"]:
            del sys.modules[name]
        try:
            import volta
        except ImportError:
            print("refused", (x + 1).tolist())
        try:
            import _xxsubinterpreters as interpreters
            other = interpreters.create()
            interpreters.run_string(other, "import volta")
        except Exception:
            pass
    """)
    assert done.returncode == 0 and done.stdout == "refused [2.0, 2.0]\n", (done.returncode, done.stderr)
