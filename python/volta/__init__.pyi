import builtins as _builtins

from ._volta import *  # isort: skip
from ._volta import dtype as dtype  # isort: skip
from . import array_api as array_api
from . import amp as amp
from . import autograd as autograd
from . import callbacks as callbacks
from . import cuda as cuda
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
from ._tensor import broadcast_tensors as broadcast_tensors
from ._tensor import histc as histc
from ._tensor import is_tensor as is_tensor
from ._tensor import load as load
from ._tensor import save as save
from ._tensor import tensordot as tensordot
from ._tensor import unique as unique
from ._tensor_names import (
    broadcast_shapes as broadcast_shapes,
    detach as detach,
    fix as fix,
    float_power as float_power,
    ger as ger,
    get_rng_state as get_rng_state,
    inner as inner,
    is_complex as is_complex,
    is_floating_point as is_floating_point,
    is_nonzero as is_nonzero,
    isneginf as isneginf,
    isposinf as isposinf,
    manual_seed as manual_seed,
    normal as normal,
    numel as numel,
    ravel as ravel,
    scalar_tensor as scalar_tensor,
    set_rng_state as set_rng_state,
    sgn as sgn,
    split_with_sizes as split_with_sizes,
    std as std,
    var as var,
    vdot as vdot,
)
from .amp import autocast as autocast
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
