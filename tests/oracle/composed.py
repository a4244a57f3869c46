"""Calls of what is made of other ops: stacks, statistics, distances, further ways to write by index."""

import torch

from make import ALL, FLOATS, INTEGERS, Fixed
from reductions import awkward, distinct

MODES = ("linear", "lower", "higher", "nearest", "midpoint")


def stacks(q, Of):
    rows, row = Of(2, 3), Of(3)
    q.call("vstack", lambda a, b: torch.vstack((a, b)), [rows, row], {}, ALL, "bits")
    q.call("hstack", lambda a, b: torch.hstack((a, b)), [Of(2, 3), Of(2, 1)], {}, ALL, "bits")
    q.call("hstack", lambda a, b: torch.hstack((a, b)), [Of(3), Of()], {}, ["f32", "i32"], "bits")
    q.call("dstack", lambda a, b: torch.dstack((a, b)), [Of(2, 3), Of(2, 3)], {}, ALL, "bits")
    q.call("dstack", lambda a, b: torch.dstack((a, b)), [Of(3), Of(3)], {}, ["f32", "i32"], "bits")
    q.call("column_stack", lambda a, b: torch.column_stack((a, b)), [Of(2, 3), Of(2)], {}, ALL, "bits")
    q.call("block_diag", lambda a, b, c: torch.block_diag(a, b, c), [Of(2, 3), Of(2), Of()], {}, ALL, "bits")
    q.call("cartesian_prod", lambda a, b: torch.cartesian_prod(a, b), [Of(2), Of(3)], {}, ALL, "bits")
    for r, again in ((2, False), (3, False), (2, True), (5, False)):
        q.call(
            "combinations",
            lambda x: torch.combinations(x, r, again),
            [Of(4)],
            {"r": r, "with_replacement": again},
            ALL if r == 2 else ["f32"],
            "bits",
        )
    for op, f in (("atleast_1d", torch.atleast_1d), ("atleast_2d", torch.atleast_2d), ("atleast_3d", torch.atleast_3d)):
        for shape in ((), (3,), (2, 3), (2, 3, 1, 2)):
            q.call(op, f, [Of(*shape)], {}, ALL if shape == (3,) else ["f32"], "bits")
    q.call("moveaxis", lambda x: x.moveaxis(0, 2), [Of(2, 3, 4)], {}, ALL, "bits")
    q.call("swapaxes", lambda x: x.swapaxes(0, 2), [Of(2, 3, 4)], {}, ALL, "bits")
    q.call("swapdims", lambda x: x.swapdims(0, 2), [Of(2, 3, 4)], {}, ALL, "bits")
    q.call("fliplr", torch.fliplr, [Of(2, 3)], {}, ALL, "bits")
    q.call("flipud", torch.flipud, [Of(2, 3)], {}, ALL, "bits")
    for k in (-1, 0, 1, 2, 3, 6):
        for dims in ((0, 1), (1, 0), (-1, 0)):
            one = {"k": k, "dims": dims}
            q.call("rot90", lambda x: torch.rot90(x, k, dims), [Of(2, 3, 2)], one, ALL if k == 1 else ["f32"], "bits")
    for offset, a, b in ((0, -2, -1), (1, 0, 2), (-2, 2, 0)):
        one = {"offset": offset, "dim1": a, "dim2": b}
        q.call("diag_embed", lambda x: torch.diag_embed(x, offset, a, b), [Of(2, 3)], one, ALL, "bits")
    for n in (1, 3, 7):
        q.call("tensor_split", lambda x: x.tensor_split(n, 1), [Of(2, 5)], {"sections": n, "dim": 1}, ALL, "bits")
    for at in ((1, 3), (2, 1), (-1, 9)):
        q.call("tensor_split", lambda x: x.tensor_split(at, 1), [Of(2, 5)], {"indices": at, "dim": 1}, ["f32"], "bits")


