"""Recurrent layers, attention and transformers with their gradients: tests/data/sequence, in the format of make.py.
Inputs come first, then the parameters, which `names` lists; all in f64."""

import torch
import torch.nn.functional as F
from torch import nn

from make import Fixed, cotangent_for


def normal(*shape, seed=0):
    g = torch.Generator().manual_seed(seed + sum(shape) * 7)
    return torch.randn(*shape, generator=g, dtype=torch.float64)


def chance(*shape, seed=0):
    g = torch.Generator().manual_seed(seed + sum(shape))
    return torch.rand(*shape, generator=g) > 0.6


class Sequence:
    def __init__(self, writer):
        self.writer = writer

    def case(self, op, call, inputs, module=None, **args):
        """call(module, *inputs) gives the results; masks among the inputs take no gradient."""
        leaves = [x.clone().requires_grad_(x.is_floating_point()) for x in inputs]
        names = []
        if module is not None:
            module.double().eval()
            for i, (name, p) in enumerate(module.named_parameters()):
                p.data = normal(*p.shape, seed=i) * 0.3
                names.append(name)
            leaves += list(module.parameters())
            args["names"] = names
        values = [y for y in call(module, *leaves[: len(inputs)]) if y is not None]
        cotangents = [cotangent_for(y.detach()) for y in values]
        wanted = [x for x in leaves if x.requires_grad]
        found = iter(torch.autograd.grad(values, wanted, cotangents, allow_unused=True))
        grads = [next(found) if x.requires_grad else None for x in leaves]
        operands = [x.detach() if x.is_floating_point() else Fixed(x) for x in leaves]
        values = [y.detach() for y in values]
        self.writer.case(op, "f64", None, args, operands, values, None, cotangents, grads, None)


def recurrent(s):
    size, hidden, time, batch = 3, 5, 4, 3
    for op, make, extra in (
        ("rnn", nn.RNN, ({}, {"nonlinearity": "relu"})),
        ("gru", nn.GRU, ({},)),
        ("lstm", nn.LSTM, ({}, {"proj_size": 2})),
    ):
        shapes = ({}, {"num_layers": 2, "bidirectional": True}, {"batch_first": True, "bias": False})
        for args in [{**a, **b} for a in shapes for b in extra]:
            layer = make(size, hidden, **args)
            count = args.get("num_layers", 1) * (2 if args.get("bidirectional") else 1)
            first = args.get("batch_first", False)
            x = normal(*((batch, time, size) if first else (time, batch, size)))
            out = args.get("proj_size", hidden)
            states = [normal(count, batch, out, seed=1)] + [normal(count, batch, hidden, seed=2)] * (op == "lstm")

            def call(m, x, *h):
                y, n = m(x, (h if len(h) == 2 else h[0]) if h else None)
                return (y, *n) if isinstance(n, tuple) else (y, n)

            def packed(m, x, *h, first=first):
                p = nn.utils.rnn.pack_padded_sequence(x, [2, 4, 1], first, enforce_sorted=False)
                y, n = m(p, h if len(h) == 2 else h[0])
                y = nn.utils.rnn.pad_packed_sequence(y, first)[0]
                return (y, *n) if isinstance(n, tuple) else (y, n)

            s.case(op, call, [x], layer, **args)
            s.case(op, call, [x, *states], layer, **args)
            s.case(op, packed, [x, *states], layer, lengths=[2, 4, 1], **args)
            s.case(op, call, [x[0] if first else x[:, 0]], layer, **args)
    for op, make in (("rnn_cell", nn.RNNCell), ("gru_cell", nn.GRUCell), ("lstm_cell", nn.LSTMCell)):
        states = [normal(batch, hidden, seed=1), normal(batch, hidden, seed=2)][: 2 if op == "lstm_cell" else 1]
        for bias in (True, False):
            def step(m, x, *h):
                y = m(x, h if len(h) == 2 else h[0])
                return y if isinstance(y, tuple) else (y,)

            s.case(op, step, [normal(batch, size), *states], make(size, hidden, bias=bias), bias=bias)


