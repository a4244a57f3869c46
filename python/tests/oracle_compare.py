"""Gives a call to both packages and compares: errors, dtypes, shapes, values, gradients, and what became of the inputs."""

import contextlib
import dataclasses
import math
import signal
import warnings

import oracle_samples as samples
import torch

import volta

PLACES = {"volta": (volta, torch), "functional": (volta.nn.functional, torch.nn.functional)}

# (relative, absolute) by dtype. Elementwise results are right to a few units of the last place in both, special
# functions of PyTorch's in f64 to 1e-10. f16 has 11 bits, bf16 8: one of the two may round twice, or a sum between.
POINTWISE = {
    torch.float64: (1e-9, 1e-12),
    torch.float32: (2e-5, 1e-6),
    torch.float16: (4e-3, 1e-5),
    torch.bfloat16: (3.2e-2, 1e-5),
}
# Errors of sums are relative to the largest of the summands, not to what is left of them when they cancel: to the
# largest result, and of gradients likewise. PyTorch adds up halves in halves in places.
SUMMED = {torch.float64: 1e-9, torch.float32: 5e-5, torch.float16: 8e-3, torch.bfloat16: 5e-2}

# PyTorch's gradient of an empty tensor ends the process.
CRASHES = {"pdist"}


@dataclasses.dataclass
class Outcome:
    """agree, skip (PyTorch refuses), or what differs: refused, dtype, shape, value, input, gradient, no gradient."""

    kind: str
    text: str = ""
    gradients: int = 0
    by_double: bool = False  # PyTorch's own answer is the one that is further from its answer in double


AGREE, SKIP = Outcome("agree"), Outcome("skip")


class TooLong(Exception):
    pass


