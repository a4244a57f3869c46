"""Calls of the reductions, row ops and scans."""

import torch

from make import ALL, FLOATS, INTEGERS, NAMES, NUMPY


def awkward(dtype, seed):
    """Rows with NaN, with both infinities, of -inf alone, of zeros of both signs, with ties."""
    inf, nan = float("inf"), float("nan")
    rows = [
        [1.0, nan, -2.0, 0.5, nan],
        [inf, 1.0, -inf, 2.0, 0.0],
        [-inf, -inf, -inf, -inf, -inf],
        [0.0, -0.0, 0.0, -0.0, 0.0],
        [2.0, 3.0, 3.0, -1.0, 3.0],
        [300.0, -300.0, 299.5, 0.25, -0.25],
    ]
    return torch.tensor(rows, dtype=torch.float64).to(NAMES[dtype])


def distinct(dtype, seed):
    """[4, 5], no value twice."""
    generator = torch.Generator().manual_seed(seed)
    order = torch.randperm(20, generator=generator).reshape(4, 5)
    if dtype in FLOATS:
        return ((order.double() - 9.5) * 0.25).to(NAMES[dtype])
    return torch.from_numpy(order.numpy().astype(NUMPY[dtype]))


def over_axes(q, op, f, dtypes, mode, of, **kw):
    """The usual ways to name axes: all, one, several, kept, negative; of 5-D, 0-d, stretched and empty tensors too."""
    q.call(op, lambda x: f(x, (), False), [of(3, 4, 2)], {}, dtypes, mode, **kw)
    q.call(op, lambda x: f(x, (0, 2), False), [of(3, 4, 2)], {"dim": (0, 2)}, dtypes, mode, **kw)
    q.call(op, lambda x: f(x, (-2,), True), [of(3, 4, 2)], {"dim": (-2,), "keepdim": True}, dtypes, mode, **kw)
    some = [t for t in dtypes if t in ("f32", "i32", "bool")]
    q.call(op, lambda x: f(x, (1, 3), False), [of(2, 3, 1, 2, 2)], {"dim": (1, 3)}, some, mode, **kw)
    q.call(op, lambda x: f(x, (), False), [of()], {}, some, mode, **kw)
    q.call(op, lambda x: f(x, (1,), False), [of(3, 4, base=(3, 1))], {"dim": (1,)}, some, mode, **kw)
    q.call(op, lambda x: f(x, (0,), False), [of(17, 3)], {"dim": (0,)}, some, mode, **kw)
    q.call(op, lambda x: f(x, (1,), False), [of(2, 70)], {"dim": (1,)}, some, mode, **kw)
    q.call(op, lambda x: f(x, (1,), False), [of(3, 0)], {"dim": (1,)}, some, mode, **kw)


def axes_or_all(f):
    return lambda x, dim, keep: f(x, dim=dim or tuple(range(x.dim())), keepdim=keep)


def one_by_one(f):
    """An op PyTorch has for one axis only, over several: the last first."""

    def over(x, dim, keep):
        axes = sorted((d % max(x.dim(), 1) for d in dim or range(x.dim())), reverse=True)
        if not x.dim():
            return f(x)
        for d in axes:
            x = f(x, dim=d, keepdim=keep)
        return x

    return over


