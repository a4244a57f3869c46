#!/usr/bin/env python3
"""Writes the oracle, tests/data/*/NAME.oracle: what PyTorch answers for every op, layer, loss and optimizer, with gradients.

    bench/setup_peer && build/bench/peer/bin/python tests/oracle/make.py [NAME...]        (or: make oracle NAMES="...")

Each op has a file of its own, and its numbers depend on nothing but its own calls: a new op adds a file and changes no
other. With names only their files are written.

A file is an index of lines of words, a line "data", and a heap of little-endian arrays in row-major order, each stored
once; the index refers to the heap by byte offset. "-" stands for nothing and "." for the shape of a 0-d tensor:

    case OP DTYPE LABEL ARGS            one call; ARGS are key=value;key=value (lists as 1,2,3), spaces never occur
    in DTYPE SHAPE AT BASE GRAD EXACT   a tensor operand. With a BASE shape the data has that shape and is expanded
                                        (stride 0) to SHAPE. GRAD is the gradient PyTorch gives by it, EXACT the same computed in f64
    num KIND VALUE                      a number as operand: KIND int, float or bool
    out DTYPE SHAPE AT EXACT COTANGENT  a result, the same computed in f64, and the cotangent it is differentiated with
    skip OP DTYPE REASON…               not in the oracle, and why
    promote OP A B RESULT               the result's dtype of a tensor of A with one of B, or with a number: num_int,
                                        num_float, num_bool

EXACT is given for f32, f16 and bf16 when running the op in f64 and rounding once differs from what PyTorch gives in the
dtype itself: PyTorch's own rounding errors, which are not ours to reproduce.

PyTorch computes little in u16, u32 and u64. There the values come from NumPy, or from PyTorch's signed integers: by the
same bits where an op only moves elements or computes modulo 2^n, in i64 where all values fit, with the top bit flipped
where only the order counts. Ops that give floats take integers as the default float (f32), in PyTorch or by converting first.
"""

import hashlib
import os
import sys

import numpy as np
import torch

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))

NAMES = {
    "f16": torch.float16,
    "bf16": torch.bfloat16,
    "f32": torch.float32,
    "f64": torch.float64,
    "i8": torch.int8,
    "i16": torch.int16,
    "i32": torch.int32,
    "i64": torch.int64,
    "u8": torch.uint8,
    "u16": torch.uint16,
    "u32": torch.uint32,
    "u64": torch.uint64,
    "bool": torch.bool,
}
WORDS = {v: k for k, v in NAMES.items()}
FLOATS = ["f16", "bf16", "f32", "f64"]
SIGNED = ["i8", "i16", "i32", "i64"]
WIDE_UNSIGNED = ["u16", "u32", "u64"]
INTEGERS = SIGNED + ["u8"] + WIDE_UNSIGNED
ALL = FLOATS + INTEGERS + ["bool"]
SAME_WIDTH = {"u16": torch.int16, "u32": torch.int32, "u64": torch.int64}


def bits(x):
    return x.detach().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes() if x.numel() else b""


def shape_word(shape):
    return ",".join(map(str, shape)) if len(shape) else "."


class Num:
    """A number as operand, weak in promotion."""

    def __init__(self, value):
        self.value = value

    def line(self):
        kind = "bool" if isinstance(self.value, bool) else "int" if isinstance(self.value, int) else "float"
        return f"num {kind} {float(self.value).hex() if kind == 'float' else int(self.value)}"


class Expanded:
    """An operand of stride 0: `base` stands in memory."""

    def __init__(self, base, shape):
        self.base, self.shape = base, shape


class Fixed:
    """An operand that keeps its dtype and takes no gradient: an index, a mask."""

    def __init__(self, tensor):
        self.tensor = tensor


