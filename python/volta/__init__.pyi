from ._volta import *  # isort: skip
from . import array_api as array_api
from . import autograd as autograd
from . import cuda as cuda
from . import nn as nn
from . import optim as optim
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

__version__: str
