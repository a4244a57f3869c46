"""What is known to differ from PyTorch: each row of the table in docs/python.md, and which samples are instances of it."""

import re

import torch
from oracle_samples import tensors_of

TIES = (
    "sort argsort topk kthvalue median nanmedian quantile nanquantile max min amax amin aminmax cummax cummin".split()
)
LOSSES = "hinge_embedding_loss cosine_embedding_loss".split()


def tensors(sample):
    return tensors_of(sample.args, sample.kwargs)


def dtypes(sample):
    return {x.dtype for x in tensors(sample)}


def refused(pattern, *names):
    """Our error's text fits, for any name or one of those given."""
    return lambda s, o: o.kind == "refused" and bool(re.search(pattern, o.text)) and (not names or bare(s) in names)


def of(names, *kinds, layouts=(), when=lambda s: True):
    """These names, kinds of disagreement and layouts."""
    wanted = names.split()
    return lambda s, o: bare(s) in wanted and o.kind in kinds and (not layouts or s.layout in layouts) and bool(when(s))


def either(*matches):
    return lambda s, o: any(m(s, o) for m in matches)


def bare(sample):
    """The name without what says in place or reflected."""
    name = sample.name
    return name if name.startswith("__") else name.removesuffix("_")


def weak_zero_d(sample, outcome):
    """A 0-d tensor of another dtype beside one with axes."""
    found = tensors(sample)
    return (
        outcome.kind in ("dtype", "value", "refused")
        and len(dtypes(sample)) > 1
        and any(x.ndim == 0 for x in found)
        and any(x.ndim for x in found)
    )


def mixed(sample):
    return len({d for d in dtypes(sample) if d.is_floating_point or sample.layout == "mixed"}) > 1


WIDE = {torch.uint16, torch.uint32, torch.uint64}
TEN = {torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8, torch.bool} | WIDE

# (what, here, in PyTorch, why): (which samples). The first that fits counts.
DIFFERENCES = {}


def differs(what, here, there, why, match):
    DIFFERENCES[what, here, there, why] = match


def rows():
    """The rows of the table in docs/python.md."""
    return [f"| {what} | {here} | {there} | {why} |" for what, here, there, why in DIFFERENCES]


def known(sample, outcome):
    """What the disagreement is an instance of; None if of nothing that is known."""
    return next((key[0] for key, match in DIFFERENCES.items() if match(sample, outcome)), None)


