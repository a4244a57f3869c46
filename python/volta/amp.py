"""Mixed precision: autocast and GradScaler."""

from . import _volta
from ._grad_mode import Guard
from ._volta import bfloat16, float16

__all__ = ["autocast", "GradScaler"]


class autocast(Guard):
    """While it lasts, products run in a half dtype and what needs range or precision in float32: with a `with` block or
    as a decorator. The device's type is PyTorch's argument: a GPU's half is float16 unless `dtype` says otherwise."""

    def __init__(self, device_type="cpu", dtype=None, enabled=True, cache_enabled=True):
        if not isinstance(device_type, str):
            raise TypeError(f"autocast: the type of a device is a str, not {type(device_type).__name__}")
        self.device = device_type
        self.dtype = dtype or (float16 if device_type.startswith("cuda") else bfloat16)
        super().__init__(_volta._Autocast(self.dtype, bool(enabled), cache_enabled is not False))


class GradScaler:
    """Scales the loss so that the gradients of float16 stay within its range; leaves out steps that overflowed.

    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    """

    def __init__(
        self,
        device="cuda",
        init_scale=2.0**16,
        growth_factor=2.0,
        backoff_factor=0.5,
        growth_interval=2000,
        enabled=True,
    ):
        self._scaler = _volta._GradScaler(init_scale, growth_factor, backoff_factor, growth_interval, enabled)

    def scale(self, outputs):
        """A loss, or several in a list or tuple, times the factor."""
        if isinstance(outputs, (list, tuple)):
            return type(outputs)(self.scale(x) for x in outputs)
        return self._scaler.scale(outputs)

    def unscale_(self, optimizer):
        """Divides the gradients now, to clip them before the step."""
        self._scaler.unscale_(optimizer._optimizer)

    def step(self, optimizer):
        """The optimizer's step, unless a gradient is infinite or NaN."""
        self._scaler.step(optimizer._optimizer)

    def update(self, new_scale=None):
        """Once after the steps of an iteration."""
        self._scaler.update(None if new_scale is None else float(new_scale))

    def __getattr__(self, name):
        if name.startswith(("get_", "set_")) or name in ("is_enabled", "state_dict", "load_state_dict"):
            return getattr(self._scaler, name)
        raise AttributeError(f"'GradScaler' object has no attribute '{name}'")
