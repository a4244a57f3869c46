"""Normalisation: over the batch, over features, over groups of channels."""

from .. import _volta
from .._volta import ones, zeros
from . import functional as F
from . import init
from .layers import _tuple
from .module import Module
from .parameter import Parameter

__all__ = ["GroupNorm", "LayerNorm", "RMSNorm"]


class _BatchNorm(Module):
    _axes = (2, 3)  # how many an input may have

    def __init__(
        self, num_features, eps=1e-5, momentum=0.1, affine=True, track_running_stats=True, device=None, dtype=None
    ):
        super().__init__()
        self.num_features, self.eps, self.momentum = num_features, eps, momentum
        self.affine, self.track_running_stats = affine, track_running_stats
        self.weight = Parameter(ones(num_features, dtype=dtype, device=device)) if affine else None
        self.bias = Parameter(zeros(num_features, dtype=dtype, device=device)) if affine else None
        track = track_running_stats
        self.register_buffer("running_mean", zeros(num_features, dtype=dtype, device=device) if track else None)
        self.register_buffer("running_var", ones(num_features, dtype=dtype, device=device) if track else None)
        count = _volta.tensor(0, dtype=_volta.int64, device=device)
        self.register_buffer("num_batches_tracked", count if track else None)

    def reset_running_stats(self):
        """Statistics as at the beginning."""
        if self.track_running_stats:
            self.running_mean.zero_()
            self.running_var.fill_(1)
            self.num_batches_tracked.zero_()

    def reset_parameters(self):
        self.reset_running_stats()
        if self.affine:
            init.ones_(self.weight)
            init.zeros_(self.bias)

    def _check(self, input):
        if len(input.shape) not in self._axes:
            raise ValueError(f"{type(self).__name__}: an input of shape {input.shape} has not {self._axes} axes")

    def forward(self, input):
        self._check(input)
        momentum = self.momentum
        if self.training and self.track_running_stats:
            self.num_batches_tracked.add_(1)
            if momentum is None:  # a plain average over all batches
                momentum = 1 / self.num_batches_tracked.item()
        use_batch = self.training or not self.track_running_stats
        return self._normalise(input, use_batch, 0.0 if momentum is None else momentum)

    def _normalise(self, input, use_batch, momentum):
        mean, var = self.running_mean, self.running_var
        return F.batch_norm(input, mean, var, self.weight, self.bias, use_batch, momentum, self.eps)

    def extra_repr(self):
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
            f"track_running_stats={self.track_running_stats}"
        )


class _InstanceNorm(_BatchNorm):
    def __init__(
        self, num_features, eps=1e-5, momentum=0.1, affine=False, track_running_stats=False, device=None, dtype=None
    ):
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype)

    def _normalise(self, input, use_batch, momentum):
        x = input if len(input.shape) == max(self._axes) else input.unsqueeze(0)
        y = F.instance_norm(
            x, self.running_mean, self.running_var, self.weight, self.bias, use_batch, momentum, self.eps
        )
        return y if x is input else y.squeeze(0)


class LayerNorm(Module):
    """(x - mean) / sqrt(var + eps) * weight + bias over the last axes."""

    def __init__(self, normalized_shape, eps=1e-5, elementwise_affine=True, bias=True, device=None, dtype=None):
        super().__init__()
        self.normalized_shape, self.eps = _tuple(normalized_shape, 1), eps
        self.elementwise_affine = elementwise_affine
        shape = self.normalized_shape
        self.weight = Parameter(ones(shape, dtype=dtype, device=device)) if elementwise_affine else None
        self.bias = Parameter(zeros(shape, dtype=dtype, device=device)) if elementwise_affine and bias else None

    def forward(self, input):
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self):
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"


class RMSNorm(Module):
    """x / sqrt(mean(x^2) + eps) * weight over the last axes."""

    def __init__(self, normalized_shape, eps=None, elementwise_affine=True, device=None, dtype=None):
        super().__init__()
        self.normalized_shape, self.eps = _tuple(normalized_shape, 1), eps
        self.elementwise_affine = elementwise_affine
        shape = self.normalized_shape
        self.weight = Parameter(ones(shape, dtype=dtype, device=device)) if elementwise_affine else None

    def forward(self, input):
        return F.rms_norm(input, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self):
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"


class GroupNorm(Module):
    """Channels in groups, each normalised."""

    def __init__(self, num_groups, num_channels, eps=1e-5, affine=True, device=None, dtype=None):
        super().__init__()
        if num_channels % num_groups:
            raise ValueError(f"{num_groups} groups do not divide {num_channels} channels")
        self.num_groups, self.num_channels, self.eps, self.affine = num_groups, num_channels, eps, affine
        self.weight = Parameter(ones(num_channels, dtype=dtype, device=device)) if affine else None
        self.bias = Parameter(zeros(num_channels, dtype=dtype, device=device)) if affine else None

    def forward(self, input):
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self):
        return f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}"


for _n, _ranks in ((1, (2, 3)), (2, (4,)), (3, (5,))):
    for _name, _base, _members in (
        (f"BatchNorm{_n}d", _BatchNorm, {"_axes": _ranks, "__doc__": "Each channel over the batch."}),
        (f"InstanceNorm{_n}d", _InstanceNorm, {"_axes": (_n + 1, _n + 2), "__doc__": "Each channel of each sample."}),
    ):
        globals()[_name] = type(_name, (_base,), {"__module__": __name__, **_members})
        __all__.append(_name)
