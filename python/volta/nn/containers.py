"""Modules that hold others, and lists and dicts of parameters."""

import copy
import operator
from collections.abc import Iterable, Mapping, MutableMapping, MutableSequence

from .._volta import Tensor
from .module import Module
from .parameter import Parameter

__all__ = ["Sequential", "ModuleList", "ModuleDict", "ParameterList", "ParameterDict"]


class _Numbered(Module):
    """Modules in order, which may be changed like a list."""

    def _renumber(self, modules):
        modules = list(modules)
        for module in modules:
            if module is not None and not isinstance(module, Module):
                raise TypeError(f"{type(self).__name__} holds modules, not {type(module).__name__}")
        self._modules.clear()
        self._modules.update({str(i): module for i, module in enumerate(modules)})

    def _key(self, index):
        index = operator.index(index)
        if not -len(self) <= index < len(self):
            raise IndexError(f"index {index} is out of range of {len(self)} modules")
        return list(self._modules)[index]

    def __len__(self):
        return len(self._modules)

    def __iter__(self):
        return iter(self._modules.values())

    def __setitem__(self, index, module):
        if isinstance(index, slice):
            modules = list(self)
            modules[index] = module
            self._renumber(modules)
        else:
            self._register("_modules", self._key(index), module, Module)

    def __delitem__(self, index):
        for key in list(self._modules)[index] if isinstance(index, slice) else [self._key(index)]:
            del self._modules[key]
        if all(key.isdigit() for key in self._modules):
            self._renumber(self)

    def append(self, module):
        """Puts a module at the end; gives the container."""
        self._register("_modules", str(len(self)), module, Module)
        return self

    def extend(self, modules):
        """Puts modules at the end; gives the container."""
        if not isinstance(modules, Iterable):
            raise TypeError(f"extend(): a list of modules is wanted, not {type(modules).__name__}")
        for module in list(modules):
            self.append(module)
        return self

    def insert(self, index, module):
        modules = list(self)
        modules.insert(index, module)
        self._renumber(modules)
        return self

    def pop(self, index=-1):
        """Takes a module out."""
        found = self[index]
        del self[index]
        return found

    def __add__(self, other):
        if not isinstance(other, Iterable):
            return NotImplemented
        return type(self)(*self, *other) if isinstance(self, Sequential) else type(self)([*self, *other])

    def __iadd__(self, other):
        return self.extend(other)


class Sequential(_Numbered):
    """Modules one after the other: Sequential(Linear(4, 8), ReLU(), Linear(8, 2))."""

    def __init__(self, *args):
        super().__init__()
        named = args[0].items() if len(args) == 1 and isinstance(args[0], Mapping) else enumerate(args)
        for name, module in named:
            self.add_module(str(name), module)

    def forward(self, input):
        for module in self._modules.values():
            input = module(input)
        return input

    def __getitem__(self, index):
        if isinstance(index, slice):
            return type(self)(dict(list(self._modules.items())[index]))
        return self._modules[self._key(index)]

    def __mul__(self, count):
        if count < 1:
            raise ValueError(f"a Sequential times {count}: at least once is wanted")
        return type(self)(*(module for _ in range(count) for module in self))

    __rmul__ = __mul__


class ModuleList(_Numbered, MutableSequence):
    """Modules in a list."""

    def __init__(self, modules=None):
        super().__init__()
        self._renumber(modules or [])

    def __getitem__(self, index):
        if isinstance(index, slice):
            return type(self)(list(self)[index])
        return self._modules[self._key(index)]

    __hash__ = Module.__hash__

    def __repr__(self):
        """Equal modules in a row are shown once."""
        groups = []
        for name, module in self._modules.items():
            text = repr(module)
            if groups and groups[-1][1] == text:
                groups[-1][2] = name
            else:
                groups.append([name, text, name])
        lines = [
            (f"({a}): " if a == b else f"({a}-{b}): {int(b) - int(a) + 1} x ") + text.replace("\n", "\n  ")
            for a, text, b in groups
        ]
        return f"{type(self).__name__}(" + ("\n  " + "\n  ".join(lines) + "\n)" if lines else ")")


