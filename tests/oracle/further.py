"""Losses of several labels, triplets under other distances, fractional pooling, antialiased interpolation, padded
sequences, and the steps of Adafactor, ASGD, Rprop and SWALR: tests/data/further, in the format of make.py. Optimizers
and schedulers are stored as in training.py."""

import torch
import torch.nn.functional as F
from torch import optim

from make import NAMES, Fixed, evaluate
from training import STEPS, normal, uniform

REDUCTIONS = ("none", "mean", "sum")


def losses(writer, dtype):
    def case(name, f, operands, reductions=REDUCTIONS, **args):
        for reduction in reductions:
            words = {**args, "reduction": reduction}
            call = lambda *x: f(*(t.to(x[0].dtype) if t.is_floating_point() else t for t in x), **words)  # noqa: E731
            writer.case(name, dtype, None, words, operands, *evaluate(call, operands, True, dtype))

    labels = torch.tensor([[3, 0, -1, 1, 2], [-1, 2, 1, 0, 0], [4, 3, 2, 1, 0], [2, 2, 1, -1, 4]])
    case("multilabel_margin_loss", F.multilabel_margin_loss, [normal(dtype, 4, 5), Fixed(labels)])
    case("multilabel_margin_loss", F.multilabel_margin_loss, [normal(dtype, 5, scale=0.1), Fixed(labels[0])])
    truths = Fixed((labels > 1).to(NAMES[dtype]))
    soft = lambda x, y, w=None, **k: F.multilabel_soft_margin_loss(x, y, w, **k)  # noqa: E731
    case("multilabel_soft_margin_loss", soft, [normal(dtype, 4, 5, scale=3), truths])
    case("multilabel_soft_margin_loss", soft, [normal(dtype, 4, 5), uniform(dtype, 4, 5), Fixed(uniform(dtype, 5, seed=3))])
    case("multilabel_soft_margin_loss", soft, [normal(dtype, 5), Fixed(truths.tensor[0])])
    triplet = [normal(dtype, 4, 5, seed=i) for i in range(3)]
    for swap in (False, True):
        case("triplet_margin_with_distance_loss", F.triplet_margin_with_distance_loss, triplet, swap=swap, margin=1.5)

        def manhattan(a, p, n, **k):
            distance = lambda x, y: (x - y).abs().sum(-1)  # noqa: E731
            del k["distance"]
            return F.triplet_margin_with_distance_loss(a, p, n, distance_function=distance, **k)

        case("triplet_margin_with_distance_loss", manhattan, triplet, swap=swap, margin=2.0, distance="manhattan")


def pools(writer, dtype):
    for axes, shape, kernel, size in (
        (2, (2, 3, 9, 7), [2, 3], [4, 3]),
        (2, (3, 8, 8), [3, 3], [5, 6]),
        (2, (1, 2, 6, 5), [2, 2], [1, 4]),
        (3, (2, 2, 6, 7, 5), [2, 3, 2], [3, 4, 2]),
        (3, (2, 5, 5, 5), [1, 2, 2], [4, 3, 1]),
    ):
        f = (F.fractional_max_pool2d, F.fractional_max_pool3d)[axes - 2]
        batch = shape[: len(shape) - axes]
        samples = Fixed(uniform(dtype, *([1] * (2 - len(batch))), *batch, axes, seed=2))
        x = torch.round(normal(dtype, *shape) * 4) / 4
        args = {"axes": axes, "kernel": kernel, "size": size}
        call = lambda t, s: f(t, kernel, output_size=size, return_indices=True, _random_samples=s.to(t.dtype))  # noqa: E731
        writer.case("fractional_max_pool", dtype, None, args, [x, samples], *evaluate(call, [x, samples], True, dtype))


