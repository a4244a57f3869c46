"""The array API's extension linalg over stacks of matrices; decompositions work in double precision.

Householder reflections for qr, elimination with pivots for solve, inv and det, Jacobi's rotations for eigh and svd:
each step is one op for all matrices of a stack.
"""

import math
from collections import namedtuple

from . import _volta as _v
from ._array_api_more import _accumulated, matmul, matrix_transpose, tensordot, vecdot
from ._array_api_more import max as _max
from ._array_api_more import min as _min
from ._array_api_more import sum as _sum
from ._volta import broadcast_tensors as _broadcast_tensors
from ._volta import float64, int64

__all__ = [
    "cholesky",
    "cross",
    "det",
    "diagonal",
    "eigh",
    "eigvalsh",
    "inv",
    "matmul",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "matrix_transpose",
    "outer",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "svd",
    "svdvals",
    "tensordot",
    "trace",
    "vecdot",
    "vector_norm",
    "LinAlgError",
]

EighResult = namedtuple("EighResult", ["eigenvalues", "eigenvectors"])
QRResult = namedtuple("QRResult", ["Q", "R"])
SlogdetResult = namedtuple("SlogdetResult", ["sign", "logabsdet"])
SVDResult = namedtuple("SVDResult", ["U", "S", "Vh"])

_EPSILON = 2.0**-52
_SWEEPS = 40  # Jacobi's methods converge quadratically: about ten are used


class LinAlgError(ValueError):
    """A matrix that has no such decomposition or inverse."""


# Stacks


def _stack(x, name, square=False):
    """A stack of shape (..., m, n) as one of shape (count, m, n) in double precision."""
    if x.ndim < 2 or (square and x.shape[-1] != x.shape[-2]):
        kind = "square matrices" if square else "matrices"
        raise ValueError(f"{name}: {kind} are wanted, not shape {x.shape}")
    if not x.dtype.is_floating_point:
        raise TypeError(f"{name}: a floating-point dtype is wanted, not {x.dtype}")
    if x.requires_grad and _v.is_grad_enabled():
        raise _v.AutogradError(f"{name}: there is no derivative: use x.detach()")
    count, (m, n) = math.prod(x.shape[:-2]), x.shape[-2:]
    if count == 0:
        return _identity(1, m, n, x.device)  # stands for no matrices: `_like` drops it
    return x.to(float64).reshape((count, m, n))


def _like(result, x):
    """One result for each matrix of the stack x, in x's shape and dtype."""
    batch = x.shape[:-2]
    result = result[: math.prod(batch)]
    return result.reshape(batch + result.shape[1:]).to(x.dtype)


def _identity(count, m, n, device):
    eye = (_v.arange(m).unsqueeze(1) == _v.arange(n)).to(float64).to(device)
    return eye.expand((count, m, n)).clone()


def _scaled(a):
    """Matrices with elements up to 1, whose squares do not overflow, and what to multiply them by."""
    if 0 in a.shape:
        return a, _v.ones((a.shape[0], 1, 1), dtype=float64, device=a.device)
    largest = _v.amax(a.abs(), (1, 2), True)
    scale = _v.where((largest > 0) & _v.isfinite(largest), largest, _v.ones_like(largest))
    return a / scale, scale


# Decompositions


def _reflections(a):
    """R of shape (count, m, n), and the vectors v of the reflections 1 - v vᵀ whose product is Q."""
    r, vectors = a.clone(), []
    for k in range(min(r.shape[1] - 1, r.shape[2])):
        v = r[:, k:, k]
        largest = v.abs().amax(1, keepdim=True)
        v = v / _v.where(largest > 0, largest, _v.ones_like(largest))  # else squares of small numbers are nothing
        length = (v * v).sum(1, keepdim=True).sqrt()
        v[:, :1] += _v.where(v[:, :1] >= 0, length, -length)
        square = (v * v).sum(1, keepdim=True)
        v = (v * _v.where(square > 0, (2 / square).sqrt(), _v.zeros_like(square))).unsqueeze(2)
        part = r[:, k:, k:]
        part.sub_(v @ (v.mT @ part))
        vectors.append(v)
    return r.triu(), vectors


def _reflected(vectors, count, m, columns, device):
    """The first columns of Q."""
    q = _identity(count, m, columns, device)
    for k in reversed(range(len(vectors))):
        part = q[:, k:]
        part.sub_(vectors[k] @ (vectors[k].mT @ part))
    return q


def qr(x, /, *, mode="reduced"):
    if mode not in ("reduced", "complete"):
        raise ValueError(f"qr: mode {mode!r} is not one of reduced, complete")
    a, scale = _scaled(_stack(x, "qr"))
    count, m, n = a.shape
    r, vectors = _reflections(a)
    size = m if mode == "complete" else min(m, n)
    return QRResult(_like(_reflected(vectors, count, m, size, a.device), x), _like(r[:, :size] * scale, x))


