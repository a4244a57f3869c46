"""Weights that are computed from others before each call: weight_norm and spectral_norm."""

from ... import _volta
from ..._grad_mode import no_grad
from ..parameter import Parameter


class _Computed:
    """A pre-hook that computes the parameter `name` anew before each call."""

    def __init__(self, name, compute):
        self.name, self.compute = name, compute

    def __call__(self, module, args):
        object.__setattr__(module, self.name, self.compute(module))


def _install(module, name, compute):
    module._computed = {**getattr(module, "_computed", {})}
    if name in module._computed:
        raise RuntimeError(f"'{name}' is computed from other weights already")
    del module._parameters[name]
    hook = _Computed(name, compute)
    module._computed[name] = module.register_forward_pre_hook(hook), compute
    hook(module, ())
    return module


def _remove(module, name, parts):
    if name not in getattr(module, "_computed", {}):
        raise ValueError(f"'{name}' is not computed from other weights")
    handle, compute = module._computed.pop(name)
    handle.remove()
    weight = compute(module).detach()
    module.__dict__.pop(name, None)
    for part in parts:
        delattr(module, part)
    module.register_parameter(name, Parameter(weight))
    return module


def _norm_except(x, dim):
    if dim is None or dim == -1:
        return x.norm()
    axes = [i for i in range(x.ndim) if i != dim]
    return (x * x).sum(axes, keepdim=True).sqrt()


class _WeightNorm:
    def __init__(self, name, dim):
        self.name, self.dim = name, dim

    def __call__(self, module):
        g, v = getattr(module, self.name + "_g"), getattr(module, self.name + "_v")
        return v * (g / _norm_except(v, self.dim))


def weight_norm(module, name="weight", dim=0):
    """The weight as a direction, `name_v`, times a length, `name_g`, both learned."""
    weight = module.get_parameter(name).detach()
    module.register_parameter(name + "_g", Parameter(_norm_except(weight, dim)))
    module.register_parameter(name + "_v", Parameter(weight.clone()))
    return _install(module, name, _WeightNorm(name, dim))


def remove_weight_norm(module, name="weight"):
    """A plain weight again, with the same values."""
    return _remove(module, name, [name + "_g", name + "_v"])


class _SpectralNorm:
    def __init__(self, name, power_iterations, eps, dim):
        self.name, self.power_iterations, self.eps, self.dim = name, power_iterations, eps, dim

    def matrix(self, weight):
        weight = weight if self.dim == 0 else weight.transpose(0, self.dim)
        return weight.reshape(weight.shape[0], -1)

    def __call__(self, module):
        weight = getattr(module, self.name + "_orig")
        u, v = getattr(module, self.name + "_u"), getattr(module, self.name + "_v")
        matrix = self.matrix(weight)
        if module.training:
            with no_grad():
                for _ in range(self.power_iterations):
                    v.copy_(_volta.normalize(matrix.T @ u, dim=0, eps=self.eps))
                    u.copy_(_volta.normalize(matrix @ v, dim=0, eps=self.eps))
        return weight / (u.clone() @ (matrix @ v.clone()))


def spectral_norm(module, name="weight", n_power_iterations=1, eps=1e-12, dim=None):
    """The weight divided by its largest singular value, which is followed by power iterations."""
    if dim is None:
        dim = 1 if type(module).__name__.startswith("ConvTranspose") else 0
    weight = module.get_parameter(name)
    rule = _SpectralNorm(name, n_power_iterations, eps, dim)
    rows, columns = rule.matrix(weight).shape
    module.register_parameter(name + "_orig", weight)
    for end, count in (("_u", rows), ("_v", columns)):
        module.register_buffer(name + end, _volta.normalize(_volta.randn(count).to(weight.device), dim=0, eps=eps))
    return _install(module, name, rule)


def remove_spectral_norm(module, name="weight"):
    """A plain weight again, with the values it has now."""
    return _remove(module, name, [name + "_orig", name + "_u", name + "_v"])
