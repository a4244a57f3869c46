"""How the ops of a chain and their arguments are chosen."""

import math

import torch

from ops import BINARY, OPS, UNARY

LARGEST = 1e3  # beyond it rounding errors are amplified too far to compare

SHAPES = [(), (1,), (3,), (4,), (2, 3), (3, 3), (3, 1), (1, 4), (3, 4), (2, 3, 2), (2, 1, 3), (2, 2, 2), (0,), (2, 0)]
DTYPES = [torch.float64] * 8 + [torch.float32] * 4 + [torch.int64] * 2 + [torch.int32, torch.uint8, torch.bool]


class Chain:
    def __init__(self, number):
        self.number, self.roots, self.second = number, [], False
        self.steps = []  # ("in", tensor, whether it wants a gradient) or (op, registers, integers, numbers)
        self.narrow = False  # whether f32 takes part
        self.copies = set()  # registers that a conversion to f32 filled with a copy


def fresh(rng, shape, dtype):
    n = math.prod(shape)
    if dtype.is_floating_point:
        values = [rng.choice((rng.uniform(-2, 2), rng.uniform(-2, 2), float(rng.randint(-2, 2)))) for _ in range(n)]
    else:
        values = [rng.randint(0, 1) if dtype == torch.bool else rng.randint(0 if dtype == torch.uint8 else -4, 6) for _ in range(n)]
    return torch.tensor(values, dtype=dtype).reshape(shape)


def number(rng):
    return rng.choice((0.5, -1.0, 2.0, round(rng.uniform(-2, 2), 3)))


def dim_of(rng, x):
    d = rng.randrange(x.dim())
    return d - x.dim() if rng.random() < 0.3 else d


def some_axes(rng, x):
    k = rng.randint(1, x.dim())
    return sorted(rng.sample(range(x.dim()), k))


def places(rng, n, k=None, distinct=False):
    if distinct:
        return rng.sample(range(n), min(n, k or rng.randint(1, n)))
    return [rng.randrange(n) for _ in range(k or rng.randint(1, 4))]


class Maker:
    """Chooses ops for a chain whose tensors so far are at hand."""

    def __init__(self, rng, chain):
        self.rng, self.chain, self.registers = rng, chain, []

    def add_input(self, x, grad=False):
        self.chain.steps.append(("in", x.clone(), grad))
        self.registers.append(x.requires_grad_() if grad else x)
        return len(self.registers) - 1

    def pick(self, fits=lambda x: True):
        found = [i for i, x in enumerate(self.registers) if fits(x)]
        return self.rng.choice(found) if found else None

    def beside(self, x, shape=None):
        """A register of the dtype that broadcasts with x."""
        shape = tuple(x.shape) if shape is None else shape

        def fits(y):
            return y.dtype == x.dtype and all(a == b or 1 in (a, b) for a, b in zip(y.shape[::-1], shape[::-1]))

        return self.pick(fits)

    def choose(self):
        return self.rng.choice(KINDS)(self)


def unary(m):
    x = m.pick()
    name = m.rng.choice(UNARY + ["silu", "softplus", "gelu", "softsign"])
    t = m.registers[x]
    if not t.is_floating_point() and name not in ("neg", "abs", "sign", "square", "relu", "logical_not"):
        return None
    if t.dtype == torch.bool and name != "logical_not":
        return None
    if t.numel() and t.is_floating_point():
        low = t.detach().min().item()
        if name in ("sqrt", "log", "rsqrt") and low < 0.05 or name == "log1p" and low < -0.9:
            return None
        if name == "reciprocal" and t.detach().abs().min().item() < 0.05:
            return None
        if name in ("floor", "round", "trunc") and (t.detach() * 2 - (t.detach() * 2).round()).abs().min().item() < 1e-3:
            return None
    return name, [x], [], []


def binary(m):
    x = m.pick()
    y = m.beside(m.registers[x])
    if y is None:
        return None
    name, t = m.rng.choice(BINARY), m.registers[y]
    if t.dtype == torch.bool and name in ("sub", "div", "atan2", "hypot"):
        return None
    if name == "div" and t.numel() and t.detach().abs().min().item() < 0.05:
        return None
    if name in ("atan2", "hypot") and (not t.is_floating_point() or t.numel() and t.detach().abs().min().item() < 0.05):
        return None
    if name == "atan2" and bool(((m.registers[x] == 0) & (t < 0)).any()):
        return None  # pi or -pi by the sign of a zero, which a product with one term may round either way
    if name in ("lt", "ge", "eq", "maximum", "minimum") and x != y and close(m.registers[x], t):
        return None
    return name, [x, y], [], []