def calls(q):
    from functions import Of

    numbers = FLOATS + INTEGERS
    over_axes(q, "sum", axes_or_all(torch.sum), ALL, "bits", Of)
    over_axes(q, "mean", axes_or_all(torch.mean), FLOATS, "wide", Of)
    small = lambda *shape, **kw: Of(*shape, low=0.5, high=1.5, whole=(1, 3), limits=False, **kw)
    over_axes(q, "prod", one_by_one(torch.prod), ALL, "bits", small)
    over_axes(q, "nansum", axes_or_all(torch.nansum), ALL, "bits", Of)
    for op in ("amax", "amin"):
        over_axes(q, op, axes_or_all(getattr(torch, op)), ALL, "order", Of)
    for op in ("any", "all"):
        over_axes(q, op, lambda x, dim, keep, f=getattr(torch, op): one_by_one(f)(x, dim, keep).bool(), ALL, "wide", Of)
    q.call("count_nonzero", lambda x: torch.count_nonzero(x), [Of(3, 4)], {}, ALL, "bits")
    q.call("count_nonzero", lambda x: torch.count_nonzero(x, (0, 2)), [Of(3, 4, 2)], {"dim": (0, 2)}, ALL, "bits")
    for op in ("max", "min"):
        f = getattr(torch, op)
        q.call(op, lambda x: f(x), [Of(3, 5)], {}, ALL, "order")
        q.call(op, lambda x: f(x, 1, True), [Of(3, 5)], {"dim": 1, "keepdim": True}, ALL, "order")
        q.call(op, lambda x: f(x, -2), [Of(3, 4, 2)], {"dim": -2}, ALL, "order")
    for op in ("argmax", "argmin"):
        f = getattr(torch, op)
        q.call(op, lambda x: f(x), [Of(make=distinct)], {}, numbers, "order")
        q.call(op, lambda x: f(x, 0, True), [Of(make=distinct)], {"dim": 0, "keepdim": True}, numbers, "order")
        q.call(op, lambda x: f(x, -1), [Of(3, 6)], {"dim": -1}, numbers, "order")
    deviations(q, Of)
    for p in (0.0, 1.0, 2.0, 3.0, 0.5, float("inf"), float("-inf")):
        away = lambda *shape, **kw: Of(*shape, low=0.3, **kw)
        q.call("norm", lambda x: torch.linalg.vector_norm(x, p), [away(3, 4)], {"p": p})
        q.call("norm", lambda x: torch.linalg.vector_norm(x, p, (0, 2)), [away(3, 2, 2)], {"p": p, "dim": (0, 2)})
        q.call(
            "norm", lambda x: torch.linalg.vector_norm(x, p, -1, True), [Of(3, 4)], {"p": p, "dim": -1, "keepdim": True}
        )
    q.call("logsumexp", lambda x: torch.logsumexp(x, (1,)), [Of(3, 4)], {"dim": (1,)})
    q.call(
        "logsumexp",
        lambda x: torch.logsumexp(x, (0, 2), True),
        [Of(3, 4, 2, low=-90, high=90)],
        {"dim": (0, 2), "keepdim": True},
    )
    q.call("median", torch.median, [Of(make=distinct)], {}, numbers, "order")
    q.call("median", lambda x: torch.median(x, 1), [Of(make=distinct)], {"dim": 1}, numbers, "order")
    q.call(
        "median", lambda x: torch.median(x, 0, True), [Of(make=distinct)], {"dim": 0, "keepdim": True}, numbers, "order"
    )
    rows_and_scans(q, Of)
    specials(q, Of)


def deviations(q, Of):
    for op, f in (("var", torch.var), ("std_dev", torch.std)):
        q.call(op, lambda x: f(x), [Of(3, 4)], {})
        q.call(op, lambda x: f(x, (0, 2), correction=0), [Of(3, 4, 2)], {"dim": (0, 2), "correction": 0})
        q.call(op, lambda x: f(x, -1, keepdim=True), [Of(3, 20, low=9, high=11)], {"dim": -1, "keepdim": True})


def rows_and_scans(q, Of):
    for op in ("softmax", "log_softmax"):
        f = getattr(torch, op)
        q.call(op, lambda x: f(x, -1), [Of(3, 7)], {"dim": -1})
        q.call(op, lambda x: f(x, 1), [Of(2, 4, 3)], {"dim": 1})
        q.call(op, lambda x: f(x, 0), [Of(5, 3, low=-400, high=400)], {"dim": 0})
        q.call(op, lambda x: f(x, 0), [Of()], {"dim": 0})
        q.call(op, lambda x: f(x, 1), [Of(0, 3)], {"dim": 1}, ["f32"])
        q.call(op, lambda x: f(x, -1), [Of(2, 67)], {"dim": -1}, ["f32", "f64", "bf16"])
        q.call(op, lambda x: f(x, 2), [Of(2, 1, 3, 2, 2)], {"dim": 2}, ["f32"])
    small = lambda *shape, **kw: Of(*shape, low=0.5, high=1.5, whole=(1, 3), limits=False, **kw)
    for op, of, mode in (("cumsum", Of, "bits"), ("cumprod", small, "bits")):
        f = getattr(torch, op)
        q.call(op, lambda x: f(x, 1), [of(3, 6)], {"dim": 1}, ALL, mode)
        q.call(op, lambda x: f(x, -3), [of(3, 2, 2)], {"dim": -3}, ALL, mode)
        q.call(op, lambda x: f(x, 0), [of()], {"dim": 0}, ["f32", "i32"], mode)
        q.call(op, lambda x: f(x, 0), [of(0, 2)], {"dim": 0}, ["f32", "i32"], mode)
        q.call(op, lambda x: f(x, 1), [of(3, 4, base=(3, 1))], {"dim": 1}, ["f32", "i32"], mode)
    for op in ("cummax", "cummin"):
        f = getattr(torch, op)
        q.call(op, lambda x: f(x, 1), [Of(make=distinct)], {"dim": 1}, FLOATS + INTEGERS, "order")
        q.call(op, lambda x: f(x, 0), [Of(6, 2)], {"dim": 0}, ALL, "order")
    q.call("logcumsumexp", lambda x: torch.logcumsumexp(x, 1), [Of(3, 6)], {"dim": 1})
    q.call("logcumsumexp", lambda x: torch.logcumsumexp(x, 0), [Of(4, 3, low=-200, high=200)], {"dim": 0})
    q.call("diff", torch.diff, [Of(3, 5)], {}, FLOATS + INTEGERS, "bits")
    q.call("diff", lambda x: torch.diff(x, 2, 0), [Of(4, 3)], {"n": 2, "dim": 0}, FLOATS + INTEGERS, "bits")
    q.call("diff", lambda x: torch.diff(x, 3, 1), [Of(2, 2)], {"n": 3, "dim": 1}, ["f32", "i32"], "bits")


