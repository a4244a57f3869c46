"""Gradients: backward, grad, modes, hooks, custom functions, checkpoints."""

import gc
import threading

import pytest

import volta as v
from volta import autograd


def leaf(*values, dtype=v.float64):
    return v.tensor(list(values), dtype=dtype, requires_grad=True)


def test_backward_accumulates():
    x = leaf(1, 2)
    (x * x).sum().backward()
    (x * 3).sum().backward()
    assert x.grad.tolist() == [5, 7]
    x.grad = None
    assert x.grad is None
    x.grad = v.ones(2, dtype=v.float64)
    (x * 1).backward(v.tensor([1.0, 2.0], dtype=v.float64))
    assert x.grad.tolist() == [2, 3]


def test_grad_returns_and_does_not_accumulate():
    x, y = leaf(2), leaf(3)
    gx, gy = autograd.grad((x * x * y).sum(), [x, y], create_graph=True)
    assert gx.tolist() == [12] and gy.tolist() == [4] and x.grad is None
    (second,) = autograd.grad(gx.sum(), x)
    assert second.tolist() == [6]
    assert autograd.grad((x * 2).sum(), [x, y], allow_unused=True)[1] is None
    with pytest.raises(v.AutogradError):
        autograd.grad((x * 2).sum(), [x, y])


def test_errors_of_backward():
    x = leaf(1, 2)
    with pytest.raises(v.Error):
        (x * 2).backward()
    y = (x * x).sum()
    y.backward()
    with pytest.raises(v.AutogradError):
        y.backward()
    with pytest.raises(v.AutogradError):
        v.ones(2).sum().backward()
    with pytest.raises(v.Error):
        v.tensor([1], requires_grad=True)
    with pytest.raises(v.AutogradError):
        x.add_(1)
    z = x * 1
    w = z.exp()
    w.add_(1)
    with pytest.raises(v.AutogradError, match="exp"):
        w.sum().backward()


def test_modes():
    x = leaf(1)
    with v.no_grad():
        assert not v.is_grad_enabled() and not (x * 2).requires_grad
        with v.enable_grad():
            assert (x * 2).requires_grad
        assert not v.is_grad_enabled()
        x.mul_(2)
    assert v.is_grad_enabled() and x.tolist() == [2]

    @v.no_grad()
    def first(t):
        return t * 2

    @v.no_grad
    def second(t):
        return t * 2

    assert not first(x).requires_grad and not second(x).requires_grad and (x * 2).requires_grad
    with v.set_grad_enabled(False):
        assert not v.is_grad_enabled()
    with pytest.raises(ZeroDivisionError), v.no_grad():
        1 / 0
    assert v.is_grad_enabled()
    with v.inference_mode():
        assert v.is_inference_mode_enabled()
    guard = v.no_grad()
    with guard, guard:
        pass
    assert v.is_grad_enabled()


def test_modes_belong_to_threads():
    seen = []
    with v.no_grad():
        thread = threading.Thread(target=lambda: seen.append(v.is_grad_enabled()))
        thread.start()
        thread.join()
    assert seen == [True]


def test_hooks():
    x = leaf(1, 2)
    seen = []
    handle = x.register_hook(lambda g: seen.append(g.tolist()))
    scaled = x.register_hook(lambda g: g * 10)
    (x * x).sum().backward()
    assert seen == [[2, 4]] and x.grad.tolist() == [20, 40]
    handle.remove()
    handle.remove()
    scaled.remove()
    x.grad = None
    (x * x).sum().backward()
    assert len(seen) == 1 and x.grad.tolist() == [2, 4]


def test_hooks_that_raise():
    x = leaf(1)

    def bad(_):
        raise KeyError("from a hook")

    handle = x.register_hook(bad)
    with pytest.raises(KeyError, match="from a hook"):
        (x * 2).sum().backward()
    handle.remove()
    (x * 2).sum().backward()
    handle = x.register_hook(lambda g: "text")
    with pytest.raises((TypeError, RuntimeError)):
        (x * 2).sum().backward()
    handle.remove()


def test_hooks_are_freed_with_their_graph():
    class Mark:
        pass

    import weakref

    mark = Mark()
    alive = weakref.ref(mark)
    x = leaf(1)
    y = x * 2
    y.register_hook(lambda g, kept=mark: None)
    del mark, y
    gc.collect()
    assert alive() is None


class Cube(autograd.Function):
    @staticmethod
    def forward(ctx, x, factor):
        ctx.save_for_backward(x)
        ctx.factor = factor
        return factor * x**3

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * ctx.factor * 3 * x**2, None


def test_custom_functions():
    x = leaf(1, 2)
    y = Cube.apply(x, 2)
    assert y.tolist() == [2, 16] and y.requires_grad
    y.sum().backward()
    assert x.grad.tolist() == [6, 24]
    assert v.gradcheck(lambda t: Cube.apply(t, 3), [leaf(0.5, -1.5)])
    assert not Cube.apply(v.ones(2), 2).requires_grad

    class Wrong(autograd.Function):
        @staticmethod
        def forward(ctx, a, b):
            return a * b

        @staticmethod
        def backward(ctx, g):
            return g

    with pytest.raises(v.AutogradError, match="1 gradients for 2"):
        Wrong.apply(leaf(1), leaf(2)).sum().backward()


def test_checkpoint_gives_the_same_gradients():
    x, w = leaf(0.5, 1.5), leaf(2, 3)
    expected = autograd.grad(((x * w).tanh() * w).sum(), [x, w])
    y = autograd.checkpoint(lambda t: (t * w).tanh() * w, x)
    assert y.requires_grad
    got = autograd.grad(y.sum(), [x, w])
    assert [g.tolist() for g in got] == [g.tolist() for g in expected]


def test_numerical_checks():
    assert v.gradcheck(
        lambda a, b: (a @ b).sigmoid(),
        [v.rand(2, 3, dtype=v.float64, requires_grad=True), v.rand(3, 2, dtype=v.float64, requires_grad=True)],
    )
    assert v.gradgradcheck(lambda a: a.sin().sum(), [leaf(0.3, 0.6)])
    broken = type("Broken", (Cube,), {"backward": staticmethod(lambda ctx, g: (g, None))})
    assert not v.gradcheck(lambda t: broken.apply(t, 1), [leaf(2.0)], raise_exception=False)
    with pytest.raises(v.Error):
        v.gradcheck(lambda t: broken.apply(t, 1), [leaf(2.0)])
    jacobian = v.jacobian(lambda t: t * t, leaf(1, 2))
    assert jacobian.tolist() == [[2, 0], [0, 4]]
    assert v.hessian(lambda t: (t**3).sum(), leaf(1, 2)).tolist() == [[6, 0], [0, 12]]


def test_data_and_detach():
    x = leaf(1, 2)
    assert not x.detach().requires_grad and x.detach().shares_storage(x)
    x.data = v.tensor([5.0, 6.0], dtype=v.float64)
    assert x.tolist() == [5, 6] and x.requires_grad and x.is_leaf
    y = x * 2
    y.retain_grad()
    y.sum().backward()
    assert y.grad.tolist() == [1, 1] and not y.is_leaf