# Dtypes.
differs(
    "integers and booleans where an op is about fractions: convolution, pooling, resampling, distances, losses, norms, `softmax`, `bernoulli`",
    "an error that names the conversion",
    "computed in integers, or in floats, for some of the dtypes, or for empty tensors alone",
    "fractions would be cut off in silence",
    refused(r"DTypeError.*(needs (one |a )?float|one floating dtype|must be of floats|of numbers, and)"),
)
differs(
    "booleans in products, sums in place, `fmax`, `fmin`, `heaviside`, `einsum`, `index_add`",
    "an error",
    "`and` and `or`",
    "they are no numbers; `logical_and` and `logical_or` say it",
    refused(r"DTypeError.*not defined for booleans"),
)
differs(
    "numbers that an integer dtype does not hold: `alpha=-3` of u8, `beta=0.6` of integers, `full(-1)` of u8",
    "an error",
    "wrapped, or cut off",
    "one rule, NumPy 2's",
    refused(r"does not fit|not whole"),
)
differs(
    "a 0-d tensor of another dtype",
    "counts like any tensor in promotion",
    "weak",
    "the array API",
    weak_zero_d,
)
differs(
    "`uint64` beside signed integers, `uint16` and wider beside others",
    "as the array API promotes; f32 with signed integers",
    "an error, or the signed dtype for some ops",
    "values fit",
    lambda s, o: bool(dtypes(s) & WIDE) and len(dtypes(s)) > 1 and o.kind in ("dtype", "refused", "value"),
)
differs(
    "`sum`, `prod`, `cumsum`, `cumprod`, `nansum` of `uint64`",
    "`uint64`",
    "`int64`",
    "`int64` cannot hold them",
    of("sum prod cumsum cumprod nansum", "dtype", when=lambda s: torch.uint64 in dtypes(s)),
)
differs("`any`, `all` of `uint8`", "`bool`", "`uint8`", "one rule", of("any all", "dtype"))
differs(
    "`einsum` of integers", "keeps the dtype", "`int64` for a sum of one operand", "one rule", of("einsum", "dtype")
)
differs(
    "`trapezoid` and `cumulative_trapezoid` of integers, also beside floats",
    "the default float",
    "differences and products in the integer dtype, which wraps; the narrower float",
    "areas have fractions",
    of("trapezoid cumulative_trapezoid", "value", "dtype", when=lambda s: dtypes(s) & TEN),
)
differs(
    "arguments of several float dtypes in losses, distances and products",
    "the dtype of the input, or of the promotion; computed in it",
    "the promotion, or that of the target; partly computed in the narrower dtype",
    "one rule for each op",
    lambda s, o: mixed(s) and o.kind == "dtype" and bare(s) not in ("add", "sub", "mul", "div"),
)
differs(
    "`bincount` of nothing with weights of integers",
    "`float64`",
    "`int64`",
    "weights give `float64`",
    of("bincount", "dtype"),
)
differs(
    "`linspace`, `logspace`, `arange` of an integer dtype with ends that are fractions",
    "computed from the ends as they are, and cut off at the end",
    "the ends are cut off first",
    "`linspace(4.7, 1, …)` starts at 4.7",
    of("linspace logspace arange", "value", "refused"),
)
differs(
    "floats out of range converted to integers",
    "saturate, NaN gives 0",
    "depends on the machine",
    "defined",
    of("byte char short int long bool to type_as copy", "value", when=lambda s: s.dtype.is_floating_point),
)
differs(
    "losses of an input and a wider target; `addr` of f32 and f64",
    "in the dtype of the input, integers as f64; the first product in f32",
    "in that of the target, integers as f32; in f64",
    "one rule for each op",
    lambda s, o: (
        s.layout == "mixed"
        and o.kind == "value"
        and (bare(s) == "addr" or "loss" in s.name or "binary_cross" in s.name)
    ),
)
differs(
    "gradients of `x.op_(y)` where y has a wider dtype than x",
    "computed in the dtype of x",
    "in that of y",
    "the result has the dtype of x",
    lambda s, o: o.kind == "gradient" and s.layout == "mixed" and (s.name.endswith("_")),
)
differs(
    "`softmin`, and losses that negate a target, of `uint8`",
    "negated after the conversion",
    "wrapped before it",
    "",
    lambda s, o: bare(s) in ("softmin", "multilabel_soft_margin_loss", "soft_margin_loss") and torch.uint8 in dtypes(s),
)