class ModuleDict(Module, MutableMapping):
    """Modules by name."""

    def __init__(self, modules=None):
        super().__init__()
        self.update(modules or {})

    def __len__(self):
        return len(self._modules)

    def __iter__(self):
        return iter(self._modules)

    def __getitem__(self, name):
        return self._modules[name]

    def __setitem__(self, name, module):
        self._register("_modules", name, module, Module)

    def __delitem__(self, name):
        del self._modules[name]

    def _offer(self, name):
        """Names are data here: the class keeps none of them."""

    __hash__ = Module.__hash__
    __eq__ = Module.__eq__


def _kept(value):
    return Parameter(value) if isinstance(value, Tensor) and not isinstance(value, Parameter) else value


def _described(value):
    if isinstance(value, Tensor):
        return f"{type(value).__name__} of {value.dtype.name} {tuple(value.shape)}"
    return f"object of type {type(value).__name__}"


class ParameterDict(Module, MutableMapping):
    """Parameters by name. Tensors become parameters; other values are held too, and are no part of the state."""

    def __init__(self, parameters=None):
        super().__init__()
        self._names = {}
        self.update(parameters or {})

    def _offer(self, name):
        """Names are data here: the class keeps none of them."""

    def __len__(self):
        return len(self._names)

    def __iter__(self):
        return iter(self._names)

    def __getitem__(self, name):
        if name not in self._names:
            raise KeyError(name)
        return getattr(self, name)

    def __setitem__(self, name, value):
        if not isinstance(name, str):
            raise TypeError(f"the name of a parameter is a str, not {type(name).__name__}")
        if name not in self._names and hasattr(self, name):
            raise KeyError(f"there is an attribute '{name}' already")
        self._names[name] = None
        setattr(self, name, _kept(value))

    def __delitem__(self, name):
        if name not in self._names:
            raise KeyError(name)
        del self._names[name]
        delattr(self, name)

    def extra_repr(self):
        return "\n".join(f"({name}): {_described(value)}" for name, value in self.items())

    __hash__ = Module.__hash__
    __eq__ = Module.__eq__


class ParameterList(Module, MutableSequence):
    """Parameters in a list. Tensors become parameters; other values are held too, and are no part of the state."""

    def __init__(self, values=None):
        super().__init__()
        self._size = 0
        self.extend(values or [])

    def _name(self, index):
        index = operator.index(index)
        if not -self._size <= index < self._size:
            raise IndexError(f"index {index} is out of range of {self._size} parameters")
        return str(index % self._size)

    def _assign(self, values):
        for i in range(self._size):
            delattr(self, str(i))
        self._size = 0
        self.extend(values)

    def __len__(self):
        return self._size

    def __iter__(self):
        return (getattr(self, str(i)) for i in range(self._size))

    def __getitem__(self, index):
        if isinstance(index, slice):
            return type(self)(list(self)[index])
        return getattr(self, self._name(index))

    def __setitem__(self, index, value):
        if isinstance(index, slice):
            values = list(self)
            values[index] = value
            self._assign(values)
        else:
            setattr(self, self._name(index), _kept(value))

    def __delitem__(self, index):
        values = list(self)
        del values[index]
        self._assign(values)

    def insert(self, index, value):
        values = list(self)
        values.insert(index, value)
        self._assign(values)

    def append(self, value):
        """Puts a value at the end; gives the list."""
        self._size += 1
        setattr(self, str(self._size - 1), _kept(value))
        return self

    def extend(self, values):
        """Puts values at the end; gives the list."""
        for value in list(values):
            self.append(value)
        return self

    def __iadd__(self, other):
        return self.extend(other)

    def extra_repr(self):
        return "\n".join(f"({i}): {_described(value)}" for i, value in enumerate(self))

    __hash__ = Module.__hash__


def clones(module, count):
    """So many copies of a module."""
    if not isinstance(module, Module):
        raise TypeError(f"a layer is a Module, not {type(module).__name__}")
    return ModuleList(copy.deepcopy(module) for _ in range(count))