def close(a, b):
    """Whether rounding may decide how floats compare."""
    return a.is_floating_point() and a.numel() and b.numel() and bool(((a - b).detach().abs() < 1e-6).any())


def with_number(m):
    x = m.pick()
    t, name = m.registers[x], m.rng.choice(("add", "sub", "mul", "div", "lt", "ge", "eq", "pow", "clamp"))
    if not t.is_floating_point():
        if t.dtype in (torch.bool, torch.uint8) or name in ("pow", "clamp", "div"):
            return None
        return name + "_integer", [x], [m.rng.randint(-3, 3)], []
    if name == "pow":
        p = m.rng.choice((2.0, 3.0, 0.5, -1.0, 1.5))
        if p not in (2.0, 3.0) and t.numel() and t.detach().min().item() < 0.05:
            return None
        return "pow_number", [x], [], [p]
    if name == "clamp":
        low = number(m.rng)
        if close(t, torch.tensor([low])) or close(t, torch.tensor([low + 1.25])):  # the gradient there differs
            return None
        return name, [x], [], [low, low + 1.25]
    value = m.rng.choice((0.5, 2.0, -1.5)) if name == "div" else number(m.rng)
    if name in ("lt", "ge", "eq") and close(t, torch.tensor([value])):
        return None
    return name + "_number", [x], [], [value]


def ternary(m):
    x = m.pick(lambda t: t.is_floating_point())
    if x is None:
        return None
    y, kind = m.beside(m.registers[x]), m.rng.choice(("where", "lerp", "addcmul"))
    if kind == "lerp":
        return "lerp", [x, y], [], [0.3]
    if kind == "addcmul":
        shape = torch.broadcast_shapes(m.registers[x].shape, m.registers[y].shape)
        z = m.beside(m.registers[x], shape)
        return None if z is None else ("addcmul", [x, y, z], [], [0.5])
    shape = torch.broadcast_shapes(m.registers[x].shape, m.registers[y].shape)
    c = m.add_input(fresh(m.rng, tuple(shape), torch.bool))
    return "where", [c, x, y], [], []


def convert(m):
    x = m.pick()
    name = m.rng.choice(("to_f64", "to_f32", "to_i64"))
    t = m.registers[x]
    if name == "to_i64" and t.is_floating_point():
        return None
    return name, [x], [], []


def reduction(m):
    x = m.pick(lambda t: t.dim() > 0)
    if x is None:
        return None
    t, keep = m.registers[x], int(m.rng.random() < 0.4)
    name = m.rng.choice("sum mean amax amin any all logsumexp nansum prod var std norm".split())
    if not t.is_floating_point() and name not in ("sum", "amax", "amin", "any", "all", "prod"):
        return None
    if name in ("any", "all") and t.dtype == torch.uint8 or name == "prod" and t.numel() > 12:
        return None
    chosen = some_axes(m.rng, t)
    if name == "prod":
        return name, [x], [keep, chosen[0]], []
    if name in ("var", "std"):
        n = math.prod(t.shape[a] for a in chosen)
        return None if n < 2 else (name, [x], [keep, *chosen], [float(m.rng.randint(0, 1))])
    if name == "norm":
        return name, [x], [keep, *chosen], [m.rng.choice((1.0, 2.0, 3.0, float("inf")))]
    return name, [x], [keep, *chosen], []


def along(m):
    x = m.pick(lambda t: t.dim() > 0 and t.dtype != torch.bool)
    if x is None:
        return None
    t = m.registers[x]
    d = dim_of(m.rng, t)
    n, name = t.shape[d], m.rng.choice(ALONG)
    if not t.is_floating_point() and name in ("softmax", "log_softmax", "logcumsumexp", "quantile"):
        return None
    if name in ("max", "min", "sort"):
        return None if n == 0 else (name, [x], [d, int(m.rng.random() < 0.5)], [])
    if n == 0 and name not in ("softmax", "log_softmax", "cumsum"):
        return None
    if name in ("topk", "kthvalue", "median", "cummax", "argmax", "quantile") and t.numel() and ties(t, d):
        return None
    if name in ("topk", "kthvalue"):
        return name, [x], [d, m.rng.randint(1, n)], []
    if name == "quantile":
        return name, [x], [d, 0], [m.rng.choice((0.0, 0.35, 0.5, 1.0))]
    return name, [x], [d], []


ALONG = """max min sort topk kthvalue median argmax cummax softmax log_softmax cumsum cumprod logcumsumexp quantile
diff""".split()