def cholesky(x, /, *, upper=False):
    a = _stack(x, "cholesky", square=True).clone()
    for k in range(a.shape[-1]):
        pivot = a[:, k : k + 1, k : k + 1]
        if bool((pivot <= 0).any()):
            raise LinAlgError("cholesky: a matrix is not positive definite")
        column = a[:, k:, k : k + 1] / pivot.sqrt()
        a[:, k:, k : k + 1] = column
        rest = column[:, 1:]
        a[:, k + 1 :, k + 1 :].sub_(rest @ rest.mT)
    lower = a.tril()
    return _like(lower.mT if upper else lower, x)


def _eliminated(a, b):
    """[U, Y] with U X = Y where A X = B, U upper triangular, and the sign of the rows' permutation."""
    n = a.shape[1]
    both = _v.cat([a, b], 2)
    sign = _v.ones((a.shape[0],), dtype=float64, device=a.device)
    for k in range(n):
        at = both[:, k:, k].abs().argmax(1) + k
        sign = _v.where(at == k, sign, -sign)
        rows = at.reshape((-1, 1, 1)).expand((a.shape[0], 1, both.shape[2]))
        pivots, others = both.gather(1, rows), both[:, k : k + 1].clone()
        both = both.scatter(1, rows, others)
        both[:, k : k + 1] = pivots
        pivot = pivots[:, :, k : k + 1]
        factors = both[:, k + 1 :, k : k + 1] / _v.where(pivot == 0, _v.ones_like(pivot), pivot)
        both[:, k + 1 :].sub_(factors @ pivots)
    return both[:, :, :n].triu(), both[:, :, n:], sign


def _diagonals(a):
    return _v.diagonal(a, 0, 1, 2)


def _solution(a, b, name):
    u, y, _ = _eliminated(a, b)
    if bool((_diagonals(u) == 0).any()):
        raise LinAlgError(f"{name}: a matrix is singular")
    x = y.clone()
    for k in reversed(range(u.shape[1])):
        row = y[:, k : k + 1] - u[:, k : k + 1, k + 1 :] @ x[:, k + 1 :]
        x[:, k : k + 1] = row / u[:, k : k + 1, k : k + 1]
    return x


def solve(x1, x2, /):
    kind = _v.result_type(x1, x2)
    vector = x2.ndim == 1
    right = x2.unsqueeze(1) if vector else x2
    if x1.ndim < 2 or right.ndim < 2 or x1.shape[-1] != right.shape[-2]:
        raise ValueError(f"solve: shapes {x1.shape} and {x2.shape} do not fit")
    batch = (_v.empty(x1.shape[:-2]) + _v.empty(right.shape[:-2])).shape
    left = x1.expand(batch + x1.shape[-2:])
    right = right.expand(batch + right.shape[-2:]).to(kind)
    a = _stack(left, "solve", square=True)
    x = _like(_solution(a, _stack(right, "solve"), "solve"), right)
    return x.squeeze(-1) if vector else x


def inv(x, /):
    a = _stack(x, "inv", square=True)
    return _like(_solution(a, _identity(*a.shape, a.device), "inv"), x)


def _determinants(x, name):
    a = _stack(x, name, square=True)
    u, _, sign = _eliminated(a, a[:, :, :0])
    return _diagonals(u), sign


def det(x, /):
    pivots, sign = _determinants(x, "det")
    return _like(pivots.prod(1) * sign, x)


def slogdet(x, /):
    pivots, sign = _determinants(x, "slogdet")
    return SlogdetResult(_like(pivots.sign().prod(1) * sign, x), _like(pivots.abs().log().sum(1), x))


# Jacobi's rotations: with the columns in two halves, each column of one is turned against its neighbour in the other,
# all at once; then the columns take new places as players of a tournament do, until each has met each.


def _tournament(n, device):
    h = n // 2
    order = [0, 1] if h == 1 else [0, h, *range(1, h - 1), *range(h + 1, n), h - 1]
    return _v.tensor(order, dtype=int64, device=device)


def _angles(p, q, product):
    """Cosines and sines that make two columns orthogonal: of squared lengths p and q, or of diagonal elements."""
    ratio = (q - p) / (2 * product)
    tangent = _v.where(ratio >= 0, 1.0, -1.0).to(float64) / (ratio.abs() + (1 + ratio * ratio).sqrt())
    tangent = _v.where(product == 0, _v.zeros_like(tangent), tangent)
    cosine = (1 + tangent * tangent).rsqrt()
    return cosine, tangent * cosine


