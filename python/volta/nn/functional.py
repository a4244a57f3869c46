"""Functions of layers without their parameters, as torch.nn.functional has them."""

from .. import _volta
from .._functional_names import NAMES
from .._tensor_names import _kept

_ALSO = """gelu hardshrink logsigmoid sigmoid softplus softshrink softsign tanh tanhshrink linear bilinear one_hot pad
pdist""".split()
globals().update({name: getattr(_volta, name) for name in [*NAMES, *_ALSO]})


def _activation(name):
    """The function with PyTorch's `inplace`, which changes nothing but memory there, and nothing here."""
    function = getattr(_volta, name)
    names = [part.split("=")[0].strip() for part in function.__text_signature__.strip("()").split(",")][1:]

    def activation(input, *args, inplace=False, **kwargs):
        return function(input, *args[: len(names)], **kwargs)

    activation.__name__ = activation.__qualname__ = name
    activation.__doc__ = function.__doc__
    signature = function.__text_signature__.replace("1.0 / 8", "0.125").replace("1.0 / 3", "0.3333333333333333")
    activation.__text_signature__ = signature.rstrip(")") + ", inplace=False)"  # a "/" would mean positional only
    return activation


_INPLACE = """celu elu hardsigmoid hardswish hardtanh leaky_relu mish relu relu6 rrelu selu silu threshold dropout
alpha_dropout feature_alpha_dropout feature_dropout""".split()
globals().update({name: _activation(name) for name in _INPLACE})


def hardtanh(input, min_val=-1.0, max_val=1.0, inplace=False):
    """x held within [min_val, max_val]; integers stay integers."""
    if input.dtype.is_floating_point:
        return _volta.hardtanh(input, min_val, max_val)
    return _volta.clamp(input, int(min_val), int(max_val))


def relu6(input, inplace=False):
    """x held within [0, 6]; integers stay integers."""
    return hardtanh(input, 0, 6)


dropout1d = dropout2d = dropout3d = globals()["feature_dropout"]


def _in_place(name):
    method = getattr(_volta.Tensor, name + "_", None)

    def changed(input, *args, **kwargs):
        if method and input.dtype.is_floating_point:
            return method(input, *args, **kwargs)
        return input.copy_(globals()[name](_kept(input), *args, **kwargs))

    changed.__name__ = changed.__qualname__ = name + "_"
    changed.__doc__ = f"{name} in place."
    return changed


_CHANGING = "celu elu hardtanh leaky_relu rrelu selu threshold".split()
globals().update({name + "_": _in_place(name) for name in _CHANGING})


def relu_(input):
    """relu in place."""
    return input.relu_()


def _in_dtype(name):
    function = getattr(_volta, name)

    def converted(input, dim=None, _stacklevel=3, dtype=None):
        if dim is None:
            raise TypeError(f"{name}(): misses the argument 'dim'")
        return function(input if dtype is None else input.to(dtype), dim)

    converted.__name__ = converted.__qualname__ = name
    converted.__doc__ = function.__doc__
    return converted


softmax, log_softmax, softmin = (_in_dtype(name) for name in ("softmax", "log_softmax", "softmin"))


def _with_indices(name):
    plain, both = getattr(_volta, name), getattr(_volta, name + "_with_indices")
    count = len(plain.__text_signature__.strip("()").split(","))

    def pool(*args, return_indices=False, **kwargs):
        if len(args) > count:
            return_indices, args = args[count], args[:count]
        return (both if return_indices else plain)(*args, **kwargs)

    pool.__name__ = pool.__qualname__ = name
    pool.__doc__ = plain.__doc__
    pool.__text_signature__ = plain.__text_signature__.rstrip(")") + ", return_indices=False)"
    return pool


_POOLS = [f"{kind}max_pool{n}d" for kind in ("", "adaptive_", "fractional_") for n in (1, 2, 3)]
_POOLS.remove("fractional_max_pool1d")
globals().update({name: _with_indices(name) for name in _POOLS})


