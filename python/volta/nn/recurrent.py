"""RNN, LSTM and GRU over sequences, and their cells, with PyTorch's names of weights."""

import math

from .. import _volta
from .._volta import PackedSequence, cat, empty, stack, zeros
from . import functional as F
from . import init
from .module import Module
from .parameter import Parameter

_CELLS = {"tanh": 0, "relu": 1, "LSTM": 2, "GRU": 3}
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
    def _cell(self):
        return _CELLS[self._mode]

    def _suffixes(self, layer):
        return [f"_l{layer}", f"_l{layer}_reverse"][: self._directions]

    def _states(self, given, x, batched):
        size = (self.num_layers * self._directions, x.shape[1])
        sizes = [self.proj_size or self.hidden_size] + [self.hidden_size] * (self._mode == "LSTM")
        if given is None:
            return [zeros((*size, n), dtype=x.dtype, device=x.device) for n in sizes]
        states = list(given) if self._mode == "LSTM" else [given]
        states = states if batched else [s.unsqueeze(1) for s in states]
        for state, n in zip(states, sizes, strict=True):
            if tuple(state.shape) != (*size, n):
                raise ValueError(f"{type(self).__name__}: a state has shape {tuple(state.shape)}, not {(*size, n)}")
        return states

    def _run(self, x, states, lengths=None):
        last = ([], [])
        place = 0
        inside = None
        if lengths is not None:
            time = _volta.arange(x.shape[0]).to(x.device).unsqueeze(1)
            inside = (time < _volta.tensor(lengths).to(x.device)).unsqueeze(-1)
        for layer in range(self.num_layers):
            if layer and self.dropout:
                x = F.dropout(x, self.dropout, self.training)
            sides = []
            for suffix in self._suffixes(layer):
                weights = [
                    getattr(self, name + suffix, None)
                    for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh", "weight_hr")
                ]
                reverse = suffix.endswith("reverse")
                c0 = states[1][place] if len(states) > 1 else None
                y, cells = _volta._recur(self._cell, x, states[0][place], c0, *weights, reverse, lengths)
                end = 0 if reverse else x.shape[0] - 1
                last[0].append(y[end])
                if cells is not None and len(states) > 1:
                    last[1].append(cells[end])
                sides.append(y if inside is None else _volta.where(inside, y, 0))
                place += 1
            x = sides[0] if len(sides) == 1 else cat(sides, -1)
        return x, [stack(s) for s in last if s]

    def forward(self, input, hx=None):
        if isinstance(input, PackedSequence):
            padded, lengths = _volta.pad_packed_sequence(input)
            y, states = self._run(padded, self._states(hx, padded, True), lengths)
            y = _volta.pack_padded_sequence(y, lengths)
            return y, tuple(states) if self._mode == "LSTM" else states[0]
        batched = len(input.shape) == 3
        if len(input.shape) not in (2, 3) or input.shape[-1] != self.input_size:
            raise ValueError(
                f"{type(self).__name__}: an input of shape {tuple(input.shape)} does not end in {self.input_size}"
            )
        turned = batched and self.batch_first
        x = input.transpose(0, 1) if turned else input if batched else input.unsqueeze(1)
        y, states = self._run(x, self._states(hx, x, batched))
        y = y.transpose(0, 1) if turned else y if batched else y.squeeze(1)
        states = states if batched else [s.squeeze(1) for s in states]
        return y, tuple(states) if self._mode == "LSTM" else states[0]

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
    def _cell(self):
        return _CELLS[self.nonlinearity]


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

    def _step(self, input, h, c=None):
        x = input if len(input.shape) == 2 else input.unsqueeze(0)
        states = [
            zeros((x.shape[0], self.hidden_size), dtype=x.dtype, device=x.device)
            if s is None
            else s
            if len(input.shape) == 2
            else s.unsqueeze(0)
            for s in (h, c)
        ]
        cell = _CELLS[self.nonlinearity if self._mode == "RNN" else self._mode]
        results = _volta._recur(
            cell,
            x.unsqueeze(0),
            states[0],
            states[1] if self._mode == "LSTM" else None,
            self.weight_ih,
            self.weight_hh,
            self.bias_ih,
            self.bias_hh,
            None,
            False,
            None,
        )
        results = [r if r is None else r[0] for r in results]
        return results if len(input.shape) == 2 else [r if r is None else r.squeeze(0) for r in results]

    def forward(self, input, hx=None):
        return self._step(input, hx)[0]

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
