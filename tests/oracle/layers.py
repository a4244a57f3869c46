"""Layers (sequence.py and windows.py have those of sequences and windows) with their states and gradients: tests/data/layers, in the format of make.py. A case is called LAYER/VARIANT; its
operands are the inputs, then the entries of the layer's state under the names in its argument `state`; its results are
the layer's outputs, then the entries of the state that the call changed, named in `changed`. tests/layers_test.cpp
constructs the same layer for each name."""

import torch
import torch.nn as nn
from torch.func import functional_call

from make import NAMES, Fixed, evaluate


def normal(*shape, seed=0):
    g = torch.Generator().manual_seed(seed + 31 * sum(shape))
    return torch.randn(*shape, generator=g, dtype=torch.float64)


def ids(high, *shape):
    return Fixed(torch.randint(0, high, shape, generator=torch.Generator().manual_seed(sum(shape))))


class Call(nn.Module):
    """A function of tensors as a module without state."""

    def __init__(self, f):
        super().__init__()
        self.f = f

    def forward(self, *x):
        return self.f(*x)


def simple():
    x = normal(3, 5)
    yield "Linear/plain", nn.Linear(5, 4), [x]
    yield "Linear/no_bias", nn.Linear(5, 4, bias=False), [normal(2, 3, 5)]
    yield "Bilinear/plain", nn.Bilinear(5, 4, 3), [x, normal(3, 4)]
    yield "Flatten/plain", nn.Flatten(), [normal(2, 3, 4)]
    yield "Unflatten/plain", nn.Unflatten(1, (2, 3)), [normal(2, 6, 2)]
    for layer in (
        nn.ReLU, nn.ReLU6, nn.LeakyReLU, nn.ELU, nn.SELU, nn.CELU, nn.GELU, nn.Sigmoid, nn.SiLU, nn.Mish, nn.Tanh,
        nn.Softplus, nn.Softsign, nn.Hardtanh, nn.Hardswish, nn.LogSigmoid, nn.Tanhshrink,
        nn.Softshrink, nn.Hardshrink, nn.PReLU, nn.Identity,
    ):  # fmt: skip
        yield f"{layer.__name__}/plain", layer(), [normal(4, 6) * 2]
    # PyTorch's own gradient has 1/6 rounded to f32.
    yield "Hardsigmoid/plain", Call(lambda x: (x + 3).clamp(0, 6) / 6), [normal(4, 6) * 2]
    yield "PReLU/channels", nn.PReLU(3), [normal(2, 3, 4)]
    yield "Threshold/plain", nn.Threshold(0.1, 20), [x]
    yield "GELU/tanh", nn.GELU("tanh"), [x]
    yield "Softmax/plain", nn.Softmax(1), [x]
    yield "LogSoftmax/plain", nn.LogSoftmax(0), [x]
    yield "Softmin/plain", nn.Softmin(1), [x]
    yield "Softmax2d/plain", nn.Softmax2d(), [normal(2, 3, 2, 2)]
    yield "GLU/plain", nn.GLU(), [normal(3, 6)]
    image = normal(2, 2, 5, 6)
    for layer, sides in (
        (nn.ReflectionPad2d, (1, 2, 3, 0)), (nn.ReplicationPad2d, (1, 2, 3, 4)), (nn.CircularPad2d, (1, 2, 0, 3)),
        (nn.ZeroPad2d, (1, 0, 2, 3)),
    ):  # fmt: skip
        yield f"{layer.__name__}/plain", layer(sides), [image]
    yield "ConstantPad1d/plain", nn.ConstantPad1d((2, 1), 0.5), [normal(2, 3, 4)]
    yield "ReflectionPad3d/plain", nn.ReflectionPad3d(1), [normal(1, 2, 3, 3, 4)]
    yield "PixelShuffle/plain", nn.PixelShuffle(2), [normal(2, 8, 2, 3)]
    yield "ChannelShuffle/plain", nn.ChannelShuffle(2), [normal(2, 4, 3, 2)]
    yield "PixelUnshuffle/plain", nn.PixelUnshuffle(2), [normal(2, 2, 4, 6)]
    yield "Embedding/plain", nn.Embedding(7, 4), [ids(7, 3, 5)]
    yield "Embedding/padding", nn.Embedding(7, 4, padding_idx=2), [ids(7, 3, 5)]
    for mode in ("sum", "mean", "max"):
        yield f"EmbeddingBag/{mode}", nn.EmbeddingBag(7, 4, mode=mode), [ids(7, 9), Fixed(torch.tensor([0, 2, 6]))]


