"""Functions of layers without their parameters, as torch.nn.functional has them."""

from .. import _volta
from .._functional_names import NAMES

_ALSO = [
    "celu",
    "elu",
    "gelu",
    "hardshrink",
    "hardsigmoid",
    "hardswish",
    "hardtanh",
    "leaky_relu",
    "logsigmoid",
    "mish",
    "relu",
    "relu6",
    "selu",
    "sigmoid",
    "silu",
    "softplus",
    "softshrink",
    "softsign",
    "tanh",
    "tanhshrink",
    "threshold",
    "softmax",
    "log_softmax",
    "linear",
    "bilinear",
    "embedding",
    "embedding_bag",
    "one_hot",
    "pad",
    "pdist",
]
globals().update({name: getattr(_volta, name) for name in [*NAMES, *_ALSO]})
unfold, fold = _volta.im2col, _volta.col2im
dropout1d = dropout2d = dropout3d = _volta.feature_dropout
__all__ = [*NAMES, *_ALSO, "dropout1d", "dropout2d", "dropout3d", "fold", "unfold"]
