from volta import Tensor

class Parameter(Tensor):
    def __init__(self, data: Tensor | None = None, requires_grad: bool = True) -> None: ...

class Buffer(Tensor):
    persistent: bool
    def __init__(self, data: Tensor, *, persistent: bool = True) -> None: ...
