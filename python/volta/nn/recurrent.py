"""RNN, LSTM and GRU over sequences, and their cells, with PyTorch's names of weights."""

import math

from .. import _volta
from .._volta import PackedSequence, empty, zeros
from . import init
from .module import Module
from .parameter import Parameter

_SEQUENCES = {"tanh": _volta.rnn_tanh, "relu": _volta.rnn_relu, "LSTM": _volta.lstm, "GRU": _volta.gru}
_STEPS = {
    "tanh": _volta.rnn_tanh_cell,
    "relu": _volta.rnn_relu_cell,
    "LSTM": _volta.lstm_cell,
    "GRU": _volta.gru_cell,
}
_GATES = {"LSTM": 4, "GRU": 3}


def _weights(module, suffix, shapes, bound, dtype, device):
    for name, shape in shapes.items():
        parameter = Parameter(empty(shape, dtype=dtype, device=device))
        init.uniform_(parameter, -bound, bound)
        setattr(module, name + suffix, parameter)


class _Recurrent(Module):
    _mode = None

    def __init__(
        self,
        input_size,
        hidden_size,
        num_layers=1,
        bias=True,
        batch_first=False,
        dropout=0.0,
        bidirectional=False,
        proj_size=0,
        device=None,
        dtype=None,
    ):
        super().__init__()
        if proj_size and self._mode != "LSTM":
            raise ValueError("proj_size is for an LSTM only")
        self.input_size, self.hidden_size, self.num_layers, self.bias = input_size, hidden_size, num_layers, bias
        self.batch_first, self.dropout, self.bidirectional, self.proj_size = (
            batch_first,
            dropout,
            bidirectional,
            proj_size,
        )
        gates, out = _GATES.get(self._mode, 1) * hidden_size, proj_size or hidden_size
        for layer in range(num_layers):
            inputs = input_size if layer == 0 else out * self._directions
            for suffix in self._suffixes(layer):
                shapes = {"weight_ih": (gates, inputs), "weight_hh": (gates, out)}
                if bias:
                    shapes.update(bias_ih=(gates,), bias_hh=(gates,))
                if proj_size:
                    shapes["weight_hr"] = (proj_size, hidden_size)
                _weights(self, suffix, shapes, 1 / math.sqrt(hidden_size), dtype, device)

    @property
    def _directions(self):
        return 2 if self.bidirectional else 1

    @property
    def _kind(self):
        return self._mode

    def _suffixes(self, layer):
        return [f"_l{layer}", f"_l{layer}_reverse"][: self._directions]

    def _states(self, given, x, *batch):
        sizes = [self.proj_size or self.hidden_size] + [self.hidden_size] * (self._mode == "LSTM")
        shapes = [(self.num_layers * self._directions, *batch, n) for n in sizes]
        if given is None:
            return [zeros(shape, dtype=x.dtype, device=x.device) for shape in shapes]
        states = list(given) if self._mode == "LSTM" else [given]
        for state, shape in zip(states, shapes, strict=True):
            if tuple(state.shape) != shape:
                raise ValueError(f"{type(self).__name__}: a state has shape {tuple(state.shape)}, not {shape}")
        return states

    def _run(self, x, states, batch_first, lengths=None):
        names = ["weight_ih", "weight_hh"] + ["bias_ih", "bias_hh"] * self.bias + ["weight_hr"] * bool(self.proj_size)
        y, *last = _SEQUENCES[self._kind](
            x,
            states if self._mode == "LSTM" else states[0],
            [getattr(self, n + s) for layer in range(self.num_layers) for s in self._suffixes(layer) for n in names],
            self.bias,
            self.num_layers,
            self.dropout,
            self.training,
            self.bidirectional,
            batch_first,
            lengths,
        )
        return y, tuple(last) if self._mode == "LSTM" else last[0]

    def forward(self, input, hx=None):
        if isinstance(input, PackedSequence):
            padded, lengths = _volta.pad_packed_sequence(input)
            y, states = self._run(padded, self._states(hx, padded, padded.shape[1]), False, lengths)
            return _volta.pack_padded_sequence(y, lengths), states
        if len(input.shape) not in (2, 3) or input.shape[-1] != self.input_size:
            raise ValueError(
                f"{type(self).__name__}: an input of shape {tuple(input.shape)} does not end in {self.input_size}"
            )
        batch = [input.shape[0 if self.batch_first else 1]] if len(input.shape) == 3 else []
        return self._run(input, self._states(hx, input, *batch), self.batch_first)

    def extra_repr(self):
        text = f"{self.input_size}, {self.hidden_size}"
        usual = {
            "num_layers": 1,
            "bias": True,
            "batch_first": False,
            "dropout": 0.0,
            "bidirectional": False,
            "proj_size": 0,
        }
        return text + "".join(f", {n}={getattr(self, n)}" for n, v in usual.items() if getattr(self, n) != v)


class LSTM(_Recurrent):
    """y, (h, c) = LSTM(8, 16)(x, (h0, c0)), x [time, batch, features]."""

    _mode = "LSTM"


class GRU(_Recurrent):
    """y, h = GRU(8, 16)(x, h0)."""

    _mode = "GRU"


class RNN(_Recurrent):
    """y, h = RNN(8, 16, nonlinearity="relu")(x, h0)."""

    _mode = "RNN"

    def __init__(
        self,
        input_size,
        hidden_size,
        num_layers=1,
        nonlinearity="tanh",
        bias=True,
        batch_first=False,
        dropout=0.0,
        bidirectional=False,
        device=None,
        dtype=None,
    ):
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(f"RNN: nonlinearity {nonlinearity!r} is not one of tanh, relu")
        super().__init__(
            input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, 0, device, dtype
        )
        self.nonlinearity = nonlinearity

    @property
    def _kind(self):
        return self.nonlinearity


class _RecurrentCell(Module):
    _mode = None

    def __init__(self, input_size, hidden_size, bias=True, nonlinearity="tanh", device=None, dtype=None):
        super().__init__()
        self.input_size, self.hidden_size, self.nonlinearity = input_size, hidden_size, nonlinearity
        gates = _GATES.get(self._mode, 1) * hidden_size
        shapes = {"weight_ih": (gates, input_size), "weight_hh": (gates, hidden_size)}
        if bias:
            shapes.update(bias_ih=(gates,), bias_hh=(gates,))
        else:
            self.bias_ih = self.bias_hh = None
        _weights(self, "", shapes, 1 / math.sqrt(hidden_size), dtype, device)

    def _step(self, input, *states):
        shape = (*input.shape[:-1], self.hidden_size)
        hx = [zeros(shape, dtype=input.dtype, device=input.device) if s is None else s for s in states]
        return _STEPS[self.nonlinearity if self._mode == "RNN" else self._mode](
            input,
            hx if self._mode == "LSTM" else hx[0],
            self.weight_ih,
            self.weight_hh,
            self.bias_ih,
            self.bias_hh,
        )

    def forward(self, input, hx=None):
        return self._step(input, hx)

    def extra_repr(self):
        return f"{self.input_size}, {self.hidden_size}"


class RNNCell(_RecurrentCell):
    """h = RNNCell(8, 16)(x, h)."""

    _mode = "RNN"


class GRUCell(_RecurrentCell):
    """h = GRUCell(8, 16)(x, h)."""

    _mode = "GRU"


class LSTMCell(_RecurrentCell):
    """h, c = LSTMCell(8, 16)(x, (h, c))."""

    _mode = "LSTM"

    def forward(self, input, hx=None):
        return tuple(self._step(input, *(hx or (None, None))))
