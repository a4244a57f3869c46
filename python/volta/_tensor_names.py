"""Further names of PyTorch's tensors and functions, over those that there are."""

import functools

from . import _volta
from ._volta import Tensor

# In place: another name of a method that is there.
_SAME_IN_PLACE = {
    "absolute": "abs",
    "arccos": "acos",
    "arccosh": "acosh",
    "arcsin": "asin",
    "arcsinh": "asinh",
    "arctan": "atan",
    "arctan2": "atan2",
    "arctanh": "atanh",
    "multiply": "mul",
    "negative": "neg",
    "subtract": "sub",
    "fix": "trunc",
    "sgn": "sign",
}
# In place: the function whose result is written into the tensor where no method of that name is there.
_IN_PLACE = """nan_to_num cumsum cumprod eq ne lt le gt ge logical_and logical_or logical_xor logical_not float_power addmm
addmv addbmm baddbmm addr""".split()


def _kept(x):
    """What a gradient may keep of a tensor that is about to be overwritten."""
    return x.clone() if x.requires_grad and not x.is_leaf else x


def _in_place(name):
    def changed(self, *args, **kwargs):
        function = globals()[name] if name in FUNCTIONS else getattr(_volta, name)
        return self.copy_(function(_kept(self), *args, **kwargs))

    changed.__name__, changed.__qualname__ = name + "_", f"Tensor.{name}_"
    changed.__doc__ = f"{name} in place."
    return changed


def is_floating_point(input):
    """Whether the dtype has fractions."""
    return input.is_floating_point()


def numel(input):
    """How many elements there are."""
    return input.numel()


def detach(input):
    """The same memory, without a history."""
    return input.detach()


def is_complex(input):
    """False: there are no complex dtypes."""
    return False


def sgn(input):
    """The sign."""
    return _volta.sign(input)


def fix(input):
    """Without the fraction."""
    return _volta.trunc(input)


def vdot(input, other):
    """The dot product of vectors."""
    return _volta.dot(input, other)


def ger(input, vec2):
    """The outer product of vectors."""
    return _volta.outer(input, vec2)


def split_with_sizes(input, split_sizes, dim=0):
    """Parts of these sizes."""
    return _volta.split(input, list(split_sizes), dim)


def broadcast_shapes(*shapes):
    """The shape that all broadcast to."""
    from .array_api import broadcast_shapes as found

    return found(*((s,) if isinstance(s, int) else tuple(s) for s in shapes))


def scalar_tensor(s, *, dtype=None, device=None, requires_grad=False):
    """A number as a tensor without axes, of the default float unless told otherwise."""
    return _volta.tensor(s, dtype=dtype or _volta.get_default_dtype(), device=device, requires_grad=requires_grad)


def get_rng_state():
    """Where the default generator is, for set_rng_state."""
    return _volta.default_generator().get_state()


def set_rng_state(new_state):
    """Puts the default generator back to where it was."""
    _volta.default_generator().set_state(tuple(new_state))


def manual_seed(seed):
    """Random numbers begin anew; gives the default generator."""
    _volta.manual_seed(int(seed))
    return _volta.default_generator()


def normal(mean=0.0, std=1.0, size=None, *more, **options):
    """Normal random numbers: normal(0.0, 1.0, (2, 3)), or with tensors of means and deviations; also normal(shape, mean, std)."""
    if isinstance(mean, Tensor) or isinstance(std, Tensor):
        shape = broadcast_shapes(*(x.shape for x in (mean, std) if isinstance(x, Tensor)))
        device = next(x.device for x in (mean, std) if isinstance(x, Tensor))
        dtype = next((x.dtype for x in (mean, std) if isinstance(x, Tensor)), None)
        return _volta.normal(shape, 0.0, 1.0, device=device, dtype=dtype, **options) * std + mean
    if "shape" in options:
        return _volta.normal(options.pop("shape"), mean, std, *more, **options)
    if isinstance(size, (tuple, list)):
        return _volta.normal(tuple(size), float(mean), float(std), *more, **options)
    return _volta.normal(mean, std, size, *more, **options)


def _spread(name):
    function = getattr(_volta, name)

    def spread(input, dim=None, unbiased=True, keepdim=False, *, correction=None, **words):
        if isinstance(dim, bool):  # std(x, unbiased)
            dim, unbiased = None, dim
        dim, keepdim = words.pop("axis", dim), words.pop("keepdims", keepdim)
        correction = (1 if unbiased is None else unbiased + 0) if correction is None else correction
        return function(input, dim, correction=correction, keepdim=keepdim, **words)

    spread.__name__ = spread.__qualname__ = name
    spread.__doc__ = function.__doc__
    return spread


std, var = _spread("std"), _spread("var")


