"""Layers with weights, dropout, padding and resampling, over the functions of the same names."""

import math

from .. import _volta
from .._volta import empty
from . import functional as F
from . import init
from .module import Module
from .parameter import Parameter

__all__ = [
    "Linear",
    "Bilinear",
    "Identity",
    "Flatten",
    "Unflatten",
    "Embedding",
    "EmbeddingBag",
    "LocalResponseNorm",
    "Dropout",
    "AlphaDropout",
    "FeatureAlphaDropout",
    "Upsample",
    "UpsamplingBilinear2d",
    "UpsamplingNearest2d",
    "ChannelShuffle",
    "Fold",
    "Unfold",
    "PixelShuffle",
    "PixelUnshuffle",
    "CosineSimilarity",
    "PairwiseDistance",
]


def _parameter(*shape, dtype=None, device=None, wanted=True):
    return Parameter(empty(*shape, dtype=dtype, device=device)) if wanted else None


def _uniform_bias(bias, fan_in):
    if bias is not None:
        bound = 1 / math.sqrt(fan_in) if fan_in > 0 else 0
        init.uniform_(bias, -bound, bound)


def _tuple(value, axes):
    return (value,) * axes if isinstance(value, int) else tuple(value)


class Identity(Module):
    """Gives its input back."""

    def __init__(self, *args, **kwargs):
        super().__init__()

    def forward(self, input):
        return input


class Linear(Module):
    """x @ weight.T + bias, weight [out, in]."""

    def __init__(self, in_features, out_features, bias=True, device=None, dtype=None):
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        self.weight = _parameter(out_features, in_features, dtype=dtype, device=device)
        self.bias = _parameter(out_features, dtype=dtype, device=device, wanted=bias)
        self.reset_parameters()

    def reset_parameters(self):
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        _uniform_bias(self.bias, self.in_features)

    def forward(self, input):
        return F.linear(input, self.weight, self.bias)

    def extra_repr(self):
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"


class Bilinear(Module):
    """a^T W b + bias for each W of weight [out, in1, in2]."""

    def __init__(self, in1_features, in2_features, out_features, bias=True, device=None, dtype=None):
        super().__init__()
        self.in1_features, self.in2_features, self.out_features = in1_features, in2_features, out_features
        self.weight = _parameter(out_features, in1_features, in2_features, dtype=dtype, device=device)
        self.bias = _parameter(out_features, dtype=dtype, device=device, wanted=bias)
        bound = 1 / math.sqrt(in1_features)
        init.uniform_(self.weight, -bound, bound)
        _uniform_bias(self.bias, in1_features)

    def forward(self, input1, input2):
        return F.bilinear(input1, input2, self.weight, self.bias)

    def extra_repr(self):
        sizes = f"in1_features={self.in1_features}, in2_features={self.in2_features}, out_features={self.out_features}"
        return f"{sizes}, bias={self.bias is not None}"


