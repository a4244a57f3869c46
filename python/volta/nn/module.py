"""Module: the base class of layers and models, and those that hold others."""

import copy
from collections import OrderedDict
from collections.abc import Iterable, Mapping, MutableMapping, MutableSequence

from .. import _volta
from .._grad_mode import no_grad
from .._tensor import Handle
from .._volta import Tensor
from .parameter import Buffer, Parameter

_PARTS = ("_parameters", "_buffers", "_modules")


class Module:
    """A model or a part of one: its attributes that are parameters, buffers and modules are its state.

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(4, 2)

        def forward(self, x):
            return self.fc(x).relu()
    """

    training: bool

    def __init__(self):
        for part in _PARTS:
            object.__setattr__(self, part, {})
        object.__setattr__(self, "_not_saved", set())
        object.__setattr__(self, "_forward_hooks", {})
        object.__setattr__(self, "_forward_pre_hooks", {})
        object.__setattr__(self, "training", True)

    # Attributes

    def __setattr__(self, name, value):
        if not isinstance(value, (Tensor, Module)) and value is not None:
            for part in _PARTS:
                known = self.__dict__.get(part)
                if known and name in known:
                    raise TypeError(f"'{name}' is a {part[1:-1]}: it cannot become a {type(value).__name__}")
            return object.__setattr__(self, name, value)
        if "_parameters" not in self.__dict__:
            if isinstance(value, (Parameter, Buffer, Module)):
                raise AttributeError("call super().__init__() before assigning parameters and modules")
            return object.__setattr__(self, name, value)
        if isinstance(value, Parameter):
            self._put("_parameters", name, value)
        elif isinstance(value, Module):
            self._put("_modules", name, value)
        elif isinstance(value, Buffer):
            self.register_buffer(name, value, value.persistent)
        else:
            for part in _PARTS:
                if name in self.__dict__[part]:
                    if isinstance(value, Tensor) and part != "_buffers":
                        raise TypeError(f"'{name}' is a {part[1:-1]}: assign a {part[1:-1]} to it, or None")
                    self.__dict__[part][name] = value
                    return
            object.__setattr__(self, name, value)

    def _put(self, part, name, value):
        self.__dict__.pop(name, None)
        for other in _PARTS:
            if other != part:
                self.__dict__[other].pop(name, None)
        self.__dict__[part][name] = value

    def __getattr__(self, name):
        for part in _PARTS:
            known = self.__dict__.get(part)
            if known is not None and name in known:
                return known[name]
        raise AttributeError(f"'{type(self).__name__}' has no attribute '{name}'")

    def __delattr__(self, name):
        for part in _PARTS:
            if name in self.__dict__[part]:
                del self.__dict__[part][name]
                return
        object.__delattr__(self, name)

    def __dir__(self):
        return sorted({*super().__dir__(), *self._parameters, *self._buffers, *self._modules})

    def register_parameter(self, name, param):
        """A parameter under a name, or None for one that is left out."""
        self._put("_parameters", name, param)

    def register_buffer(self, name, tensor, persistent=True):
        """State that is not learned; one that is not persistent is not saved."""
        self._put("_buffers", name, tensor)
        (self._not_saved.discard if persistent else self._not_saved.add)(name)

    def register_module(self, name, module):
        """A module under a name."""
        self._put("_modules", name, module)

    add_module = register_module

    # Calls

    def forward(self, *args, **kwargs):
        raise NotImplementedError(f"{type(self).__name__} has no forward")

    def __call__(self, *args, **kwargs):
        if not self._forward_hooks and not self._forward_pre_hooks:
            return self.forward(*args, **kwargs)
        for hook in list(self._forward_pre_hooks.values()):
            changed = hook(self, args)
            if changed is not None:
                args = changed if isinstance(changed, tuple) else (changed,)
        result = self.forward(*args, **kwargs)
        for hook in list(self._forward_hooks.values()):
            changed = hook(self, args, result)
            result = result if changed is None else changed
        return result

    def register_forward_hook(self, hook):
        """Runs hook(module, args, result) after each call; what it returns replaces the result."""
        return _registered(self._forward_hooks, hook)

    def register_forward_pre_hook(self, hook):
        """Runs hook(module, args) before each call; what it returns replaces the arguments."""
        return _registered(self._forward_pre_hooks, hook)

    # What it consists of

    def named_modules(self, memo=None, prefix=""):
        """The module itself, called "", and all inside, each once."""
        memo = set() if memo is None else memo
        if id(self) in memo:
            return
        memo.add(id(self))
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None:
                yield from module.named_modules(memo, f"{prefix}.{name}" if prefix else name)

    def modules(self):
        for _, module in self.named_modules():
            yield module

    def named_children(self):
        seen = set()
        for name, module in self._modules.items():
            if module is not None and id(module) not in seen:
                seen.add(id(module))
                yield name, module

    def children(self):
        for _, module in self.named_children():
            yield module

    def _named(self, part, prefix="", recurse=True, once=True):
        seen = set()
        for path, module in self.named_modules(prefix=prefix) if recurse else [(prefix, self)]:
            for name, tensor in getattr(module, part).items():
                if tensor is None or (once and id(tensor) in seen):
                    continue
                seen.add(id(tensor))
                yield f"{path}.{name}" if path else name, tensor

    def named_parameters(self, prefix="", recurse=True, remove_duplicate=True):
        """Names and parameters, each parameter once."""
        return self._named("_parameters", prefix, recurse, remove_duplicate)

    def parameters(self, recurse=True):
        """The learned tensors, each once."""
        for _, parameter in self.named_parameters(recurse=recurse):
            yield parameter

    def named_buffers(self, prefix="", recurse=True, remove_duplicate=True):
        return self._named("_buffers", prefix, recurse, remove_duplicate)

    def buffers(self, recurse=True):
        for _, buffer in self.named_buffers(recurse=recurse):
            yield buffer

    def get_submodule(self, target):
        module = self
        for name in target.split(".") if target else []:
            module = module._modules[name]
        return module

    def get_parameter(self, target):
        path, _, name = target.rpartition(".")
        return self.get_submodule(path)._parameters[name]

    # State

    def _state(self, prefix=""):
        for name, tensor in self._parameters.items():
            if tensor is not None:
                yield prefix + name, tensor
        for name, tensor in self._buffers.items():
            if tensor is not None and name not in self._not_saved:
                yield prefix + name, tensor
        for name, module in self._modules.items():
            if module is not None:
                yield from module._state(f"{prefix}{name}.")

    def state_dict(self, *, prefix="", keep_vars=False):
        """Parameters and persistent buffers by name; they share the module's memory."""
        return OrderedDict((name, x if keep_vars else x.detach()) for name, x in self._state(prefix))

    def load_state_dict(self, state_dict, strict=True):
        """Copies values into the module. Strict: any difference is an Error that lists all, and nothing changes."""
        own = dict(self._state())
        missing = [name for name in own if name not in state_dict]
        unexpected = [name for name in state_dict if name not in own]
        shapes = [
            f"{name}: {tuple(own[name].shape)} here, {tuple(x.shape)} in the state"
            for name, x in state_dict.items()
            if name in own and own[name].shape != x.shape
        ]
        problems = [
            f"{what}: {', '.join(names)}"
            for what, names in (("missing", missing), ("unexpected", unexpected))
            if names and strict
        ]
        if shapes:
            problems.append("shapes that differ: " + "; ".join(shapes))
        if problems:
            raise RuntimeError(f"load_state_dict of {type(self).__name__}: " + "; ".join(problems))
        with no_grad():
            for name, tensor in own.items():
                if name in state_dict:
                    tensor.copy_(state_dict[name].to(tensor.device))
        return LoadResult(missing, unexpected)

    # Changes

    def apply(self, fn):
        """fn(module) for every module inside, then for this one."""
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    def train(self, mode=True):
        """Dropout drops, batch norm learns; with False they do not."""
        for module in self.modules():
            object.__setattr__(module, "training", bool(mode))
        return self

    def eval(self):
        return self.train(False)

    def requires_grad_(self, requires_grad=True):
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none=True):
        for parameter in self.parameters():
            if set_to_none or parameter.grad is None:
                parameter.grad = None
            else:
                parameter.grad.zero_()

    def _convert(self, change):
        with no_grad():
            for _, tensor in [*self.named_parameters(), *self.named_buffers()]:
                value = change(tensor.detach())
                if value.dtype != tensor.dtype or value.device != tensor.device:
                    _volta._set_data(tensor, value)
        return self

    def to(self, *args, dtype=None, device=None):
        """Moves to a device, converts floating parameters and buffers to a dtype, or both; optimizers stay valid."""
        for given in args:
            if isinstance(given, _volta.dtype):
                dtype = given
            elif isinstance(given, Tensor):
                dtype, device = given.dtype, given.device
            else:
                device = given
        if dtype is not None and not dtype.is_floating_point:
            raise TypeError(f"to(): a module takes floating dtypes, not {dtype}")

        def change(x):
            x = x if dtype is None or not x.is_floating_point() else x.to(dtype)
            return x if device is None else x.to(device)

        return self._convert(change)

    def float(self):
        return self.to(_volta.float32)

    def double(self):
        return self.to(_volta.float64)

    def half(self):
        return self.to(_volta.float16)

    def bfloat16(self):
        return self.to(_volta.bfloat16)

    def cpu(self):
        return self.to("cpu")

    def cuda(self, device=0):
        return self.to(f"cuda:{device}")

    # Texts

    def extra_repr(self):
        """What stands between the brackets of the layer's text."""
        return ""

    def _get_name(self):
        return type(self).__name__

    def __repr__(self):
        lines = [self.extra_repr()] if self.extra_repr() else []
        children = [f"({name}): " + repr(module).replace("\n", "\n  ") for name, module in self._modules.items()]
        if not children:
            return f"{self._get_name()}({', '.join(lines)})"
        return f"{self._get_name()}(\n  " + "\n  ".join(lines + children) + "\n)"

    def __getstate__(self):
        return self.__dict__

    def __setstate__(self, state):
        self.__dict__.update(state)


