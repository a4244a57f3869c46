"""Multi-head attention and the layers of transformers, with PyTorch's names of weights."""

import math

from .. import _volta
from .._volta import empty, zeros
from . import functional as F
from . import init
from .containers import clones
from .layers import Dropout, Linear
from .module import Module
from .norm import LayerNorm
from .parameter import Parameter

__all__ = ["MultiheadAttention", "TransformerEncoderLayer", "TransformerEncoder"]


class MultiheadAttention(Module):
    """out, weights = MultiheadAttention(64, 8)(q, k, v). Masks: True means ignore."""

    def __init__(self, embed_dim, num_heads, dropout=0.0, bias=True, batch_first=False, device=None, dtype=None):
        super().__init__()
        if embed_dim % num_heads:
            raise ValueError(f"MultiheadAttention: {num_heads} heads do not divide a width of {embed_dim}")
        self.embed_dim, self.num_heads, self.dropout, self.batch_first = embed_dim, num_heads, dropout, batch_first
        self.in_proj_weight = Parameter(empty(3 * embed_dim, embed_dim, dtype=dtype, device=device))
        self.in_proj_bias = Parameter(zeros(3 * embed_dim, dtype=dtype, device=device)) if bias else None
        self.out_proj = Linear(embed_dim, embed_dim, bias, device, dtype)
        init.xavier_uniform_(self.in_proj_weight)
        if bias:
            init.zeros_(self.out_proj.bias)

    def _mask(self, attn_mask, key_padding_mask, batch, dtype):
        mask = None
        if attn_mask is not None:
            if len(attn_mask.shape) == 3:  # [batch * heads, target, source]
                attn_mask = attn_mask.reshape(batch, self.num_heads, *attn_mask.shape[1:])
            mask = ~attn_mask if attn_mask.dtype == _volta.bool else attn_mask
        if key_padding_mask is not None:
            keys = key_padding_mask.reshape(batch, 1, 1, -1)
            keys = ~keys if keys.dtype == _volta.bool else keys
            if mask is None:
                return keys
            if mask.dtype == _volta.bool and keys.dtype == _volta.bool:
                return mask & keys
            mask = _added(mask, dtype) + _added(keys, dtype)
        return mask

    def forward(
        self,
        query,
        key,
        value,
        key_padding_mask=None,
        need_weights=True,
        attn_mask=None,
        average_attn_weights=True,
        is_causal=False,
    ):
        batched = len(query.shape) == 3
        inputs = [x if batched else x.unsqueeze(1 if not self.batch_first else 0) for x in (query, key, value)]
        inputs = [x if self.batch_first else x.transpose(0, 1) for x in inputs]  # [batch, time, width]
        weights = self.in_proj_weight.chunk(3)
        biases = (None,) * 3 if self.in_proj_bias is None else self.in_proj_bias.chunk(3)
        if query is key and key is value:
            q, k, v = F.linear(inputs[0], self.in_proj_weight, self.in_proj_bias).chunk(3, -1)
        else:
            q, k, v = (F.linear(x, w, b) for x, w, b in zip(inputs, weights, biases))
        batch, time, width = q.shape
        q, k, v = (x.reshape(batch, x.shape[1], self.num_heads, -1).transpose(1, 2) for x in (q, k, v))
        mask = self._mask(attn_mask, key_padding_mask, batch, q.dtype)
        drop = self.dropout if self.training else 0.0
        if need_weights:
            out, share = _weighted(q, k, v, mask, is_causal and mask is None, drop)
            share = share.mean(1) if average_attn_weights else share
        else:
            out = F.scaled_dot_product_attention(q, k, v, mask, drop, is_causal and mask is None)
            share = None
        out = self.out_proj(out.transpose(1, 2).reshape(batch, time, width))
        out = out if self.batch_first else out.transpose(0, 1)
        if batched:
            return out, share
        return out.squeeze(1 if not self.batch_first else 0), share if share is None else share.squeeze(0)


def _added(mask, dtype):
    return _volta.where(mask, 0.0, -math.inf).to(dtype) if mask.dtype == _volta.bool else mask


def _weighted(q, k, v, mask, is_causal, dropout):
    """Attention with its weights, which the fused form does not compute."""
    scores = q @ k.mT / q.shape[-1] ** 0.5
    if is_causal:
        mask = _volta.ones(q.shape[-2], k.shape[-2], dtype=_volta.bool, device=q.device).tril()
    if mask is not None:
        scores = scores + _added(mask, scores.dtype)
    share = scores.softmax(-1)
    share = F.dropout(share, dropout) if dropout else share
    return share @ v, share


class TransformerEncoderLayer(Module):
    """Attention and a feed-forward network, each with a residual connection and a norm."""

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
        self.self_attn = MultiheadAttention(d_model, nhead, dropout, bias, batch_first, device, dtype)
        self.linear1 = Linear(d_model, dim_feedforward, bias, device, dtype)
        self.linear2 = Linear(dim_feedforward, d_model, bias, device, dtype)
        self.norm1 = LayerNorm(d_model, layer_norm_eps, bias=bias, device=device, dtype=dtype)
        self.norm2 = LayerNorm(d_model, layer_norm_eps, bias=bias, device=device, dtype=dtype)
        self.dropout, self.dropout1, self.dropout2 = Dropout(dropout), Dropout(dropout), Dropout(dropout)
        self.norm_first = norm_first
        self.activation = getattr(F, activation) if isinstance(activation, str) else activation

    def _attend(self, x, mask, padding, is_causal):
        return self.dropout1(self.self_attn(x, x, x, padding, False, mask, is_causal=is_causal)[0])

    def _feed(self, x):
        return self.dropout2(self.linear2(self.dropout(self.activation(self.linear1(x)))))

    def forward(self, src, src_mask=None, src_key_padding_mask=None, is_causal=False):
        rest = (src_mask, src_key_padding_mask, is_causal)
        if self.norm_first:
            src = src + self._attend(self.norm1(src), *rest)
            return src + self._feed(self.norm2(src))
        src = self.norm1(src + self._attend(src, *rest))
        return self.norm2(src + self._feed(src))


class TransformerEncoder(Module):
    """Copies of a layer one after the other."""

    def __init__(self, encoder_layer, num_layers, norm=None):
        super().__init__()
        self.layers, self.norm = clones(encoder_layer, num_layers), norm

    def forward(self, src, mask=None, src_key_padding_mask=None, is_causal=False):
        for layer in self.layers:
            src = layer(src, mask, src_key_padding_mask, is_causal)
        return src if self.norm is None else self.norm(src)
