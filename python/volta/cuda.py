"""GPUs of NVIDIA."""

from ._volta import _cuda_device_count as device_count  # noqa: F401
from ._volta import _cuda_is_available as is_available  # noqa: F401
from ._volta import _cuda_synchronize


def synchronize(device=0):
    """Waits for everything launched so far."""
    _cuda_synchronize(device)
