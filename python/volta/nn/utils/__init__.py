"""Clipping of gradients, parameters as one vector, norms of weights; sequences of different lengths are in `rnn`."""

import math

from ... import _volta
from ..._grad_mode import no_grad
from ..._volta import Tensor, stack
from . import rnn  # noqa: F401
from .weights import remove_spectral_norm, remove_weight_norm, spectral_norm, weight_norm  # noqa: F401


def _gradients(parameters):
    given = [parameters] if isinstance(parameters, Tensor) else list(parameters)
    return [p.grad for p in given if p.grad is not None]


def get_total_norm(tensors, norm_type=2.0, error_if_nonfinite=False, foreach=None):
    """The norm of all tensors together."""
    tensors = [tensors] if isinstance(tensors, Tensor) else list(tensors)
    if not tensors:
        return _volta.tensor(0.0)
    with no_grad():
        total = stack([x.norm(float(norm_type)) for x in tensors]).norm(float(norm_type))
    if error_if_nonfinite and not math.isfinite(total.item()):
        raise RuntimeError(f"the norm of the gradients is {total.item()}")
    return total


def clip_grads_with_norm_(parameters, max_norm, total_norm, foreach=None):
    """Scales the gradients so that their common norm, which is given, becomes at most `max_norm`."""
    with no_grad():
        factor = (float(max_norm) / (total_norm + 1e-6)).clamp(max=1.0)
        for gradient in _gradients(parameters):
            gradient.mul_(factor.to(gradient.device, gradient.dtype))


def clip_grad_norm_(parameters, max_norm, norm_type=2.0, error_if_nonfinite=False, foreach=None):
    """Scales the gradients so that their common norm is at most `max_norm`; gives the norm before."""
    parameters = [parameters] if isinstance(parameters, Tensor) else list(parameters)
    total = get_total_norm(_gradients(parameters), norm_type, error_if_nonfinite)
    clip_grads_with_norm_(parameters, max_norm, total)
    return total


def clip_grad_value_(parameters, clip_value, foreach=None):
    """Holds every element of the gradients within [-clip_value, clip_value]."""
    with no_grad():
        for gradient in _gradients(parameters):
            gradient.clamp_(-float(clip_value), float(clip_value))


def parameters_to_vector(parameters):
    """All parameters in one vector."""
    return _volta.cat([p.flatten() for p in parameters])


def vector_to_parameters(vec, parameters):
    """The values of a vector in the parameters, one after the other."""
    parameters = list(parameters)
    if vec.numel() != sum(p.numel() for p in parameters):
        raise ValueError(f"{vec.numel()} values for {sum(p.numel() for p in parameters)} in the parameters")
    begin = 0
    with no_grad():
        for p in parameters:
            p.copy_(vec[begin : begin + p.numel()].reshape(p.shape))
            begin += p.numel()
