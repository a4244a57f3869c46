"""Learning-rate schedules of the library, and the base of those written in Python."""

import weakref

from .. import _volta
from .optimizer import _MAKERS, Optimizer

_COUNTS = ("last_epoch", "cooldown_counter", "num_bad_epochs")


class LRScheduler:
    """What all schedules share. One's own says in `get_lr` the rates of the groups at `self.last_epoch`."""

    _make = None

    def __init__(self, optimizer, *args, last_epoch=-1, **kwargs):
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")
        groups = optimizer.param_groups
        if last_epoch != -1 and any("initial_lr" not in group for group in groups):
            raise KeyError("'initial_lr' is wanted in each group of an optimizer that goes on after last_epoch")
        self.optimizer = optimizer
        if self._make is None:
            self.base_lrs = [group.setdefault("initial_lr", group["lr"]) for group in groups]
            self._epoch = args[0] if args else last_epoch
            self.step()
            return
        self._schedule = self._make(optimizer._optimizer, *args, **kwargs)
        self.base_lrs = [group["initial_lr"] if "initial_lr" in group else group["lr"] for group in groups]
        for _ in range(last_epoch + 1):
            self._schedule.step()

    def get_lr(self):
        """The rates of the groups, of a schedule written in Python."""
        raise NotImplementedError(f"{type(self).__name__} has no get_lr")

    def step(self, *metrics):
        """Once after each epoch or step, after the optimizer's; ReduceLROnPlateau takes the measure."""
        if self._make is not None:
            return self._schedule.step(*(float(m) for m in metrics))
        self._epoch += 1
        for group, rate in zip(self.optimizer.param_groups, self.get_lr()):
            group["lr"] = rate

    @property
    def last_epoch(self):
        return self._epoch if self._make is None else self._schedule.last_epoch

    @last_epoch.setter
    def last_epoch(self, epoch):
        if self._make is not None:
            raise AttributeError("last_epoch of a schedule of the library is set by load_state_dict")
        self._epoch = epoch

    def get_last_lr(self):
        return (
            [group["lr"] for group in self.optimizer.param_groups]
            if self._make is None
            else self._schedule.get_last_lr()
        )

    def state_dict(self):
        if self._make is None:
            return {name: value for name, value in vars(self).items() if name != "optimizer"}
        # The library's states hold floats alone.
        return {name: int(x) if name in _COUNTS else x for name, x in self._schedule.state_dict().items()}

    def load_state_dict(self, state_dict):
        if self._make is None:
            vars(self).update(state_dict)
        else:
            self._schedule.load_state_dict(state_dict)


_LRScheduler = LRScheduler


class LambdaLR(LRScheduler):
    """The rate times a function of the step; a list has one function for each group."""

    _make = staticmethod(_volta._lambda_lr)

    def __init__(self, optimizer, lr_lambda, last_epoch=-1):
        self.lr_lambdas = list(lr_lambda) if isinstance(lr_lambda, (list, tuple)) else [lr_lambda]
        for function in self.lr_lambdas:
            if not callable(function):
                raise TypeError(
                    f"{type(self).__name__}: a function of the step is wanted, not {type(function).__name__}"
                )
        called = [_called(weakref.ref(self), i) for i in range(len(self.lr_lambdas))]
        super().__init__(optimizer, called, last_epoch=last_epoch)


def _called(schedule, number):
    """What the library calls: it holds no function itself, as that often refers to what owns the schedule."""
    return lambda step: schedule().lr_lambdas[number](step)


class MultiplicativeLR(LambdaLR):
    """The rate times the product of a function of the steps so far, from the first on."""

    def __init__(self, optimizer, lr_lambda, last_epoch=-1):
        several = list(lr_lambda) if isinstance(lr_lambda, (list, tuple)) else [lr_lambda]
        super().__init__(optimizer, [_product(f) for f in several], last_epoch)


def _product(function):
    products = [1.0]

    def product(step):
        while len(products) <= step:
            products.append(products[-1] * float(function(len(products))))
        return products[step]

    return product


class WarmupLR(LRScheduler):
    """From a fraction of the rate up to it in a line, then as the schedule `then` says, where one is given."""

    _make = staticmethod(_volta._warmup_lr)

    def __init__(self, optimizer, steps=1000, start_factor=0.0, then=None, last_epoch=-1):
        if then is not None and then.optimizer is not optimizer:
            raise ValueError("WarmupLR: all schedules must be of one optimizer")
        self.then = then  # the library refers to it
        inner = None if then is None else then._schedule
        super().__init__(optimizer, steps, start_factor, inner, last_epoch=last_epoch)


class _Combined(LRScheduler):
    def __init__(self, optimizer, schedulers, *args):
        self.schedulers = list(schedulers)
        if any(s.optimizer is not optimizer for s in self.schedulers):
            raise ValueError(f"{type(self).__name__}: all schedules must be of one optimizer")
        super().__init__(optimizer, [s._schedule for s in self.schedulers], *args)


class SequentialLR(_Combined):
    """One schedule after another, each beginning anew at its milestone."""

    _make = staticmethod(_volta._sequential_lr)

    def __init__(self, optimizer, schedulers, milestones, last_epoch=-1):
        super().__init__(optimizer, schedulers, list(milestones))


class ChainedScheduler(_Combined):
    """Schedules multiplied."""

    _make = staticmethod(_volta._chained_lr)

    def __init__(self, schedulers, optimizer=None):
        schedulers = list(schedulers)
        if not schedulers:
            raise ValueError("ChainedScheduler: needs a schedule")
        super().__init__(optimizer or schedulers[0].optimizer, schedulers)


def _define():
    for name, make in _MAKERS.items():
        if "optimizer" in make.__text_signature__.split(",")[0] and name not in globals():
            members = {"__module__": __name__, "__doc__": make.__doc__, "_make": staticmethod(make)}
            globals()[name] = type(name, (LRScheduler,), members)


_define()
__all__ = [
    name for name, value in globals().items() if isinstance(value, type) and name[0] != "_" and name != "Optimizer"
]