class _Conv(Module):
    _axes, _transposed = 2, False

    def __init__(
        self,
        in_channels,
        out_channels,
        kernel_size,
        stride=1,
        padding=0,
        dilation=1,
        groups=1,
        bias=True,
        padding_mode="zeros",
        device=None,
        dtype=None,
        output_padding=0,
    ):
        super().__init__()
        if in_channels % groups or out_channels % groups:
            raise ValueError(f"{groups} groups do not divide {in_channels} and {out_channels} channels")
        self.in_channels, self.out_channels = in_channels, out_channels
        self.kernel_size, self.stride = _tuple(kernel_size, self._axes), _tuple(stride, self._axes)
        self.padding = padding if isinstance(padding, str) else _tuple(padding, self._axes)
        self.dilation, self.groups, self.padding_mode = _tuple(dilation, self._axes), groups, padding_mode
        self.output_padding = _tuple(output_padding, self._axes)
        ends = (in_channels, out_channels // groups) if self._transposed else (out_channels, in_channels // groups)
        self.weight = _parameter(*ends, *self.kernel_size, dtype=dtype, device=device)
        self.bias = _parameter(out_channels, dtype=dtype, device=device, wanted=bias)
        self.reset_parameters()

    def reset_parameters(self):
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        _uniform_bias(self.bias, math.prod(self.weight.shape[1:]))

    def _padded(self, input):
        if self.padding_mode == "zeros":
            return input, self.padding
        if self.padding == "same":
            both = [d * (k - 1) for d, k in zip(self.dilation, self.kernel_size)]
            sides = [(n // 2, n - n // 2) for n in both]
        else:
            sides = [(0, 0) if self.padding == "valid" else (p, p) for p in self.padding]
        flat = [n for pair in reversed(sides) for n in pair]
        return F.pad(input, flat, mode=self.padding_mode), 0

    def forward(self, input):
        x, padding = self._padded(input)
        conv = getattr(F, f"conv{self._axes}d")
        return conv(x, self.weight, self.bias, self.stride, padding, self.dilation, self.groups)

    def extra_repr(self):
        text = f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"
        parts = [("padding", (0,) * self._axes), ("dilation", (1,) * self._axes), ("output_padding", (0,) * self._axes)]
        parts.append(("groups", 1))
        text += "".join(f", {name}={getattr(self, name)}" for name, usual in parts if getattr(self, name) != usual)
        text += "" if self.bias is not None else ", bias=False"
        return text + ("" if self.padding_mode == "zeros" else f", padding_mode={self.padding_mode}")


class _ConvTranspose(_Conv):
    _transposed = True

    def __init__(
        self,
        in_channels,
        out_channels,
        kernel_size,
        stride=1,
        padding=0,
        output_padding=0,
        groups=1,
        bias=True,
        dilation=1,
        padding_mode="zeros",
        device=None,
        dtype=None,
    ):
        super().__init__(
            in_channels,
            out_channels,
            kernel_size,
            stride,
            padding,
            dilation,
            groups,
            bias,
            padding_mode,
            device,
            dtype,
            output_padding,
        )

    def forward(self, input):
        conv = getattr(F, f"conv_transpose{self._axes}d")
        return conv(
            input, self.weight, self.bias, self.stride, self.padding, self.output_padding, self.groups, self.dilation
        )


class Embedding(Module):
    """Rows of a table."""

    def __init__(
        self,
        num_embeddings,
        embedding_dim,
        padding_idx=None,
        max_norm=None,
        norm_type=2.0,
        scale_grad_by_freq=False,
        sparse=False,
        _weight=None,
        _freeze=False,
        device=None,
        dtype=None,
    ):
        super().__init__()
        if padding_idx is not None:
            if not -num_embeddings <= padding_idx < num_embeddings:
                raise ValueError(f"Embedding: padding_idx {padding_idx} is not within {num_embeddings} rows")
            padding_idx %= num_embeddings
        self.num_embeddings, self.embedding_dim, self.padding_idx = num_embeddings, embedding_dim, padding_idx
        self.sparse = sparse
        self.max_norm, self.norm_type, self.scale_grad_by_freq = max_norm, norm_type, scale_grad_by_freq
        if _weight is not None:
            self.weight = Parameter(_weight, requires_grad=not _freeze)
            return
        self.weight = Parameter(empty(num_embeddings, embedding_dim, dtype=dtype, device=device), not _freeze)
        self.reset_parameters()

    def reset_parameters(self):
        init.normal_(self.weight)
        if self.padding_idx is not None:
            self.weight.detach()[self.padding_idx] = 0

    @classmethod
    def from_pretrained(cls, embeddings, freeze=True, **options):
        """A table that is given."""
        if embeddings.ndim != 2:
            raise ValueError(f"Embedding: a table has two axes, not shape {tuple(embeddings.shape)}")
        return cls(*embeddings.shape, _weight=embeddings, _freeze=freeze, **options)

    def forward(self, input):
        return F.embedding(
            input,
            self.weight,
            padding_idx=self.padding_idx,
            max_norm=self.max_norm,
            norm_type=self.norm_type,
            scale_grad_by_freq=self.scale_grad_by_freq,
        )

    def extra_repr(self):
        return f"{self.num_embeddings}, {self.embedding_dim}" + (
            "" if self.padding_idx is None else f", padding_idx={self.padding_idx}"
        )


class EmbeddingBag(Module):
    """Rows of a table, reduced in bags."""

    def __init__(
        self,
        num_embeddings,
        embedding_dim,
        max_norm=None,
        norm_type=2.0,
        scale_grad_by_freq=False,
        mode="mean",
        sparse=False,
        _weight=None,
        include_last_offset=False,
        padding_idx=None,
        device=None,
        dtype=None,
    ):
        super().__init__()
        self.options = {
            "mode": mode,
            "padding_idx": padding_idx,
            "max_norm": max_norm,
            "norm_type": norm_type,
            "include_last_offset": include_last_offset,
            "scale_grad_by_freq": scale_grad_by_freq,
        }
        self.num_embeddings, self.embedding_dim, self.mode = num_embeddings, embedding_dim, mode
        if _weight is not None:
            self.weight = Parameter(_weight)
            return
        self.weight = _parameter(num_embeddings, embedding_dim, dtype=dtype, device=device)
        init.normal_(self.weight)
        if padding_idx is not None:
            self.weight.detach()[padding_idx] = 0

    def forward(self, input, offsets=None, per_sample_weights=None):
        return F.embedding_bag(input, self.weight, offsets, per_sample_weights=per_sample_weights, **self.options)

    def extra_repr(self):
        return f"{self.num_embeddings}, {self.embedding_dim}, mode={self.mode!r}"


class _Stateless(Module):
    """A function with settings that are attributes: `_settings` are their names and defaults, `_call` computes."""

    _settings, _hidden = {}, ()  # hidden from the text

    def __init__(self, *args, **kwargs):
        super().__init__()
        names = list(self._settings)
        if len(args) > len(names):
            raise TypeError(f"{type(self).__name__}() takes at most {len(names)} arguments, {len(args)} were given")
        given = {**dict(zip(names, args)), **kwargs}
        for name in given:
            if name not in self._settings:
                raise TypeError(f"{type(self).__name__}() has no argument '{name}'")
        for name, usual in self._settings.items():
            if usual is ... and name not in given:
                raise TypeError(f"{type(self).__name__}() misses the argument '{name}'")
            setattr(self, name, given.get(name, usual))

    def _given(self):
        return {name: getattr(self, name) for name in self._settings if name != "inplace"}

    def extra_repr(self):
        shown = (name for name in self._settings if name not in self._hidden and (name != "inplace" or self.inplace))
        return ", ".join(f"{name}={getattr(self, name)!r}" for name in shown)


class Flatten(_Stateless):
    """Axes joined into one, all but the first unless told otherwise."""

    _settings = {"start_dim": 1, "end_dim": -1}

    def forward(self, input):
        return input.flatten(self.start_dim, self.end_dim)


class Unflatten(_Stateless):
    """An axis split into several."""

    _settings = {"dim": ..., "unflattened_size": ...}

    def forward(self, input):
        return input.unflatten(self.dim, self.unflattened_size)


class LocalResponseNorm(_Stateless):
    """Each channel divided by a sum over its neighbours."""

    _settings = {"size": ..., "alpha": 1e-4, "beta": 0.75, "k": 1.0}

    def forward(self, input):
        return F.local_response_norm(input, **self._given())

    def extra_repr(self):
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"


class _Dropout(_Stateless):
    _settings = {"p": 0.5, "inplace": False}

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        if not 0 <= self.p <= 1:
            raise ValueError(f"{type(self).__name__}: the probability {self.p} is not within 0 and 1")

    def forward(self, input):
        return getattr(_volta, self._function)(input, self.p, self.training)

    def extra_repr(self):
        return f"p={self.p}, inplace={self.inplace}"


class Dropout(_Dropout):
    """Zeroes elements with probability p while training."""

    _function = "dropout"


class AlphaDropout(_Dropout):
    """Dropout that keeps mean and variance of what selu gives."""

    _function = "alpha_dropout"


class FeatureAlphaDropout(_Dropout):
    """AlphaDropout of whole channels."""

    _function = "feature_alpha_dropout"


class Upsample(_Stateless):
    """Another resolution."""

    _settings = {
        "size": None,
        "scale_factor": None,
        "mode": "nearest",
        "align_corners": None,
        "recompute_scale_factor": None,
    }

    def forward(self, input):
        return F.interpolate(input, **self._given())

    def extra_repr(self):
        size = f"size={self.size}" if self.scale_factor is None else f"scale_factor={self.scale_factor}"
        return f"{size}, mode={self.mode!r}"


class UpsamplingNearest2d(_Stateless):
    """Upsample of images, each pixel repeated."""

    _settings = {"size": None, "scale_factor": None}

    def forward(self, input):
        return F.interpolate(input, self.size, self.scale_factor, "nearest")


class UpsamplingBilinear2d(_Stateless):
    """Upsample of images, bilinear with aligned corners."""

    _settings = {"size": None, "scale_factor": None}

    def forward(self, input):
        return F.interpolate(input, self.size, self.scale_factor, "bilinear", align_corners=True)


class ChannelShuffle(_Stateless):
    """Channels of the groups in turns."""

    _settings = {"groups": ...}

    def forward(self, input):
        return F.channel_shuffle(input, self.groups)


class Unfold(_Stateless):
    """Windows as columns."""

    _settings = {"kernel_size": ..., "dilation": 1, "padding": 0, "stride": 1}

    def forward(self, input):
        return F.unfold(input, **self._given())


class Fold(_Stateless):
    """Columns added up to images."""

    _settings = {"output_size": ..., "kernel_size": ..., "dilation": 1, "padding": 0, "stride": 1}

    def forward(self, input):
        return F.fold(input, **self._given())


class PixelShuffle(_Stateless):
    """[.., c r^2, h, w] to [.., c, h r, w r]."""

    _settings = {"upscale_factor": ...}

    def forward(self, input):
        return F.pixel_shuffle(input, self.upscale_factor)


class PixelUnshuffle(_Stateless):
    """[.., c, h r, w r] to [.., c r^2, h, w]."""

    _settings = {"downscale_factor": ...}

    def forward(self, input):
        return F.pixel_unshuffle(input, self.downscale_factor)


class CosineSimilarity(_Stateless):
    """Cosine of the angle between slices."""

    _settings = {"dim": 1, "eps": 1e-8}

    def forward(self, x1, x2):
        return F.cosine_similarity(x1, x2, self.dim, self.eps)


class PairwiseDistance(_Stateless):
    """p-norm of the differences of rows."""

    _settings = {"p": 2.0, "eps": 1e-6, "keepdim": False}

    def forward(self, x1, x2):
        return F.pairwise_distance(x1, x2, self.p, self.eps, self.keepdim)


# Padding: the mode and the settings, for one, two and three axes.
_PADS = {
    "ConstantPad{}d": ("constant", {"padding": ..., "value": ...}),
    "ZeroPad{}d": ("constant", {"padding": ...}),
    "ReflectionPad{}d": ("reflect", {"padding": ...}),
    "ReplicationPad{}d": ("replicate", {"padding": ...}),
    "CircularPad{}d": ("circular", {"padding": ...}),
}


class _Pad(_Stateless):
    _axes, _mode = 1, "constant"

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.padding = _tuple(self.padding, 2 * self._axes)

    def forward(self, input):
        given = self._given()
        return F.pad(input, given.pop("padding"), mode=self._mode, **given)

    def extra_repr(self):
        return f"{self.padding}" if "value" not in self._settings else f"padding={self.padding}, value={self.value}"


def _define(name, base, **members):
    globals()[name] = type(name, (base,), {"__module__": __name__, **members})
    __all__.append(name)


def _define_all():
    for n in (1, 2, 3):
        _define(f"Conv{n}d", _Conv, _axes=n, __doc__=f"Convolution over {n} axes, weight [out, in / groups, k...].")
        _define(f"ConvTranspose{n}d", _ConvTranspose, _axes=n, __doc__="The gradient of convolution as a layer.")
        _define(f"Dropout{n}d", _Dropout, _function="feature_dropout", __doc__="Dropout of whole channels.")
        for pattern, (mode, settings) in _PADS.items():
            _define(
                pattern.format(n),
                _Pad,
                _settings=settings,
                _mode=mode,
                _axes=n,
                __doc__=f"Padding in mode {mode}.",
            )


_define_all()