def statistics(q, Of):
    wide = ["f32", "f64"]
    for mode in MODES:
        for keep in (False, True):
            several = torch.tensor([0.0, 0.3, 0.5, 1.0], dtype=torch.float64)
            one = {"interpolation": mode, "keepdim": keep}
            for op, f in (("quantile", torch.quantile), ("nanquantile", torch.nanquantile)):
                for make in (distinct, awkward):
                    q.call(
                        op,
                        lambda x: f(x, several.to(x.dtype), 1, keep, interpolation=mode),
                        [Of(make=make)],
                        {**one, "dim": 1, "q": "0,0.3,0.5,1"},
                        wide,
                    )
                q.call(op, lambda x: f(x, 0.4, None, keep, interpolation=mode), [Of(3, 4)], {**one, "q": "0.4"}, wide)
    q.call("nanmean", lambda x: torch.nanmean(x), [Of(3, 4)], {}, FLOATS)
    q.call("nanmean", lambda x: torch.nanmean(x, 1, True), [Of(make=awkward)], {"dim": 1, "keepdim": True}, wide)
    numbers = FLOATS + [t for t in INTEGERS if t not in ("u16", "u32", "u64")]
    q.call("nanmedian", lambda x: torch.nanmedian(x), [Of(make=distinct)], {}, numbers)
    q.call("nanmedian", lambda x: torch.nanmedian(x, 1), [Of(make=distinct)], {"dim": 1}, numbers)
    q.call("nanmedian", lambda x: torch.nanmedian(x, 1).values, [Of(make=awkward)], {"dim": 1, "values": True}, FLOATS)
    q.call("aminmax", lambda x: torch.aminmax(x), [Of(make=distinct)], {}, numbers)
    for keep in (False, True):
        one = {"dim": 1, "keepdim": keep}
        q.call("aminmax", lambda x: torch.aminmax(x, dim=1, keepdim=keep), [Of(make=distinct)], one, numbers)
        few = {**one, "correction": 0}
        q.call("var_mean", lambda x: torch.var_mean(x, 1, correction=0, keepdim=keep), [Of(3, 4)], few, wide)
        q.call("std_mean", lambda x: torch.std_mean(x, 1, correction=0, keepdim=keep), [Of(3, 4)], few, wide)
    for correction in (0, 1):
        one = {"correction": correction}
        q.call("cov", lambda x: torch.cov(x, correction=correction), [Of(3, 6)], one, wide)
        q.call("cov", lambda x: torch.cov(x, correction=correction), [Of(6)], one, wide)
        f, a = torch.tensor([1, 2, 0, 3]), torch.tensor([0.5, 1.0, 2.0, 0.25], dtype=torch.float64)
        q.call(
            "cov",
            lambda x, f, a: torch.cov(x, correction=correction, fweights=f, aweights=a.to(x.dtype)),
            [Of(3, 4), Fixed(f), Fixed(a)],
            one,
            wide,
        )
    q.call("corrcoef", torch.corrcoef, [Of(3, 6)], {}, wide)
    for op, f in (("trapezoid", torch.trapezoid), ("cumulative_trapezoid", torch.cumulative_trapezoid)):
        q.call(op, lambda y: f(y, dx=0.5, dim=0), [Of(4, 3)], {"dx": 0.5, "dim": 0}, wide)
        q.call(op, lambda y, x: f(y, x), [Of(3, 4), Of(4)], {}, wide)
        q.call(op, lambda y, x: f(y, x, dim=0), [Of(4, 3), Of(4)], {"dim": 0}, wide)
        q.call(op, lambda y, x: f(y, x), [Of(3, 4), Of(3, 4)], {}, wide)


def products(q, Of):
    numbers = FLOATS + ["i32", "i64", "u8"]
    batches = [Of(2, 3, 4), Of(2, 4, 2)]
    for op, f, operands in (
        ("baddbmm", torch.baddbmm, [Of(2, 3, 2), *batches]),
        ("baddbmm", torch.baddbmm, [Of(2), *batches]),
        ("addbmm", torch.addbmm, [Of(3, 2), *batches]),
        ("addmv", torch.addmv, [Of(3), Of(3, 4), Of(4)]),
        ("addr", torch.addr, [Of(3, 4), Of(3), Of(4)]),
    ):
        q.call(op, f, operands, {}, numbers)
        q.call(op, lambda x, a, b: f(x, a, b, beta=0.5, alpha=2), operands, {"beta": 0.5, "alpha": 2}, FLOATS)
    for p in (0.0, 1.0, 2.0, 3.0, float("inf")):
        direct = {"compute_mode": "donot_use_mm_for_euclid_dist"} if p == 2 else {}
        few = ["f32", "f64"]
        q.call("cdist", lambda a, b: torch.cdist(a, b, p, **direct), [Of(3, 4), Of(5, 4)], {"p": p}, few)
        q.call("cdist", lambda a, b: torch.cdist(a, b, p, **direct), [Of(2, 3, 4), Of(5, 4)], {"p": p}, few)
        q.call("pdist", lambda x: torch.pdist(x, p), [Of(4, 3)], {"p": p}, few)
    for p in (1.0, 2.0, 3.0, float("inf")):
        for second in (Of(3, 4), Of(4)):
            q.call("dist", lambda a, b: torch.dist(a, b, p), [Of(3, 4), second], {"p": p}, ["f32", "f64"])
    q.call("cdist", torch.cdist, [Of(0, 4), Of(5, 4)], {}, ["f32"])
    for n, up in ((3, False), (3, True), (1, False), (0, False)):
        one = {"n": n, "increasing": up}
        q.call("vander", lambda x: torch.vander(x, n, up), [Of(4)], one, ["f64", "i32", "i64"])


