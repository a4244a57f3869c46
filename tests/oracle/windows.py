"""Pooling, resampling and normalisation with parameters drawn at random: tests/data/windows, in the format of make.py.

Left out is what PyTorch refuses, results without elements, windows of padding alone (PyTorch's place of the largest then
lies outside), and nearest interpolation by a factor, whose gradient PyTorch places otherwise than the values."""

import random
import zlib

import torch
import torch.nn.functional as F

from make import Fixed, evaluate

R = random.randint
MAX = (F.max_pool1d, F.max_pool2d, F.max_pool3d)
AVERAGE = (F.avg_pool1d, F.avg_pool2d, F.avg_pool3d)
LP = (F.lp_pool1d, F.lp_pool2d, F.lp_pool3d)
ADAPTIVE_AVERAGE = (F.adaptive_avg_pool1d, F.adaptive_avg_pool2d, F.adaptive_avg_pool3d)
ADAPTIVE_MAX = (F.adaptive_max_pool1d, F.adaptive_max_pool2d, F.adaptive_max_pool3d)
UNPOOL = (F.max_unpool1d, F.max_unpool2d, F.max_unpool3d)


def flip():
    return random.random() < 0.5


def sizes(n, low, high):
    return [R(low, high) for _ in range(n)]


def normal(*shape):
    return torch.randn(*shape, dtype=torch.float64)


def planes(axes, low=2):
    """An input with or without a batch."""
    return normal(*sizes(R(1, 2), 1, 2), *sizes(axes, low, (11, 8, 5)[axes - 1]))


