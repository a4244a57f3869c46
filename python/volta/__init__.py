"""Volta: tensors, automatic differentiation and neural networks."""

# ruff: noqa: I001  what Python writes replaces what the extension has of the same name
from ._volta import *  # noqa: F403
from ._volta import Tensor, bool, dtype  # noqa: F401
from ._grad_mode import enable_grad, inference_mode, no_grad, set_grad_enabled  # noqa: F401
from . import _tensor_names, _torch_forms
from ._tensor import as_tensor, asarray, is_tensor, load, save, tensordot, unique  # noqa: F401

for _module in (_tensor_names, _torch_forms):
    _module.define()
    globals().update({_name: getattr(_module, _name) for _name in _module.FUNCTIONS})
half, double, long, short, int, float = float16, float64, int64, int16, int32, float32  # noqa: F405

inf, nan, pi, e = 1e400, 1e400 * 0, 3.141592653589793, 2.718281828459045
newaxis = None

_LAZY = {
    "nn",
    "optim",
    "autograd",
    "array_api",
    "utils",
    "cuda",
    "train",
    "metrics",
    "callbacks",
    "amp",
    "linalg",
    "backends",
}
_ELSEWHERE = {"fit": "train", "evaluate": "train", "autocast": "amp"}
_ELSEWHERE |= dict.fromkeys(("det", "inverse", "logdet", "matrix_power", "pinverse", "slogdet"), "linalg")


def __getattr__(name):
    if name in _LAZY:
        import importlib

        return importlib.import_module(f"volta.{name}")
    if name in _ELSEWHERE:
        return getattr(__getattr__(_ELSEWHERE[name]), name)
    if name == "__version__":
        from importlib.metadata import version

        return version("volta")
    raise AttributeError(f"module 'volta' has no attribute {name!r}")