def _turned(x, cosine, sine):
    """Columns of the two halves of x turned against each other."""
    h = x.shape[2] // 2
    p, q, c, s = x[:, :, :h], x[:, :, h:], cosine.unsqueeze(1), sine.unsqueeze(1)
    return _v.cat([c * p - s * q, s * p + c * q], 2)


def _padded(a, rows, columns):
    wide = _v.zeros((a.shape[0], a.shape[1] + rows, a.shape[2] + columns), dtype=float64, device=a.device)
    wide[:, : a.shape[1], : a.shape[2]] = a
    return wide


def _eigen(a):
    """Eigenvalues in ascending order and their vectors, of symmetric matrices."""
    count, n, _ = a.shape
    a = a.tril() + a.tril(-1).mT
    v = _identity(count, n, n, a.device)
    if n > 1:
        odd = n % 2  # a row and a column of zeros make the number of columns even, and stay as they are
        a, v, h = _padded(a, odd, odd), _padded(v, odd, odd), (n + odd) // 2
        order, all_of_it = _tournament(2 * h, a.device), (a * a).sum((1, 2))
        for _ in range(_SWEEPS):
            for _ in range(2 * h - 1):
                p, q = _diagonals(a[:, :h, :h]), _diagonals(a[:, h:, h:])
                c, s = _angles(p, q, _diagonals(a[:, :h, h:]))
                a = _turned(_turned(a, c, s).mT, c, s).index_select(1, order).index_select(2, order)
                v = _turned(v, c, s).index_select(2, order)
            off = a - _v.diag_embed(_diagonals(a))
            if not bool(((off * off).sum((1, 2)) > _EPSILON**2 * all_of_it).any()):
                break
        a, v = a[:, :n, :n], v[:, :n, :n]
    values, places = _v.sort(_diagonals(a), 1)
    return values, v.gather(2, places.unsqueeze(1).expand((count, n, n)))


def eigh(x, /):
    a, scale = _scaled(_stack(x, "eigh", square=True))
    values, vectors = _eigen(a)
    return EighResult(_like(values * scale.squeeze(2), x), _like(vectors, x))


def eigvalsh(x, /):
    return eigh(x).eigenvalues


def _orthogonal(w):
    """W V of orthogonal columns, and V, of square matrices W."""
    count, n, _ = w.shape
    v = _identity(count, n, n, w.device)
    if n < 2:
        return w, v
    odd = n % 2
    w, v, h = _padded(w, 0, odd), _padded(v, odd, odd), (n + odd) // 2
    order = _tournament(2 * h, w.device)
    for _ in range(_SWEEPS):
        worst = _v.zeros((), dtype=float64, device=w.device)
        for _ in range(2 * h - 1):
            left, right = w[:, :, :h], w[:, :, h:]
            p, q, product = (left * left).sum(1), (right * right).sum(1), (left * right).sum(1)
            lengths = p.sqrt() * q.sqrt()
            cosine = product.abs() / lengths
            counts = (lengths > 0) & (cosine > 0)  # a matrix with NaN does not end the others' sweeps
            worst = _v.maximum(worst, _v.where(counts, cosine, _v.zeros_like(p)).amax())
            c, s = _angles(p, q, product)
            w, v = _turned(w, c, s).index_select(2, order), _turned(v, c, s).index_select(2, order)
        if not float(worst) > max(n, 10) * _EPSILON:
            break
    return w[:, :, :n], v[:, :n, :n]


def _singular(a):
    """U of shape (count, n, n), S in descending order and V, of square matrices."""
    count, n, _ = a.shape
    w, v = _orthogonal(a)
    s, places = _v.sort((w * w).sum(1).sqrt(), 1, True)
    places = places.unsqueeze(1).expand((count, n, n))
    w, v = w.gather(2, places), v.gather(2, places)
    # Where a value is nothing, its column is; the reflections find a vector orthogonal to the others.
    real = s > s[:, :1] * (n * _EPSILON)
    w = _v.where(real.unsqueeze(1), w / s.unsqueeze(1), _v.zeros_like(w))
    r, vectors = _reflections(w)
    signs = _v.where(_diagonals(r) < 0, -1.0, 1.0).to(float64)
    return _reflected(vectors, count, n, n, a.device) * signs.unsqueeze(1), s, v


def _svd(a, full):
    """U, S and V of matrices at least as high as wide."""
    count, m, n = a.shape
    r, vectors = _reflections(a)
    q = _reflected(vectors, count, m, m if full else n, a.device)
    u, s, v = _singular(r[:, :n])
    return _v.cat([q[:, :, :n] @ u, q[:, :, n:]], 2), s, v


