"""Volta: tensors, automatic differentiation and neural networks."""

from . import _volta
from ._volta import *  # noqa: F403
from ._volta import Tensor, bool, dtype  # noqa: F401
from ._grad_mode import (  # noqa: F401
    enable_grad,
    inference_mode,
    no_grad,
    set_grad_enabled,
)
from . import _tensor  # noqa: F401  adds what Python writes best to Tensor
from ._tensor import as_tensor, asarray, is_tensor, save, load, unique  # noqa: F401

half, double, long, short, int, float = float16, float64, int64, int16, int32, float32  # noqa: F405

inf, nan, pi, e = 1e400, 1e400 - 1e400, 3.141592653589793, 2.718281828459045
newaxis = None

_LAZY = {"nn", "optim", "autograd", "array_api", "utils", "cuda"}


def __getattr__(name):
    if name in _LAZY:
        import importlib

        return importlib.import_module(f"volta.{name}")
    if name == "__version__":
        from importlib.metadata import version

        return version("volta")
    raise AttributeError(f"module 'volta' has no attribute {name!r}")