def specials(q, Of):
    """NaN, infinities, signed zeros and ties, row by row."""
    x = Of(make=awkward)
    for op, f in (("sum", torch.sum), ("mean", torch.mean), ("nansum", torch.nansum)):
        q.call(op, lambda x: f(x, dim=1), [x], {"dim": 1}, label="awkward")
    for op in ("amax", "amin"):  # the gradient of a NaN row is NaN throughout in PyTorch, shared among the NaN here
        f = getattr(torch, op)
        q.call(op, lambda x: f(x, dim=1), [x], {"dim": 1}, gradients=False, label="awkward")
        q.call(
            op,
            lambda x: f(x, dim=1),
            [Of(make=lambda dtype, seed: awkward(dtype, seed)[1:])],
            {"dim": 1},
            label="awkward_gradient",
        )
    q.call("prod", lambda x: torch.prod(x, 1), [x], {"dim": 1}, gradients=False, label="awkward")
    q.call("prod", lambda x: torch.prod(x, 1), [Of(make=with_zeros)], {"dim": 1}, label="zeros")
    q.call("cumprod", lambda x: torch.cumprod(x, 1), [Of(make=with_zeros)], {"dim": 1}, label="zeros")
    for op in ("max", "min"):
        q.call(op, lambda x, f=getattr(torch, op): f(x, 1), [x], {"dim": 1}, label="awkward")
    for op in ("argmax", "argmin"):
        q.call(op, lambda x, f=getattr(torch, op): f(x, 1), [x], {"dim": 1}, label="awkward")
    for op in ("any", "all"):
        q.call(op, lambda x, f=getattr(torch, op): f(x, 1), [x], {"dim": 1}, label="awkward")
    q.call("count_nonzero", lambda x: torch.count_nonzero(x, 1), [x], {"dim": 1}, label="awkward")
    for op, f in (("var", torch.var), ("std_dev", torch.std)):
        q.call(op, lambda x: f(x, 1), [x], {"dim": 1}, gradients=False, label="awkward")
    for p in (0.0, 1.0, 2.0, 3.0, float("inf"), float("-inf")):
        q.call(
            "norm",
            lambda x: torch.linalg.vector_norm(x, p, 1),
            [x],
            {"p": p, "dim": 1},
            gradients=False,
            label="awkward",
        )
    q.call("logsumexp", lambda x: torch.logsumexp(x, 1), [x], {"dim": 1}, gradients=False, label="awkward")
    for op in ("softmax", "log_softmax", "cumsum", "logcumsumexp"):
        q.call(op, lambda x, f=getattr(torch, op): f(x, 1), [x], {"dim": 1}, gradients=False, label="awkward")
    for op in ("cummax", "cummin"):
        q.call(op, lambda x, f=getattr(torch, op): f(x, 1)[0], [x], {"dim": 1}, gradients=False, label="awkward")
    q.call("median", lambda x: torch.median(x, 1)[0], [x], {"dim": 1}, gradients=False, label="awkward")


def with_zeros(dtype, seed):
    return torch.tensor([[1.5, 0.0, 2.0], [0.0, 0.5, 0.0], [1.0, 2.0, -0.5]], dtype=torch.float64).to(NAMES[dtype])