def svd(x, /, *, full_matrices=True):
    a, scale = _scaled(_stack(x, "svd"))
    wide = a.shape[2] > a.shape[1]
    u, s, v = _svd(a.mT if wide else a, full_matrices)
    u, v = (v, u) if wide else (u, v)
    return SVDResult(_like(u, x), _like(s * scale.squeeze(2), x), _like(v.mT, x))


def svdvals(x, /):
    return svd(x, full_matrices=False).S


def _tolerance(x, rtol):
    if rtol is None:
        return max(x.shape[-2:]) * _v.finfo(x.dtype).eps
    return rtol.unsqueeze(-1) if isinstance(rtol, _v.Tensor) else rtol


def _counts(s, tolerance):
    """Which singular values count."""
    return s > s[..., :1] * tolerance


def matrix_rank(x, /, *, rtol=None):
    return _sum(_counts(svdvals(x), _tolerance(x, rtol)), axis=-1)


def pinv(x, /, *, rtol=None):
    u, s, vh = svd(x, full_matrices=False)
    counted = _counts(s, _tolerance(x, rtol))
    inverse = _v.where(counted, 1 / s, _v.zeros_like(s)).to(x.dtype)
    return (vh.mT * inverse.unsqueeze(-2)) @ u.mT


def matrix_power(x, n, /):
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise ValueError(f"matrix_power: square matrices are wanted, not shape {x.shape}")
    base = inv(x) if n < 0 else x
    result, n = None, abs(n)
    while n:
        if n % 2:
            result = base if result is None else result @ base
        n //= 2
        base = base @ base if n else base
    if result is None:
        eye = _v.arange(x.shape[-1]).unsqueeze(1) == _v.arange(x.shape[-1])
        return eye.to(x.dtype).to(x.device).expand(x.shape).clone()
    return result.clone() if result is x else result


# Products, diagonals and norms


def cross(x1, x2, /, *, axis=-1):
    kind = _v.result_type(x1, x2)
    if x1.shape[axis] != 3 or x2.shape[axis] != 3:
        raise ValueError(f"cross: axis {axis} of shapes {x1.shape} and {x2.shape} is not of size 3")
    first, second = _broadcast_tensors(x1.to(kind), x2.to(kind))
    a, b = _v.unbind(first, axis), _v.unbind(second, axis)
    turns = [(1, 2), (2, 0), (0, 1)]
    position = axis if axis >= 0 else first.ndim + axis
    return _v.stack([a[i] * b[j] - a[j] * b[i] for i, j in turns], position)


def outer(x1, x2, /):
    if x1.ndim != 1 or x2.ndim != 1:
        raise ValueError(f"outer: vectors are wanted, not shapes {x1.shape} and {x2.shape}")
    return x1.unsqueeze(1) * x2.unsqueeze(0)


def diagonal(x, /, *, offset=0):
    if x.ndim < 2:
        raise ValueError(f"diagonal: matrices are wanted, not shape {x.shape}")
    m, n = x.shape[-2:]
    return _v.diagonal(x, max(-m, min(offset, n)), -2, -1)


def trace(x, /, *, offset=0, dtype=None):
    wide = _accumulated(diagonal(x, offset=offset), dtype)
    return wide.sum(-1).to(wide.dtype)


def vector_norm(x, /, *, axis=None, keepdims=False, ord=2):
    size = x.abs()
    options = {"axis": axis, "keepdims": keepdims}
    if ord == math.inf:
        return _max(size, **options)
    if ord == -math.inf:
        return _min(size, **options)
    if ord == 0:
        return _sum((size != 0).to(x.dtype), **options)
    if ord == 1:
        return _sum(size, **options)
    if ord == 2:
        return _sum(size * size, **options).sqrt()
    return _sum(size**ord, **options) ** (1 / ord)


def matrix_norm(x, /, *, keepdims=False, ord="fro"):
    if x.ndim < 2:
        raise ValueError(f"matrix_norm: matrices are wanted, not shape {x.shape}")
    if ord not in ("fro", "nuc", 1, -1, 2, -2, math.inf, -math.inf):
        raise ValueError(f"matrix_norm: ord {ord!r} is not one of fro, nuc, 1, -1, 2, -2, inf, -inf")
    if 0 in x.shape[-2:]:
        result = _v.zeros(x.shape[:-2], dtype=x.dtype, device=x.device)
    elif ord == "fro":
        result = (x * x).sum((-2, -1)).sqrt()
    elif ord in ("nuc", 2, -2):
        values = svdvals(x)
        result = values.sum(-1) if ord == "nuc" else values[..., 0 if ord > 0 else -1]
    else:
        sums = x.abs().sum(-2 if abs(ord) == 1 else -1)
        result = sums.amax(-1) if ord > 0 else sums.amin(-1)
    return result.unsqueeze(-1).unsqueeze(-1) if keepdims else result
