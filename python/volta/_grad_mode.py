"""Whether calls are recorded for the backward pass: guards for a `with` block, or decorators."""

import functools

from ._volta import _Mode


class _Guard:
    def __init__(self, record, inference=False):
        self._mode = _Mode(record, inference)

    def __enter__(self):
        self._mode.enter()
        return self

    def __exit__(self, *_):
        self._mode.leave()

    def __call__(self, function):
        @functools.wraps(function)
        def guarded(*args, **kwargs):
            with self:
                return function(*args, **kwargs)

        return guarded


class _Named(_Guard):
    _record, _inference = False, False

    def __new__(cls, function=None):
        self = super().__new__(cls)
        if function is None:
            return self
        self.__init__()  # @no_grad without brackets
        return self(function)

    def __init__(self):
        super().__init__(self._record, self._inference)


class no_grad(_Named):
    """While it lasts, nothing is recorded: `with volta.no_grad(): ...`."""


class enable_grad(_Named):
    """While it lasts, calls are recorded, also within `no_grad`."""

    _record = True


class inference_mode(_Named):
    """As `no_grad`; and what is computed cannot take part in a recorded computation."""

    _inference = True


class set_grad_enabled(_Guard):
    """`with volta.set_grad_enabled(training): ...`."""

    def __init__(self, mode):
        super().__init__(mode)
