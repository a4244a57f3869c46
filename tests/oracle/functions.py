"""The oracle's other ops: every name of src/ops/functions.h, by group."""

import torch

import composed
import indexing
import linear
import movement
import reductions
from make import FLOATS, WIDE_UNSIGNED, Expanded, evaluate, wide_unsigned
from values import ordinary, with_limits

# Sums and products of integers are i64 as in PyTorch, but u64 keeps its own.
U64_KEEPS = {"sum", "prod", "nansum", "cumsum", "cumprod", "trace"}


class Of:
    """An operand of the dtype in question: a shape filled with ordinary numbers, or a function that makes it."""

    def __init__(self, *shape, low=-2.0, high=2.0, whole=(-5, 9), make=None, limits=True, base=None):
        self.shape, self.low, self.high, self.whole = shape, low, high, whole
        self.make, self.limits, self.base = make, limits, base

    def build(self, dtype, seed, mode):
        if self.make:
            return self.make(dtype, seed)
        x = ordinary(dtype, self.base or self.shape, seed, self.low, self.high, self.whole)
        if self.limits and mode in ("bits", "order"):
            x = with_limits(x, dtype)
        return Expanded(x, self.shape) if self.base else x


class Functions:
    """Collects the calls of one group and writes what PyTorch says of each, dtype by dtype."""

    def __init__(self, writer):
        self.writer, self.count = writer, {}

    def call(self, op, f, operands, args=None, dtypes=FLOATS, mode="wide", gradients=True, label=None, exact=True):
        n = self.count[op] = self.count.get(op, 0) + 1
        for dtype in dtypes:
            given = [x.build(dtype, 100 + i, mode) if isinstance(x, Of) else x for i, x in enumerate(operands)]
            name = label or f"{n}"
            try:
                found = self.evaluate(op, f, given, dtype, mode, gradients)
            except (RuntimeError, TypeError, NotImplementedError, IndexError) as e:
                self.writer.skip(op, dtype, f"{name}: {str(e).splitlines()[0][:90]}")
                continue
            if not exact:  # what it gives depends on the dtype, and f64 says nothing about it
                found = (found[0], None, *found[2:4], None)
            self.writer.case(op, dtype, name, args or {}, given, *found)

    def evaluate(self, op, f, given, dtype, mode, gradients):
        if dtype in FLOATS:
            return evaluate(f, given, gradients, dtype)
        if dtype not in WIDE_UNSIGNED:
            return evaluate(f, given, False, dtype)
        values = wide_unsigned(f, given, dtype, "wide" if op in U64_KEEPS and dtype != "u64" else mode)
        if dtype == "u64" and op in U64_KEEPS:
            values = [y.view(torch.uint64) for y in values]
        return values, None, None, None, None


def write(writer):
    group = Functions(writer)
    for part in (reductions, linear, movement, indexing, composed):
        part.calls(group)
