"""Calls of the index ops, sorting, counting, and the pointwise ops made of others."""

import numpy as np
import torch
import torch.nn.functional as F

from make import ALL, FLOATS, INTEGERS, NAMES, NUMPY, SIGNED, Fixed, Num
from reductions import awkward, distinct
from values import special


def index(*values):
    return Fixed(torch.tensor(values if len(values) > 1 or isinstance(values[0], int) else values[0]))


def sorted_row(dtype, seed):
    x = [0, 1, 3, 3, 6, 8]
    return (
        torch.tensor(x, dtype=torch.float64).to(NAMES[dtype])
        if dtype in FLOATS
        else torch.from_numpy(np.array(x).astype(NUMPY[dtype]))
    )


def picks(q, Of):
    rows = Fixed(torch.tensor([[0, 1, 2, 3, 0], [3, 3, 0, 1, 2], [1, 0, 0, 0, 3]]))
    q.call("gather", lambda x, i: x.gather(0, i), [Of(4, 5), rows], {"dim": 0}, ALL, "bits")
    q.call(
        "gather",
        lambda x, i: x.gather(-1, i),
        [Of(2, 4), Fixed(torch.tensor([[3, 3], [0, 1]]))],
        {"dim": -1},
        ALL,
        "bits",
    )
    q.call(
        "gather",
        lambda x, i: x.gather(0, i),
        [Of(3), Fixed(torch.zeros(0, dtype=torch.int64))],
        {"dim": 0},
        ["f32", "i32"],
        "bits",
    )
    once = Fixed(torch.tensor([[0, 1, 2, 3, 0], [1, 2, 3, 0, 1]]))
    q.call("scatter", lambda x, i, v: x.scatter(0, i, v), [Of(4, 5), once, Of(2, 5)], {"dim": 0}, ALL, "bits")
    q.call(
        "scatter",
        lambda x, i, v: x.scatter(1, i, v),
        [Of(2, 5), Fixed(torch.tensor([[4, 0], [1, 2]])), Num(1)],
        {"dim": 1},
        ALL,
        "bits",
    )
    q.call(
        "scatter_add",
        lambda x, i, v: x.scatter_add(0, i, v),
        [Of(4, 5), rows, Of(3, 5)],
        {"dim": 0},
        FLOATS + INTEGERS,
        "bits",
    )
    for how in ("sum", "prod", "mean", "amax", "amin"):
        for self_too in (True, False):
            dtypes = FLOATS + INTEGERS if how != "mean" else FLOATS
            mode = {"sum": "bits", "prod": "bits"}.get(how, "order")
            q.call(
                "scatter_reduce",
                lambda x, i, v: x.scatter_reduce(1, i, v, how, include_self=self_too),
                [
                    Of(3, 4, limits=False),
                    Fixed(torch.tensor([[0, 0, 2], [3, 1, 3], [2, 2, 2]])),
                    Of(3, 3, limits=False),
                ],
                {"dim": 1, "reduce": how, "include_self": self_too},
                dtypes,
                mode,
            )
    q.call(
        "index_select", lambda x, i: x.index_select(1, i % 5), [Of(3, 5), index(4, 0, 0, 4)], {"dim": 1}, ALL, "bits"
    )
    q.call(
        "index_select",
        lambda x, i: x.index_select(0, i),
        [Of(3, 2), Fixed(torch.zeros(0, dtype=torch.int64))],
        {"dim": 0},
        ALL,
        "bits",
    )
    q.call(
        "index_add",
        lambda x, i, v: x.index_add(0, i, v),
        [Of(4, 3), index(2, 0, 2), Of(3, 3)],
        {"dim": 0, "alpha": 1},
        FLOATS + INTEGERS,
        "bits",
    )
    q.call(
        "index_add",
        lambda x, i, v: x.index_add(1, i, v, alpha=2),
        [Of(2, 3), index(1, 1), Of(2, 2)],
        {"dim": 1, "alpha": 2},
        FLOATS + INTEGERS,
        "bits",
    )
    q.call("take", lambda x, i: x.take(i), [Of(4, 5), Fixed(torch.tensor([[0, 19], [7, -1]]))], {}, ALL, "bits")
    q.call(
        "take_along_dim",
        lambda x, i: x.take_along_dim(i, 1),
        [Of(3, 5), Fixed(torch.tensor([[4, 0]]))],
        {"dim": 1},
        ALL,
        "bits",
    )
    q.call("take_along_dim", lambda x, i: x.take_along_dim(i), [Of(2, 3), index(5, 0, 0)], {}, ALL, "bits")
    mask = Fixed(torch.tensor([[True, False, True, True], [False, False, True, False], [True, True, False, False]]))
    q.call("masked_fill", lambda x, m, v: x.masked_fill(m, v), [Of(3, 4), mask, Num(1)], {}, ALL, "bits")
    q.call(
        "masked_fill",
        lambda x, m, v: x.masked_fill(m, v),
        [Of(3, 4), Fixed(mask.tensor[0]), Num(float("-inf"))],
        {},
        FLOATS,
    )
    q.call("masked_select", lambda x, m: x.masked_select(m), [Of(3, 4), mask], {}, ALL, "bits")
    q.call(
        "masked_select",
        lambda x, m: x.masked_select(m),
        [Of(3, 4), Fixed(torch.tensor([[True], [False], [True]]))],
        {},
        ALL,
        "bits",
    )
    q.call("nonzero", torch.nonzero, [Of(3, 4, whole=(-1, 1))], {}, ALL, "wide")
    q.call("nonzero", torch.nonzero, [Of(2, 0)], {}, ["f32", "i32"], "wide")
    q.call(
        "embedding",
        lambda w, i: F.embedding(i, w),
        [Of(4, 3), Fixed(torch.tensor([[3, 0], [3, 1]]))],
        {},
        FLOATS + SIGNED,
        "bits",
    )
    for dtype in INTEGERS:
        labels = torch.from_numpy(np.array([2, 0, 3, 3]).astype(NUMPY[dtype]))
        for classes in (5, -1):
            y = F.one_hot(torch.tensor([2, 0, 3, 3]), classes)
            q.writer.case(
                "one_hot",
                dtype,
                f"classes{classes}",
                {"classes": classes},
                [Fixed(labels)],
                [y],
                None,
                None,
                None,
                None,
            )