def ties(t, d):
    s = t.detach().sort(dim=d).values
    return s.shape[d] > 1 and bool((s.narrow(d, 1, s.shape[d] - 1) == s.narrow(d, 0, s.shape[d] - 1)).any())


def view(m):
    x = m.pick()
    t, rng = m.registers[x], m.rng
    name = rng.choice(VIEWS)
    whole = t if t._base is None else t._base
    if name in ("reshape", "contiguous") and not whole.is_contiguous():
        return None  # a view or a copy by the strides of a result, which differ (docs/differences.md)
    if name == "reshape":
        sizes = list(t.shape)
        rng.shuffle(sizes)
        if rng.random() < 0.5 and t.numel():
            sizes = [-1] if rng.random() < 0.5 else [t.numel(), 1]
        return name, [x], sizes, []
    if name in ("squeeze", "clone", "contiguous"):
        return name, [x], [], []
    if name == "unsqueeze":
        return None if t.dim() > 3 else (name, [x], [rng.randint(-t.dim() - 1, t.dim())], [])
    if name == "expand":
        if t.dim() > 3 or t.numel() > 12:
            return None
        return name, [x], ([2] if rng.random() < 0.4 else []) + [3 if n == 1 else n for n in t.shape], []
    if t.dim() == 0:
        return None
    d = dim_of(rng, t)
    n = t.shape[d]
    if name == "permute":
        return name, [x], rng.sample(range(t.dim()), t.dim()), []
    if name == "transpose":
        return name, [x], [d, dim_of(rng, t)], []
    if name == "narrow":
        start = rng.randint(0, n)
        return name, [x], [d, start, rng.randint(0, n - start)], []
    if name == "slice":
        return name, [x], [d % t.dim(), rng.randint(-n - 1, n), rng.randint(-n - 1, n + 1), rng.randint(1, 3)], []
    if name in ("flip", "unbind"):
        return None if name == "unbind" and n > 3 else (name, [x], [d], [])
    if name == "roll":
        return name, [x], [rng.randint(-4, 4), d], []
    if name in ("chunk", "tensor_split"):
        return None if n == 0 else (name, [x], [rng.randint(1, 3), d], [])
    if name == "repeat_interleave":
        return None if t.numel() > 12 else (name, [x], [d, rng.randint(0, 2)], [])
    if name == "repeat":
        return None if t.numel() > 12 else (name, [x], [rng.randint(1, 2) for _ in t.shape], [])
    if name == "pad":
        return None if t.dtype == torch.bool else (name, [x], [rng.randint(0, 2), rng.randint(-1, 1)], [1.0])
    if name == "diag_embed":
        return None if t.dim() > 2 else (name, [x], [rng.randint(-1, 1)], [])
    if n == 0:
        return None
    if name == "select":
        return name, [x], [d, rng.randrange(-n, n)], []
    if name == "unfold":
        return name, [x], [d, rng.randint(1, n), rng.randint(1, 2)], []
    if t.dim() < 2:
        return None
    if name == "rot90":
        return name, [x], [rng.randint(0, 3)], []
    if name == "tril":
        return name, [x], [rng.randint(-1, 1)], []
    return "diagonal", [x], [rng.randint(-1, 1), *rng.sample(range(t.dim()), 2)], []


VIEWS = """reshape squeeze clone contiguous unsqueeze expand permute transpose narrow slice flip unbind roll chunk
tensor_split repeat_interleave repeat pad diag_embed select unfold rot90 tril diagonal""".split()


def join(m):
    x = m.pick(lambda t: t.dim() > 0 and t.numel() < 24)
    if x is None:
        return None
    t, name = m.registers[x], m.rng.choice(("cat", "stack", "vstack", "hstack"))
    d = dim_of(m.rng, t)
    others = [i for i, y in enumerate(m.registers) if y.dtype == t.dtype and y.shape == t.shape]
    return name, [x, m.rng.choice(others)], [d] if name in ("cat", "stack") else [], []


def product(m):
    x = m.pick(lambda t: t.dim() > 0 and t.dtype in (torch.float32, torch.float64, torch.int64))
    if x is None:
        return None
    t, name = m.registers[x], m.rng.choice(("matmul", "matmul", "matmul", "outer", "cdist"))
    y = m.pick(lambda y: y.dtype == t.dtype and y.dim() > 0 and y.shape[-2 if y.dim() > 1 else -1] == t.shape[-1])
    if name == "matmul":
        if y is None:
            columns = m.rng.randint(1, 3)
            y = m.add_input(fresh(m.rng, (t.shape[-1], columns), t.dtype))
        return name, [x, y], [], []
    if name == "outer":
        y = m.pick(lambda y: y.dtype == t.dtype and y.dim() == 1)
        return None if t.dim() != 1 or y is None else (name, [x, y], [], [])
    if t.dim() < 2 or not t.is_floating_point() or t.shape[-1] == 0:
        return None
    y = m.add_input(fresh(m.rng, (3, t.shape[-1]), t.dtype))
    return name, [x, y], [], [m.rng.choice((1.0, 2.0))]


