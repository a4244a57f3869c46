"""Calls to ask PyTorch about: every name that both packages have, with arguments of all dtypes and layouts.

Arguments come from PyTorch's own list of operators, which its package brings along for its tests; what that list lacks
is written here. A sample holds torch's tensors; `oracle_compare.py` gives them to both.
"""

import contextlib
import dataclasses
import itertools
import random
import sys
import types
import unittest
import zlib

import torch
import torch.nn.functional

import volta

FLOATS = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
INTEGERS = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)
WIDE = (torch.uint16, torch.uint32, torch.uint64)  # PyTorch has few ops for these
DTYPES = (*FLOATS, *INTEGERS, torch.bool, *WIDE)
MOST = 5  # samples of each variant of an op and each dtype
LAYOUTS = ("plain", "transposed", "stepped", "expanded", "reversed", "empty", "0-d", "special", "mixed")

# What is no op, or has nothing to compare: how PyTorch is set up, devices, memory, files, hooks, gradients as such.
NO_OPS = set(
    """backward cuda cpu data_ptr element_size finfo iinfo from_numpy from_dlpack frombuffer get_default_dtype
    get_device get_num_threads get_rng_state grad is_grad_enabled is_inference_mode_enabled is_storage load
    manual_seed numpy pin_memory register_hook requires_grad_ retain_grad save seed set_default_dtype
    set_grad_enabled set_num_threads set_rng_state set_printoptions storage to_device tolist type
    untyped_storage initial_seed inference_mode enable_grad no_grad set_default_device get_default_device autocast
    Generator Size Tensor device dtype default_generator compile typename is_tensor asarray as_tensor tensor
    manual_seed_all callable Parameter boolean_dispatch has_torch_function handle_torch_function grad_fn data
    is_leaf requires_grad retains_grad can_cast promote_types result_type is_autocast_enabled""".split()
)
# Results that are random, or whatever was in memory: only their shapes and dtypes are compared.
RANDOM = set(
    """rand rand_like randn randn_like randint randint_like randperm empty empty_like new_empty bernoulli bernoulli_
    normal normal_ uniform_ multinomial poisson exponential_ geometric_ cauchy_ log_normal_ random_ rrelu rrelu_ dropout
    feature_dropout alpha_dropout feature_alpha_dropout dropout1d dropout2d dropout3d gumbel_softmax
    fractional_max_pool2d fractional_max_pool3d fractional_max_pool2d_with_indices
    fractional_max_pool3d_with_indices""".split()
)
SORTED = set("searchsorted bucketize".split())  # rows that another layout would put out of order
# Indices of equal elements are left open by PyTorch: the elements that they lead to are compared.
TIES = set("sort argsort topk kthvalue median nanmedian min max argmin argmax cummax cummin msort mode aminmax".split())
# Documented both as torch.name and as torch.nn.functional.name.
SHARED = set("celu_ celu relu relu_ selu selu_ softmax log_softmax sigmoid tanh threshold unique".split())
OPERATORS = """add radd iadd sub rsub isub mul rmul imul truediv rtruediv itruediv floordiv rfloordiv ifloordiv mod rmod
imod pow rpow ipow matmul rmatmul and rand iand or ror ior xor rxor ixor lshift rlshift ilshift rshift rrshift irshift
neg pos abs invert eq ne lt le gt ge getitem""".split()
# What an operator is called in PyTorch's list.
CALLED = {
    "truediv": "div",
    "floordiv": "floor_divide",
    "mod": "remainder",
    "and": "bitwise_and",
    "or": "bitwise_or",
    "xor": "bitwise_xor",
    "lshift": "bitwise_left_shift",
    "rshift": "bitwise_right_shift",
    "invert": "bitwise_not",
    "pos": "positive",
}
# What asks how a tensor lies in memory: not of layouts that torch's tensors cannot have, or that differ by construction.
OF_MEMORY = set("as_strided as_strided_ detach_ is_contiguous stride storage_offset view resize_".split())


@dataclasses.dataclass
class Sample:
    """One call: the place and name of the function, its arguments, and which of the tensors are differentiated."""

    place: str  # "volta", "functional" or "Tensor"
    name: str
    args: tuple
    kwargs: dict
    dtype: torch.dtype
    layout: str = "plain"
    differentiable: tuple = ()  # by the order of tensors in args and kwargs
    number: int = 0

    def __str__(self):
        def text(v):
            if isinstance(v, torch.Tensor):
                strides = "" if v.is_contiguous() else f" strides {list(v.stride())}"
                return f"{str(v.dtype).removeprefix('torch.')}{list(v.shape)}{strides}"
            if isinstance(v, (list, tuple)) and any(isinstance(i, torch.Tensor) for i in v):
                return "[" + ", ".join(map(text, v)) + "]"
            return repr(v)

        shown = [text(v) for v in self.args] + [f"{k}={text(v)}" for k, v in self.kwargs.items()]
        return f"{self.place}.{self.name}({', '.join(shown)}) of {str(self.dtype)[6:]}, {self.layout}"


