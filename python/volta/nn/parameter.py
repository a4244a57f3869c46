"""Parameter and Buffer: tensors that belong to a module."""

from .._volta import Tensor, empty


class Parameter(Tensor):
    """A tensor that is learned; a module that it is assigned to finds it among its parameters."""

    def __init__(self, data=None, requires_grad=True):
        if data is not None and not isinstance(data, Tensor):
            raise TypeError(f"{type(self).__name__}: a Tensor is wanted, not {type(data).__name__}")
        super().__init__((empty(0) if data is None else data).detach())
        if requires_grad:
            self.requires_grad_()

    def __repr__(self):
        return "Parameter containing:\n" + super().__repr__()

    def __deepcopy__(self, memo):
        copy = type(self)(self.detach().clone(), self.requires_grad)
        memo[id(self)] = copy
        return copy

    def __reduce__(self):
        return type(self), (self.detach(), self.requires_grad)


class Buffer(Tensor):
    """A tensor that is state but not learned."""

    def __init__(self, data, *, persistent=True):
        super().__init__(data)
        self.persistent = persistent

    def __reduce__(self):
        return _buffer, (self.detach(), self.persistent)


def _buffer(data, persistent):
    return Buffer(data, persistent=persistent)
