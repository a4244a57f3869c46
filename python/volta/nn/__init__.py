"""Layers, losses and models, with PyTorch's names, arguments and weights."""

from . import functional, init, parameter, utils  # noqa: F401
from ._summary import summary  # noqa: F401
from .activation import *  # noqa: F403
from .attention import *  # noqa: F403
from .containers import *  # noqa: F403
from .layers import *  # noqa: F403
from .loss import *  # noqa: F403
from .module import Module  # noqa: F401
from .norm import *  # noqa: F403
from .parameter import Buffer, Parameter  # noqa: F401
from .pooling import *  # noqa: F403
from .recurrent import GRU, LSTM, RNN, GRUCell, LSTMCell, RNNCell  # noqa: F401
from .transformer import *  # noqa: F403