class Answers:
    """The file of one op."""

    def __init__(self):
        self.heap, self.where, self.lines, self.cases = bytearray(), {}, [], 0

    def put(self, tensor):
        data = bits(tensor)
        key = hashlib.sha256(data).digest()
        if key not in self.where:
            self.heap += b"\0" * (-len(self.heap) % 8)
            self.where[key] = len(self.heap)
            self.heap += data
        return self.where[key]

    def exact(self, value, reference):
        if reference is None or bits(reference) == bits(value):
            return "-"
        return self.put(reference)

    def operand(self, x, grad, reference):
        if isinstance(x, Num):
            return x.line()
        base = x.base if isinstance(x, Expanded) else x.tensor if isinstance(x, Fixed) else x
        shape = x.shape if isinstance(x, Expanded) else base.shape
        line = f"in {WORDS[base.dtype]} {shape_word(shape)} {self.put(base)} "
        line += shape_word(base.shape) if isinstance(x, Expanded) else "-"
        return line + (" - -" if grad is None else f" {self.put(grad)} {self.exact(grad, reference)}")

    def bytes(self):
        return "\n".join(["volta oracle 2", *self.lines, "data", ""]).encode() + self.heap


class Writer:
    """The files of one folder by name; LAYER/VARIANT stands in the layer's."""

    def __init__(self):
        self.files = {}

    def file(self, op):
        return self.files.setdefault(op.split("/")[0], Answers())

    def skip(self, op, dtype, reason):
        self.file(op).lines.append(f"skip {op} {dtype} {reason}")

    def promote(self, op, a, b, result):
        self.file(op).lines.append(f"promote {op} {a} {b} {result}")

    def case(self, op, dtype, label, args, operands, values, references, cotangents, grads, grad_references):
        """operands: Fixed, Expanded, Num or torch tensors; grads run parallel to them, the other lists to values. Without
        a label the cases of a file are numbered."""
        file = self.file(op)
        words = ";".join(f"{k}={arg_word(v)}" for k, v in args.items()) or "-"
        file.lines.append(f"case {op} {dtype} {file.cases if label is None else label} {words}")
        file.cases += 1
        of = lambda list_, i: list_[i] if list_ else None  # noqa: E731
        for i, x in enumerate(operands):
            file.lines.append(file.operand(x, of(grads, i), of(grad_references, i)))
        for i, y in enumerate(values):
            cotangent = of(cotangents, i)
            file.lines.append(
                f"out {WORDS[y.dtype]} {shape_word(y.shape)} {file.put(y)} {file.exact(y, of(references, i))} "
                f"{'-' if cotangent is None else file.put(cotangent)}"
            )

    def write(self, folder, names):
        """Writes the files named; without names all, and nothing else stays."""
        os.makedirs(folder, exist_ok=True)
        made = {f"{name}.oracle": file.bytes() for name, file in self.files.items() if not names or name in names}
        for stale in set(os.listdir(folder)) - set(made) if not names else ():
            os.remove(os.path.join(folder, stale))
        for name, content in made.items():
            with open(os.path.join(folder, name), "wb") as f:
                f.write(content)
        cases = sum(file.cases for file in self.files.values())
        sizes = [len(content) for content in made.values()] or [0]
        print(f"{os.path.basename(folder)}: {cases} cases; {len(made)} files, {sum(sizes)} bytes, at most {max(sizes)}")


def arg_word(v):
    if isinstance(v, bool):
        return str(int(v))
    return ",".join(map(str, v)) if isinstance(v, (list, tuple)) else str(v)


def dense(x):
    if isinstance(x, Expanded):
        return x.base.expand(x.shape)
    return x.tensor if isinstance(x, Fixed) else x.value if isinstance(x, Num) else x


def as_list(y):
    return list(y) if isinstance(y, (tuple, list)) else [y]


def cotangent_for(y):
    n = y.numel()
    return torch.linspace(0.5, 1.5, n, dtype=torch.float64).reshape(y.shape).to(y.dtype)


def run(f, operands, differentiate, dtype=None):
    """Values, cotangents and gradients of f; floating operands converted to `dtype` first where one is given."""
    leaves, given = [], []
    for x in operands:
        if isinstance(x, (Fixed, Num)):
            leaves.append(None)
            given.append(dense(x))
            continue
        t = dense(x).clone()
        if dtype is not None and t.is_floating_point():
            t = t.to(dtype)
        if differentiate and t.is_floating_point():
            t.requires_grad_()
        leaves.append(t if t.requires_grad else None)
        given.append(t)
    with torch.set_grad_enabled(differentiate):
        values = [y if torch.is_tensor(y) else torch.tensor(y) for y in as_list(f(*given))]
    return values, leaves