def orders(q, Of):
    for descending in (False, True):
        q.call(
            "sort",
            lambda x: torch.sort(x, dim=1, descending=descending, stable=True),
            [Of(3, 9)],
            {"dim": 1, "descending": descending},
            ALL,
            "order",
        )
        q.call(
            "sort",
            lambda x: torch.sort(x, dim=0, descending=descending, stable=True),
            [Of(5, 2, 2)],
            {"dim": 0, "descending": descending},
            ALL,
            "order",
        )
        q.call(
            "sort",
            lambda x: torch.sort(x, dim=1, descending=descending, stable=True),
            [Of(make=awkward)],
            {"dim": 1, "descending": descending},
            label="awkward",
        )
        q.call(
            "argsort",
            lambda x: torch.argsort(x, dim=-1, descending=descending, stable=True),
            [Of(3, 9)],
            {"dim": -1, "descending": descending},
            ALL,
            "order",
        )
    for largest in (True, False):
        q.call(
            "topk",
            lambda x: torch.topk(x, 2, 1, largest),
            [Of(make=distinct)],
            {"k": 2, "dim": 1, "largest": largest},
            FLOATS + INTEGERS,
            "order",
        )
        q.call(
            "topk",
            lambda x: torch.topk(x, 3, 0, largest),
            [Of(make=distinct)],
            {"k": 3, "dim": 0, "largest": largest},
            FLOATS + INTEGERS,
            "order",
        )
        q.call(
            "topk",
            lambda x: torch.topk(x, 4, 1, largest)[0],
            [Of(make=awkward)],
            {"k": 4, "dim": 1, "largest": largest},
            gradients=False,
            label="awkward",
        )
    q.call(
        "kthvalue",
        lambda x: torch.kthvalue(x, 2, 1),
        [Of(make=distinct)],
        {"k": 2, "dim": 1},
        FLOATS + INTEGERS,
        "order",
    )
    q.call(
        "kthvalue",
        lambda x: torch.kthvalue(x, 3, 0, True),
        [Of(make=distinct)],
        {"k": 3, "dim": 0, "keepdim": True},
        FLOATS + INTEGERS,
        "order",
    )
    q.call(
        "kthvalue",
        lambda x: torch.kthvalue(x, 4, 1)[0],
        [Of(make=awkward)],
        {"k": 4, "dim": 1},
        gradients=False,
        label="awkward",
    )
    q.call(
        "unique",
        lambda x: torch.unique(x, return_inverse=True, return_counts=True),
        [Of(3, 6, whole=(0, 4))],
        {},
        INTEGERS + ["bool"],
        "order",
    )
    q.call(
        "unique",
        lambda x: torch.unique(x, return_inverse=True, return_counts=True),
        [Of(make=repeated)],
        {},
        FLOATS,
        gradients=False,
    )
    for right in (False, True):
        q.call(
            "searchsorted",
            lambda s, v: torch.searchsorted(s, v, right=right),
            [Of(make=sorted_row), Of(3, 4, whole=(0, 9), low=-1, high=9)],
            {"right": right},
            FLOATS + INTEGERS,
            "order",
            gradients=False,
        )
        q.call(
            "bucketize",
            lambda v, s: torch.bucketize(v, s, right=right),
            [Of(3, 4, whole=(0, 9), low=-1, high=9), Of(make=sorted_row)],
            {"right": right},
            FLOATS + INTEGERS,
            "order",
            gradients=False,
        )
    q.call(
        "searchsorted",
        lambda s, v: torch.searchsorted(s, v),
        [Of(make=sorted_rows), Of(2, 3, whole=(0, 9), low=-1, high=9)],
        {},
        FLOATS + SIGNED,
        "order",
        gradients=False,
    )


