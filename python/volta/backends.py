"""PyTorch's switches of its backends: TF32 on GPUs; the others may be read and set, and change nothing."""

from types import SimpleNamespace

from . import cuda as _cuda
from ._volta import _cuda_allow_tf32


class _Matmul:
    """Whether f32 products use the tensor cores, with mantissas of 10 bits."""

    _tf32 = False

    @property
    def allow_tf32(self):
        return self._tf32

    @allow_tf32.setter
    def allow_tf32(self, on):
        _cuda_allow_tf32(bool(on))
        self._tf32 = bool(on)


cudnn = SimpleNamespace(enabled=True, benchmark=False, deterministic=False, is_available=_cuda.is_available)
cuda = SimpleNamespace(matmul=_Matmul(), is_built=_cuda.is_available)
mps = SimpleNamespace(is_available=lambda: False, is_built=lambda: False)
