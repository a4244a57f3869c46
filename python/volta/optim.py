"""Optimizers and learning-rate schedules of the library, with PyTorch's names and settings."""

import sys
from collections.abc import MutableMapping
from types import ModuleType

from . import _volta
from ._grad_mode import enable_grad
from ._volta import Tensor

_MAKERS = _volta._modules["volta.optim"]


class ParamGroup(MutableMapping):
    """Parameters that share settings: group["lr"] = 0.1 takes effect with the next step."""

    def __init__(self, optimizer, number, params):
        self._optimizer, self._number, self.params = optimizer, number, params

    def __getitem__(self, name):
        return self.params if name == "params" else self._optimizer.settings(self._number)[name]

    def __setitem__(self, name, value):
        if name == "params":
            raise TypeError("the parameters of a group stay; add_param_group adds others")
        self._optimizer.change(self._number, name, value)

    def __delitem__(self, name):
        raise TypeError("settings of a group cannot be deleted")

    def __iter__(self):
        yield "params"
        yield from self._optimizer.settings(self._number)

    def __len__(self):
        return 1 + len(self._optimizer.settings(self._number))

    def __repr__(self):
        return repr(dict(self))


def _group(given):
    params = given["params"]
    return {**given, "params": [params] if isinstance(params, Tensor) else list(params)}


class Optimizer:
    """What all optimizers share."""

    def __init__(self, params, *args, **kwargs):
        if isinstance(params, Tensor):
            raise TypeError("an optimizer takes a list of Tensors or of dicts, not one Tensor")
        given = list(params)
        if not given:
            raise ValueError("an optimizer needs at least one parameter")
        groups = [_group(g) for g in given] if isinstance(given[0], dict) else [{"params": given}]
        self._optimizer = self._make(groups if isinstance(given[0], dict) else given, *args, **kwargs)
        self.param_groups = []
        for group in groups:
            self._add(group["params"])

    def _add(self, params):
        self.param_groups.append(ParamGroup(self._optimizer, len(self.param_groups), params))

    def step(self, closure=None):
        """Changes the parameters by their gradients; a closure computes the loss and its gradients first."""
        if closure is None:
            return self._optimizer.step()
        with enable_grad():
            return self._optimizer.step_with(closure)

    def zero_grad(self, set_to_none=True):
        """Forgets the gradients, or fills them with 0."""
        self._optimizer.zero_grad(set_to_none)

    def add_param_group(self, param_group):
        """Further parameters, with settings of their own."""
        group = _group(param_group)
        self._optimizer.add_param_group(group)
        self._add(group["params"])

    def state_dict(self):
        """What is needed to go on: what is remembered of each parameter by number, and the groups' settings."""
        return self._optimizer.state_dict()

    def load_state_dict(self, state_dict):
        self._optimizer.load_state_dict(state_dict)

    def __repr__(self):
        groups = "\n".join(f"  { ({k: v for k, v in g.items() if k != 'params'}) }" for g in self.param_groups)
        return f"{type(self).__name__} (\n{groups}\n)"


class LRScheduler:
    """What all schedules share."""

    def __init__(self, optimizer, *args, **kwargs):
        self.optimizer = optimizer
        self._schedule = self._make(optimizer._optimizer, *args, **kwargs)

    def step(self, *metrics):
        """Once after each epoch or step, after the optimizer's; ReduceLROnPlateau takes the measure."""
        self._schedule.step(*(float(m) for m in metrics))

    @property
    def last_epoch(self):
        return self._schedule.last_epoch

    def get_last_lr(self):
        return self._schedule.get_last_lr()

    def state_dict(self):
        return self._schedule.state_dict()

    def load_state_dict(self, state_dict):
        self._schedule.load_state_dict(state_dict)


class LambdaLR(LRScheduler):
    """The rate times a function of the step; a list has one function for each group."""

    _make = staticmethod(_volta._lambda_lr)

    def __init__(self, optimizer, lr_lambda):
        super().__init__(optimizer, list(lr_lambda) if isinstance(lr_lambda, (list, tuple)) else [lr_lambda])


class _Combined(LRScheduler):
    def __init__(self, optimizer, schedulers, *args):
        self.schedulers = list(schedulers)
        if any(s.optimizer is not optimizer for s in self.schedulers):
            raise ValueError(f"{type(self).__name__}: all schedules must be of one optimizer")
        super().__init__(optimizer, [s._schedule for s in self.schedulers], *args)


class SequentialLR(_Combined):
    """One schedule after another, each beginning anew at its milestone."""

    _make = staticmethod(_volta._sequential_lr)

    def __init__(self, optimizer, schedulers, milestones):
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
    schedules = {c.__name__: c for c in (LRScheduler, LambdaLR, SequentialLR, ChainedScheduler)}
    for name, make in _MAKERS.items():
        base = LRScheduler if "optimizer" in make.__text_signature__.split(",")[0] else Optimizer
        members = {"__module__": __name__, "__doc__": make.__doc__, "_make": staticmethod(make)}
        globals()[name] = type(name, (base,), members)
        if base is LRScheduler:
            schedules[name] = globals()[name]
    return schedules


# A module without a file, so that `from volta.optim.lr_scheduler import StepLR` finds it.
lr_scheduler = sys.modules[f"{__name__}.lr_scheduler"] = ModuleType(f"{__name__}.lr_scheduler", "Schedules.")
vars(lr_scheduler).update(_define())
