"""Clipping of gradients, and sequences of different lengths."""

from types import SimpleNamespace

from .. import _volta
from .._grad_mode import no_grad
from .._volta import Tensor, stack


def _listed(parameters):
    given = [parameters] if isinstance(parameters, Tensor) else list(parameters)
    return [p for p in given if p.grad is not None]


def clip_grad_norm_(parameters, max_norm, norm_type=2.0, error_if_nonfinite=False):
    """Scales the gradients so that their common norm is at most `max_norm`; gives the norm before."""
    with no_grad():
        gradients = [p.grad for p in _listed(parameters)]
        if not gradients:
            return _volta.tensor(0.0)
        total = stack([g.norm(norm_type) for g in gradients]).norm(norm_type)
        if error_if_nonfinite and not total.isfinite():
            raise RuntimeError(f"clip_grad_norm_: the norm of the gradients is {total.item()}")
        factor = (max_norm / (total + 1e-6)).clamp(max=1.0)
        for gradient in gradients:
            gradient.mul_(factor.to(gradient.dtype))
        return total


def clip_grad_value_(parameters, clip_value):
    """Holds every element of the gradients within [-clip_value, clip_value]."""
    with no_grad():
        for parameter in _listed(parameters):
            parameter.grad.clamp_(-clip_value, clip_value)


def parameters_to_vector(parameters):
    """All parameters in one vector."""
    return _volta.cat([p.flatten() for p in parameters])


rnn = SimpleNamespace(
    pack_padded_sequence=_volta.pack_padded_sequence,
    pad_packed_sequence=_volta.pad_packed_sequence,
    pad_sequence=_volta.pad_sequence,
    unpad_sequence=_volta.unpad_sequence,
    pack_sequence=_volta.pack_sequence,
)
