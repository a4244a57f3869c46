"""Module: the base class of layers and models."""

from collections import OrderedDict
from collections.abc import Mapping

from .. import _volta
from .._grad_mode import no_grad
from .._tensor import Handle
from .._volta import Tensor
from ._module_hooks import Hooks, called_with_hooks
from .parameter import Buffer, Parameter

_PARTS = ("_parameters", "_buffers", "_modules")
_NOUNS = dict(zip(_PARTS, ("parameter", "buffer", "module")))
_EXTRA = "_extra_state"


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
        object.__setattr__(self, "_hooks", None)
        object.__setattr__(self, "training", True)

    # Attributes

    def __setattr__(self, name, value):
        if not isinstance(value, (Tensor, Module)) and value is not None:
            for part in _PARTS:
                known = self.__dict__.get(part)
                if known and name in known:
                    raise TypeError(f"'{name}' is a {_NOUNS[part]}: it cannot become a {type(value).__name__}")
            return object.__setattr__(self, name, value)
        if "_parameters" not in self.__dict__:
            if isinstance(value, (Parameter, Buffer, Module)):
                raise AttributeError("call super().__init__() before assigning parameters, buffers and modules")
            return object.__setattr__(self, name, value)
        if isinstance(value, Parameter):
            self._put("_parameters", name, value)
        elif isinstance(value, Module):
            self._put("_modules", name, value)
        elif isinstance(value, Buffer):
            self._put("_buffers", name, value)
            (self._not_saved.discard if value.persistent else self._not_saved.add)(name)
        else:
            for part in _PARTS:
                if name in self.__dict__[part]:
                    if isinstance(value, Tensor) and part != "_buffers":
                        raise TypeError(f"'{name}' is a {_NOUNS[part]}: assign a {_NOUNS[part]} to it, or None")
                    self.__dict__[part][name] = value
                    return
            object.__setattr__(self, name, value)

    def _put(self, part, name, value):
        self.__dict__.pop(name, None)
        for other in _PARTS:
            if other != part:
                self.__dict__[other].pop(name, None)
        if part != "_buffers":
            self._not_saved.discard(name)
        self.__dict__[part][name] = value
        self._offer(name)

    def _offer(self, name):
        """Lets the class find the part: Python then need not fail first, to come to `__getattr__`."""
        kind = type(self)
        if kind.__getattr__ is Module.__getattr__ and not any(name in base.__dict__ for base in kind.__mro__):
            if name.isidentifier():
                type.__setattr__(kind, name, _volta._Part(name))

    def _register(self, part, name, value, kind):
        noun = _NOUNS[part]
        if part not in self.__dict__:
            raise AttributeError(f"call super().__init__() before a {noun} is registered")
        if not isinstance(name, str):
            raise TypeError(f"the name of a {noun} is a str, not {type(name).__name__}")
        if "." in name or not name:
            raise KeyError(f"the name of a {noun} is not empty and has no dot: {name!r}")
        if name not in self.__dict__[part] and hasattr(self, name):
            raise KeyError(f"there is an attribute '{name}' already")
        if value is not None and not isinstance(value, kind):
            raise TypeError(f"'{name}' must be a {kind.__name__} or None, not {type(value).__name__}")
        self._put(part, name, value)

    def __getattr__(self, name):
        for part in _PARTS:
            known = self.__dict__.get(part)
            if known is not None and name in known:
                return known[name]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __delattr__(self, name):
        for part in _PARTS:
            if name in self.__dict__[part]:
                del self.__dict__[part][name]
                self._not_saved.discard(name)
                return
        object.__delattr__(self, name)

    def __dir__(self):
        return sorted({*super().__dir__(), *self._parameters, *self._buffers, *self._modules})

    def register_parameter(self, name, param):
        """A parameter under a name, or None for one that is left out."""
        self._register("_parameters", name, param, Parameter)

    def register_buffer(self, name, tensor, persistent=True):
        """State that is not learned; one that is not persistent is not saved."""
        self._register("_buffers", name, tensor, Tensor)
        (self._not_saved.discard if persistent else self._not_saved.add)(name)

    def register_module(self, name, module):
        """A module under a name."""
        self._register("_modules", name, module, Module)

    add_module = register_module

    # Calls

    def forward(self, *args, **kwargs):
        raise NotImplementedError(f"{type(self).__name__} has no forward")

    def __call__(self, *args, **kwargs):
        if self._hooks is None:
            return self.forward(*args, **kwargs)
        return called_with_hooks(self, args, kwargs)

    def _add_hook(self, kind, hook, prepend=False, **settings):
        if self._hooks is None:
            object.__setattr__(self, "_hooks", Hooks())
        return Handle(self._hooks.add(kind, hook, prepend, **settings))

    def register_forward_hook(self, hook, *, prepend=False, with_kwargs=False, always_call=False):
        """Runs hook(module, args, result) after each call; what it returns replaces the result. With `with_kwargs` it is
        hook(module, args, kwargs, result); `always_call` runs it, with None, also after an exception."""
        return self._add_hook("forward", hook, prepend, with_kwargs=with_kwargs, always_call=always_call)

    def register_forward_pre_hook(self, hook, *, prepend=False, with_kwargs=False):
        """Runs hook(module, args) before each call; what it returns replaces the arguments. With `with_kwargs` it is
        hook(module, args, kwargs) and returns both or None."""
        return self._add_hook("forward_pre", hook, prepend, with_kwargs=with_kwargs)

    def register_full_backward_hook(self, hook, prepend=False):
        """Runs hook(module, grad_input, grad_output) when the gradients of the inputs are known; a tuple that it returns
        replaces them."""
        return self._add_hook("backward", hook, prepend)

    def register_full_backward_pre_hook(self, hook, prepend=False):
        """Runs hook(module, grad_output) before the gradients of the inputs are computed; a tuple replaces them."""
        return self._add_hook("backward_pre", hook, prepend)

    # What it consists of

    def named_modules(self, memo=None, prefix="", remove_duplicate=True):
        """The module itself, called "", and all inside, each once."""
        memo = set() if memo is None else memo
        if id(self) in memo:
            return
        if remove_duplicate:
            memo.add(id(self))
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None:
                yield from module.named_modules(memo, f"{prefix}.{name}" if prefix else name, remove_duplicate)

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
        modules = self.named_modules(prefix=prefix, remove_duplicate=once) if recurse else [(prefix, self)]
        for path, module in modules:
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
        """The module of a path such as "layers.0.fc"."""
        module = self
        for name in target.split(".") if target else []:
            module = _found(module, "_modules", name)
        return module

    def set_submodule(self, target, module):
        """Puts a module in the place of the one at a path."""
        path, _, name = target.rpartition(".")
        parent = self.get_submodule(path)
        _found(parent, "_modules", name)
        parent._register("_modules", name, module, Module)

    def get_parameter(self, target):
        path, _, name = target.rpartition(".")
        return _found(self.get_submodule(path), "_parameters", name)

    def get_buffer(self, target):
        path, _, name = target.rpartition(".")
        return _found(self.get_submodule(path), "_buffers", name)

    # State

    def _state(self, prefix=""):
        """Names, modules, and the name of each parameter and persistent buffer in its module."""
        for part in ("_parameters", "_buffers"):
            for name, tensor in self.__dict__[part].items():
                if tensor is not None and name not in self._not_saved:
                    yield prefix + name, self, part, name
        if type(self).get_extra_state is not Module.get_extra_state:
            yield prefix + _EXTRA, self, None, None
        for name, module in self._modules.items():
            if module is not None:
                yield from module._state(f"{prefix}{name}.")

    def get_extra_state(self):
        """What a class of one's own saves beside tensors; it has set_extra_state too."""
        raise NotImplementedError(f"{type(self).__name__} has no extra state")

    def set_extra_state(self, state):
        raise NotImplementedError(f"{type(self).__name__} has no set_extra_state")

    def state_dict(self, *, destination=None, prefix="", keep_vars=False):
        """Parameters and persistent buffers by name; they share the module's memory."""
        state = OrderedDict() if destination is None else destination
        for path, module, part, name in self._state(prefix):
            value = module.get_extra_state() if part is None else module.__dict__[part][name]
            state[path] = value.detach() if isinstance(value, Tensor) and not keep_vars else value
        return state

    def load_state_dict(self, state_dict, strict=True, assign=False):
        """Copies values into the module, or with `assign` takes the tensors themselves.

        Strict: any difference is an error that lists all, and nothing changes.
        """
        if not isinstance(state_dict, Mapping):
            raise TypeError(f"load_state_dict: a state is a dict, not {type(state_dict).__name__}")
        own = {path: (module, part, name) for path, module, part, name in self._state()}
        # Files of before PyTorch 0.4.1, torchvision's among them, have no counts of batches.
        missing = [path for path in own if path not in state_dict and path.rpartition(".")[2] != "num_batches_tracked"]
        unexpected = [path for path in state_dict if path not in own]
        problems = []
        if strict:
            both = (("missing", missing), ("unexpected", unexpected))
            problems += [f"{what}: {', '.join(names)}" for what, names in both if names]
        for path, value in state_dict.items():
            if path in own and own[path][1] is not None:
                problems += _problem(path, own[path][0].__dict__[own[path][1]][own[path][2]], value)
        if problems:
            raise RuntimeError(f"load_state_dict of {type(self).__name__}: " + "; ".join(problems))
        with no_grad():
            for path, (module, part, name) in own.items():
                if path in state_dict:
                    module._take(part, name, state_dict[path], assign)
        return LoadResult(missing, unexpected)

    def _take(self, part, name, value, assign):
        if part is None:
            return self.set_extra_state(value)
        tensor = self.__dict__[part][name]
        if not assign:
            tensor.copy_(value.to(tensor.device))
        elif part == "_parameters" and not isinstance(value, Parameter):
            self.__dict__[part][name] = Parameter(value, tensor.requires_grad)
        else:
            self.__dict__[part][name] = value

    # Changes

    def apply(self, fn):
        """fn(module) for every module inside, then for this one."""
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    def train(self, mode=True):
        """Dropout drops, batch norm learns; with False they do not."""
        if not isinstance(mode, bool):
            raise ValueError(f"train(): the mode is a bool, not {type(mode).__name__}")
        object.__setattr__(self, "training", mode)
        for module in self.children():
            module.train(mode)
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

    def to(self, *args, dtype=None, device=None, non_blocking=False):
        """Moves to a device, converts floating parameters and buffers to a dtype, or both; optimizers stay valid."""
        for given in args:
            if isinstance(given, _volta.dtype):
                dtype = given
            elif isinstance(given, Tensor):
                dtype, device = given.dtype, given.device
            elif not isinstance(given, bool):  # one is non_blocking
                device = given
        if dtype is not None and not dtype.is_floating_point:
            raise TypeError(f"to(): a module takes floating dtypes, not {dtype}")

        def change(x):
            x = x if dtype is None or not x.is_floating_point() else x.to(dtype)
            return x if device is None else x.to(device)

        return self._convert(change)

    def type(self, dst_type):
        """Converts all parameters and buffers, also those of integers."""
        return self._convert(lambda x: x.to(dst_type))

    def to_empty(self, *, device, recurse=True):
        """Moves to a device without the values."""
        return self._convert(lambda x: _volta.empty_like(x).to(device))

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
        extra = self.extra_repr()
        lines = extra.split("\n") if extra else []
        children = [f"({name}): " + repr(module).replace("\n", "\n  ") for name, module in self._modules.items()]
        if not children and len(lines) < 2:
            return f"{self._get_name()}({extra})"
        return f"{self._get_name()}(\n  " + "\n  ".join(lines + children) + "\n)"

    def __getstate__(self):
        return self.__dict__

    def __setstate__(self, state):
        self.__dict__.update(state)


def _found(module, part, name):
    if name in module.__dict__[part]:
        return module.__dict__[part][name]
    raise AttributeError(f"'{name}' is no {_NOUNS[part]} of {type(module).__name__}")


def _problem(path, own, value):
    """What keeps a value from being loaded, as a list of none or one text."""
    if not isinstance(value, Tensor):
        return [f"{path}: a Tensor is wanted, not {type(value).__name__}"]
    if own.shape != value.shape:
        return [f"{path}: shape {tuple(own.shape)} here, {tuple(value.shape)} in the state"]
    return []


class LoadResult(tuple):
    """Names only the module has, and names only the state has."""

    def __new__(cls, missing, unexpected):
        return super().__new__(cls, (missing, unexpected))

    missing_keys = property(lambda self: self[0])
    unexpected_keys = property(lambda self: self[1])

    def __repr__(self):
        if not self[0] and not self[1]:
            return "<All keys matched successfully>"
        return f"LoadResult(missing_keys={self[0]}, unexpected_keys={self[1]})"