# Shapes and forms.
differs(
    "a loss of an input and a target of different shapes, a 1-d score with one label in a list",
    "an error",
    "broadcast",
    "it is a mistake nearly always",
    refused(r"differ in shape|need labels|needs? a batch axis|must be \[N, C\]|need an axis of classes"),
)
differs(
    "dropout of whole channels, or batch norm, of tensors without channels",
    "an error",
    "given back, or as if each element was one",
    "a mistake nearly always",
    refused(r"needs \[n, channels"),
)
differs(
    "a negative `eps`",
    "an error",
    "computed",
    "numbers that make no sense",
    refused(r"eps must be finite"),
)
differs(
    "writing in place into expanded memory",
    "an error",
    "an error, but for some ops",
    "elements share memory",
    refused(r"elements share memory"),
)
differs(
    "`x.addbmm_` where x has fewer axes than the result",
    "an error",
    "x is given another shape",
    "a tensor keeps its shape",
    refused(r"cannot expand to", "addbmm", "baddbmm", "addr", "addmm", "addmv"),
)
differs(
    "`x.squeeze_()`, `unsqueeze_`, `t_`, `transpose_` … of a tensor with a history",
    "an error",
    "recorded",
    "a handle's shape never changes behind another's back",
    lambda s, o: o.kind == "no gradient" and "keeps its shape" in o.text,
)
differs(
    "`x.T`, `x.mT`, `x.H` of tensors without two axes",
    "an error",
    "x, with a warning",
    "PyTorch is about to refuse it too",
    refused(r"(needs at least 2 axes|a matrix is wanted)", "T", "mT", "H", "mH", "adjoint"),
)
differs(
    "`tensordot` over axes of sizes 1 and n",
    "an error",
    "the axis of n is summed",
    "sizes that differ are a mistake",
    refused(r"have sizes", "tensordot"),
)
differs(
    "weights of `cov` for one observation without axes",
    "an error",
    "taken",
    "a weight for each observation is a list",
    refused(r"do not fit", "cov"),
)
differs(
    "`enable_gqa` of a query without an axis of heads",
    "an error",
    "as one head",
    "",
    refused("enable_gqa needs"),
)
differs(
    "empty tensors in attention, `gather`, `linspace`, `pixel_unshuffle`",
    "checked like others",
    "not looked at",
    "one rule",
    either(
        of(
            "scaled_dot_product_attention gather scatter linspace",
            "refused",
            layouts=("empty", "plain", "mixed", "expanded", "reversed", "transposed", "stepped"),
            when=lambda s: any(x.numel() == 0 for x in tensors(s)),
        ),
        of("pixel_unshuffle pixel_shuffle", "shape", layouts=("empty",)),
    ),
)
differs(
    "`median`, `nanmedian` of an empty tensor of integers",
    "an error",
    "NaN made an integer",
    "there is none",
    refused(r"no result over zero elements"),
)
differs(
    "`grid_sample` of volumes, bicubic",
    "an error",
    "in its latest versions",
    "not there yet",
    refused(r"mode bicubic needs"),
)

differs(
    "`unfold` of a tensor without axes",
    "an error",
    "as if it had one",
    "",
    refused("needs at least 1 axes", "unfold"),
)
differs(
    "parameters of random numbers that are not finite",
    "an error",
    "no numbers",
    "",
    refused(r"must be finite|must lie in \[0, 1\)"),
)

# Values.
differs(
    "`sign(nan)`, `heaviside(nan, …)`",
    "NaN",
    "0",
    "the array API; NaN is never lost",
    of("sign sgn heaviside", "value", layouts=("special", "0-d", "mixed")),
)
differs(
    "`//` of infinities",
    "the rounded quotient: `inf // 2` is `inf`",
    "NaN",
    "the array API",
    lambda s, o: "floordiv" in s.name and o.kind == "value" and s.layout == "special",
)
differs(
    "`cross_entropy`, `nll_loss` of a row that is not finite and whose class weighs 0",
    "weighs nothing",
    "NaN",
    "a class is left out by weighing 0",
    of("cross_entropy nll_loss", "value", layouts=("special",)),
)
differs(
    "infinite or NaN inputs, weights or grids of a convolution, norm, resampling, attention, loss or matrix product",
    "seen where the formula has them: beside a window, behind a mask or a weight of 0 they may be met or not",
    "the same, at other places",
    "`0 * inf` is NaN only where it is computed",
    of(
        """conv_transpose1d conv_transpose2d conv_transpose3d conv1d conv2d conv3d affine_grid grid_sample interpolate
        upsample group_norm instance_norm layer_norm batch_norm scaled_dot_product_attention embedding_bag
        multi_margin_loss multilabel_margin_loss var_mean std_mean trapezoid cumulative_trapezoid addr addmm addmv
        baddbmm addbmm unique gelu polygamma cdist renorm cov corrcoef""",
        "value",
        "input",
        layouts=("special",),
    ),
)
differs(
    "several NaN in a window of max pooling: `return_indices`",
    "the first",
    "the last",
    "as for `max`",
    lambda s, o: "max_pool" in s.name and o.kind == "value" and s.layout == "special",
)
differs(
    "`median` along an expanded axis",
    "the number",
    "what lies beside it in memory",
    "a defect there",
    of("median nanmedian", "value", "gradient", layouts=("expanded",)),
)
differs(
    "`var`, `std` of nothing with a negative correction; running statistics and losses of an empty batch",
    "0, unchanged, NaN",
    "NaN, NaN, what was in memory",
    "",
    either(
        of("var std var_mean std_mean", "value", layouts=("empty",)),
        of("instance_norm batch_norm", "input", layouts=("empty",)),
        of("multi_margin_loss multilabel_margin_loss", "value", layouts=("empty",)),
    ),
)