class LoadResult(tuple):
    """Names only the module has, and names only the state has."""

    def __new__(cls, missing, unexpected):
        return super().__new__(cls, (missing, unexpected))

    missing_keys = property(lambda self: self[0])
    unexpected_keys = property(lambda self: self[1])


def _registered(hooks, hook):
    key = object()
    hooks[key] = hook
    return Handle(lambda: hooks.pop(key, None))


class Sequential(Module):
    """Modules one after the other: Sequential(Linear(4, 8), ReLU(), Linear(8, 2))."""

    def __init__(self, *args):
        super().__init__()
        named = args[0].items() if len(args) == 1 and isinstance(args[0], Mapping) else enumerate(args)
        for name, module in named:
            self.add_module(str(name), module)

    def forward(self, x):
        for module in self._modules.values():
            x = module(x)
        return x

    def __len__(self):
        return len(self._modules)

    def __iter__(self):
        return iter(self._modules.values())

    def __getitem__(self, index):
        if isinstance(index, slice):
            return type(self)(dict(list(self._modules.items())[index]))
        return list(self._modules.values())[index]

    def append(self, module):
        self.add_module(str(len(self)), module)
        return self


class ModuleList(Module, MutableSequence):
    """Modules in a list."""

    def __init__(self, modules=()):
        super().__init__()
        self._renumber(list(modules))

    def _renumber(self, modules):
        self._modules.clear()
        self._modules.update({str(i): module for i, module in enumerate(modules)})

    def __len__(self):
        return len(self._modules)

    def __getitem__(self, index):
        found = list(self._modules.values())[index]
        return type(self)(found) if isinstance(index, slice) else found

    def __setitem__(self, index, module):
        modules = list(self._modules.values())
        modules[index] = module
        self._renumber(modules)

    def __delitem__(self, index):
        modules = list(self._modules.values())
        del modules[index]
        self._renumber(modules)

    def insert(self, index, module):
        modules = list(self._modules.values())
        modules.insert(index, module)
        self._renumber(modules)