def indexing(m):
    name = m.rng.choice(INDEXING)
    x = m.pick(lambda t: t.dim() > 0 and t.numel() > 0)
    if x is None:
        return None
    t, rng = m.registers[x], m.rng
    d = dim_of(rng, t)
    n = t.shape[d]
    if name == "index_select":
        return name, [x], [d, *places(rng, n)], []
    if name == "index":
        return name, [x], [i - t.shape[0] if rng.random() < 0.3 else i for i in places(rng, t.shape[0])], []
    if name == "take":
        return name, [x], [i - t.numel() if rng.random() < 0.3 else i for i in places(rng, t.numel())], []
    if name in ("masked_select", "masked_fill"):
        if name == "masked_fill" and not t.is_floating_point():
            return None
        c = m.add_input(fresh(rng, tuple(t.shape), torch.bool))
        return name, [x, c], [], [number(rng)] if name == "masked_fill" else []
    if name == "nonzero":
        return name, [x], [], []
    if t.dtype == torch.bool:
        return None
    if name == "index_fill":
        return (name, [x], [d, *places(rng, n)], [number(rng)]) if t.is_floating_point() else None
    if name == "index_add":
        k = rng.randint(1, 3)
        shape = list(t.shape)
        shape[d] = k
        return name, [x, m.add_input(fresh(rng, tuple(shape), t.dtype))], [d, *places(rng, n, k)], []
    d %= t.dim()
    if name == "scatter":  # every place once: which of several values stays is left open
        index = torch.stack([torch.tensor(rng.sample(range(n), n)) for _ in range(t.numel() // n)])
        index = index.reshape([s for k, s in enumerate(t.shape) if k != d] + [n]).movedim(-1, d)
    else:
        index = torch.tensor([rng.randrange(n) for _ in range(t.numel())]).reshape(t.shape)
    i = m.add_input(index)
    if name == "gather":
        return name, [x, i], [d], []
    return name, [x, i, m.pick(lambda y: y.shape == t.shape and y.dtype == t.dtype)], [d], []


INDEXING = """index_select index take gather scatter scatter_add index_add index_fill masked_fill masked_select
nonzero""".split()


def in_place(m):
    x = m.pick(lambda t: t.is_floating_point() and not (t.is_leaf and t.requires_grad))
    if x is None:
        return None
    t, rng, name = m.registers[x], m.rng, m.rng.choice(WRITES)
    if name in ("add_", "mul_", "copy_"):
        y = m.pick(lambda y: y.dtype == t.dtype and stretches(y.shape, t.shape))
        return None if y is None else (name, [x, y], [], [])
    if name in ("add_number_", "mul_number_", "fill_"):
        return name, [x], [], [number(rng)]
    if name in ("zero_", "relu_", "tanh_", "square_"):
        return name, [x], [], []
    if name in ("masked_fill_", "set_mask"):
        c = m.add_input(fresh(rng, tuple(t.shape), torch.bool))
        return (name, [x, c], [], [number(rng)]) if t.dim() else None
    if t.dim() == 0 or t.numel() == 0:
        return None
    d = dim_of(rng, t)
    n = t.shape[d]
    if name == "index_fill_":
        return name, [x], [d, *places(rng, n)], [number(rng)]
    if name in ("index_add_", "index_copy_"):
        at = places(rng, n, rng.randint(1, 3), distinct=name == "index_copy_")
        shape = list(t.shape)
        shape[d] = len(at)
        y = m.pick(lambda y: y.shape == tuple(shape) and y.dtype == t.dtype)
        y = m.add_input(fresh(rng, tuple(shape), t.dtype)) if y is None else y
        return name, [x, y], [d, *at], []
    if name == "index_put_":
        add = rng.randint(0, 1)
        at = places(rng, t.shape[0], distinct=not add)
        y = m.add_input(fresh(rng, (len(at), *t.shape[1:]), t.dtype), grad=rng.random() < 0.5)
        return name, [x, y], [add, *at], []
    if name == "set_index":
        y = m.pick(lambda y: y.dtype == t.dtype and stretches(y.shape, t.shape[1:]))
        return None if y is None else (name, [x, y], [rng.randrange(-t.shape[0], t.shape[0])], [])
    if name == "set_slice":
        n = t.shape[0]
        return name, [x], [rng.randint(-n, n), rng.randint(-n, n + 1), rng.randint(1, 2)], [number(rng)]
    d %= t.dim()
    i = m.add_input(torch.tensor([rng.randrange(t.shape[d]) for _ in range(t.numel())]).reshape(t.shape))
    return name, [x, i, m.pick(lambda y: y.shape == t.shape and y.dtype == t.dtype)], [d], []


WRITES = """add_ mul_ copy_ add_number_ mul_number_ fill_ zero_ relu_ tanh_ square_ masked_fill_ set_mask index_fill_
index_add_ index_copy_ index_put_ set_index set_slice scatter_add_""".split()


def stretches(shape, wanted):
    return len(shape) <= len(wanted) and all(a in (1, b) for a, b in zip(shape[::-1], wanted[::-1]))


KINDS = [unary] * 4 + [binary] * 4 + [with_number] * 2 + [ternary, convert] + [reduction] * 3 + [along] * 3
KINDS += [view] * 6 + [join, product, product] + [indexing] * 3 + [in_place] * 5


def acceptable(results):
    for y in results:
        if y.numel() > 64 or y.dim() > 5:
            return False
        if y.is_floating_point() and y.numel():
            v = y.detach()
            if not bool(torch.isfinite(v).all()) or v.abs().max().item() > LARGEST:
                return False
        elif y.numel() and y.dtype not in (torch.bool, torch.uint8) and y.abs().max().item() > 10000:
            return False
    return True


def changes_well(registers, step):
    """Whether an op in place, tried on copies, keeps the numbers acceptable."""
    name, where, ints, nums = step
    with torch.no_grad():
        copies = [registers[i].detach().clone() for i in where]
        OPS[name](*copies, ints=ints, nums=nums)
        return acceptable(copies[:1])


def at_corner(name, results):
    """Lengths of 0: PyTorch's second derivatives are NaN there."""
    return name in ("std", "norm", "cdist") and results[0].numel() > 0 and results[0].detach().min().item() < 1e-6


def aliases(x, y, at_all):
    """Whether y lies in x's memory, in another way or at all: PyTorch then reads what it has just written."""
    same = not at_all and x.data_ptr() == y.data_ptr() and x.shape == y.shape and x.stride() == y.stride()
    return x.untyped_storage().data_ptr() == y.untyped_storage().data_ptr() and x.numel() > 0 and not same


def overlapping(x):
    places = torch.arange(1).expand(x.shape)
    for d, (n, step) in enumerate(zip(x.shape, x.stride())):
        places = places + (torch.arange(n) * step).reshape([-1] + [1] * (x.dim() - d - 1))
    return places.unique().numel() < x.numel()


def make_chain(number, rng):
    chain = Chain(number)
    m = Maker(rng, chain)
    for _ in range(rng.randint(1, 3)):
        dtype = rng.choice(DTYPES)
        m.add_input(fresh(rng, rng.choice(SHAPES), dtype), grad=dtype.is_floating_point and rng.random() < 0.8)
    wanted, taken = rng.randint(2, 10), 0
    for _ in range(6 * wanted):
        if taken == wanted:
            break
        steps, count = len(chain.steps), len(m.registers)
        try:
            step = m.choose()
            fine = step is not None and all(i is not None for i in step[1])
            if fine and step[0] in WRITES:
                target = m.registers[step[1][0]]
                others = [m.registers[i] for i in step[1][1:]]
                placed = step[0].startswith(("index_", "scatter_"))  # reads elements after others were written
                fine = not overlapping(target) and not any(aliases(target, x, placed) for x in others)
                fine = fine and changes_well(m.registers, step)
            results = OPS[step[0]](*[m.registers[i] for i in step[1]], ints=step[2], nums=step[3]) if fine else None
        except (RuntimeError, IndexError, TypeError, ValueError, NotImplementedError):
            results = None
        if results is None or not acceptable(results) or len(results) > 4 or at_corner(step[0], results):
            del chain.steps[steps:], m.registers[count:]  # inputs made for an op that is not taken
            continue
        chain.steps.append(step)
        m.registers += results
        taken += 1
    chain.narrow = any(x.dtype == torch.float32 for x in m.registers)
    differentiable = [i for i, x in enumerate(m.registers) if x.is_floating_point() and x.requires_grad]
    chain.roots = differentiable[-rng.randint(1, 3) :]
    # PyTorch loses second derivatives of logcumsumexp where the first ones are 0.
    chain.second = rng.random() < 0.35 and all(step[0] != "logcumsumexp" for step in chain.steps)
    return chain