def writes(q, Of):
    i = Fixed(torch.tensor([2, 0]))
    q.call("index_copy", lambda x, i, v: x.index_copy(0, i, v), [Of(4, 3), i, Of(2, 3)], {"dim": 0}, ALL, "bits")
    q.call("index_copy", lambda x, i, v: x.index_copy(1, i, v), [Of(2, 3), i, Of(2, 2)], {"dim": 1}, ["f32"], "bits")
    back = Fixed(torch.tensor([2, -1]))
    q.call("index_fill", lambda x, i: x.index_fill(1, i, 1), [Of(3, 4), back], {"dim": 1, "value": 1}, ALL, "bits")
    again, other = Fixed(torch.tensor([0, 3, 0])), Fixed(torch.tensor([1, -1, 1]))
    single = Fixed(torch.tensor([2, 3, 0]))
    number = FLOATS + ["i32", "i64", "u8"]
    put = lambda accumulate: lambda x, v, *i: x.index_put(i, v, accumulate)
    q.call("index_put", put(False), [Of(4, 3), Of(3, 3), single], {}, ALL, "bits")
    q.call("index_put", put(True), [Of(4, 3), Of(3, 3), again], {"accumulate": True}, number)
    q.call("index_put", put(True), [Of(4, 3), Of(3), again, other], {"accumulate": True}, number)
    mask = Fixed(torch.tensor([[True, False, True], [False, False, True]]))
    q.call("masked_scatter", lambda x, m, v: x.masked_scatter(m, v), [Of(2, 3), mask, Of(2, 2)], {}, ALL, "bits")
    q.call("argwhere", torch.argwhere, [Of(3, 4, whole=(-1, 1))], {}, ALL, "wide")
    few = [t for t in ALL if t not in ("bool", "u16", "u32", "u64")]
    for invert in (False, True):
        f = lambda x, y: torch.isin(x, y, invert=invert)
        operands = [Of(3, 4, whole=(0, 6)), Of(5, whole=(0, 6))]
        q.call("isin", f, operands, {"invert": invert}, few, gradients=False)
    f = lambda x: torch.unique_consecutive(x, return_inverse=True, return_counts=True)
    pairs = Of(2, 9, low=0.0, high=0.0, whole=(0, 1))
    q.call("unique_consecutive", f, [pairs], {}, few, gradients=False)
    f = lambda x: torch.unique_consecutive(x, return_inverse=True, return_counts=True, dim=1)
    q.call("unique_consecutive", f, [pairs], {"dim": 1}, few, gradients=False)
    for dim in (0, 1):
        f = lambda x: torch.unique(x, return_inverse=True, return_counts=True, dim=dim)
        q.call("unique", f, [pairs], {"dim": dim}, few, gradients=False)