def evaluate(f, operands, differentiate, dtype):
    """(values, references, cotangents, grads, grad references) of f on operands whose floating dtype is `dtype`."""
    values, leaves = run(f, operands, differentiate)
    cotangents = [cotangent_for(y.detach()) if y.requires_grad else None for y in values]
    grads = gradients(values, leaves, cotangents)
    references = grad_references = None
    if dtype in ("f16", "bf16", "f32"):
        wide, wide_leaves = run(f, operands, differentiate, torch.float64)
        references = [r.detach().to(y.dtype) if y.is_floating_point() else None for r, y in zip(wide, values)]
        if any(r is not None and r.shape != y.shape for r, y in zip(references, values)):
            references = None
        wide_grads = gradients(wide, wide_leaves, [None if c is None else c.double() for c in cotangents])
        grad_references = [None if g is None or w is None else w.to(g.dtype) for g, w in zip(grads, wide_grads)]
    return [y.detach() for y in values], references, cotangents, grads, grad_references


def gradients(values, leaves, cotangents):
    roots = [y for y, c in zip(values, cotangents) if c is not None]
    wanted = [x for x in leaves if x is not None]
    if not roots or not wanted:
        return [None] * len(leaves)
    found = torch.autograd.grad(
        roots, wanted, [c.to(y.dtype) for y, c in zip(values, cotangents) if c is not None], allow_unused=True
    )
    found = iter(found)
    return [None if x is None else next(found) for x in leaves]


def integer_result(f, operands, dtype):
    """What an op makes of integers: 'same', or the name of a fixed dtype; asked of i32."""
    small = [x if isinstance(x, (Fixed, Num)) else torch.ones(dense(x).shape, dtype=torch.int32) for x in operands]
    return ["same" if y.dtype == torch.int32 else WORDS[y.dtype] for y in run(f, small, False)[0]]


def wide_unsigned(f, operands, dtype, mode):
    """f on u16, u32 or u64 through signed integers; mode is 'bits', 'order' or 'wide' (see the top of this file)."""
    flip = torch.tensor(-(2**63))

    def enter(x):
        t = dense(x)
        if isinstance(x, (Fixed, Num)):
            return t
        if mode == "bits":
            return t.contiguous().view(SAME_WIDTH[dtype])
        wide = torch.from_numpy(t.contiguous().numpy().astype(np.int64).reshape(t.shape))
        return wide ^ flip if mode == "order" and dtype == "u64" else wide

    def leave(y, result):
        if result != "same":
            return y if result != "i64" or y.dtype == torch.int64 else y.to(torch.int64)
        if mode == "bits":
            return y.contiguous().reshape(-1).view(NAMES[dtype]).reshape(y.shape)
        if mode == "order" and dtype == "u64":
            y = y ^ flip
        return torch.from_numpy(y.numpy().astype(NUMPY[dtype]).reshape(y.shape))

    results = integer_result(f, operands, dtype)
    values = run(f, [x if isinstance(x, (Fixed, Num)) else enter(x) for x in operands], False)[0]
    return [leave(y, r) for y, r in zip(values, results)]


NUMPY = {
    "u8": np.uint8,
    "u16": np.uint16,
    "u32": np.uint32,
    "u64": np.uint64,
    "i8": np.int8,
    "i16": np.int16,
    "i32": np.int32,
    "i64": np.int64,
    "f32": np.float32,
    "f64": np.float64,
    "f16": np.float16,
    "bool": np.bool_,
}


def main():
    sys.dont_write_bytecode = True
    sys.path.insert(0, HERE)
    import functions
    import further
    import layers
    import pointwise
    import promotion
    import sequence
    import training
    import windows

    torch.set_num_threads(1)
    writer = Writer()
    for part in (pointwise, functions, promotion):
        part.write(writer)
    writer.write(os.path.join(ROOT, "tests", "data", "oracle"), sys.argv[1:])
    for part in (training, layers, sequence, windows, further):
        writer = Writer()
        part.write(writer)
        writer.write(os.path.join(ROOT, "tests", "data", part.__name__), sys.argv[1:])


if __name__ == "__main__":
    sys.modules["make"] = sys.modules["__main__"]
    main()