def walked(value, change):
    """The value with `change` made to every tensor in it."""
    if isinstance(value, torch.Tensor):
        return change(value)
    if isinstance(value, (list, tuple)) and not isinstance(value, torch.Size):
        return type(value)(walked(v, change) for v in value)
    if isinstance(value, dict):
        return {k: walked(v, change) for k, v in value.items()}
    return value


def tensors_of(*values):
    found = []
    walked(list(values), lambda x: found.append(x) or x)
    return found


def names():
    """(place, name) of everything that both packages have."""
    found = []
    places = (("volta", volta, torch), ("functional", volta.nn.functional, torch.nn.functional))
    for place, ours, theirs in (*places, ("Tensor", volta.Tensor, torch.Tensor)):
        for name in sorted(set(dir(ours)) & set(dir(theirs))):
            if name.startswith("_") and name.strip("_") not in OPERATORS or name in NO_OPS:
                continue
            one = getattr(ours, name)
            if isinstance(one, (type, types.ModuleType)) or not callable(one) and not isinstance(one, property):
                continue
            if place == "volta" and internal(name):
                continue
            found.append((place, name))
    return found


def internal(name):
    """Whether torch.name is a primitive beneath the documented torch.nn.functional.name, with other arguments."""
    documented = getattr(torch.nn.functional, name, None)
    return documented is not None and isinstance(documented, types.FunctionType) and name not in SHARED


def torch_list():
    """PyTorch's operators by name and alias, each a list of variants."""
    try:
        import expecttest  # noqa: F401
    except ImportError:  # wanted by a module on the way, for a class that is not used here
        sys.modules["expecttest"] = types.SimpleNamespace(TestCase=unittest.TestCase, __spec__=None)
    from torch.testing._internal.common_methods_invocations import op_db

    table = {}
    for op in op_db:
        if op.name.startswith(("_refs", "ops.", "sparse.", "masked.")):
            continue
        for name in dict.fromkeys([op.name, *(alias.name for alias in op.aliases)]):
            place = "functional" if name.startswith("nn.functional.") else ""
            table.setdefault((place, name.removeprefix("nn.functional.")), []).append(op)
    return table


def is_pointwise(table, place, name):
    """Whether each element of the result is a function of one element of each argument."""
    ops = listed(table, place, name)
    kinds = {base.__name__ for op in ops for base in type(op).__mro__}
    return bool(ops) and bool(kinds & {"UnaryUfuncInfo", "BinaryUfuncInfo"})


def seeded(*key):
    """Random numbers that depend on the key alone."""
    seed = zlib.crc32(repr(key).encode())
    torch.default_generator.manual_seed(seed)  # torch.manual_seed asks for every kind of device
    random.seed(seed)
    return random.Random(seed)


def listed(table, place, name):
    """The variants of PyTorch's list that fit a name: an in-place form takes what the other takes."""
    operator = name.strip("_") if name.startswith("__") else ""
    bare = operator[1:] if operator[:1] in ("i", "r") and operator[1:] in OPERATORS else operator
    for known in (name, operator, CALLED.get(bare, bare), name.removesuffix("_")):
        for group in ("functional", "") if place == "functional" else ("", "functional"):
            if (group, known) in table:
                return table[group, known]
    return []


def usable(sample):
    """Whether the arguments are something that the other package has: dense, real, small."""
    bad = []

    def look(x):
        if x.is_complex() or x.layout != torch.strided or x.numel() > 20000 or x.is_quantized or x.device.type != "cpu":
            bad.append(x)
        return x

    values = [*sample.args, *sample.kwargs.values()]
    walked(values, look)
    kinds = (torch.memory_format, torch.layout, torch.Generator, complex, types.FunctionType, torch.nn.Module)
    flat = [*values, *itertools.chain(*(v for v in values if isinstance(v, (list, tuple))))]
    complex_dtypes = (torch.complex64, torch.complex128, torch.complex32)
    if sample.name.startswith("__") and sample.kwargs:
        return False
    return not bad and not any(isinstance(v, kinds) or v in complex_dtypes for v in flat if not torch.is_tensor(v))


def from_list(ops, place, name, dtype, most):
    """Samples of PyTorch's list, at most so many of each variant."""
    for op in ops:
        pick = seeded(name, op.name, op.variant_test_name, str(dtype))
        if (
            dtype not in op.dtypes and dtype not in WIDE
        ):  # PyTorch computes it at most where there is nothing to compute
            continue
        wants_grad = bool(dtype.is_floating_point and op.supports_autograd)
        try:
            # Not op.sample_inputs, which seeds every kind of device and looks through the stack for each.
            made = list(itertools.islice(op.sample_inputs_func(op, "cpu", dtype, wants_grad), 400))
        except Exception:  # the list has no arguments of this dtype
            continue
        for number, s in enumerate(pick.sample(made, min(len(made), MOST))[:most]):
            args, kwargs = (s.input, *s.args), dict(s.kwargs)
            if op.is_factory_function and not isinstance(s.input, torch.Tensor):
                kwargs.pop("device", None)
            wanted = tuple(x.requires_grad for x in tensors_of(args, kwargs))
            args, kwargs = walked([args, kwargs], torch.Tensor.detach)
            yield Sample(place, name, args, kwargs, dtype, "plain", wanted, number)


