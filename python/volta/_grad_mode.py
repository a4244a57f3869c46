"""Whether calls are recorded for the backward pass: guards for a `with` block, or decorators."""

import functools

from ._volta import _Mode

_GENERATOR = 0x20  # in the flags of a function's code


class Guard:
    """Holds a mode while a `with` block or a decorated function runs."""

    def __init__(self, mode):
        self._mode = mode

    def __enter__(self):
        self._mode.enter()
        return self

    def __exit__(self, *_):
        self._mode.leave()

    def __call__(self, function):
        code = getattr(function, "__code__", None)
        if code is not None and code.co_flags & _GENERATOR:
            return self._of_generator(function)

        @functools.wraps(function)
        def guarded(*args, **kwargs):
            with self:
                return function(*args, **kwargs)

        return guarded

    def _of_generator(self, function):
        """The mode holds while the generator runs, not between its items."""

        @functools.wraps(function)
        def guarded(*args, **kwargs):
            running, given = function(*args, **kwargs), None
            try:
                while True:
                    try:
                        with self:
                            item = running.send(given)
                    except StopIteration as stop:
                        return stop.value
                    given = yield item
            finally:
                running.close()

        return guarded


class _Named(Guard):
    _record, _inference = False, False

    def __new__(cls, function=None):
        self = super().__new__(cls)
        if function is None:
            return self
        if not callable(function):
            raise TypeError(f"{cls.__name__} takes a function to decorate, not {type(function).__name__}")
        self.__init__()  # @no_grad without brackets
        return self(function)

    def __init__(self):
        super().__init__(_Mode(self._record, self._inference))


class no_grad(_Named):
    """While it lasts, nothing is recorded: `with volta.no_grad(): ...`."""


class enable_grad(_Named):
    """While it lasts, calls are recorded, also within `no_grad`."""

    _record = True


class inference_mode(Guard):
    """As `no_grad`; and what is computed cannot take part in a recorded computation. With False, all as without it."""

    def __new__(cls, mode=True):
        self = super().__new__(cls)
        if not callable(mode):
            return self
        self.__init__()  # @inference_mode without brackets
        return self(mode)

    def __init__(self, mode=True):
        super().__init__(_Mode(not mode, bool(mode)))


class set_grad_enabled(Guard):
    """Whether calls are recorded from now on, or within a `with` block or a decorated function."""

    _for_good = []  # modes of calls that are neither: their end would undo them

    def __init__(self, mode):
        super().__init__(_Mode(bool(mode), False))
        self._mode.enter()
        self._for_good.append(self._mode)

    def __enter__(self):
        if self._mode in self._for_good:
            self._for_good.remove(self._mode)
        else:
            self._mode.enter()
        return self

    def __call__(self, function):
        if self._mode in self._for_good:
            self._for_good.remove(self._mode)
            self._mode.leave()
        return super().__call__(function)