def pieces_and_parts(q, Of):
    cube = Of(4, 6, 2)
    for op, f in (("hsplit", torch.hsplit), ("vsplit", torch.vsplit), ("dsplit", torch.dsplit)):
        q.call(op, lambda x: f(x, 2), [cube], {"sections": 2}, ALL, "bits")
        for at in ((1,), (1, 3), (2, 1), (-1, 9)):
            q.call(op, lambda x: f(x, at), [cube], {"indices": at}, ["f32"], "bits")
    q.call("hsplit", lambda x: torch.hsplit(x, 3), [Of(6)], {"sections": 3}, ["f32"], "bits")
    q.call("broadcast_tensors", lambda a, b: torch.broadcast_tensors(a, b), [Of(3, 1), Of(4)], {}, ALL, "bits")
    for shape in ((), (3,), (2, 3, 2), (0, 3)):
        q.call("ravel", torch.ravel, [Of(*shape)], {}, ALL if shape == (3,) else ["f32"], "bits")
    q.call("reshape_as", lambda a, b: a.reshape_as(b), [Of(2, 6), Of(3, 4)], {}, ALL, "bits")
    for offset in (0, 2, -1):
        q.call("diagflat", lambda x: torch.diagflat(x, offset), [Of(2, 2)], {"offset": offset}, ALL, "bits")
    for dim, index, size in ((0, 1, 4), (1, -1, 3), (-2, 0, 4)):
        one = {"dim": dim, "index": index}
        q.call("select_scatter", lambda x, v: x.select_scatter(v, dim, index), [Of(3, 4), Of(size)], one, ALL, "bits")
    for dim, begin, end, step, shape in ((0, 1, 3, 1, (2, 5)), (1, 0, 5, 2, (4, 3)), (1, -2, 9, 1, (4, 2))):
        one = {"dim": dim, "begin": begin, "end": end, "step": step}
        f = lambda x, v: x.slice_scatter(v, dim, begin, end, step)
        q.call("slice_scatter", f, [Of(4, 5), Of(*shape)], one, ALL, "bits")
    for offset, a, b, shape in ((0, 0, 1, (3,)), (1, 0, 1, (3,)), (-2, 1, 0, (2,))):
        one = {"offset": offset, "dim1": a, "dim2": b}
        f = lambda x, v: x.diagonal_scatter(v, offset, a, b)
        q.call("diagonal_scatter", f, [Of(3, 4), Of(*shape)], one, ALL, "bits")


def further(q, Of):
    few = [t for t in ALL if t not in ("u16", "u32", "u64")]
    numbers = [t for t in few if t != "bool"]
    for keep in (False, True):
        one = {"dim": 1, "keepdim": keep}
        q.call("mode", lambda x: torch.mode(x, 1, keep).values, [Of(4, 9, whole=(0, 3), limits=False)], one, few)
        q.call("mode", lambda x: torch.mode(x, 1, keep).values, [Of(make=awkward)], one, FLOATS, gradients=False)
    ties = Of(5, 8, low=0.0, high=0.0, whole=(0, 1))
    q.call("mode", lambda x: torch.mode(x, 0).values, [ties], {"dim": 0}, ["f32", "i32"], gradients=False)
    q.call("msort", torch.msort, [Of(make=distinct)], {}, numbers)
    for low, high in ((-1.0, 1.0), (0.0, 0.0), (0.25, 0.5)):
        one = {"bins": 7, "min": low, "max": high}
        f = lambda x: torch.histc(x, 7, low, high)
        q.call("histc", f, [Of(40)], one, ["f32", "f64"], gradients=False)
    places = [Fixed(torch.tensor(v)) for v in ([0, 5, 23, 7], [[1, 2], [3, 4]], 11)]
    for i in places:
        q.call("unravel_index", lambda i: torch.unravel_index(i, (2, 3, 4)), [i], {"shape": (2, 3, 4)}, ["f32"], gradients=False)
    positive = Of(3, 4, low=0.3, high=2.0, whole=(1, 5), limits=False)
    q.call("float_power", torch.float_power, [positive, Of(4, whole=(0, 3), limits=False)], {}, few)
    for op, f in (("isposinf", torch.isposinf), ("isneginf", torch.isneginf)):
        q.call(op, f, [Of(make=awkward)], {}, FLOATS, gradients=False)
        q.call(op, f, [Of(3, 4)], {}, ["i32", "bool", "u8"], gradients=False)
    wide = FLOATS + ["i32", "i64", "u8"]
    for first, second in ((Of(4), Of(4)), (Of(2, 3, 4), Of(5, 4)), (Of(2, 3), Of()), (Of(), Of())):
        q.call("inner", torch.inner, [first, second], {}, wide)
    for p, dim, most in ((2.0, 0, 1.5), (1.0, 1, 2.0), (3.0, -1, 1.0), (2.0, 0, 100.0)):
        one = {"p": p, "dim": dim, "maxnorm": most}
        q.call("renorm", lambda x: torch.renorm(x, p, dim, most), [Of(3, 4, 2)], one, ["f32", "f64"])
    i = Fixed(torch.tensor([2, 0, 2]))
    for how in ("prod", "mean", "amax", "amin"):
        for own in (True, False):
            one = {"dim": 0, "reduce": how, "include_self": own}
            f = lambda x, i, v: x.index_reduce(0, i, v, how, include_self=own)
            q.call("index_reduce", f, [Of(4, 3), i, Of(3, 3)], one, FLOATS + ["i32", "i64"])


def calls(q):
    from functions import Of

    stacks(q, Of)
    statistics(q, Of)
    products(q, Of)
    writes(q, Of)
    pieces_and_parts(q, Of)
    further(q, Of)
