"""What Python writes best of Tensor: copies, pickles, arrays of NumPy, hooks; and functions over data and files."""

import contextlib
import os

from . import _volta
from ._volta import Tensor


def is_tensor(x):
    """Whether x is a Tensor."""
    return isinstance(x, Tensor)


def asarray(obj, /, *, dtype=None, device=None, copy=None):
    """A tensor of numbers, lists, an array or a tensor; shares their memory unless `copy` or `dtype` say otherwise."""
    if isinstance(obj, Tensor):
        x = obj
    elif hasattr(obj, "__dlpack__"):
        x = _volta.from_dlpack(obj)
    elif copy is not True and isinstance(obj, (bytearray, memoryview)):
        x = _volta._from_buffer(obj)
    elif copy is not False and hasattr(obj, "__array_interface__"):
        x = _volta.from_dlpack(obj.__array__())  # a number of NumPy, of its dtype
    elif copy is False:
        raise ValueError("asarray(): a list cannot become a tensor without a copy")
    else:
        return _volta.tensor(list(obj) if isinstance(obj, range) else obj, dtype=dtype, device=device)
    y = x if dtype is None else x.to(dtype)
    y = y if device is None else y.to(device)
    if copy is False and y is not x and not y.shares_storage(x):
        raise ValueError("asarray(): this dtype or device needs a copy")
    return y.clone() if copy and y.shares_storage(x) else y


as_tensor = asarray


def unique(input, sorted=True, return_inverse=False, return_counts=False, dim=None):
    """The different elements, sorted, and where asked for the place of each among them and how often it occurs."""
    result = _volta.unique(input, True, return_inverse, return_counts, dim)
    given = [x for x in result if x is not None]
    return given[0] if len(given) == 1 else tuple(given)


def tensordot(a, b, dims=2):
    """Contraction of the last with the first axes, or of the paired axes of two lists."""
    if isinstance(dims, Tensor):
        dims = dims.tolist()
    return (
        _volta.tensordot(a, b, dims) if isinstance(dims, int) else _volta.tensordot(a, b, list(dims[0]), list(dims[1]))
    )


def save(obj, f):
    """Writes a state (a dict of tensors) as safetensors, or any value of such as a file that torch.load reads.

    The name says which: `.safetensors`, `.npz` and `.npy`, else torch's format. A file object gets torch's format.
    """
    if hasattr(f, "write"):
        with _temporary() as path:
            _volta._write_torch(path, obj)
            with open(path, "rb") as file:
                f.write(file.read())
        return
    path = os.fspath(f)
    if path.endswith((".safetensors", ".npz")):
        if not hasattr(obj, "keys"):
            raise TypeError(f"save(): a dict of tensors goes into {path!r}, not {type(obj).__name__}")
        for name, value in obj.items():
            if not isinstance(name, str) or not isinstance(value, Tensor):
                raise TypeError(
                    f"save(): {path!r} holds Tensors by names that are str, "
                    f"not {type(value).__name__} by {type(name).__name__}"
                )
        _volta._write_npz(path, dict(obj)) if path.endswith(".npz") else _volta._write_safetensors(path, dict(obj), {})
    elif path.endswith(".npy"):
        _volta._write_npy(path, obj)
    else:
        _volta._write_torch(path, obj)


def load(f, map_location=None, *, weights_only=True, mmap=None):
    """What a file holds: a state of safetensors or .npz, a tensor of .npy, any value of torch.save. Nothing is executed."""
    if not weights_only:
        raise ValueError("load(): objects of Python are not loaded, as that would execute what the file says")
    if hasattr(f, "read"):
        with _temporary() as path:
            with open(path, "wb") as file:
                file.write(f.read())
            value = _volta._read_torch(path)
    else:
        value = _read(os.fspath(f))
    return value if map_location is None else _moved(value, map_location)


def _read(path):
    if path.endswith(".npy"):
        return _volta._read_npy(path)
    if path.endswith((".safetensors", ".npz", ".json")) or os.path.isdir(path):
        return _volta._read_state(path)
    return _volta._read_torch(path)


