"""What optimizers share, and the base of those written in Python."""

import ast
import re
from collections import defaultdict
from collections.abc import MutableMapping

from .. import _volta
from .._grad_mode import enable_grad
from .._volta import Tensor

_MAKERS = _volta._modules["volta.optim"]


# Settings of PyTorch's implementations, which are taken and change nothing here.
_HINTS = ("foreach", "fused", "capturable", "differentiable")
_OF_GROUPS = ("lr", "weight_decay", "momentum", "eps", "betas", "initial_lr")  # what the library has in each group


class ParamGroup(MutableMapping):
    """Parameters that share settings: group["lr"] = 0.1 takes effect with the next step."""

    def __init__(self, optimizer, number, params, own):
        self._optimizer, self._number, self.params = optimizer, number, params
        self._own = own  # what the library does not know: names, and the settings of an optimizer written in Python

    def _settings(self):
        return self._optimizer._optimizer.settings(self._number)

    def __getitem__(self, name):
        if name == "params":
            return self.params
        if name in self._own:
            return self._own[name]
        if name in _OF_GROUPS:
            value = self._settings()[name]
            if name != "initial_lr" or value is not None:
                return value
            raise KeyError(name)
        return self._optimizer.defaults[name]

    def __setitem__(self, name, value):
        if name == "params":
            raise TypeError("the parameters of a group stay; add_param_group adds others")
        if name in _OF_GROUPS and name not in self._own:
            self._optimizer._optimizer.change(self._number, name, float(value) if name == "lr" else value)
        elif name in self._optimizer.defaults and not self._optimizer._in_python:
            raise KeyError(f"'{name}' belongs to the whole optimizer and is given when that is made")
        else:
            self._own[name] = value

    def __delitem__(self, name):
        del self._own[name]

    def __iter__(self):
        names = ["params", *self._optimizer.defaults, *self._own]
        if self._settings()["initial_lr"] is not None:
            names.append("initial_lr")
        return iter(dict.fromkeys(names))

    def __len__(self):
        return len(list(iter(self)))

    def setdefault(self, name, default=None):
        if name not in self:
            self[name] = default
        return self[name]

    def __repr__(self):
        return repr(dict(self))


def _listed(params):
    given = [params] if isinstance(params, Tensor) else list(params)
    # named_parameters() gives pairs.
    given = [p[1] if isinstance(p, tuple) and len(p) == 2 and isinstance(p[0], str) else p for p in given]
    for p in given:
        if not isinstance(p, Tensor):
            raise TypeError(f"an optimizer changes Tensors, not {type(p).__name__}")
    return given


def _group(given):
    if not isinstance(given, (dict, ParamGroup)):
        raise TypeError(f"a group of parameters is a dict, not {type(given).__name__}")
    if "params" not in given:
        raise ValueError("a group of parameters has an entry 'params'")
    return {**given, "params": _listed(given["params"])}


def _defaults(make, args, kwargs):
    """The settings that an optimizer of the library is made with, by name."""
    names = [part.partition("=") for part in re.split(r", (?![^(]*\))", make.__text_signature__[1:-1])]
    found = {name: ast.literal_eval(value) for name, _, value in names if name != "params" and value}
    found.update(zip((name for name, *_ in names if name != "params"), args))
    return {**found, **kwargs}


