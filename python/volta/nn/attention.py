"""Multi-head attention, with PyTorch's names of weights."""

import math

from .. import _volta
from .._volta import empty, zeros
from . import functional as F
from . import init
from .layers import Linear
from .module import Module
from .parameter import Parameter

__all__ = ["MultiheadAttention"]


class MultiheadAttention(Module):
    """out, weights = MultiheadAttention(64, 8)(q, k, v). Masks: True means ignore."""

    def __init__(
        self,
        embed_dim,
        num_heads,
        dropout=0.0,
        bias=True,
        add_bias_kv=False,
        add_zero_attn=False,
        kdim=None,
        vdim=None,
        batch_first=False,
        device=None,
        dtype=None,
    ):
        super().__init__()
        if embed_dim % num_heads:
            raise ValueError(f"MultiheadAttention: {num_heads} heads do not divide a width of {embed_dim}")
        self.embed_dim, self.num_heads, self.dropout, self.batch_first = embed_dim, num_heads, dropout, batch_first
        self.head_dim, self.add_zero_attn = embed_dim // num_heads, add_zero_attn
        self.kdim, self.vdim = kdim or embed_dim, vdim or embed_dim
        options = {"dtype": dtype, "device": device}
        same = self.kdim == embed_dim and self.vdim == embed_dim
        shapes = {"q_proj_weight": embed_dim, "k_proj_weight": self.kdim, "v_proj_weight": self.vdim}
        if same:
            self.in_proj_weight = Parameter(empty(3 * embed_dim, embed_dim, **options))
        for name, width in shapes.items():
            self.register_parameter(name, None if same else Parameter(empty(embed_dim, width, **options)))
        if not same:
            self.register_parameter("in_proj_weight", None)
        self.in_proj_bias = Parameter(zeros(3 * embed_dim, **options)) if bias else None
        self.out_proj = Linear(embed_dim, embed_dim, bias, device, dtype)
        self.bias_k = Parameter(empty(1, 1, embed_dim, **options)) if add_bias_kv else None
        self.bias_v = Parameter(empty(1, 1, embed_dim, **options)) if add_bias_kv else None
        self.reset_parameters()

    def reset_parameters(self):
        for weight in self._weights():
            init.xavier_uniform_(weight)
        if self.in_proj_bias is not None:
            init.zeros_(self.in_proj_bias)
            init.zeros_(self.out_proj.bias)
        for bias in (self.bias_k, self.bias_v):
            if bias is not None:
                init.xavier_normal_(bias)

    def _weights(self):
        if self.in_proj_weight is not None:
            return [self.in_proj_weight]
        return [self.q_proj_weight, self.k_proj_weight, self.v_proj_weight]

    def _projected(self, query, key, value, same):
        weights = self._weights()
        if same and len(weights) == 1:
            return F.linear(query, weights[0], self.in_proj_bias).chunk(3, -1)
        weights = weights if len(weights) == 3 else weights[0].chunk(3)
        biases = (None,) * 3 if self.in_proj_bias is None else self.in_proj_bias.chunk(3)
        return [F.linear(x, w, b) for x, w, b in zip((query, key, value), weights, biases)]

    def _extended(self, k, v):
        """Keys and values that are learned, or zero, behind those that are given; and how many."""
        batch, before = k.shape[0], k.shape[1]
        if self.bias_k is not None:
            k = _volta.cat([k, self.bias_k.expand(batch, 1, -1)], 1)
            v = _volta.cat([v, self.bias_v.expand(batch, 1, -1)], 1)
        if self.add_zero_attn:
            zero = zeros(batch, 1, self.embed_dim, dtype=k.dtype, device=k.device)
            k, v = _volta.cat([k, zero], 1), _volta.cat([v, zero], 1)
        return k, v, k.shape[1] - before

    def _mask(self, attn_mask, key_padding_mask, batch, dtype, more):
        mask = None
        if attn_mask is not None:
            if len(attn_mask.shape) == 3:  # [batch * heads, target, source]
                attn_mask = attn_mask.reshape(batch, self.num_heads, *attn_mask.shape[1:])
            mask = _seen(F.pad(attn_mask, [0, more]) if more else attn_mask)
        if key_padding_mask is not None:
            keys = key_padding_mask.reshape(batch, 1, 1, -1)
            keys = _seen(F.pad(keys, [0, more]) if more else keys)
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
        same = query is key and key is value
        batched = len(query.shape) == 3
        inputs = [x if batched else x.unsqueeze(1 if not self.batch_first else 0) for x in (query, key, value)]
        inputs = [x if self.batch_first else x.transpose(0, 1) for x in inputs]  # [batch, time, width]
        q, k, v = self._projected(*inputs, same)
        k, v, more = self._extended(k, v)
        batch, time, width = q.shape
        q, k, v = (x.reshape(batch, x.shape[1], self.num_heads, -1).transpose(1, 2) for x in (q, k, v))
        causal = is_causal and attn_mask is None  # beside a mask it is a hint
        if causal and (need_weights or more or key_padding_mask is not None):
            attn_mask, causal = _volta.ones(time, k.shape[-2] - more, dtype=_volta.bool, device=q.device).triu(1), False
        mask = self._mask(attn_mask, key_padding_mask, batch, q.dtype, more)
        drop = self.dropout if self.training else 0.0
        if need_weights:
            out, share = _weighted(q, k, v, mask, drop)
            share = share.mean(1) if average_attn_weights else share
        else:
            out, share = F.scaled_dot_product_attention(q, k, v, mask, drop, causal), None
        out = self.out_proj(out.transpose(1, 2).reshape(batch, time, width))
        out = out if self.batch_first else out.transpose(0, 1)
        if batched:
            return out, share
        return out.squeeze(1 if not self.batch_first else 0), share if share is None else share.squeeze(0)


def _seen(mask):
    """True where a key is seen, of a mask that is True where it is not; masks that are added stay."""
    return ~mask if mask.dtype == _volta.bool else mask


def _added(mask, dtype):
    return _volta.where(mask, 0.0, -math.inf).to(dtype) if mask.dtype == _volta.bool else mask


def _weighted(q, k, v, mask, dropout):
    """Attention with its weights, which the fused form does not compute."""
    scores = q @ k.mT / q.shape[-1] ** 0.5
    if mask is not None:
        scores = scores + _added(mask, scores.dtype)
    share = scores.softmax(-1)
    share = F.dropout(share, dropout) if dropout else share
    return share @ v, share