@contextlib.contextmanager
def _temporary():
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        yield os.path.join(folder, "value.pt")


def _moved(value, device):
    if isinstance(value, Tensor):
        return value.to(device)
    if isinstance(value, dict):
        return type(value)((key, _moved(item, device)) for key, item in value.items())
    if isinstance(value, (list, tuple)):
        return type(value)(_moved(item, device) for item in value)
    return value


class Handle:
    """What `register_hook` gives: `remove()`, or the end of a `with` block, takes the hook away again."""

    def __init__(self, remove):
        self._remove = remove

    def remove(self):
        remove, self._remove = self._remove, None
        if remove:
            remove()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.remove()


def _register_hook(self, hook):
    """Runs hook(gradient) when the gradient of this tensor is known; a tensor that it returns replaces it."""
    if not callable(hook):
        raise TypeError(f"register_hook(): a hook is a function, not {type(hook).__name__}")
    number = self._register_hook(hook)
    return Handle(lambda: self._remove_hook(number))


def _numpy(self, *, force=False):
    """An array of NumPy that shares the memory; `force` detaches and copies to the host first."""
    import numpy

    x = self.detach().to("cpu") if force else self
    if x.requires_grad:
        raise _volta.AutogradError("numpy: a tensor that requires grad has no array: use x.detach().numpy()")
    return numpy.asarray(memoryview(x))


def _array(self, dtype=None, copy=None):
    import numpy

    array = _numpy(self)
    if dtype is not None and array.dtype != dtype:
        if copy is False:
            raise ValueError("another dtype needs a copy")
        return array.astype(dtype)
    return numpy.array(array, copy=True) if copy else array


def _rebuild(data, dtype, shape, requires_grad):
    x = _volta._from_bytes(data, dtype, shape)
    return x.requires_grad_() if requires_grad else x


def _reduce(self):
    return _rebuild, (_volta._to_bytes(self), self.dtype, list(self.shape), self.requires_grad)


def _deepcopy(self, memo):
    x = self.detach().clone()
    if self.requires_grad:
        x.requires_grad_()
    memo[id(self)] = x
    return x


def _namespace(self, /, *, api_version=None):
    from . import array_api

    if api_version not in (None, "2021.12", "2022.12", "2023.12", "2024.12"):
        raise ValueError(f"version {api_version!r} of the array API is not supported")
    return array_api


def _to_device(self, device, /, *, stream=None):
    return self.to(device)


def _cast(name):
    def cast(self):
        return self.to(getattr(_volta, name))

    cast.__doc__ = f"The tensor as {name}."
    return cast


def _format(self, spec):
    return format(self.item(), spec) if self.ndim == 0 and spec else format(repr(self), spec)


def _reversed(self):
    return self.flip(0) if self.ndim else self


def _repr_html(self):
    from ._html import tensor

    return tensor(self)


Tensor.register_hook = _register_hook
Tensor.numpy = _numpy
Tensor.__array__ = _array
Tensor.__format__ = _format
Tensor._repr_html_ = _repr_html
Tensor.__reversed__ = _reversed
Tensor.__reduce__ = _reduce
Tensor.__deepcopy__ = _deepcopy
Tensor.__copy__ = lambda self: type(self)(self)
Tensor.__array_namespace__ = _namespace
Tensor.to_device = _to_device
Tensor.cpu = lambda self: self.to("cpu")
Tensor.cuda = lambda self, device=0, non_blocking=False: self.to(
    f"cuda:{device}" if isinstance(device, int) else device
)
Tensor.unique = unique
Tensor.data = property(Tensor.detach, _volta._set_data)
Tensor.__array_priority__ = 1000
for _method, _name in {
    "float": "float32",
    "double": "float64",
    "half": "float16",
    "bfloat16": "bfloat16",
    "long": "int64",
    "int": "int32",
    "short": "int16",
    "char": "int8",
    "byte": "uint8",
    "bool": "bool",
}.items():
    setattr(Tensor, _method, _cast(_name))