def written_for(own, dtype):
    """Arguments as far as PyTorch can make them of this dtype."""
    found = []
    with contextlib.suppress(NotImplementedError, RuntimeError):
        found.extend(own(dtype))
    return found


def made(x, build):
    """A tensor of x's values that `build` lays out: it is given memory and says which view of it to fill."""
    view = build(x)
    view.copy_(x)
    return view


def stepped(x):
    if x.ndim == 0:
        return torch.zeros(3, dtype=x.dtype)[1]
    memory = torch.zeros([2 * n + 1 for n in x.shape], dtype=x.dtype)
    return memory[tuple(slice(1, None, 2) for _ in x.shape)]


def transposed(x):
    if x.ndim < 2:
        return stepped(x)
    return torch.zeros(list(reversed(x.shape)), dtype=x.dtype).permute(*reversed(range(x.ndim)))


def expanded(x):
    """The first element along the longest axis in place of all, with stride 0."""
    if x.ndim == 0 or x.numel() < 2:
        return x.clone()
    axis = max(range(x.ndim), key=lambda i: x.shape[i])
    return x.narrow(axis, 0, 1).clone().expand(x.shape)


def laid_out(x, layout, first=False):
    """A new tensor with x's values in memory of its own. Indices, which must stay what they are, come after the first."""
    if layout == "transposed":
        return made(x, transposed)
    if layout == "stepped":
        return made(x, stepped)
    if layout == "expanded" and (first or x.dtype.is_floating_point):
        return expanded(x)
    return x.clone(memory_format=torch.contiguous_format)


SPECIAL = [float("inf"), -float("inf"), float("nan"), 0.0, -0.0, 1.0, -1.0]


def with_special(x, pick):
    """Infinities, NaN and zeros at some of the places."""
    x = x.clone(memory_format=torch.contiguous_format)
    flat = x.view(-1)
    for i in pick.sample(range(x.numel()), min(x.numel(), max(2, x.numel() // 4))):
        flat[i] = pick.choice(SPECIAL)
    return x


def in_layout(sample, layout):
    """The sample with its tensors changed as the layout says; None where that is nothing new."""
    tensors = tensors_of(sample.args, sample.kwargs)
    if not tensors:
        return None
    pick = seeded(sample.name, str(sample.dtype), layout, sample.number)
    change = lambda x: x
    if sample.name in SORTED and layout in ("special", "mixed", "expanded"):
        return None
    if layout == "special":
        if not any(x.dtype.is_floating_point and x.numel() for x in tensors):
            return None
        change = lambda x: with_special(x, pick) if x.dtype.is_floating_point else x
    elif layout == "empty":
        first = tensors[0].shape[:1]
        if not first or first[0] == 0:
            return None
        change = lambda x: x[:0] if x.shape[:1] == first else x
    elif layout == "0-d":
        if tensors[0].ndim == 0 or any(x.numel() == 0 for x in tensors) or len(tensors) > 3:
            return None
        change = lambda x: x.flatten()[0].clone()
    elif layout == "mixed":
        if len(tensors) < 2:
            return None
        other = pick.choice([d for d in DTYPES if d is not sample.dtype and d not in WIDE])
        place = iter(range(len(tensors)))
        absolute = lambda x: x.abs() if x.dtype.is_signed else x
        change = lambda x: absolute(x).to(other) if next(place) == 1 and x.dtype is sample.dtype else x
    elif max(x.numel() for x in tensors) < 2:
        return None
    args, kwargs = walked([sample.args, sample.kwargs], change)
    return dataclasses.replace(sample, args=args, kwargs=kwargs, layout=layout)


def samples(table, written, place, name, whole):
    """The calls of one name: every dtype and layout, or a seeded part of them."""
    ops, own = listed(table, place, name), written.get((place, name)) or written.get(("", name.removesuffix("_")))
    dtypes, most = DTYPES, MOST
    if not whole:
        pick = seeded("short", place, name)
        known = set().union(*(op.dtypes for op in ops)) if ops and not own else set(DTYPES)
        dtypes, most = [d for d in DTYPES if d in known and d not in WIDE], 2
        dtypes = dtypes[:1] + pick.sample(dtypes[1:], min(1, len(dtypes[1:])))
    for dtype in dtypes:
        found = list(from_list(ops, place, name, dtype, 2 if dtype in WIDE else most)) if ops and not own else []
        if own:
            seeded(name, str(dtype))
            for number, (args, kwargs) in enumerate(written_for(own, dtype)):
                wanted = tuple(x.dtype.is_floating_point for x in tensors_of(args, kwargs))
                found.append(Sample(place, name, args, kwargs, dtype, "plain", wanted, number))
        for sample in filter(usable, found):
            pick = seeded(place, name, str(dtype), sample.number)
            layouts = pick.sample(LAYOUTS[1:], 4)[: 4 if whole else 1]
            yield sample
            for layout in layouts if name not in OF_MEMORY else []:
                other = in_layout(sample, layout)
                if other:
                    yield other
