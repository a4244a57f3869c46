"""The oracle's pointwise ops: every name of src/ops/point_*.h, on awkward and ordinary values, shapes and dtypes."""
import os
import re

import numpy as np
import torch
import torch.nn.functional as F

from make import ALL, FLOATS, INTEGERS, NAMES, NUMPY, ROOT, WIDE_UNSIGNED, Expanded, Fixed, Num, evaluate, wide_unsigned
from values import ordinary, special, special_integers

# Name of ours: how PyTorch says it, where the names differ.
TORCH = {
    "trigamma": lambda x: torch.polygamma(1, x), "polygamma2": lambda x: torch.polygamma(2, x), "relu": F.relu, "relu6": F.relu6, "leaky_relu": F.leaky_relu, "elu": F.elu,
    "selu": F.selu, "celu": F.celu, "silu": F.silu, "mish": F.mish, "gelu": F.gelu,
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"), "softplus": F.softplus, "softsign": F.softsign,
    "hardtanh": F.hardtanh, "hardsigmoid": F.hardsigmoid, "hardswish": F.hardswish, "logsigmoid": F.logsigmoid,
    "threshold": F.threshold, "tanhshrink": F.tanhshrink, "softshrink": F.softshrink, "hardshrink": F.hardshrink,
    "muladd": lambda a, b, c: a * b + c, "clamp_min": lambda x, low: torch.clamp(x, min=low),
    "clamp_max": lambda x, high: torch.clamp(x, max=high), "sign": torch.sign,
}
# Ops whose further operands PyTorch takes as numbers only.
NUMBERS = {"leaky_relu": [0.125], "elu": [1.5], "celu": [0.75], "softplus": [2.0, 20.0], "hardtanh": [-1.5, 2.0],
           "threshold": [0.5, -7.0], "softshrink": [0.75], "hardshrink": [0.75]}
NUMPY_NAMES = {"neg": np.negative, "abs": np.absolute, "div": np.true_divide, "pow": np.power, "sub": np.subtract,
               "mul": np.multiply, "round": lambda x: x, "fmod": np.fmod, "eq": np.equal, "ne": np.not_equal, "lt": np.less,
               "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal, "clamp": np.clip, "clamp_min": np.maximum,
               "clamp_max": np.minimum, "bitwise_left_shift": np.left_shift, "bitwise_right_shift": np.right_shift,
               "relu": lambda x: x, "relu6": lambda x: np.minimum(x, x.dtype.type(6)), "muladd": lambda a, b, c: a * b + c,
               "heaviside": lambda a, b: np.where(a == 0, b, a.dtype.type(1))}
# Where the awkward values of the two operands meet.
CROSS = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 2.5, -3.0, 1e-3, 300.0]
ORDINARY_RANGE = {"sqrt": (0.3, 3), "rsqrt": (0.3, 3), "log": (0.2, 3), "log2": (0.2, 3), "log10": (0.2, 3), "log1p": (-0.7, 2),
                  "asin": (-0.9, 0.9), "acos": (-0.9, 0.9), "acosh": (1.2, 3), "atanh": (-0.9, 0.9), "erfinv": (-0.9, 0.9),
                  "logit": (0.1, 0.9), "lgamma": (0.5, 4), "digamma": (0.5, 4), "trigamma": (0.5, 4), "polygamma2": (0.5, 4), "reciprocal": (0.3, 3),
                  "pow": (0.3, 2.5), "div": (0.3, 2.5), "fmod": (0.3, 3.5), "remainder": (0.3, 3.5),
                  "floor_divide": (0.3, 3.5), "atan2": (0.3, 2), "hypot": (0.3, 2)}
# PyTorch takes no numbers here; ours means a tensor of the same dtype.
TENSORS_ONLY = {"maximum", "minimum", "fmax", "fmin", "atan2", "hypot", "nextafter", "heaviside", "logaddexp", "logaddexp2",
                "logical_and", "logical_or", "logical_xor"}
NO_GRADIENT = {"nextafter", "floor_divide", "heaviside"}  # of which PyTorch has none


def declared():
    """(name, domain) of every op in the headers, in order."""
    found = []
    for part in ("math", "activation", "binary"):
        text = open(os.path.join(ROOT, "src", "ops", f"point_{part}.h")).read()
        for domain, name in re.findall(r"struct \w+ : (\w+) \{\s+static constexpr auto name = \"(\w+)\"", text):
            found.append((name, domain))
    return found


def function(name):
    return TORCH.get(name) or getattr(torch, name)


def arity(name):
    if name in ("where", "lerp", "muladd", "clamp"):
        return 3
    two = {"add", "sub", "mul", "div", "pow", "maximum", "minimum", "fmax", "fmin", "fmod", "remainder", "floor_divide", "atan2",
           "hypot", "copysign", "nextafter", "heaviside", "logaddexp", "logaddexp2", "eq", "ne", "lt", "le", "gt", "ge",
           "logical_and", "logical_or", "logical_xor", "bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_left_shift",
           "bitwise_right_shift", "clamp_min", "clamp_max"}
    return 2 if name in two else 1


def dtypes(domain):
    return {"Floating": ALL, "Numeric": FLOATS + INTEGERS, "AnyType": ALL, "Integral": INTEGERS + ["bool"]}[domain]


def in_numpy(name, operands, dtype):
    f = NUMPY_NAMES.get(name) or getattr(np, name)
    arrays = [x.tensor.numpy() if isinstance(x, Fixed) else x.expand(x.shape).numpy() for x in operands]
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
        self.numbers = [Num(self.number(v)) for v in NUMBERS.get(name, [])]

    def number(self, v):  # integers take whole numbers, or they would become floats
        return v if self.dtype in FLOATS or self.domain == "Floating" else int(v)

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
        if self.dtype == "u64" and not self.numbers:
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
    q.ask("special", [x])
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
    q.ask("special", mask((count,), 7) + [a, b] + third)

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
        for dtype in dtypes(domain):
            q = Ask(writer, name, domain, dtype)
            unary(q) if arity(name) == 1 else several(q)