def repeated(dtype, seed):
    return torch.tensor([[1.5, -2.0, 0.0, 1.5], [3.0, -2.0, 1.5, 0.25]], dtype=torch.float64).to(NAMES[dtype])


def sorted_rows(dtype, seed):
    x = torch.tensor([[0, 2, 4, 6], [1, 1, 5, 7]])
    return x.double().to(NAMES[dtype]) if dtype in FLOATS else x.to(NAMES[dtype])


def counts(q):
    values = [1, 0, 3, 3, 1, 1]
    for dtype in INTEGERS:
        x = torch.from_numpy(np.array(values).astype(NUMPY[dtype]))
        for least in (0, 6):
            q.writer.case(
                "bincount",
                dtype,
                f"least{least}",
                {"minlength": least},
                [Fixed(x)],
                [torch.bincount(torch.tensor(values), minlength=least)],
                None,
                None,
                None,
                None,
            )
    for dtype in ("f32", "f64"):
        w = torch.tensor([0.5, 1.0, 2.0, -1.0, 0.25, 4.0], dtype=NAMES[dtype])
        q.writer.case(
            "bincount",
            dtype,
            "weights",
            {"minlength": 0},
            [Fixed(torch.tensor(values)), Fixed(w)],
            [torch.bincount(torch.tensor(values), w)],
            None,
            None,
            None,
            None,
        )


def histograms(q, Of):
    q.call(
        "histogram",
        lambda x: torch.histogram(x, 4, range=(-2.0, 2.0)),
        [Of(4, 5)],
        {"bins": 4, "low": -2.0, "high": 2.0},
        ["f32", "f64"],
        gradients=False,
    )
    q.call("histogram", lambda x: torch.histogram(x, 5), [Of(4, 5)], {"bins": 5}, ["f32", "f64"], gradients=False)


def composed(q, Of):
    three = [Of(3, 4), Of(4), Of(3, 1)]
    q.call("addcmul", lambda x, a, b: torch.addcmul(x, a, b, value=0.5), three, {"value": 0.5})
    q.call("addcmul", lambda x, a, b: torch.addcmul(x, a, b, value=3), three, {"value": 3}, SIGNED + ["u8"], "bits")
    q.call(
        "addcdiv",
        lambda x, a, b: torch.addcdiv(x, a, b, value=0.5),
        [Of(3, 4), Of(4), Of(3, 1, low=0.5)],
        {"value": 0.5},
    )
    for args in ({}, {"nan": 2.0}, {"nan": 1.0, "posinf": 5.0, "neginf": -6.0}):
        q.call(
            "nan_to_num",
            lambda x: torch.nan_to_num(x, **args),
            [Of(make=lambda dtype, seed: special(dtype))],
            args,
            exact=False,
        )
    q.call("nan_to_num", torch.nan_to_num, [Of(3, 4)], {}, INTEGERS + ["bool"], "bits")
    for equal_nan in (False, True):
        q.call(
            "isclose",
            lambda a, b: torch.isclose(a, b, 1e-3, 1e-4, equal_nan),
            [Of(make=awkward), Of(make=near)],
            {"rtol": 1e-3, "atol": 1e-4, "equal_nan": equal_nan},
            FLOATS,
            gradients=False,
        )
        q.call(
            "allclose",
            lambda a, b: torch.allclose(a, b, 1e-3, 1e-4, equal_nan),
            [Of(make=awkward), Of(make=awkward)],
            {"rtol": 1e-3, "atol": 1e-4, "equal_nan": equal_nan},
            FLOATS,
            gradients=False,
        )
    q.call(
        "isclose",
        lambda a, b: torch.isclose(a, b, 0.5, 1),
        [Of(3, 4), Of(3, 4)],
        {"rtol": 0.5, "atol": 1.0, "equal_nan": False},
        SIGNED + ["u8"],
        gradients=False,
    )
    q.call("equal", lambda a, b: torch.equal(a, b), [Of(3, 4), Of(3, 4)], {}, ALL, "wide", gradients=False)
    q.call(
        "equal",
        lambda a, b: torch.equal(a, a.clone()),
        [Of(3, 4), Of(3, 4)],
        {"self": True},
        ALL,
        "wide",
        gradients=False,
    )
    q.call("equal", lambda a, b: torch.equal(a, b), [Of(make=awkward), Of(make=awkward)], {}, FLOATS, gradients=False)
    q.call("equal", lambda a, b: False, [Of(3, 4), Of(4, 3)], {}, ["f32"], gradients=False)


def near(dtype, seed):
    x = awkward(dtype, seed).double()
    return torch.where(torch.arange(x.numel()).reshape(x.shape) % 3 == 0, x * 1.01, x * 1.0005).to(NAMES[dtype])


def calls(q):
    from functions import Of

    picks(q, Of)
    orders(q, Of)
    counts(q)
    histograms(q, Of)
    composed(q, Of)
