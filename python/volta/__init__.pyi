import builtins as _builtins

from ._volta import *  # isort: skip
from ._volta import dtype as dtype  # isort: skip
from . import amp as amp
from . import array_api as array_api
from . import autograd as autograd
from . import backends as backends
from . import callbacks as callbacks
from . import cuda as cuda
from . import linalg as linalg
from . import metrics as metrics
from . import nn as nn
from . import optim as optim
from . import train as train
from . import utils as utils
from ._grad_mode import enable_grad as enable_grad
from ._grad_mode import inference_mode as inference_mode
from ._grad_mode import no_grad as no_grad
from ._grad_mode import set_grad_enabled as set_grad_enabled
from ._tensor import as_tensor as as_tensor
from ._tensor import asarray as asarray
from ._tensor import is_tensor as is_tensor
from ._tensor import load as load
from ._tensor import save as save
from ._tensor import tensordot as tensordot
from ._tensor import unique as unique
from ._tensor_names import (
    broadcast_shapes as broadcast_shapes,
)
from ._tensor_names import (
    detach as detach,
)
from ._tensor_names import (
    fix as fix,
)
from ._tensor_names import (
    float_power as float_power,
)
from ._tensor_names import (
    ger as ger,
)
from ._tensor_names import (
    get_rng_state as get_rng_state,
)
from ._tensor_names import (
    inner as inner,
)
from ._tensor_names import (
    is_complex as is_complex,
)
from ._tensor_names import (
    is_floating_point as is_floating_point,
)
from ._tensor_names import (
    is_nonzero as is_nonzero,
)
from ._tensor_names import (
    isneginf as isneginf,
)
from ._tensor_names import (
    isposinf as isposinf,
)
from ._tensor_names import (
    manual_seed as manual_seed,
)
from ._tensor_names import (
    normal as normal,
)
from ._tensor_names import (
    numel as numel,
)
from ._tensor_names import (
    ravel as ravel,
)
from ._tensor_names import (
    scalar_tensor as scalar_tensor,
)
from ._tensor_names import (
    set_printoptions as set_printoptions,
)
from ._tensor_names import (
    set_rng_state as set_rng_state,
)
from ._tensor_names import (
    sgn as sgn,
)
from ._tensor_names import (
    split_with_sizes as split_with_sizes,
)
from ._tensor_names import (
    std as std,
)
from ._tensor_names import (
    var as var,
)
from ._tensor_names import (
    vdot as vdot,
)
from ._torch_forms import (
    argsort as argsort,
)
from ._torch_forms import (
    atleast_1d as atleast_1d,
)
from ._torch_forms import (
    atleast_2d as atleast_2d,
)
from ._torch_forms import (
    atleast_3d as atleast_3d,
)
from ._torch_forms import (
    bucketize as bucketize,
)
from ._torch_forms import (
    cdist as cdist,
)
from ._torch_forms import (
    clip as clip,
)
from ._torch_forms import (
    cov as cov,
)
from ._torch_forms import (
    diff as diff,
)
from ._torch_forms import (
    div as div,
)
from ._torch_forms import (
    divide as divide,
)
from ._torch_forms import (
    histogram as histogram,
)
from ._torch_forms import (
    logit as logit,
)
from ._torch_forms import (
    nonzero as nonzero,
)
from ._torch_forms import (
    norm as norm,
)
from ._torch_forms import (
    repeat_interleave as repeat_interleave,
)
from ._torch_forms import (
    round as round,
)
from ._torch_forms import (
    scatter as scatter,
)
from ._torch_forms import (
    searchsorted as searchsorted,
)
from ._torch_forms import (
    squeeze as squeeze,
)
from ._torch_forms import (
    std_mean as std_mean,
)
from ._torch_forms import (
    take_along_dim as take_along_dim,
)
from ._torch_forms import (
    tensor_split as tensor_split,
)
from ._torch_forms import (
    true_divide as true_divide,
)
from ._torch_forms import (
    unique_consecutive as unique_consecutive,
)
from ._torch_forms import (
    var_mean as var_mean,
)
from .amp import autocast as autocast
from .linalg import det as det
from .linalg import inverse as inverse
from .linalg import logdet as logdet
from .linalg import matrix_power as matrix_power
from .linalg import pinverse as pinverse
from .linalg import slogdet as slogdet
from .train import evaluate as evaluate
from .train import fit as fit

half: dtype
double: dtype
long: dtype
short: dtype
int: dtype
float: dtype
inf: _builtins.float
nan: _builtins.float
pi: _builtins.float
e: _builtins.float
newaxis: None
__version__: str
