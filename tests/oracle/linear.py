"""Calls of the products of matrices and their kin."""

import torch
import torch.nn.functional as F

from make import FLOATS, INTEGERS, SIGNED


def calls(q):
    from functions import Of

    numbers = FLOATS + INTEGERS
    some = ["f32", "f64", "i32"]
    pairs = [
        ((3, 4), (4, 2)),
        ((4,), (4,)),
        ((4,), (4, 2)),
        ((3, 4), (4,)),
        ((2, 1, 3, 4), (5, 4, 2)),
        ((2, 3, 4), (4,)),
        ((4,), (2, 4, 3)),
        ((0, 4), (4, 2)),
        ((3, 0), (0, 2)),
        ((1, 1), (1, 1)),
        ((7, 17), (17, 9)),
        ((2, 1, 2, 1, 2, 3), (2, 1, 3, 2)),
    ]
    for i, (a, b) in enumerate(pairs):
        q.call("matmul", torch.matmul, [Of(*a), Of(*b)], {}, numbers if i < 6 else some, "bits")
    q.call("matmul", torch.matmul, [Of(3, 4, base=(3, 1)), Of(4, 2, base=(1, 2))], {}, some, "bits")
    q.call("mm", torch.mm, [Of(3, 4), Of(4, 2)], {}, numbers, "bits")
    q.call("bmm", torch.bmm, [Of(2, 3, 4), Of(2, 4, 2)], {}, numbers, "bits")
    q.call("mv", torch.mv, [Of(3, 4), Of(4)], {}, numbers, "bits")
    q.call("dot", torch.dot, [Of(6), Of(6)], {}, numbers, "bits")
    q.call("dot", torch.dot, [Of(0), Of(0)], {}, some, "bits")
    q.call("outer", torch.outer, [Of(3), Of(4)], {}, numbers, "bits")
    q.call("addmm", torch.addmm, [Of(3, 2), Of(3, 4), Of(4, 2)], {}, numbers, "bits")
    q.call(
        "addmm",
        lambda x, a, b: torch.addmm(x, a, b, beta=0.5, alpha=2),
        [Of(2), Of(3, 4), Of(4, 2)],
        {"beta": 0.5, "alpha": 2},
    )
    q.call(
        "addmm",
        lambda x, a, b: torch.addmm(x, a, b, beta=3, alpha=-2),
        [Of(3, 1), Of(3, 4), Of(4, 2)],
        {"beta": 3, "alpha": -2},
        SIGNED,
        "bits",
    )
    activations = {
        "none": lambda y: y,
        "relu": F.relu,
        "gelu": F.gelu,
        "gelu_tanh": lambda y: F.gelu(y, approximate="tanh"),
        "silu": F.silu,
        "tanh": torch.tanh,
        "sigmoid": torch.sigmoid,
    }
    for name, act in activations.items():
        q.call("linear", lambda x, w, b: act(F.linear(x, w, b)), [Of(2, 3, 4), Of(5, 4), Of(5)], {"activation": name})
    q.call("linear", F.linear, [Of(3, 4), Of(5, 4)], {"activation": "none"})
    q.call("linear", F.linear, [Of(4), Of(5, 4), Of(5)], {"activation": "none"})
    q.call(
        "tensordot",
        lambda a, b: torch.tensordot(a, b, ([1, 2], [1, 0])),
        [Of(2, 3, 4), Of(4, 3, 2)],
        {"dims_x": (1, 2), "dims_other": (1, 0)},
        numbers,
        "bits",
    )
    q.call("tensordot", lambda a, b: torch.tensordot(a, b, 1), [Of(3, 4), Of(4, 2)], {"dims": 1}, some, "bits")
    q.call("tensordot", lambda a, b: torch.tensordot(a, b, 0), [Of(3), Of(2)], {"dims": 0}, some, "bits")
    q.call("kron", torch.kron, [Of(2, 3), Of(2, 2)], {}, numbers, "bits")
    q.call("kron", torch.kron, [Of(2), Of(3, 2)], {}, some, "bits")
    q.call("trace", torch.trace, [Of(3, 4)], {}, numbers, "bits")
    q.call("trace", torch.trace, [Of(0, 4)], {}, ["f32", "i32"], "bits")
    q.call("cross", torch.linalg.cross, [Of(4, 3), Of(4, 3)], {"dim": -1}, numbers, "bits")
    q.call("cross", lambda a, b: torch.linalg.cross(a, b, dim=0), [Of(3, 2), Of(3, 2)], {"dim": 0}, some, "bits")
    equations = [
        ("ij,jk->ki", (3, 4), (4, 2)),
        ("bij,bjk->bik", (2, 3, 4), (2, 4, 2)),
        ("ii->", (3, 3)),
        ("ii->i", (3, 3)),
        ("...ij,jk->...ik", (2, 3, 4), (4, 2)),
        ("ij->ji", (2, 3)),
        ("i,i", (4,), (4,)),
        ("ij,ik,il->jkl", (2, 2), (2, 3), (2, 2)),
        ("ijk->", (2, 3, 2)),
        ("i,j->ij", (3,), (2,)),
    ]
    for equation, *shapes in equations:
        # A sum of one operand's integers is i64 in PyTorch, of several not; ours never changes the dtype.
        q.call(
            "einsum",
            lambda *x: torch.einsum(equation, *x).to(x[0].dtype),
            [Of(*s) for s in shapes],
            {"equation": equation},
            some,
            "bits",
        )
    q.call(
        "einsum",
        lambda *x: torch.einsum("ij,jk->ik", *x),
        [Of(3, 4), Of(4, 2)],
        {"equation": "ij,jk->ik"},
        numbers,
        "bits",
    )