differs(
    "`polygamma` at 0, -1, -2 …",
    "infinity",
    "large numbers",
    "its limit",
    of("polygamma", "value"),
)

differs(
    "`uint8` tensors as indices",
    "numbers",
    "masks, with a warning",
    "masks are boolean",
    of("index_put __getitem__", "value", "refused", "shape", "gradient", when=lambda s: torch.uint8 in dtypes(s)),
)

# Gradients.
differs(
    "gradients at equal elements: `max`, `amax`, `sort`, `topk`, `median`, `kthvalue` …",
    "to the first in the order of a stable sort, or shared where PyTorch's documentation says so",
    "to any of them",
    "left open",
    lambda s, o: o.kind == "gradient" and (bare(s) in TIES or bare(s) == "cdist" and s.layout == "expanded"),
)
differs(
    "gradient of `clamp`, `clip` at a bound",
    "whole to x",
    "whole, none or half, by version",
    "numbers and tensors are one op",
    of("clamp clip clamp_min clamp_max", "gradient"),
)
differs(
    'gradient of `norm(x, "nuc")`',
    "an error",
    "computed",
    "decompositions have no derivative yet",
    lambda s, o: o.kind == "no gradient" and bare(s) == "norm",
)
differs(
    "gradient of `nextafter`",
    "an error",
    "1 to x, where it is no step",
    "it is a step of rounding",
    of("nextafter", "no gradient"),
)
differs(
    "a target that is only compared, and requires grad",
    "an error",
    "zeros, or a gradient of what it multiplies",
    "a label is a choice",
    lambda s, o: o.kind == "no gradient" and bare(s) in LOSSES,
)
differs(
    "gradient of `ctc_loss`",
    "by the log probabilities as they are given",
    "as if `log_softmax` came before",
    "the same after `log_softmax`",
    of("ctc_loss", "gradient"),
)
differs(
    "gradient of `cosine_similarity` of a vector shorter than `eps`",
    "the derivative",
    "as if `eps` was not there",
    "",
    of("cosine_similarity cosine_embedding_loss", "gradient"),
)
differs(
    "gradient of `hardsigmoid` in f64",
    "1/6 in f64",
    "1/6 rounded to f32",
    "",
    of("hardsigmoid", "gradient", when=lambda s: s.dtype is torch.float64),
)
differs(
    "gradient of `nanmean` of NaN alone",
    "0",
    "NaN",
    "nothing of the row is in the result",
    of("nanmean", "gradient"),
)
differs(
    "gradients of `std`, `corrcoef`, `normalize` where they are 0",
    "0, or the rounding of another order of sums",
    "the rounding of its order",
    "",
    of("std std_mean corrcoef normalize layer_norm var", "gradient"),
)
differs(
    "gradient of `logcumsumexp` of halves at large numbers",
    "from the rounded result",
    "from the rounded result, in another order",
    "8 or 11 bits of 10000 leave nothing of a difference",
    of("logcumsumexp", "gradient", when=lambda s: s.dtype in (torch.float16, torch.bfloat16)),
)
differs(
    "gradient of `block_diag` beside an empty vector",
    "of its own row",
    "of the row before",
    "a defect there",
    of("block_diag", "gradient", layouts=("empty",)),
)
differs(
    "gradients beyond the range of halves, or beside a pole: `pow`, `digamma`, `poisson_nll_loss`",
    "finite where the product is",
    "infinite or NaN where a factor is",
    "factors are multiplied in f32",
    lambda s, o: (
        o.kind == "gradient"
        and any(n in s.name for n in ("pow", "digamma", "lgamma", "poisson_nll_loss"))
        and s.dtype in (torch.float16, torch.bfloat16)
    ),
)