def norms():
    def fed(layer):
        for name, buffer in layer.named_buffers():
            if buffer.is_floating_point():
                buffer.copy_(normal(*buffer.shape, seed=3).abs() + 0.5)
        return layer

    yield "BatchNorm1d/plain", nn.BatchNorm1d(4), [normal(6, 4)]
    yield "BatchNorm1d/sequence", nn.BatchNorm1d(4), [normal(3, 4, 5)]
    yield "BatchNorm2d/plain", nn.BatchNorm2d(3), [normal(2, 3, 4, 5)]
    yield "BatchNorm2d/average", nn.BatchNorm2d(3, momentum=None), [normal(2, 3, 4, 5)]
    yield "BatchNorm2d/no_affine", nn.BatchNorm2d(3, affine=False), [normal(2, 3, 4, 5)]
    yield "BatchNorm2d/no_statistics", nn.BatchNorm2d(3, track_running_stats=False), [normal(2, 3, 4, 5)]
    yield "BatchNorm2d/eval", fed(nn.BatchNorm2d(3)).eval(), [normal(2, 3, 4, 5)]
    yield "BatchNorm3d/plain", nn.BatchNorm3d(2), [normal(2, 2, 2, 3, 3)]
    yield "LayerNorm/plain", nn.LayerNorm(6), [normal(2, 3, 6)]
    yield "LayerNorm/two_axes", nn.LayerNorm((3, 6)), [normal(2, 3, 6)]
    yield "LayerNorm/no_bias", nn.LayerNorm(6, bias=False), [normal(2, 3, 6)]
    yield "RMSNorm/plain", nn.RMSNorm(6, eps=1e-6), [normal(2, 3, 6)]
    yield "GroupNorm/plain", nn.GroupNorm(2, 4), [normal(3, 4, 5)]
    yield "InstanceNorm1d/plain", nn.InstanceNorm1d(3), [normal(2, 3, 5)]
    yield "InstanceNorm2d/affine", nn.InstanceNorm2d(3, affine=True, track_running_stats=True), [normal(2, 3, 4, 5)]
    yield "LocalResponseNorm/plain", nn.LocalResponseNorm(3, alpha=0.5), [normal(2, 5, 3, 3)]


def convolutions():
    line, image, cube = normal(2, 4, 9), normal(2, 4, 7, 8), normal(2, 2, 4, 5, 4)
    yield "Conv1d/plain", nn.Conv1d(4, 3, 3), [line]
    yield "Conv1d/all", nn.Conv1d(4, 6, 3, stride=2, padding=2, dilation=2, groups=2), [line]
    yield "Conv1d/same", nn.Conv1d(4, 3, 4, padding="same", dilation=2), [line]
    yield "Conv2d/plain", nn.Conv2d(4, 3, 3), [image]
    yield "Conv2d/unbatched", nn.Conv2d(4, 3, 3), [normal(4, 6, 6)]
    yield "Conv2d/padded", nn.Conv2d(4, 5, 3, padding=1, bias=False), [image]
    yield "Conv2d/pointwise", nn.Conv2d(4, 5, 1), [image]
    yield "Conv2d/strided", nn.Conv2d(4, 5, (3, 2), stride=(2, 3), padding=(1, 0)), [image]
    yield "Conv2d/dilated", nn.Conv2d(4, 5, 3, dilation=2, padding=2), [image]
    yield "Conv2d/groups", nn.Conv2d(4, 6, 3, groups=2), [image]
    yield "Conv2d/depthwise", nn.Conv2d(4, 8, 3, padding=1, groups=4), [image]
    for mode in ("reflect", "replicate", "circular"):
        yield f"Conv2d/{mode}", nn.Conv2d(4, 2, 3, padding=(2, 1), padding_mode=mode), [image]
    yield "Conv3d/plain", nn.Conv3d(2, 3, 2), [cube]
    yield "Conv3d/all", nn.Conv3d(2, 4, (2, 3, 2), stride=(1, 2, 2), padding=(1, 1, 0), groups=2), [cube]
    yield "ConvTranspose1d/plain", nn.ConvTranspose1d(4, 3, 3), [line]
    yield "ConvTranspose1d/all", nn.ConvTranspose1d(4, 6, 3, 2, 1, 1, groups=2, dilation=2), [line]
    yield "ConvTranspose2d/plain", nn.ConvTranspose2d(4, 3, 2, 2), [image]
    yield "ConvTranspose2d/all", nn.ConvTranspose2d(4, 6, 3, (2, 3), (1, 0), (1, 2), groups=2, bias=False), [image]
    yield "ConvTranspose3d/plain", nn.ConvTranspose3d(2, 3, 2, 2), [cube]


def settle(module):
    """Weights that depend on nothing but their shapes, biases and scales that are not 0 and 1."""
    for i, p in enumerate(module.parameters()):
        p.data = normal(*p.shape, seed=100 + i) * 0.5
    return module.double()


def write(writer):
    for part in (simple, norms, convolutions):
        for name, module, inputs in part():
            settle(module)
            state = module.state_dict()
            keys = list(state)
            learned = dict(module.named_parameters())

            def call(*x):
                wide = next((t.dtype for t in x if t.is_floating_point()), None)
                given = dict(zip(keys, x[len(inputs):]))
                for k in given:  # buffers, which the call may change
                    if k not in learned:
                        given[k] = given[k].to(wide, copy=True) if given[k].is_floating_point() else given[k].clone()
                y = functional_call(module, given, x[: len(inputs)])
                flat = [t for t in (y if isinstance(y, tuple) else (y,)) if t is not None]
                return flat + [given[k] for k in changed]

            changed = [k for k in keys if k not in learned and module.training]
            for dtype in ("f32", "f64"):
                def cast(t):
                    return t.to(NAMES[dtype]) if t.is_floating_point() else t

                operands = [x if isinstance(x, Fixed) else cast(x) for x in inputs]
                operands += [cast(state[k]) if k in learned else Fixed(cast(state[k])) for k in keys]
                args = {"inputs": len(inputs), "state": keys or "-", "changed": changed or "-"}
                writer.case(name, dtype, None, args, operands, *evaluate(call, operands, True, dtype))