def attention(s):
    for shapes in (((2, 3, 5, 4), (2, 3, 5, 4)), ((2, 3, 5, 4), (2, 3, 7, 6)), ((5, 3), (6, 3)), ((2, 4, 5, 3), (2, 2, 6, 3))):
        q, v = normal(*shapes[0]), normal(*shapes[1], seed=2)
        k = normal(*shapes[1][:-1], shapes[0][-1], seed=1)
        gqa = len(shapes[0]) == 4 and shapes[0][1] != shapes[1][1]
        n, m = shapes[0][-2], shapes[1][-2]
        seen = chance(n, m)
        seen[0] = True
        for args, masks in (
            ({}, []),
            ({"is_causal": True}, []),
            ({"scale": 0.3}, [seen]),
            ({}, [normal(n, m, seed=5)]),
        ):
            def call(_, q, k, v, *mask, args=args, gqa=gqa):
                return (F.scaled_dot_product_attention(q, k, v, *mask, enable_gqa=gqa, **args),)

            s.case("attention", call, [q, k, v, *masks], enable_gqa=gqa, **args)


def multihead(s):
    width, heads, queries, keys, batch = 6, 2, 3, 4, 2
    for args in (
        {},
        {"batch_first": True, "bias": False},
        {"kdim": 5, "vdim": 4},
        {"add_bias_kv": True, "add_zero_attn": True},
    ):
        m = nn.MultiheadAttention(width, heads, **args)
        turn = (lambda x: x.transpose(0, 1).contiguous()) if args.get("batch_first") else lambda x: x
        q = turn(normal(queries, batch, width))
        k = turn(normal(keys, batch, args.get("kdim", width), seed=1))
        v = turn(normal(keys, batch, args.get("vdim", width), seed=2))
        padding, mask = chance(batch, keys, seed=1), chance(queries, keys, seed=2)
        padding[:, 0] = False
        mask[:, 0] = False
        for words, masks in (
            ({}, []),
            ({"key_padding_mask": True, "average": False}, [padding]),
            ({"key_padding_mask": True, "attn_mask": True}, [padding, mask]),
            ({"attn_mask": True}, [normal(batch * heads, queries, keys, seed=7)]),
        ):
            def call(m, q, k, v, *masks, words=words):
                named = dict(zip([w for w in ("key_padding_mask", "attn_mask") if w in words], masks))
                return m(q, k, v, average_attn_weights=words.get("average", True), **named)

            s.case("multihead", call, [q, k, v, *masks], m, **args, **words)
    s.case("multihead", lambda m, x: m(x, x, x), [normal(4, 2, 6)], nn.MultiheadAttention(6, 3), own=True, heads=3)


def transformers(s):
    for args in ({}, {"norm_first": True, "activation": "gelu", "batch_first": True}, {"bias": False}):
        x, memory = normal(3, 2, 4), normal(4, 2, 4, seed=1)
        if args.get("batch_first"):
            x, memory = x.transpose(0, 1).contiguous(), memory.transpose(0, 1).contiguous()
        options = {"dim_feedforward": 7, "dropout": 0.0, **args}
        layer, deep = nn.TransformerEncoderLayer(4, 2, **options), nn.TransformerDecoderLayer(4, 2, **options)
        later = nn.Transformer.generate_square_subsequent_mask(3, dtype=torch.float64)
        s.case("encoder_layer", lambda m, x: (m(x),), [x], layer, **args)
        s.case("encoder_layer", lambda m, x: (m(x, later, is_causal=True),), [x], layer, causal=True, **args)
        s.case("decoder_layer", lambda m, x, y: (m(x, y, later),), [x, memory], deep, **args)
    whole = nn.Transformer(4, 2, 2, 1, 6, 0.0)
    s.case("transformer", lambda m, x, y: (m(x, y, tgt_mask=later),), [normal(4, 2, 4), normal(3, 2, 4, seed=1)], whole)


def write(writer):
    torch.backends.mha.set_fastpath_enabled(False)
    s = Sequence(writer)
    recurrent(s)
    attention(s)
    multihead(s)
    transformers(s)