def resampled(writer):
    for mode in ("bilinear", "bicubic"):
        for align in (False, True):
            for words in ({"size": [4, 3]}, {"size": [13, 12]}, {"size": [5, 11]}, {"size": [1, 2]}, {"size": [9, 10]},
                          {"scale_factor": [0.37, 0.6]}, {"scale_factor": [1.7, 0.3]}):  # fmt: skip
                x = normal("f64", 2, 2, 9, 10)
                call = lambda t: F.interpolate(t, mode=mode, antialias=True, align_corners=align, **words)  # noqa: E731
                args = {"mode": mode, "align": int(align), **words}
                writer.case("antialias", "f64", None, args, [x], *evaluate(call, [x], True, "f64"))


def sequences(writer):
    x = [normal("f64", n, 2) for n in (3, 5, 1)]
    for first in (False, True):
        for side in ("right", "left"):
            call = lambda *t: torch.nn.utils.rnn.pad_sequence(list(t), first, -1.5, side)  # noqa: E731
            args = {"batch_first": int(first), "side": side}
            writer.case("pad_sequence", "f64", None, args, x, *evaluate(call, x, True, "f64"))
    packed = torch.nn.utils.rnn.pack_sequence(x, enforce_sorted=False)
    writer.case("pack_sequence", "f64", None, {}, [Fixed(t) for t in x],
                [packed.data, packed.batch_sizes], None, None, None, None)  # fmt: skip


OPTIMIZERS = [
    ("ASGD", optim.ASGD, {"lr": 0.1}),
    ("ASGD", optim.ASGD, {"lr": 0.1, "lambd": 0.01, "alpha": 0.6, "t0": 20.0, "weight_decay": 0.1, "maximize": True}),
    ("Rprop", optim.Rprop, {"lr": 0.01}),
    ("Rprop", optim.Rprop, {"lr": 0.05, "etas": (0.4, 1.5), "step_sizes": (1e-3, 0.2), "maximize": True}),
    ("Adafactor", optim.Adafactor, {"lr": 0.05}),
    ("Adafactor", optim.Adafactor, {"lr": 0.3, "beta2_decay": -0.5, "d": 1.5, "weight_decay": 0.1, "maximize": True}),
    ("Adafactor", optim.Adafactor, {"lr": 0.1, "eps": (1e-4, 1e-2)}),
]


def optimizers(writer, dtype):
    torch.set_default_dtype(NAMES[dtype])
    for name, make, args in OPTIMIZERS:
        shapes = [(3, 5), (7,), (2, 3, 4)]
        start = [normal(dtype, *s) for s in shapes]
        gradients = [normal(dtype, STEPS, *s, seed=5) for s in shapes]
        params = [torch.nn.Parameter(x.clone()) for x in start]
        opt, after = make(params, **args), []
        for i in range(STEPS):
            for p, g in zip(params, gradients):
                p.grad = g[i].clone()
            opt.step()
            if i + 1 in (1, 10, 100):
                after.append([p.detach().clone() for p in params])
        values = [torch.stack([a[k] for a in after]) for k in range(len(shapes))]
        keys = ",".join(sorted(opt.state[params[0]]))
        given = [Fixed(x) for x in start + gradients]
        writer.case(name, dtype, None, {**args, "keys": keys}, given, values, None, None, None, None)
    torch.set_default_dtype(torch.float32)


def schedulers(writer):
    for args in ({"swa_lr": 0.05}, {"swa_lr": 0.8, "anneal_epochs": 5, "anneal_strategy": "linear"}):
        opt = optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.5)
        before, swa, rates = optim.lr_scheduler.ExponentialLR(opt, 0.9), optim.swa_utils.SWALR(opt, **args), []
        for i in range(30):  # another schedule comes first
            rates.append(opt.param_groups[0]["lr"])
            opt.step()
            (before if i < 8 else swa).step()
        values = [torch.tensor(rates, dtype=torch.float64)]
        writer.case("SWALR", "f64", None, args, [], values, None, None, None, None)


def write(writer):
    for dtype in ("f32", "f64"):
        losses(writer, dtype)
        pools(writer, dtype)
        optimizers(writer, dtype)
    resampled(writer)
    sequences(writer)
    schedulers(writer)
