"""The oracle's pointwise ops: every op of the headers in src/math, on awkward and ordinary values, shapes and dtypes."""

import glob
import os
import re

import numpy as np
import torch
import torch.nn.functional as F

from make import (
    ALL,
    FLOATS,
    INTEGERS,
    NAMES,
    NUMPY,
    ROOT,
    SIGNED,
    WIDE_UNSIGNED,
    Expanded,
    Fixed,
    Num,
    dense,
    evaluate,
    wide_unsigned,
)
from values import ordinary, special, special_integers


class Digamma(torch.autograd.Function):
    """torch.digamma with a gradient that keeps all digits of f64."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.digamma(x)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return (g.double() * torch.special.zeta(2.0, x.double())).to(g.dtype)


# Name of ours: how PyTorch says it, where the names differ.
TORCH = {
    "trigamma": lambda x: torch.special.zeta(2.0, x.double()).to(
        x.dtype
    ),  # polygamma(1, x) keeps only ten digits of f64
    "polygamma2": lambda x: (-2 * torch.special.zeta(3.0, x.double())).to(x.dtype),
    "relu": F.relu,
    "relu6": F.relu6,
    "leaky_relu": F.leaky_relu,
    "elu": F.elu,
    "selu": F.selu,
    "celu": F.celu,
    "silu": F.silu,
    "mish": F.mish,
    "gelu": F.gelu,
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "softplus": F.softplus,
    "softsign": F.softsign,
    "hardtanh": F.hardtanh,
    "hardswish": F.hardswish,
    "logsigmoid": F.logsigmoid,
    "threshold": F.threshold,
    "tanhshrink": F.tanhshrink,
    "softshrink": F.softshrink,
    "hardshrink": F.hardshrink,
    "digamma": lambda x: Digamma.apply(x) if x.is_floating_point() else torch.digamma(x),
    "muladd": lambda a, b, c: a * b + c,
    "clamp_min": lambda x, low: torch.clamp(x, min=low),
    "clamp_max": lambda x, high: torch.clamp(x, max=high),
    # Where we differ and say so (docs/differences.md).
    "sign": lambda x: torch.where(x.isnan(), x.detach(), torch.sign(x)) if x.is_floating_point() else torch.sign(x),
    "heaviside": lambda a, b: (
        torch.where(a.isnan(), a, torch.heaviside(a, b)) if a.is_floating_point() else torch.heaviside(a, b)
    ),
    "clamp": lambda x, low, high: (x & high) | (low & high) if x.dtype == torch.bool else torch.clamp(x, low, high),
    "hardsigmoid": lambda x: F.relu6(x + 3) / 6,
}
# Ops whose further operands PyTorch takes as numbers only.
UNSIGNED_NUMBERS = {"hardtanh": [1, 6], "threshold": [2, 7]}
NUMBERS = {
    "leaky_relu": [0.125],
    "elu": [1.5],
    "celu": [0.75],
    "softplus": [2.0, 20.0],
    "hardtanh": [-1.5, 2.0],
    "threshold": [0.5, -7.0],
    "softshrink": [0.75],
    "hardshrink": [0.75],
}
NUMPY_NAMES = {
    "neg": np.negative,
    "abs": np.absolute,
    "div": np.true_divide,
    "pow": np.power,
    "sub": np.subtract,
    "mul": np.multiply,
    "round": lambda x: x,
    "fmod": np.fmod,
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "clamp": np.clip,
    "clamp_min": np.maximum,
    "clamp_max": np.minimum,
    "bitwise_left_shift": np.left_shift,
    "bitwise_right_shift": np.right_shift,
    "relu": lambda x: x,
    "relu6": lambda x: np.minimum(x, x.dtype.type(6)),
    "muladd": lambda a, b, c: a * b + c,
    "hardtanh": np.clip,
    "threshold": lambda x, level, value: np.where(x > level, x, x.dtype.type(value)),
    "heaviside": lambda a, b: np.where(a == 0, b, a.dtype.type(1)),
}
# Where the awkward values of the two operands meet.
CROSS = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 2.5, -3.0, 1e-3, 300.0]
ORDINARY_RANGE = {
    "sqrt": (0.3, 3),
    "rsqrt": (0.3, 3),
    "log": (0.2, 3),
    "log2": (0.2, 3),
    "log10": (0.2, 3),
    "log1p": (-0.7, 2),
    "asin": (-0.9, 0.9),
    "acos": (-0.9, 0.9),
    "acosh": (1.2, 3),
    "atanh": (-0.9, 0.9),
    "erfinv": (-0.9, 0.9),
    "logit": (0.1, 0.9),
    "lgamma": (0.5, 4),
    "digamma": (0.5, 4),
    "trigamma": (0.5, 4),
    "polygamma2": (0.5, 4),
    "reciprocal": (0.3, 3),
    "pow": (0.3, 2.5),
    "div": (0.3, 2.5),
    "fmod": (0.3, 3.5),
    "remainder": (0.3, 3.5),
    "floor_divide": (0.3, 3.5),
    "atan2": (0.3, 2),
    "hypot": (0.3, 2),
}
# PyTorch takes no numbers here; ours means a tensor of the same dtype.
TENSORS_ONLY = {
    "maximum",
    "minimum",
    "fmax",
    "fmin",
    "atan2",
    "hypot",
    "nextafter",
    "heaviside",
    "logaddexp",
    "logaddexp2",
    "logical_and",
    "logical_or",
    "logical_xor",
}
NO_GRADIENT = {"nextafter", "floor_divide", "heaviside", "polygamma2"}  # of which PyTorch has none


# Awkward values at which PyTorch's gradient is not the derivative, or there is none (docs/differences.md).
NO_GRADIENT_AT = {
    "abs": torch.isnan,
    "softsign": torch.isinf,
    "logit": lambda x: (x < 0) | (x > 1),
    "sinc": lambda x: (x != 0) & (x.abs() < 0.05),
    "digamma": lambda x: (x <= 0) | x.isinf(),
    "lgamma": lambda x: (x <= 0) | x.isinf(),
    "trigamma": lambda x: (x <= 0) | (x.abs() > 1e30),
    "copysign": lambda a, b: a.isinf(),
    "clamp": lambda x, low, high: ~((x != low) & (x != high) & (low < high)) | x.isnan(),
    "clamp_min": lambda x, low: ~((x < low) | (x > low)),
    "clamp_max": lambda x, high: ~((x < high) | (x > high)),
}
# At infinity and near it PyTorch's zeta function has no values.
NO_VALUE_AT = {"polygamma2": torch.isinf, "trigamma": lambda x: x.abs() > 1e300}


DTYPES = {"Floating": ALL, "Numeric": FLOATS + INTEGERS, "AnyType": ALL, "Integral": INTEGERS + ["bool"]}


def declared():
    """(name, domain) of every pointwise op in the headers."""
    found = []
    for header in sorted(glob.glob(os.path.join(ROOT, "src", "math", "*.h"))):
        with open(header) as f:
            text = f.read()
        for domain, name in re.findall(r"struct \w+\s+: Op<(\w+), \"(\w+)\"", text):
            domain = "Floating" if domain == "Long" else domain
            if domain in DTYPES and name != "polygamma":  # by its order: digamma, trigamma and polygamma2
                found.append((name, domain))
    return found


def function(name):
    return TORCH.get(name) or getattr(torch, name)


def arity(name):
    if name in ("where", "lerp", "muladd", "clamp"):
        return 3
    two = {
        "add",
        "sub",
        "mul",
        "div",
        "pow",
        "maximum",
        "minimum",
        "fmax",
        "fmin",
        "fmod",
        "remainder",
        "floor_divide",
        "atan2",
        "hypot",
        "copysign",
        "nextafter",
        "heaviside",
        "logaddexp",
        "logaddexp2",
        "eq",
        "ne",
        "lt",
        "le",
        "gt",
        "ge",
        "logical_and",
        "logical_or",
        "logical_xor",
        "bitwise_and",
        "bitwise_or",
        "bitwise_xor",
        "bitwise_left_shift",
        "bitwise_right_shift",
        "clamp_min",
        "clamp_max",
    }
    return 2 if name in two else 1


def in_numpy(name, operands, dtype):
    f = NUMPY_NAMES.get(name) or getattr(np, name)
    arrays = [dense(x).numpy() if not isinstance(x, Num) else x.value for x in operands]
    with np.errstate(all="ignore"):
        y = np.asarray(f(*arrays))
    keep = y.astype(NUMPY[dtype]) if y.dtype != np.bool_ else y
    return [torch.from_numpy(np.ascontiguousarray(keep).reshape(y.shape))]


def as_f32(x):
    if isinstance(x, Expanded):
        return Expanded(as_f32(x.base), x.shape)
    return torch.from_numpy(x.numpy().astype(np.float32)) if torch.is_tensor(x) else x


class Ask:
    """Asks PyTorch about one op and dtype, and writes what it says."""

    def __init__(self, writer, name, domain, dtype):
        self.writer, self.name, self.domain, self.dtype = writer, name, domain, dtype
        self.numbers = [Num(self.number(v)) for v in self.constants()]

    def constants(self):
        table = (
            UNSIGNED_NUMBERS
            if self.dtype.startswith("u") and self.name in UNSIGNED_NUMBERS and self.domain != "Floating"
            else NUMBERS
        )
        return table.get(self.name, [])

    def number(self, v):  # integers take whole numbers, or they would become floats
        return v if self.dtype in FLOATS or self.domain == "Floating" else int(v)

    def ask_special(self, operands):
        """Values everywhere; gradients where the two agree on what they are."""
        tensors = [x for x in operands if torch.is_tensor(x)]
        open_at = NO_VALUE_AT.get(self.name)
        if open_at and self.dtype in FLOATS + SIGNED:
            operands = tensors = [x[~open_at(x.double())] for x in tensors]
        excluded = NO_GRADIENT_AT.get(self.name) if self.dtype in FLOATS else None
        self.ask("special", operands, differentiate=excluded is None)
        if excluded:
            keep = ~excluded(*tensors)
            self.ask("special_gradient", [x[keep] for x in tensors])

    def ask(self, label, operands, differentiate=True):
        given = operands + self.numbers
        if label == "number" and self.name in TENSORS_ONLY:
            f = lambda x, number: function(self.name)(x, torch.tensor(number, dtype=x.dtype))
        else:
            f = function(self.name)
        try:
            found = self.evaluate(f, given, differentiate and self.name not in NO_GRADIENT)
        except (RuntimeError, TypeError, NotImplementedError, AttributeError) as e:
            self.writer.skip(self.name, self.dtype, f"{label}: {str(e).splitlines()[0][:90]}")
            return
        if self.name == "nextafter":  # the next number of f64 is another
            found = (found[0], None, *found[2:])
        self.writer.case(self.name, self.dtype, label, {}, given, *found)

    def evaluate(self, f, given, differentiate):
        if self.dtype in FLOATS:
            return evaluate(f, given, differentiate, self.dtype)
        if self.domain == "Floating":
            converted = [as_f32(x) for x in given]
            values, references, *_ = evaluate(f, converted, False, "f32")
            return values, references, None, None, None
        if self.dtype == "u64":
            return in_numpy(self.name, given, self.dtype), None, None, None, None
        if self.dtype in WIDE_UNSIGNED:
            return wide_unsigned(f, given, self.dtype, "wide"), None, None, None, None
        return evaluate(f, given, False, self.dtype)

    def tame(self, shape, seed):
        low, high = ORDINARY_RANGE.get(self.name, (-2, 2))
        return ordinary(self.dtype, shape, seed, low, high)


def unary(q):
    if q.dtype == "bool":
        x = ordinary("bool", (3, 5), 1)
    else:
        x = special(q.dtype) if q.dtype in FLOATS else special_integers(q.dtype)
    q.ask_special([x])
    q.ask("ordinary", [q.tame((4, 5), 2)])
    if q.dtype in ("f32", "i32"):
        for shape in ((), (0, 3), (1,), (1, 2, 1, 3, 1, 2)):
            q.ask(f"rank{len(shape)}", [q.tame(shape, 3)])


def pairs(q):
    """Awkward values against each other, elementwise in one case (with gradients), as an outer table in another."""
    if q.dtype == "bool":
        return torch.tensor([False, False, True, True]), torch.tensor([False, True, False, True])
    if q.dtype in FLOATS:
        row = torch.tensor(CROSS, dtype=torch.float64).to(NAMES[q.dtype])
    else:
        row = special_integers(q.dtype)[:12]
    n = row.shape[0]
    a, b = row.reshape(n, 1).expand(n, n).reshape(-1), row.expand(n, n).reshape(-1)
    if q.dtype not in FLOATS:
        keep = allowed(q.name, q.dtype, a, b)
        a, b = a[keep], b[keep]
    return a.clone(), b.clone()


def allowed(name, dtype, a, b):
    """Pairs of integers PyTorch defines: it stops at a division by 0, and at lowest / -1 depends on the machine."""
    keep = torch.ones(a.shape, dtype=torch.bool)
    left, right = (x.numpy().astype(object) for x in (a, b))
    if name in ("fmod", "remainder", "floor_divide"):
        lowest = int(np.iinfo(NUMPY[dtype]).min)
        keep = torch.tensor([int(y) != 0 and not (int(x) == lowest and int(y) == -1) for x, y in zip(left, right)])
    if name == "pow":  # a negative power of an integer is not a number of its kind
        keep = torch.tensor([int(y) >= 0 for y in right])
    return keep


def several(q):
    masks = 1 if q.name == "where" else 0
    n = arity(q.name)
    mask = lambda shape, seed: [Fixed(ordinary("bool", shape, seed))] * masks
    a, b = pairs(q)
    count = a.shape[0]
    third = [q.tame((count,), 9)] if n - masks == 3 else []
    q.ask_special(mask((count,), 7) + [a, b] + third)

    def take(*shapes):
        made = [q.tame(shape, 20 + i) for i, shape in enumerate(shapes[masks:n])]
        if q.dtype not in FLOATS and q.name in ("fmod", "remainder", "floor_divide", "pow"):
            made[1] = ordinary(q.dtype, shapes[1], 31, whole=(1, 5))
        return (mask(shapes[0], 8) if masks else []) + made

    q.ask("broadcast", take((3, 4), (4,), (3, 1)))
    if q.dtype in ("f32", "i16"):
        q.ask("scalar0", take((), (3,), ()))
        q.ask("empty", take((0, 1), (1, 4), (1, 1)))
        q.ask("outer6", take((2, 1, 1, 3, 1, 1), (1, 2, 2), (1,)))
        stretched = take((3, 4), (3, 4), (3, 4))
        last = stretched[-1]
        stretched[-1] = Expanded(last[:, :1].clone() if torch.is_tensor(last) else last, (3, 4))
        q.ask("expanded", stretched)
    if q.dtype in FLOATS and n == 2:
        q.ask("number", [q.tame((7,), 40), Num(1.5)], differentiate=q.name not in NO_GRADIENT)


def write(writer):
    for name, domain in declared():
        for dtype in DTYPES[domain]:
            q = Ask(writer, name, domain, dtype)
            unary(q) if arity(name) == 1 else several(q)
