"""GPUs of NVIDIA."""

from ._volta import _cuda_device_count as device_count  # noqa: F401
from ._volta import _cuda_empty_cache, _cuda_synchronize
from ._volta import _cuda_is_available as is_available  # noqa: F401


def synchronize(device=0):
    """Waits for everything launched so far."""
    _cuda_synchronize(device)


def empty_cache(device=0):
    """Gives memory that is kept for use again back to the driver; nothing to do without a GPU."""
    if is_available():
        _cuda_empty_cache(device)


def manual_seed(seed):
    """Seeds the generator, which is one for all devices."""
    from . import manual_seed

    manual_seed(seed)


manual_seed_all = manual_seed