def _fractional(name):
    """The function with PyTorch's name of its random numbers."""
    function = globals()[name]

    def pool(*args, **kwargs):
        if "_random_samples" in kwargs:
            kwargs["random_samples"] = kwargs.pop("_random_samples")
        return function(*args, **kwargs)

    pool.__name__ = pool.__qualname__ = name
    pool.__doc__ = function.__doc__
    pool.__text_signature__ = function.__text_signature__
    return pool


for _name in [f"fractional_max_pool{n}d{end}" for n in (2, 3) for end in ("", "_with_indices")]:
    globals()[_name] = _fractional(_name)


def batch_norm(
    input, running_mean=None, running_var=None, weight=None, bias=None, training=False, momentum=0.1, eps=1e-5
):
    """Each channel over the batch, by its own statistics while training, else by those that are given."""
    if running_mean is None or running_var is None:
        if not training:
            raise ValueError("batch_norm(): without training, running_mean and running_var are wanted")
        count = input.shape[1]
        running_mean = _volta.zeros(count, dtype=input.dtype, device=input.device)
        running_var = _volta.ones(count, dtype=input.dtype, device=input.device)
    return _volta.batch_norm(input, running_mean, running_var, weight, bias, training, momentum, eps)


def _adaptive(name, axes):
    """PyTorch's None for an axis that keeps its size."""
    function = globals()[name]

    def pool(input, output_size, *args, **kwargs):
        if isinstance(output_size, (tuple, list)) and any(n is None for n in output_size):
            output_size = [m if n is None else n for n, m in zip(output_size, input.shape[-axes:])]
        return function(input, output_size, *args, **kwargs)

    pool.__name__ = pool.__qualname__ = name
    pool.__doc__ = function.__doc__
    return pool


for _n in (2, 3):
    for _name in (f"adaptive_avg_pool{_n}d", f"adaptive_max_pool{_n}d"):
        globals()[_name] = _adaptive(_name, _n)


def embedding(input, weight, padding_idx=None, max_norm=None, norm_type=2.0, scale_grad_by_freq=False, sparse=False):
    """Rows of a table. Gradients are dense, also with `sparse`."""
    if padding_idx is None and max_norm is None and not scale_grad_by_freq:
        return _volta.embedding(input, weight)
    return _volta.embedding(
        input, weight, padding_idx, max_norm, norm_type=norm_type, scale_grad_by_freq=scale_grad_by_freq
    )


def embedding_bag(
    input,
    weight,
    offsets=None,
    max_norm=None,
    norm_type=2,
    scale_grad_by_freq=False,
    mode="mean",
    sparse=False,
    per_sample_weights=None,
    include_last_offset=False,
    padding_idx=None,
):
    """Rows of a table, reduced in bags. Gradients are dense, also with `sparse`."""
    if scale_grad_by_freq:
        raise ValueError("embedding_bag(): scale_grad_by_freq is not supported")
    return _volta.embedding_bag(
        input,
        weight,
        offsets,
        mode=mode,
        padding_idx=padding_idx,
        max_norm=max_norm,
        norm_type=norm_type,
        include_last_offset=include_last_offset,
        per_sample_weights=per_sample_weights,
    )


def unfold(input, kernel_size, dilation=1, padding=0, stride=1):
    """Windows of images as columns."""
    return _volta.im2col(input, kernel_size, dilation, padding, stride)


def fold(input, output_size, kernel_size, dilation=1, padding=0, stride=1):
    """Columns added up to images."""
    return _volta.col2im(input, output_size, kernel_size, dilation, padding, stride)


def interpolate(
    input,
    size=None,
    scale_factor=None,
    mode="nearest",
    align_corners=None,
    recompute_scale_factor=None,
    antialias=False,
):
    """Another resolution."""
    return _volta.interpolate(
        input, size, scale_factor, mode, bool(align_corners), bool(recompute_scale_factor), bool(antialias)
    )


upsample = interpolate


__all__ = sorted(name for name, value in globals().items() if callable(value) and not name.startswith("_"))