def max_pool():
    axes = R(1, 3)
    k, s, d = sizes(axes, 1, 3), sizes(axes, 1, 3), sizes(axes, 1, 2)
    p, c = [R(0, n // 2) for n in k], flip()
    x = planes(axes)
    return (
        {"axes": axes, "kernel": k, "stride": s, "padding": p, "dilation": d, "ceil": int(c)},
        lambda t: MAX[axes - 1](t, k, s, p, d, c, return_indices=True),
        [torch.round(x) if flip() else x],
    )


def avg_pool():
    axes = R(1, 3)
    k, s = sizes(axes, 1, 3), sizes(axes, 1, 3)
    p, c, pad = [R(0, n // 2) for n in k], flip(), flip()
    args = {"axes": axes, "kernel": k, "stride": s, "padding": p, "ceil": int(c), "include": int(pad)}
    more = []
    if axes > 1 and flip():
        args["divisor"] = R(1, 9)
        more = [args["divisor"]]
    return args, lambda t: AVERAGE[axes - 1](t, k, s, p, c, pad, *more), [planes(axes)]


def lp_pool():
    axes = R(1, 3)
    k, s, c, norm = sizes(axes, 1, 3), sizes(axes, 1, 3), flip(), float(R(1, 3))
    args = {"axes": axes, "kernel": k, "stride": s, "ceil": int(c), "norm": norm}
    size, step = (k, s) if axes > 1 else (k[0], s[0])
    return args, lambda t: LP[axes - 1](t, norm, size, step, c), [planes(axes, 3).abs() + 0.1]


def adaptive_avg_pool():
    axes = R(1, 3)
    size = sizes(axes, 1, 5)
    return {"axes": axes, "size": size}, lambda t: ADAPTIVE_AVERAGE[axes - 1](t, size), [planes(axes)]


def adaptive_max_pool():
    axes = R(1, 3)
    size = sizes(axes, 1, 5)
    f = ADAPTIVE_MAX[axes - 1]
    return {"axes": axes, "size": size}, lambda t: f(t, size, return_indices=True), [planes(axes)]


def max_unpool():
    axes = R(1, 3)
    k, x = sizes(axes, 2, 3), planes(axes, 4)
    y, i = MAX[axes - 1](x, k, return_indices=True)
    args, size = {"axes": axes, "kernel": k}, None
    if flip():
        args["size"] = size = list(x.shape[-axes:])
    return args, lambda t, j: UNPOOL[axes - 1](t, j, k, output_size=size), [y, Fixed(i)]


def interpolate():
    axes = R(1, 3)
    smooth = {1: "linear", 2: random.choice(["bilinear", "bicubic"]), 3: "trilinear"}[axes]
    mode = random.choice(["nearest", "nearest-exact", "area", smooth, smooth])
    args, words = {"mode": mode}, {"mode": mode}
    if mode == smooth:
        words["align_corners"] = flip()
        args["align"] = int(words["align_corners"])
    if mode == "nearest" or flip():
        args["size"] = words["size"] = sizes(axes, 1, 9)
    else:
        args["scale"] = words["scale_factor"] = [random.choice([2.0, 0.5, 1.5, 0.7, 1.3, 2.25]) for _ in range(axes)]
        if flip():
            args["recompute"], words["recompute_scale_factor"] = 1, True
    return args, lambda t: F.interpolate(t, **words), [normal(1, R(1, 2), *sizes(axes, 1, 5))]


def grid_sample():
    axes, n, align = R(2, 3), R(1, 2), flip()
    mode = random.choice(["bilinear", "nearest"] + ["bicubic"] * (3 - axes))
    padding = random.choice(["zeros", "border", "reflection"])
    operands = [normal(n, R(1, 2), *sizes(axes, 1, 4)), normal(n, *sizes(axes, 1, 3), axes) * 1.3]
    args = {"mode": mode, "padding": padding, "align": int(align)}
    return args, lambda x, g: F.grid_sample(x, g, mode, padding, align), operands


def affine_grid():
    axes, n, align = R(2, 3), R(1, 2), flip()
    size = [n, 1, *sizes(axes, 2, 4)]
    return {"size": size, "align": int(align)}, lambda t: F.affine_grid(t, size, align), [normal(n, axes, axes + 1)]


def column_words():
    return {"kernel": sizes(2, 1, 3), "dilation": sizes(2, 1, 2), "padding": sizes(2, 0, 2), "stride": sizes(2, 1, 3)}


def im2col():
    args = column_words()
    return args, lambda t: F.unfold(t, *args.values()), [normal(*sizes(R(1, 2), 1, 2), *sizes(2, 3, 6))]


def col2im():
    args, size, places = column_words(), sizes(2, 3, 6), 1
    for n, k, d, p, s in zip(size, *args.values()):
        places *= (n + 2 * p - d * (k - 1) - 1) // s + 1
    k = args["kernel"]
    x = normal(*sizes(R(0, 1), 1, 2), R(1, 2) * k[0] * k[1], max(places, 1))
    return {"size": size, **args}, lambda t: F.fold(t, size, *args.values()), [x]


def layer_norm():
    shape = sizes(R(1, 2), 2, 6)
    operands = [normal(*sizes(R(0, 2), 1, 3), *shape) * 2 + 3, normal(*shape), normal(*shape)]
    return {"shape": shape}, lambda x, w, b: F.layer_norm(x, shape, w, b), operands


def rms_norm():
    shape = sizes(R(1, 2), 2, 6)
    operands = [normal(*sizes(R(0, 2), 1, 3), *shape) * 2 + 3, normal(*shape)]
    return {"shape": shape}, lambda x, w: F.rms_norm(x, shape, w), operands


def channels(spatial):
    c = 2 * R(1, 3)
    return c, [normal(R(2, 3), c, *sizes(spatial, 1, 4)) * 2 + 3, normal(c), normal(c)]


def group_norm():
    c, operands = channels(R(0, 2))
    groups = random.choice([n for n in range(1, c + 1) if c % n == 0 and (n < c or operands[0].dim() > 2)])
    return {"groups": groups}, lambda x, w, b: F.group_norm(x, groups, w, b), operands


def running_norm(f, least):
    c, operands = channels(R(least, 3))
    own = flip()

    def call(x, w, b, mean, var):
        mean, var = mean.clone(), var.clone()
        return f(x, mean, var, w, b, own, 0.3, 1e-5), mean, var

    statistics = [Fixed(normal(c)), Fixed(torch.rand(c, dtype=torch.float64) + 0.5)]
    return {"own": int(own)}, call, operands + statistics


def batch_norm():
    return running_norm(F.batch_norm, 0)


def instance_norm():
    return running_norm(F.instance_norm, 1)


COUNTS = {
    max_pool: 24, avg_pool: 24, lp_pool: 8, adaptive_avg_pool: 8, adaptive_max_pool: 8, max_unpool: 8,
    interpolate: 40, grid_sample: 30, affine_grid: 6, im2col: 8, col2im: 8,
    layer_norm: 8, rms_norm: 8, group_norm: 10, batch_norm: 14, instance_norm: 12,
}  # fmt: skip


def write(writer):
    for make, wanted in COUNTS.items():
        seed = zlib.crc32(make.__name__.encode())
        random.seed(seed)
        torch.manual_seed(seed)
        done = 0
        while done < wanted:
            args, f, operands = make()
            try:
                answer = evaluate(f, operands, True, "f64")
            except (RuntimeError, ValueError):
                continue
            first = answer[0][0]
            if first.numel() == 0 or bool(torch.isinf(first).any()):
                continue
            writer.case(make.__name__, "f64", None, args, operands, *answer)
            done += 1
