"""Calls of the views, the shape ops and the conversions."""

import numpy as np
import torch
import torch.nn.functional as F

from make import ALL, FLOATS, NAMES, NUMPY, SIGNED, Fixed
from values import integer_limits, ordinary, special, special_integers


def by_numpy(f):
    """A view PyTorch does not have, differentiated as the gather it is."""

    def run(x):
        where = torch.from_numpy(np.ascontiguousarray(f(np.arange(x.numel()).reshape(tuple(x.shape)))))
        return x.reshape(-1)[where]

    return run


def views(q, Of):
    def call(op, f, shape, args=None, **kw):
        q.call(op, f, [Of(*shape)], args, ALL, "bits", **kw)

    call("reshape", lambda x: x.reshape(4, -1), (3, 4, 2), {"shape": (4, -1)})
    call("reshape", lambda x: x.reshape(()), (1, 1), {"shape": ()})
    call("reshape", lambda x: x.reshape(0, 5), (0, 3), {"shape": (0, 5)})
    call("view", lambda x: x.reshape(12, 2), (3, 4, 2), {"shape": (12, 2)})
    call("permute", lambda x: x.permute(2, 0, 1), (3, 4, 2), {"dims": (2, 0, 1)})
    call("permute", lambda x: x.permute(5, 1, 0, 2, 4, 3), (1, 2, 2, 1, 2, 2), {"dims": (5, 1, 0, 2, 4, 3)})
    call("transpose", lambda x: x.transpose(0, -1), (3, 4, 2), {"dims": (0, -1)})
    call("t", torch.t, (3, 4))
    call("t", torch.t, (3,))
    call("mT", lambda x: x.mT, (3, 4, 2))
    call("movedim", lambda x: x.movedim(0, -1), (3, 4, 2), {"source": 0, "destination": -1})
    call("movedim", lambda x: x.movedim((0, 1), (2, 0)), (3, 4, 2), {"source": (0, 1), "destination": (2, 0)})
    call("expand", lambda x: x.expand(2, -1, 4), (3, 1), {"shape": (2, -1, 4)})
    call("broadcast_to", lambda x: x.broadcast_to(4, 3), (1, 3), {"shape": (4, 3)})
    q.call("expand_as", lambda x, y: x.expand_as(y), [Of(3, 1), Fixed(torch.zeros(2, 3, 4))], {}, ALL, "bits")
    call("squeeze", lambda x: x.squeeze(1), (3, 1, 2), {"dim": 1})
    call("squeeze", lambda x: x.squeeze(), (1, 3, 1))
    call("squeeze", lambda x: x.squeeze((0, 1)), (1, 3, 1), {"dim": (0, 1)})
    call("unsqueeze", lambda x: x.unsqueeze(-1), (3, 2), {"dim": -1})
    call("flatten", lambda x: x.flatten(1), (3, 4, 2), {"start": 1, "end": -1})
    call("flatten", lambda x: x.flatten(), (), {"start": 0, "end": -1})
    call("unflatten", lambda x: x.unflatten(1, (2, -1)), (3, 6), {"dim": 1, "sizes": (2, -1)})
    call("narrow", lambda x: x.narrow(1, 2, 3), (2, 6), {"dim": 1, "start": 2, "length": 3})
    for begin, end, step in ((1, None, 2), (None, None, -2), (-3, -1, 1), (4, 1, -1), (5, 2, 1), (-100, 100, 3)):
        call(
            "slice",
            by_numpy(lambda x: x[:, begin:end:step]),
            (3, 6),
            {
                "dim": 1,
                "begin": "none" if begin is None else begin,
                "end": "none" if end is None else end,
                "step": step,
            },
        )
    call("select", lambda x: x.select(1, -1), (3, 4, 2), {"dim": 1, "index": -1})
    call("flip", lambda x: x.flip((0, 2)), (3, 4, 2), {"dims": (0, 2)})
    call("diagonal", lambda x: x.diagonal(1, 1, 0), (3, 4, 2), {"offset": 1, "dim1": 1, "dim2": 0})
    call("diagonal", lambda x: x.diagonal(-1), (4, 3), {"offset": -1, "dim1": 0, "dim2": 1})
    call("unfold", lambda x: x.unfold(1, 3, 2), (2, 7), {"dim": 1, "size": 3, "step": 2})
    call(
        "as_strided", lambda x: x.as_strided((3, 3), (2, 3), 1), (4, 6), {"size": (3, 3), "stride": (2, 3), "offset": 1}
    )
    call("split", lambda x: x.split(4, 1), (2, 6), {"size": 4, "dim": 1})
    call("split", lambda x: x.split([1, 3], 0), (4, 2), {"sizes": (1, 3), "dim": 0})
    call("chunk", lambda x: x.chunk(3, 1), (2, 7), {"chunks": 3, "dim": 1})
    call("unbind", lambda x: x.unbind(1), (2, 3, 2), {"dim": 1})