@contextlib.contextmanager
def in_time(seconds):
    def stop(*_):
        raise TooLong(f"more than {seconds} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def inputs(sample, side):
    """The arguments in memory of their own, as tensors of one side; and the list of the tensors."""
    leaves = []

    def convert(x):
        y = samples.laid_out(x, sample.layout, not leaves)
        if side == "volta":
            if sample.layout == "reversed" and y.ndim:
                axes = tuple(range(y.ndim))
                y = volta.flip(volta.from_dlpack(y.flip(axes)), axes)
            else:
                y = volta.from_dlpack(y)
        leaves.append(y)
        return y

    args, kwargs = samples.walked([sample.args, sample.kwargs], convert)
    if side == "volta":
        args, kwargs = plain(args), plain(kwargs)
    return list(args), kwargs, leaves


def plain(value):
    """Torch's dtypes, devices and sizes as the other package's."""
    if isinstance(value, torch.dtype):
        return getattr(volta, str(value).removeprefix("torch."))
    if isinstance(value, torch.device):
        return str(value)
    if isinstance(value, (list, tuple)):
        return tuple(map(plain, value)) if isinstance(value, tuple) else list(map(plain, value))
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    return value


def call(sample, side, args, kwargs):
    if sample.place == "Tensor":
        kind = type(args[0])
        found = getattr(kind, sample.name)
        if callable(found):
            return found(*args, **kwargs)
        value = getattr(args[0], sample.name)
        return value(*args[1:]) if callable(value) else value
    return getattr(PLACES[sample.place][side == "torch"], sample.name)(*args, **kwargs)


def results(value):
    """The tensors and numbers of a result, in order."""
    if isinstance(value, dict):
        return [r for v in value.values() for r in results(v)]
    if isinstance(value, (list, tuple)) and any(isinstance(v, (torch.Tensor, volta.Tensor, list)) for v in value):
        return [r for v in value for r in results(v)]
    return [value]


def as_torch(x):
    """The same numbers as a tensor of torch's, which has no negative strides."""
    if not isinstance(x, volta.Tensor):
        return x
    x = x.detach()
    return torch.from_dlpack(x.contiguous() if any(n < 0 for n in x.stride()) else x)


def dtype_name(x):
    return str(x.dtype).split(".")[-1]


def near(ours, theirs, pointwise, scale=0.0):
    """Which elements agree."""
    if not theirs.dtype.is_floating_point:
        return ours == theirs
    a, b = ours.double(), theirs.double()
    same = (a == b) | (a.isnan() & b.isnan())
    if pointwise:
        relative, absolute = POINTWISE[theirs.dtype]
        bound = absolute + relative * b.abs()
    else:
        finite = b[b.isfinite()]
        largest = max(scale, float(finite.abs().max()) if finite.numel() else 0.0)
        bound = torch.full_like(b, SUMMED[theirs.dtype] * largest + (1e-12 if theirs.dtype is torch.float64 else 1e-6))
    return same | (b.isfinite() & ((a - b).abs() <= bound)) | overflow(a, b, theirs.dtype)


def overflow(a, b, dtype):
    """A number at the end of the range of halves beside infinity: one of the two was rounded."""
    if dtype not in (torch.float16, torch.bfloat16):
        return torch.zeros_like(a, dtype=torch.bool)
    end = torch.finfo(dtype).max * 0.98
    return (a.abs() >= end) & (b.abs() >= end) & (a.sign() == b.sign())


def first_difference(ours, theirs, good, what):
    place = tuple(int(i) for i in (~good).nonzero()[0]) if good.ndim else ()
    count = int((~good).sum())
    return f"{what}{list(place)}: {ours[place].item()!r}, PyTorch {theirs[place].item()!r} ({count} of {good.numel()})"


def compared(ours, theirs, pointwise, what, cast=False):
    """None, or (kind, text); with `cast` the dtype may be another one that holds the same."""
    if not isinstance(theirs, torch.Tensor):
        if isinstance(ours, volta.Tensor) and ours.ndim == 0:
            ours = ours.item()
        if isinstance(theirs, (torch.Size, list, tuple)):
            ours, theirs = tuple(ours), tuple(theirs)
        elif isinstance(theirs, torch.dtype):
            ours, theirs = str(ours).split(".")[-1], str(theirs).split(".")[-1]
        elif isinstance(theirs, float):
            same = ours == theirs or math.isclose(ours, theirs, rel_tol=1e-5) or math.isnan(ours) and math.isnan(theirs)
            return None if same else ("value", f"{what}: {ours!r}, PyTorch {theirs!r}")
        return None if ours == theirs else ("value", f"{what}: {ours!r}, PyTorch {theirs!r}")
    if not isinstance(ours, volta.Tensor):
        return None if ours == theirs.item() else ("value", f"{what}: {ours!r}, PyTorch {theirs!r}")
    if tuple(ours.shape) != tuple(theirs.shape):
        return "shape", f"{what}: shape {tuple(ours.shape)}, PyTorch {tuple(theirs.shape)}"
    if cast:
        ours = ours.to(getattr(volta, dtype_name(theirs)))
    if dtype_name(ours) != dtype_name(theirs):
        return "dtype", f"{what}: {dtype_name(ours)}, PyTorch {dtype_name(theirs)}"
    theirs, mine = theirs.detach(), as_torch(ours)
    good = near(mine, theirs, pointwise)
    return None if bool(good.all()) else ("value", first_difference(mine, theirs, good, what))


def leads_to_same(sample, leaves, ours, theirs):
    """Whether indices that differ lead to elements that are equal."""
    x, dims = leaves[0], [a for a in (*sample.args[1:], sample.kwargs.get("dim")) if type(a) is int]
    if not isinstance(theirs, torch.Tensor) or theirs.dtype != torch.int64 or tuple(ours.shape) != tuple(theirs.shape):
        return False
    mine = as_torch(ours)
    for dim in (*dims, -1, None):
        with contextlib.suppress(Exception):
            flat = dim is None
            source = x.flatten() if flat else x
            pick = lambda i: source[i] if flat else source.gather(dim, i if i.ndim == x.ndim else i.unsqueeze(dim))
            a, b = pick(mine), pick(theirs)
            if bool(((a == b) | (a.isnan() & b.isnan())).all()):
                return True
    return False


def cotangent(y, layout):
    """Numbers to weigh a result with, laid out as the sample is."""
    x = torch.randn(y.shape).bfloat16().to(y.dtype)  # the same numbers in every dtype
    return samples.laid_out(x, layout if layout in ("transposed", "stepped", "expanded") else "plain", True)


def differentiate(sample, side, clone):
    """Gradients of the floating results with respect to the differentiable arguments; None where there are none."""
    args, kwargs, leaves = inputs(sample, side)
    wanted = [x for x, w in zip(leaves, sample.differentiable) if w]
    for x in wanted:
        x.requires_grad_()
    if clone:  # an in-place form does not change a leaf
        args[0] = args[0] * 1
    values = results(call(sample, side, args, kwargs))
    kind = torch.Tensor if side == "torch" else volta.Tensor
    values = [y for y in values if isinstance(y, kind)]
    return wanted, values


def gradients(sample, clone):
    """(ours, theirs), lists of torch's tensors, or None where PyTorch has no gradient."""
    if sample.layout == "special" or not any(sample.differentiable):
        return None
    if sample.name in CRASHES and any(x.numel() == 0 for x in samples.tensors_of(sample.args)):
        return None
    try:
        wanted, values = differentiate(sample, "torch", clone)
        at = [i for i, y in enumerate(values) if y.requires_grad]
        if not at:
            return None
        samples.seeded("cotangent", sample.name, sample.number)
        weights = [cotangent(values[i], sample.layout) for i in at]
        theirs = torch.autograd.grad([values[i] for i in at], wanted, weights, allow_unused=True)
    except (RuntimeError, NotImplementedError, IndexError, ValueError):
        return None
    theirs = [torch.zeros_like(x) if g is None else g for x, g in zip(wanted, theirs)]
    wanted, values = differentiate(sample, "volta", clone)
    weights = [volta.from_dlpack(w) for w in weights]
    reached = [(values[i], w.to(values[i].dtype)) for i, w in zip(at, weights) if values[i].requires_grad]
    ours = [None] * len(wanted)
    if reached:
        ours = volta.autograd.grad([y for y, _ in reached], wanted, [w for _, w in reached], allow_unused=True)
    ours = [torch.zeros_like(t) if g is None else as_torch(g) for g, t in zip(ours, theirs)]
    return ours, theirs


def in_double(sample):
    """The sample with all floats in f64."""
    wide = lambda x: samples.laid_out(x, sample.layout, False).double() if x.dtype.is_floating_point else x
    args, kwargs = samples.walked([sample.args, sample.kwargs], wide)
    args = tuple(torch.float64 if a in samples.FLOATS else a for a in args)
    kwargs = {k: torch.float64 if v in samples.FLOATS else v for k, v in kwargs.items()}
    return dataclasses.replace(sample, args=args, kwargs=kwargs, dtype=torch.float64, layout="plain")


def rounded(sample):
    """Whether some floats have less than double precision."""
    found = {x.dtype for x in samples.tensors_of(sample.args, sample.kwargs)} | {sample.dtype}
    return bool(found & {torch.float32, torch.float16, torch.bfloat16})


def nearer_than_torch(ours, theirs, truths):
    """Whether we are about as near as PyTorch to its own answer in double: the largest error at most twice its own."""
    for a, b, c in zip(ours, theirs, truths, strict=True):
        a = as_torch(a)
        if not (isinstance(b, torch.Tensor) and b.dtype.is_floating_point):
            continue
        a, b, exact, unit = a.double(), b.detach().double(), c.to(b.dtype).double(), torch.finfo(b.dtype).eps
        same = (a == exact) | (a.isnan() & exact.isnan())
        measured = a.isfinite() & exact.isfinite()
        if not bool((same | measured).all()):
            return False
        if not measured.any():
            continue
        mine, size = (a - exact).abs()[measured], exact.abs()[measured].max()
        other = torch.where(b.isfinite(), (b - exact).abs(), torch.inf)[measured].max()
        if not bool((mine <= 2 * other + 2 * unit * size).all()):
            return False
    return True


def compare(sample, pointwise, cast=False):
    """The outcome of one sample."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return compare_values(sample, pointwise, cast)


def compare_values(sample, pointwise, cast):
    args, kwargs, leaves = inputs(sample, "torch")
    mine_args, mine_kwargs, mine_leaves = inputs(sample, "volta")
    try:
        with in_time(20), torch.no_grad():
            theirs = results(call(sample, "torch", args, kwargs))
    except Exception:  # PyTorch has no answer
        return SKIP
    if any(isinstance(x, torch.Tensor) and (x.is_complex() or x.layout != torch.strided) for x in theirs):
        return SKIP
    try:
        with in_time(20), volta.no_grad():
            ours = results(call(sample, "volta", mine_args, mine_kwargs))
    except Exception as error:
        shown = ", ".join(str(t.tolist())[:60] if isinstance(t, torch.Tensor) else repr(t) for t in theirs[:2])
        return Outcome("refused", f"{type(error).__name__}: {str(error)[:150]}; PyTorch {shown}")
    if len(ours) != len(theirs):
        return Outcome("shape", f"{len(ours)} results, PyTorch {len(theirs)}")
    if (sample.name in samples.RANDOM and "_random_samples" not in sample.kwargs) or sample.kwargs.get("dropout_p"):
        for a, b in zip(ours, theirs):
            if (tuple(a.shape), dtype_name(a)) != (tuple(b.shape), dtype_name(b)):
                return Outcome("shape", f"{dtype_name(a)} {a.shape}, PyTorch {dtype_name(b)} {tuple(b.shape)}")
        return AGREE
    for i, (a, b) in enumerate(zip(ours, theirs)):
        try:
            bad = compared(a, b, pointwise, f"result {i} " if len(theirs) > 1 else "", cast)
        except Exception as error:
            return Outcome("value", f"cannot be compared: {type(error).__name__} {error}; {str(a)[:80]}, {str(b)[:80]}")
        if bad and bad[0] == "value":
            if sample.name in samples.TIES and leads_to_same(sample, leaves, a, b):
                continue
            if rounded(sample):
                with contextlib.suppress(Exception):
                    double = inputs(in_double(sample), "torch")
                    truths = results(call(sample, "torch", double[0], double[1]))
                    if nearer_than_torch(ours, theirs, truths):
                        return Outcome("agree", by_double=True)
        if bad:
            return Outcome(*bad)
    for i, (a, b) in enumerate(zip(mine_leaves, leaves)):
        bad = compared(a, b, pointwise, f"argument {i} afterwards ")
        if bad:
            return Outcome("input", bad[1])
    return compare_gradients(sample)


def compare_gradients(sample):
    clone = sample.name.endswith("_") or sample.name.startswith("__i") and sample.name != "__invert__"
    try:
        with in_time(20):
            both = gradients(sample, clone)
    except volta.AutogradError as error:
        return Outcome("no gradient", str(error)[:150])
    except Exception as error:
        return Outcome("gradient", f"{type(error).__name__}: {str(error)[:150]}")
    if both is None:
        return AGREE
    scale = max((float(g[g.isfinite()].abs().max()) for g in both[1] if g.isfinite().any()), default=0.0)
    for i, (a, b) in enumerate(zip(*both)):
        if a.shape != b.shape or a.dtype != b.dtype:
            return Outcome("gradient", f"argument {i}: {a.dtype} {tuple(a.shape)}, PyTorch {b.dtype} {tuple(b.shape)}")
        good = near(a, b, False, scale)
        if bool(good.all()):
            continue
        if rounded(sample):
            with contextlib.suppress(Exception):
                double = gradients(in_double(sample), clone)
                if nearer_than_torch(both[0], both[1], double[1]):
                    return Outcome("agree", gradients=1, by_double=True)
        return Outcome("gradient", first_difference(a, b, good, f"argument {i} "))
    return Outcome("agree", gradients=1)