def set_printoptions(precision=None, threshold=None, edgeitems=None, linewidth=None, profile=None, sci_mode=None):
    """How tensors are shown: digits after the point, elements before they are summarised, at each edge, columns.

    A `profile` is "default", "short" or "full". `sci_mode` is taken and changes nothing: large and small numbers are written with exponents.
    """
    profiles = {None: _volta._print_options(), "default": (4, 1000, 3, 100), "short": (2, 1000, 2, 100)}
    profiles["full"] = (4, 2**63 - 1, 3, 100)
    if profile not in profiles:
        raise ValueError(f"set_printoptions: profile {profile!r} is not one of default, short, full")
    given = (precision, threshold, edgeitems, linewidth)
    if threshold is not None and threshold == float("inf"):
        given = (precision, 2**63 - 1, edgeitems, linewidth)
    _volta._set_print_options(*(own if n is None else n for n, own in zip(given, profiles[profile])))


FUNCTIONS = """std var normal is_floating_point numel detach is_complex sgn fix vdot
ger split_with_sizes broadcast_shapes scalar_tensor get_rng_state set_rng_state manual_seed set_printoptions""".split()
_METHODS = """std var is_complex sgn fix vdot ger split_with_sizes""".split()
_OF_FUNCTIONS = "prelu multinomial bernoulli".split()


class GradFn:
    """What made a tensor, as far as Python is told: that there is something."""

    def name(self):
        return "Backward"

    def __repr__(self):
        return "<Backward>"


def _reshaped_in_place(name):
    def changed(self, *args):
        if self.requires_grad:
            raise _volta.AutogradError(f"{name}_: a tensor with a history keeps its shape: use x = x.{name}(...)")
        _volta._set_data(self, getattr(self, name)(*args))
        return self

    changed.__name__, changed.__qualname__ = name + "_", f"Tensor.{name}_"
    changed.__doc__ = f"{name} of the tensor itself."
    return changed


def _type(self, dtype=None, non_blocking=False):
    """The tensor as another dtype; without one, the name of its own."""
    return f"volta.{self.dtype.name}" if dtype is None else self.to(dtype)


def _new_tensor(self, data, *, dtype=None, device=None, requires_grad=False):
    """A tensor of data, of this one's dtype and device."""
    dtype, device = dtype or self.dtype, self.device if device is None else device
    return _volta.tensor(data, dtype=dtype, device=device, requires_grad=requires_grad)


def _random(self, low=0, high=None, *, generator=None):
    """Integers from low to below high, in place; without bounds as many as the dtype holds exactly."""
    if high is None and low:
        low, high = 0, low
    if high is None:
        exact = {"float16": 2**11, "bfloat16": 2**8, "float32": 2**24, "float64": 2**53, "bool": 2}
        high = exact.get(self.dtype.name) or min(int(_volta.iinfo(self.dtype).max) + 1, 2**63 - 1)
    return self.copy_(_volta.randint(low, high, tuple(self.shape), generator=generator).to(self.device))


def _contains(self, element):
    if not isinstance(element, (Tensor, bool, int, float)):
        raise TypeError(f"Tensor.__contains__: a number or a Tensor is wanted, not {type(element).__name__}")
    return bool((self == element).any())


def define():
    """Adds the methods to Tensor."""
    for name, same in _SAME_IN_PLACE.items():
        setattr(Tensor, name + "_", getattr(Tensor, same + "_"))
    for name in _IN_PLACE:
        if not hasattr(Tensor, name + "_") and (hasattr(_volta, name) or name in FUNCTIONS):
            setattr(Tensor, name + "_", _in_place(name))
    for name in _METHODS:
        setattr(Tensor, name, globals()[name])
    for name in _OF_FUNCTIONS:
        if not hasattr(Tensor, name) and hasattr(_volta, name):
            # A builtin is not bound to the tensor by itself.
            setattr(Tensor, name, functools.partialmethod(getattr(_volta, name)))
    for name in ("unsqueeze", "squeeze", "transpose", "t", "swapaxes", "swapdims"):
        if hasattr(Tensor, name) and not hasattr(Tensor, name + "_"):
            setattr(Tensor, name + "_", _reshaped_in_place(name))
    Tensor.grad_fn = property(lambda self: GradFn() if self.requires_grad and not self.is_leaf else None)
    Tensor.is_cpu = property(lambda self: not self.is_cuda)
    Tensor.ndimension = lambda self: self.ndim
    Tensor.get_device = lambda self: self.device.index if self.is_cuda else -1
    Tensor.is_signed = lambda self: self.dtype.is_signed
    Tensor.type = _type
    Tensor.new_tensor = _new_tensor
    Tensor.random_ = _random
    Tensor.where = lambda self, condition, other: _volta.where(condition, self, other)
    Tensor.real = property(lambda self: self)
    Tensor.conj = lambda self: self
    Tensor.H = Tensor.T
    Tensor.mH = Tensor.mT
    Tensor.adjoint = lambda self: self.mT
    Tensor.pin_memory = lambda self, device=None: self
    Tensor.__contains__ = _contains