class Optimizer:
    """What all optimizers share, and the base of those written in Python.

    class Plain(optim.Optimizer):
        def __init__(self, params, lr=0.1):
            super().__init__(params, {"lr": lr})

        @volta.no_grad()
        def step(self):
            for group in self.param_groups:
                for p in group["params"]:
                    if p.grad is not None:
                        p.sub_(group["lr"] * p.grad)
    """

    _make = None
    _in_python = property(lambda self: type(self)._make is None)

    def __init__(self, params, *args, **kwargs):
        if isinstance(params, Tensor):
            raise TypeError("an optimizer takes a list of Tensors or of dicts, not one Tensor")
        given = list(params)
        if not given:
            raise ValueError("an optimizer needs at least one parameter")
        groups = [_group(g) for g in given] if isinstance(given[0], dict) else [{"params": _listed(given)}]
        self.param_groups = []
        if self._in_python:
            self.defaults = dict(kwargs.pop("defaults", args[0] if args else {}))
            # The library's groups hold the rates, so that schedules of the library change them.
            self._optimizer = _MAKERS["SGD"]([self._known(g) for g in groups], lr=float(self.defaults.get("lr", 0.0)))
            self.state = defaultdict(dict)
        else:
            kwargs = {name: value for name, value in kwargs.items() if name not in _HINTS}
            self._optimizer = self._make([self._known(g) for g in groups], *args, **kwargs)
            self.defaults = _defaults(self._make, args, kwargs)
        for group in groups:
            self._add(group)

    def _known(self, group):
        """The part of a group that the library takes; others are errors unless they are ours."""
        kept = ("params", "lr", "weight_decay", "momentum", "eps", "betas")
        if self._in_python:
            return {"params": group["params"], **{k: float(v) for k, v in group.items() if k == "lr"}}
        ignored = ("name", "initial_lr", *_HINTS)
        return {k: v for k, v in group.items() if k not in ignored or k in kept}

    def _add(self, group):
        own = {"name": group["name"]} if "name" in group else {}
        if self._in_python:
            own = {k: v for k, v in {**self.defaults, **group}.items() if k not in ("params", "lr", "initial_lr")}
        self.param_groups.append(ParamGroup(self, len(self.param_groups), group["params"], own))
        if "initial_lr" in group:
            self.param_groups[-1]["initial_lr"] = group["initial_lr"]

    def step(self, closure=None):
        """Changes the parameters by their gradients; a closure computes the loss and its gradients first."""
        if self._in_python:
            raise NotImplementedError(f"{type(self).__name__} has no step")
        if closure is None:
            return self._optimizer.step()
        returned = []

        def loss():
            value = closure()
            returned.append(value)
            if isinstance(value, Tensor):
                return value
            if value is None and self._make is _MAKERS["LBFGS"]:
                raise TypeError("step(): the closure is to return the loss")
            return _volta.tensor(0.0 if value is None else float(value))

        with enable_grad():
            self._optimizer.step_with(loss)
        return returned[0]  # LBFGS calls it several times

    def zero_grad(self, set_to_none=True):
        """Forgets the gradients, or fills them with 0."""
        self._optimizer.zero_grad(set_to_none)

    def add_param_group(self, param_group):
        """Further parameters, with settings of their own."""
        group = _group(param_group)
        self._optimizer.add_param_group(self._known(group))
        self._add(group)

    def _parameters(self):
        return [p for group in self.param_groups for p in group.params]

    def __getattr__(self, name):
        if name != "state" or "_optimizer" not in self.__dict__:
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")
        # Of an optimizer of the library: what it remembers of each parameter, to look at.
        saved = self._optimizer.state_dict()["state"]
        return {p: saved.get(number, {}) for number, p in enumerate(self._parameters())}

    def state_dict(self):
        """What is needed to go on: what is remembered of each parameter by number, and the groups' settings."""
        if not self._in_python:
            return self._optimizer.state_dict()
        numbers = {id(p): i for i, p in enumerate(self._parameters())}
        groups = [{**dict(g), "params": [numbers[id(p)] for p in g.params]} for g in self.param_groups]
        return {"state": {numbers[id(p)]: dict(s) for p, s in self.state.items()}, "param_groups": groups}

    def load_state_dict(self, state_dict):
        """Goes on from a state, also one of PyTorch's."""
        if not self._in_python:
            # PyTorch's states have entries that say nothing, such as foreach=None.
            groups = [{k: v for k, v in g.items() if v is not None} for g in state_dict["param_groups"]]
            names = [g.pop("name", None) for g in groups]
            self._optimizer.load_state_dict({"state": dict(state_dict["state"]), "param_groups": groups})
            for group, name in zip(self.param_groups, names):
                group._own.update({} if name is None else {"name": name})
            return
        if [len(g["params"]) for g in state_dict["param_groups"]] != [len(g.params) for g in self.param_groups]:
            raise ValueError("load_state_dict: the state has groups of other sizes")
        for group, saved in zip(self.param_groups, state_dict["param_groups"]):
            for name, value in saved.items():
                if name != "params":
                    group[name] = value
        parameters = self._parameters()
        self.state = defaultdict(dict)
        for number, slots in state_dict["state"].items():
            self.state[parameters[number]] = {
                k: x.to(parameters[number].device).clone() if isinstance(x, Tensor) else x for k, x in slots.items()
            }

    def __repr__(self):
        lines = [f"{type(self).__name__} ("]
        for number, group in enumerate(self.param_groups):
            lines.append(f"Parameter Group {number}")
            lines += [f"    {name}: {group[name]}" for name in sorted(group) if name != "params"]
        return "\n".join([*lines, ")"])
