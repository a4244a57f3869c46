"""The oracle's promotion rules: the dtype of every pair's result, values of mixed pairs, and numbers as weak operands.

The rule is the array API standard's, written down in docs/dtypes.md: u64 with a signed integer gives f32, which the
standard leaves open, and a 0-d tensor counts like any other. PyTorch is asked wherever it has the rule, to check this one.
"""

import numpy as np
import torch

from make import ALL, FLOATS, NAMES, NUMPY, SIGNED, Fixed, Num
from values import ordinary

SIZES = {
    "bool": 0,
    "i8": 1,
    "u8": 1,
    "i16": 2,
    "u16": 2,
    "f16": 2,
    "bf16": 2,
    "i32": 4,
    "u32": 4,
    "f32": 4,
    "i64": 8,
    "u64": 8,
    "f64": 8,
}


def promote(a, b):
    if a == b:
        return a
    if a in FLOATS or b in FLOATS:
        if not (a in FLOATS and b in FLOATS):
            return a if a in FLOATS else b
        return "f32" if SIZES[a] == SIZES[b] else max(a, b, key=SIZES.get)
    if "bool" in (a, b):
        return a if b == "bool" else b
    if (a in SIGNED) == (b in SIGNED):
        return max(a, b, key=SIZES.get)
    signed, unsigned = (a, b) if a in SIGNED else (b, a)
    if SIZES[signed] > SIZES[unsigned]:
        return signed
    return {1: "i16", 2: "i32", 4: "i64", 8: "f32"}[SIZES[unsigned]]


def check_with_torch(a, b):
    wide = {"u16", "u32", "u64"} & {a, b}
    if wide and a != b and not (a in FLOATS or b in FLOATS):
        if not ("u64" in (a, b) and (a in SIGNED or b in SIGNED)):
            assert np.result_type(NUMPY[a], NUMPY[b]) == NUMPY[promote(a, b)], (a, b)
        return
    assert torch.result_type(torch.ones(1, dtype=NAMES[a]), torch.ones(1, dtype=NAMES[b])) == NAMES[promote(a, b)], (
        a,
        b,
    )


def with_number(a, kind):
    if kind == "float":
        return a if a in FLOATS else "f32"
    return "i64" if a == "bool" and kind == "int" else a


def convert(x, dtype):
    """x as dtype, rounded once; NumPy where PyTorch does not convert."""
    if dtype == "bf16" or x.dtype == torch.bfloat16:
        return (x.double() if x.dtype.is_floating_point else torch.from_numpy(x.numpy().astype(np.float64))).to(
            NAMES[dtype]
        )
    return torch.from_numpy(x.numpy().astype(NUMPY[dtype]))


def compute(op, a, b, dtype):
    if dtype in ("u16", "u32", "u64"):
        left, right = a.numpy(), b.numpy()
        y = {"add": np.add, "mul": np.multiply, "lt": np.less, "maximum": np.maximum}[op](left, right)
        return torch.from_numpy(y)
    return getattr(torch, op)(a, b)


def result(op, common):
    if op in ("eq", "lt"):
        return "bool"
    return "f32" if op == "div" and common not in FLOATS else common


def write(writer):
    for a in ALL:
        for b in ALL:
            check_with_torch(a, b)
            common = promote(a, b)
            for op in ("add", "mul", "div", "eq", "lt", "where"):
                writer.promote(op, a, b, result(op, common))
            x, y = ordinary(a, (7,), 50), ordinary(b, (7,), 51)
            for op in ("add", "mul", "lt", "maximum"):
                value = compute(op, convert(x, common), convert(y, common), common)
                writer.case(op, common, f"mixed_{a}_{b}", {}, [x, y], [value], None, None, None, None)
            mask = ordinary("bool", (7,), 52)
            value = torch.where(
                mask, *(convert(t, common).view(torch.int64) if common == "u64" else convert(t, common) for t in (x, y))
            )
            value = value.view(torch.uint64) if common == "u64" else value
            writer.case("where", common, f"mixed_{a}_{b}", {}, [Fixed(mask), x, y], [value], None, None, None, None)
        for kind, value in (("int", 3), ("float", 0.5), ("bool", True)):
            common = with_number(a, kind)
            if a not in ("u16", "u32", "u64"):
                assert torch.result_type(torch.ones(1, dtype=NAMES[a]), value) == NAMES[common], (a, kind)
            for op in ("add", "mul", "div", "eq", "lt", "where"):
                writer.promote(op, a, f"num_{kind}", result(op, common))
            x = ordinary(a, (7,), 53)
            for op in ("add", "mul", "lt"):
                number = torch.full((7,), value, dtype=torch.float64)
                y = compute(op, convert(x, common), convert(number, common), common)
                writer.case(op, common, f"number_{a}_{kind}", {}, [x, Num(value)], [y], None, None, None, None)
