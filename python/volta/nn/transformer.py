"""The layers of transformers and whole ones, with PyTorch's names of weights."""

from .. import _volta
from . import functional as F
from . import init
from .attention import MultiheadAttention
from .containers import clones
from .layers import Dropout, Linear
from .module import Module
from .norm import LayerNorm

__all__ = [
    "TransformerEncoderLayer",
    "TransformerEncoder",
    "TransformerDecoderLayer",
    "TransformerDecoder",
    "Transformer",
]


class _Layer(Module):
    """What encoder and decoder layers share: attention with itself, and a feed-forward network."""

    def __init__(
        self,
        d_model,
        nhead,
        dim_feedforward=2048,
        dropout=0.1,
        activation=F.relu,
        layer_norm_eps=1e-5,
        batch_first=False,
        norm_first=False,
        bias=True,
        device=None,
        dtype=None,
    ):
        super().__init__()
        options = {"bias": bias, "device": device, "dtype": dtype}
        self.self_attn = MultiheadAttention(d_model, nhead, dropout, batch_first=batch_first, **options)
        if self._crossed:
            self.multihead_attn = MultiheadAttention(d_model, nhead, dropout, batch_first=batch_first, **options)
        self.linear1 = Linear(d_model, dim_feedforward, **options)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, **options)
        for number in range(1, 4 if self._crossed else 3):
            setattr(self, f"norm{number}", LayerNorm(d_model, layer_norm_eps, **options))
        for number in range(1, 4 if self._crossed else 3):
            setattr(self, f"dropout{number}", Dropout(dropout))
        self.norm_first = norm_first
        self.activation = getattr(F, activation) if isinstance(activation, str) else activation

    _crossed = False

    def _attend(self, x, mask, padding, is_causal):
        return self.dropout1(self.self_attn(x, x, x, padding, False, mask, is_causal=is_causal)[0])

    def _feed(self, x, dropout):
        return dropout(self.linear2(self.dropout(self.activation(self.linear1(x)))))


class TransformerEncoderLayer(_Layer):
    """Attention and a feed-forward network, each with a residual connection and a norm."""

    def forward(self, src, src_mask=None, src_key_padding_mask=None, is_causal=False):
        rest = (src_mask, src_key_padding_mask, is_causal)
        if self.norm_first:
            src = src + self._attend(self.norm1(src), *rest)
            return src + self._feed(self.norm2(src), self.dropout2)
        src = self.norm1(src + self._attend(src, *rest))
        return self.norm2(src + self._feed(src, self.dropout2))


class TransformerEncoder(Module):
    """Copies of a layer one after the other."""

    def __init__(self, encoder_layer, num_layers, norm=None, enable_nested_tensor=True, mask_check=True):
        super().__init__()
        self.layers, self.num_layers, self.norm = clones(encoder_layer, num_layers), num_layers, norm

    def forward(self, src, mask=None, src_key_padding_mask=None, is_causal=None):
        for layer in self.layers:
            src = layer(src, mask, src_key_padding_mask, bool(is_causal))
        return src if self.norm is None else self.norm(src)


class TransformerDecoderLayer(_Layer):
    """Attention, attention to what an encoder gave, and a feed-forward network."""

    _crossed = True

    def _look(self, x, memory, mask, padding, is_causal):
        return self.dropout2(self.multihead_attn(x, memory, memory, padding, False, mask, is_causal=is_causal)[0])

    def forward(
        self,
        tgt,
        memory,
        tgt_mask=None,
        memory_mask=None,
        tgt_key_padding_mask=None,
        memory_key_padding_mask=None,
        tgt_is_causal=False,
        memory_is_causal=False,
    ):
        own = (tgt_mask, tgt_key_padding_mask, tgt_is_causal)
        other = (memory, memory_mask, memory_key_padding_mask, memory_is_causal)
        if self.norm_first:
            tgt = tgt + self._attend(self.norm1(tgt), *own)
            tgt = tgt + self._look(self.norm2(tgt), *other)
            return tgt + self._feed(self.norm3(tgt), self.dropout3)
        tgt = self.norm1(tgt + self._attend(tgt, *own))
        tgt = self.norm2(tgt + self._look(tgt, *other))
        return self.norm3(tgt + self._feed(tgt, self.dropout3))


class TransformerDecoder(Module):
    """Copies of a decoder layer one after the other."""

    def __init__(self, decoder_layer, num_layers, norm=None):
        super().__init__()
        self.layers, self.num_layers, self.norm = clones(decoder_layer, num_layers), num_layers, norm

    def forward(
        self,
        tgt,
        memory,
        tgt_mask=None,
        memory_mask=None,
        tgt_key_padding_mask=None,
        memory_key_padding_mask=None,
        tgt_is_causal=None,
        memory_is_causal=False,
    ):
        for layer in self.layers:
            tgt = layer(
                tgt,
                memory,
                tgt_mask,
                memory_mask,
                tgt_key_padding_mask,
                memory_key_padding_mask,
                bool(tgt_is_causal),
                memory_is_causal,
            )
        return tgt if self.norm is None else self.norm(tgt)


class Transformer(Module):
    """An encoder and a decoder: Transformer(512, 8)(src, tgt)."""

    def __init__(
        self,
        d_model=512,
        nhead=8,
        num_encoder_layers=6,
        num_decoder_layers=6,
        dim_feedforward=2048,
        dropout=0.1,
        activation=F.relu,
        custom_encoder=None,
        custom_decoder=None,
        layer_norm_eps=1e-5,
        batch_first=False,
        norm_first=False,
        bias=True,
        device=None,
        dtype=None,
    ):
        super().__init__()
        settings = (d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first)
        options = {"bias": bias, "device": device, "dtype": dtype}

        def whole(kind, layer, count):
            return kind(layer(*settings, **options), count, LayerNorm(d_model, layer_norm_eps, **options))

        self.encoder = custom_encoder or whole(TransformerEncoder, TransformerEncoderLayer, num_encoder_layers)
        self.decoder = custom_decoder or whole(TransformerDecoder, TransformerDecoderLayer, num_decoder_layers)
        self.d_model, self.nhead, self.batch_first = d_model, nhead, batch_first
        for parameter in self.parameters():
            if parameter.ndim > 1:
                init.xavier_uniform_(parameter)

    def forward(
        self,
        src,
        tgt,
        src_mask=None,
        tgt_mask=None,
        memory_mask=None,
        src_key_padding_mask=None,
        tgt_key_padding_mask=None,
        memory_key_padding_mask=None,
        src_is_causal=None,
        tgt_is_causal=None,
        memory_is_causal=False,
    ):
        if src.shape[-1] != self.d_model or tgt.shape[-1] != self.d_model:
            raise RuntimeError(f"Transformer: the last axes of src and tgt must have {self.d_model} elements")
        memory = self.encoder(src, src_mask, src_key_padding_mask, src_is_causal)
        return self.decoder(
            tgt,
            memory,
            tgt_mask,
            memory_mask,
            tgt_key_padding_mask,
            memory_key_padding_mask,
            tgt_is_causal,
            memory_is_causal,
        )

    @staticmethod
    def generate_square_subsequent_mask(sz, device=None, dtype=None):
        """[sz, sz] with 0 where a key is seen and -inf after."""
        full = _volta.full((sz, sz), float("-inf"), dtype=dtype or _volta.get_default_dtype(), device=device)
        return full.triu(1)