class _Entries(Module, MutableMapping):
    _part = "_modules"

    def __init__(self, entries=()):
        super().__init__()
        self.update(dict(entries) if not isinstance(entries, Mapping) else entries)

    def __len__(self):
        return len(getattr(self, self._part))

    def __iter__(self):
        return iter(getattr(self, self._part))

    def __getitem__(self, name):
        return getattr(self, self._part)[name]

    def __setitem__(self, name, value):
        self._put(self._part, name, value)

    def __delitem__(self, name):
        del getattr(self, self._part)[name]

    __hash__ = Module.__hash__


class ModuleDict(_Entries):
    """Modules by name."""


class ParameterDict(_Entries):
    """Parameters by name."""

    _part = "_parameters"


class ParameterList(Module):
    """Parameters in a list."""

    def __init__(self, values: Iterable = ()):
        super().__init__()
        for value in values:
            self.append(value)

    def append(self, value):
        self._parameters[str(len(self))] = value if isinstance(value, Parameter) else Parameter(value)
        return self

    def __len__(self):
        return len(self._parameters)

    def __getitem__(self, index):
        return list(self._parameters.values())[index]

    def __iter__(self):
        return iter(self._parameters.values())


def clones(module, count):
    """So many copies of a module."""
    return ModuleList(copy.deepcopy(module) for _ in range(count))