def shapes(q, Of):
    def call(op, f, shape, args=None, dtypes=ALL, **kw):
        q.call(op, f, [Of(*shape)], args, dtypes, "bits", **kw)

    call("contiguous", lambda x: x.contiguous(), (3, 4))
    call("clone", lambda x: x.clone(), (3, 4))
    q.call("cat", lambda a, b: torch.cat([a, b], 1), [Of(3, 2), Of(3, 4)], {"dim": 1}, ALL, "bits")
    q.call("cat", lambda a, b, c: torch.cat([a, b, c], -2), [Of(3, 2), Of(0, 2), Of(1, 2)], {"dim": -2}, ALL, "bits")
    q.call("stack", lambda a, b: torch.stack([a, b], 1), [Of(3, 2), Of(3, 2)], {"dim": 1}, ALL, "bits")
    q.call("stack", lambda a, b: torch.stack([a, b], -1), [Of(), Of()], {"dim": -1}, ALL, "bits")
    call("roll", lambda x: x.roll((1, -2), (0, 1)), (3, 5), {"shifts": (1, -2), "dims": (0, 1)})
    call("roll", lambda x: x.roll(7), (2, 3), {"shifts": 7})
    call("tile", lambda x: x.tile(2, 1, 2), (2, 3), {"dims": (2, 1, 2)})
    call("tile", lambda x: x.tile(2), (2, 3), {"dims": (2,)})
    call("repeat", lambda x: x.repeat(2, 3), (2, 2), {"sizes": (2, 3)})
    call("repeat", lambda x: x.repeat(2, 0), (2, 2), {"sizes": (2, 0)})
    call("repeat_interleave", lambda x: x.repeat_interleave(2, 1), (2, 3), {"repeats": 2, "dim": 1})
    call("repeat_interleave", lambda x: x.repeat_interleave(3), (2, 2), {"repeats": 3})
    q.call(
        "repeat_interleave",
        lambda x, n: x.repeat_interleave(n, 0),
        [Of(4, 2), Fixed(torch.tensor([1, 0, 3, 2]))],
        {"dim": 0},
        ALL,
        "bits",
    )
    call("pad", lambda x: F.pad(x, (1, 2, 2, 1)), (2, 3), {"pad": (1, 2, 2, 1), "mode": "constant", "value": 0})
    call(
        "pad",
        lambda x: F.pad(x, (0, 1, 0, 0, 1, 0), value=3),
        (2, 1, 3),
        {"pad": (0, 1, 0, 0, 1, 0), "mode": "constant", "value": 3},
        FLOATS + SIGNED,
    )
    call("pad", lambda x: F.pad(x, (-1, 1)), (2, 4), {"pad": (-1, 1), "mode": "constant", "value": 0})
    for mode in ("reflect", "replicate", "circular"):
        call(
            "pad",
            lambda x: F.pad(x, (1, 2, 2, 1), mode=mode),
            (2, 4, 5),
            {"pad": (1, 2, 2, 1), "mode": mode, "value": 0},
            FLOATS,
        )
        call(
            "pad",
            lambda x: F.pad(x.double(), (2, 0), mode=mode).to(x.dtype),
            (2, 5),
            {"pad": (2, 0), "mode": mode, "value": 0},
            ["i32", "u8", "i8"],
        )
    for op in ("tril", "triu"):
        f = getattr(torch, op)
        call(op, lambda x: f(x, 1), (3, 4), {"diagonal": 1})
        call(op, lambda x: f(x, -1), (2, 3, 2), {"diagonal": -1})
        call(op, lambda x: f(x), (3, 3), {"diagonal": 0})
    call("diag", lambda x: x.diag(1), (3,), {"diagonal": 1})
    call("diag", lambda x: x.diag(-1), (4, 3), {"diagonal": -1})


def conversions(q):
    """Every pair of dtypes. Floats out of an integer's range are left out: PyTorch's depend on the machine."""
    for a in ALL:
        for b in ALL:
            x = source(a, b)
            y = convert(x, a, b)
            grads = None
            if a in FLOATS and b in FLOATS:
                grads = [
                    torch.linspace(0.5, 1.5, x.numel(), dtype=torch.float64).to(NAMES[b]).reshape(x.shape).to(NAMES[a])
                ]
            cotangents = (
                None
                if grads is None
                else [torch.linspace(0.5, 1.5, x.numel(), dtype=torch.float64).to(NAMES[b]).reshape(x.shape)]
            )
            q.writer.case("to", b, f"from_{a}", {"dtype": b}, [x], [y], None, cotangents, grads, None)


def source(a, b):
    if a == "bool":
        return ordinary("bool", (3, 3), 60)
    if a not in FLOATS:
        return special_integers(a)
    if b in FLOATS or b == "bool":
        return special(a)
    low, high = (float(v) for v in integer_limits(b)[:2])
    x = torch.tensor(
        [
            0.0,
            -0.0,
            0.9,
            -0.9,
            1.5,
            99.75,
            -99.75,
            127.0,
            30000.5,
            -30000.5,
            2.0**31 - 512,
            2.0**40,
            -(2.0**40),
            2.0**62,
            -(2.0**63),
        ],
        dtype=torch.float64,
    )
    x = x.to(NAMES[a])
    wide = x.double()
    return x[(wide.trunc() >= low) & (wide.trunc() < high) & wide.isfinite()]


def convert(x, a, b):
    if a == b:
        return x
    if "bf16" in (a, b):
        if b == "bf16" and a not in FLOATS:
            return torch.from_numpy(x.numpy().astype(np.float32)).to(torch.bfloat16)
        if a == "bf16" and b not in FLOATS:
            return convert(x.float(), "f32", b)
        return x.to(NAMES[b])
    with np.errstate(all="ignore"):
        return torch.from_numpy(x.numpy().astype(NUMPY[b]))


def calls(q):
    from functions import Of

    views(q, Of)
    shapes(q, Of)
    conversions(q)
