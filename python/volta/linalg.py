"""PyTorch's linalg: the array API's, over stacks of real matrices and without derivatives, with PyTorch's arguments."""

import functools as _functools

from . import _array_api_linalg as _api
from . import _volta as _v
from ._array_api_linalg import LinAlgError, det, inv, matmul, matrix_power, slogdet, svdvals

__all__ = [
    "LinAlgError",
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
    "multi_dot",
    "norm",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "svd",
    "svdvals",
    "vecdot",
    "vector_norm",
]


def cholesky(A, *, upper=False):
    """The lower triangle L of A = L L^T, or the upper one of A = U^T U."""
    return _api.cholesky(A, upper=upper)


def cross(input, other, *, dim=-1):
    """The product of vectors of three, at right angles to both."""
    return _api.cross(input, other, axis=dim)


def diagonal(A, *, offset=0, dim1=-2, dim2=-1):
    """The diagonal of each matrix, along the last axis."""
    return _v.diagonal(A, offset, dim1, dim2)


def _symmetric(A, UPLO):
    if UPLO not in ("L", "U"):
        raise ValueError(f"eigh: UPLO is 'L' or 'U', not {UPLO!r}")
    if A.ndim < 2:
        return A
    half = _v.tril(A, -1) if UPLO == "L" else _v.triu(A, 1)
    return _v.where(_v.eye(*A.shape[-2:], dtype=_v.bool, device=A.device), A, half + half.mT)


def eigh(A, UPLO="L"):
    """Eigenvalues, ascending, and eigenvectors of symmetric matrices, of which one triangle is read."""
    return _api.eigh(_symmetric(A, UPLO))


def eigvalsh(A, UPLO="L"):
    """Eigenvalues of symmetric matrices, ascending."""
    return _api.eigvalsh(_symmetric(A, UPLO))


def qr(A, mode="reduced"):
    """Q with orthonormal columns and R, an upper triangle, of A = Q R."""
    return _api.qr(A, mode=mode)


def svd(A, full_matrices=True):
    """U, S and Vh of A = U diag(S) Vh, S descending."""
    return _api.svd(A, full_matrices=full_matrices)


def solve(A, B, *, left=True):
    """X of A X = B, or of X A = B; B has vectors where its shape is A's without the last axis."""
    if not left:
        return solve(A.mT, B.mT).mT
    if B.ndim > 1 and B.shape == A.shape[:-1]:
        return _api.solve(A, B.unsqueeze(-1)).squeeze(-1)
    return _api.solve(A, B)


def _cutoff(A, s, atol, rtol):
    """The singular values that count are larger than this."""
    if rtol is None:
        rtol = 0.0 if atol is not None else max(A.shape[-2:]) * _v.finfo(A.dtype).eps
    largest = s.amax(-1, keepdim=True) if s.shape[-1] else _v.zeros((*s.shape[:-1], 1), dtype=s.dtype, device=s.device)
    return _v.maximum(largest * rtol, _v.zeros_like(largest) if atol is None else atol + _v.zeros_like(largest))


def matrix_rank(A, tol=None, *, atol=None, rtol=None):
    """The number of singular values that are not negligible; `tol` is an older name of `atol`."""
    s = svdvals(A)
    return (s > _cutoff(A, s, tol if atol is None else atol, rtol)).sum(-1)


def pinv(A, *, atol=None, rtol=None):
    """The pseudo-inverse: of the singular values that are not negligible."""
    u, s, vh = svd(A, full_matrices=False)
    kept = s > _cutoff(A, s, atol, rtol)
    inverse = _v.where(kept, 1 / _v.where(kept, s, _v.ones_like(s)), _v.zeros_like(s))
    return (vh.mT * inverse.unsqueeze(-2)) @ u.mT


inverse, pinverse = inv, pinv  # names of torch itself, as are det, slogdet, logdet and matrix_power


def logdet(A):
    """The logarithm of each determinant: NaN where that is negative."""
    sign, size = slogdet(A)
    return _v.where(sign < 0, _v.full_like(size, float("nan")), size)


def multi_dot(tensors):
    """The product of several matrices; the first and the last may be vectors."""
    return _functools.reduce(matmul, tensors)


def vecdot(x, y, *, dim=-1):
    """Products of vectors along an axis, broadcast over the others."""
    return _api.vecdot(x, y, axis=dim)


def vector_norm(x, ord=2, dim=None, keepdim=False, *, dtype=None):
    """The norm of vectors along axes, of all elements by default."""
    axes = tuple(dim) if isinstance(dim, list) else dim
    return _api.vector_norm(x if dtype is None else x.to(dtype), axis=axes, keepdims=keepdim, ord=ord)


def matrix_norm(A, ord="fro", dim=(-2, -1), keepdim=False, *, dtype=None):
    """The norm of matrices that lie along two axes."""
    x = A if dtype is None else A.to(dtype)
    rows, columns = (d % x.ndim for d in dim)
    y = _api.matrix_norm(x.movedim((rows, columns), (-2, -1)), keepdims=keepdim, ord=ord)
    return y.movedim((-2, -1), (rows, columns)) if keepdim else y


def norm(A, ord=None, dim=None, keepdim=False, *, dtype=None):
    """A norm of vectors or, given two axes or an `ord` for a matrix, of matrices; without `ord` of all as one vector."""
    if ord is None and (dim is None or isinstance(dim, int) or len(dim) != 2):
        return vector_norm(A, 2, dim, keepdim, dtype=dtype)
    if dim is None and A.ndim not in (1, 2):
        raise ValueError(f"norm: with ord and without dim a vector or a matrix is wanted, not shape {A.shape}")
    axes = tuple(range(A.ndim)) if dim is None else (dim,) if isinstance(dim, int) else tuple(dim)
    if len(axes) == 2:
        return matrix_norm(A, "fro" if ord is None else ord, axes, keepdim, dtype=dtype)
    return vector_norm(A, ord, axes, keepdim, dtype=dtype)
