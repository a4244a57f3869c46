"""Size: the number of a tensor's elements, which can be called for its shape."""


class Size(int):
    """`x.size` is the array API's count of elements; `x.size()` and `x.size(dim)` are PyTorch's."""

    def __new__(cls, count, shape):
        self = super().__new__(cls, count)
        self._shape = shape
        return self

    def __call__(self, dim=None):
        return self._shape if dim is None else self._shape[dim]

    def __reduce__(self):
        return int, (int(self),)
