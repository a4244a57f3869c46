"""The extension linalg against NumPy: stacks of matrices, ranks below the size, empty and extreme matrices."""

import inspect
import itertools
import math

import array_api_strict as strict
import numpy as np
import pytest

import volta as v
from volta import array_api as xp

linalg = xp.linalg
SHAPES = [(1, 1), (2, 2), (5, 5), (8, 8), (4, 2), (2, 5), (7, 3), (1, 4)]
BATCHES = [(), (3,), (2, 1)]
TOLERANCE = {"float64": 1e-11, "float32": 1e-4}


def matrices(batch, m, n, dtype="float64", rank=None):
    rng = np.random.default_rng(m * 10 + n)
    if rank is None:
        return rng.normal(size=(*batch, m, n)).astype(dtype)
    return (rng.normal(size=(*batch, m, rank)) @ rng.normal(size=(*batch, rank, n))).astype(dtype)


def close(ours, theirs, rtol=1e-10, atol=None):
    ours, theirs = np.asarray(ours), np.asarray(theirs)
    assert ours.shape == theirs.shape and ours.dtype == theirs.dtype
    np.testing.assert_allclose(ours, theirs, rtol=rtol, atol=rtol if atol is None else atol)


def transposed(a):
    return np.swapaxes(a, -1, -2)


def orthonormal(q, tolerance):
    return np.allclose(transposed(q) @ q, np.eye(q.shape[-1]), atol=tolerance)


def test_all_names_have_the_standard_parameters():
    names = [n for n in strict.linalg.__all__ if inspect.isfunction(getattr(strict.linalg, n))]
    for name in (n for n in names if n not in ("eig", "eigvals")):
        ours = inspect.signature(getattr(linalg, name)).parameters
        for parameter in inspect.signature(getattr(strict.linalg, name)).parameters.values():
            if parameter.kind == parameter.KEYWORD_ONLY:
                assert ours[parameter.name].default == parameter.default, name
    assert len(names) >= 22 and set(names) - {"eig", "eigvals"} <= set(linalg.__all__)


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_qr(dtype):
    tolerance = TOLERANCE[dtype]
    for batch, (m, n), mode in itertools.product(BATCHES, [*SHAPES, (0, 3), (3, 0)], ("reduced", "complete")):
        a = matrices(batch, m, n, dtype)
        result = linalg.qr(xp.asarray(a), mode=mode)
        q, r = np.asarray(result.Q), np.asarray(result.R)
        size = m if mode == "complete" else min(m, n)
        assert q.shape == (*batch, m, size) and r.shape == (*batch, size, n) and q.dtype == r.dtype == dtype
        assert np.allclose(q @ r, a, atol=tolerance) and orthonormal(q, tolerance) and (r == np.triu(r)).all()


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("rank", [None, 1, 0])
def test_svd(dtype, rank):
    tolerance = TOLERANCE[dtype]
    for batch, (m, n), full in itertools.product(BATCHES, SHAPES, (True, False)):
        a, k = matrices(batch, m, n, dtype, rank), min(m, n)
        u, s, vh = (np.asarray(part) for part in linalg.svd(xp.asarray(a), full_matrices=full))
        assert u.shape == (*batch, m, m if full else k) and vh.shape == (*batch, n if full else k, n)
        assert orthonormal(u, tolerance) and orthonormal(transposed(vh), tolerance)
        assert np.allclose((u[..., :k] * s[..., None, :]) @ vh[..., :k, :], a, atol=tolerance)
        assert (s[..., :-1] >= s[..., 1:]).all()
        close(linalg.svdvals(xp.asarray(a)), np.linalg.svd(a, compute_uv=False), tolerance)
        close(linalg.matrix_rank(xp.asarray(a)), np.linalg.matrix_rank(a))
        eps = max(m, n) * np.finfo(dtype).eps
        close(linalg.pinv(xp.asarray(a)), np.linalg.pinv(a, rcond=eps).astype(dtype), 20 * tolerance)


def test_singular_values_of_extreme_matrices():
    for scale in (1e300, 1e-300, 5e-324):
        values = np.asarray(linalg.svdvals(xp.asarray([[scale, 0.0], [0.0, 2 * scale]], dtype=xp.float64)))
        np.testing.assert_allclose(values, [2 * scale, scale], rtol=1e-15)
    hilbert = 1 / (np.arange(12)[:, None] + np.arange(12) + 1.0)
    close(linalg.svdvals(xp.asarray(hilbert)), np.linalg.svd(hilbert, compute_uv=False), 0.0, 1e-14)
    close(linalg.eigvalsh(xp.asarray(hilbert)), np.linalg.eigvalsh(hilbert), 0.0, 1e-14)
    # Squares of the first column's numbers are subnormal or nothing.
    small = np.array([[[-1e-310, 5e-324, 1.0], [-0.0, 5e-324, 2e-308], [1e-160, 1.0, 3.5]]])
    beside_nan = np.concatenate([small, np.full((1, 3, 3), np.nan), matrices((1,), 3, 3)])
    u, s, vh = (np.asarray(part)[[0, 2]] for part in linalg.svd(xp.asarray(beside_nan)))
    assert orthonormal(u, 1e-14) and np.allclose((u * s[:, None]) @ vh, beside_nan[[0, 2]], atol=1e-14)
    assert orthonormal(np.asarray(linalg.qr(xp.asarray(small)).Q), 1e-14)
    # Small values keep their digits where the columns are only scaled.
    graded = np.diag([1.0, 1e-8, 1e-16]) @ np.array([[1.0, 0.0, 0.0], [0.0, 0.6, 0.8], [0.0, -0.8, 0.6]])
    assert np.allclose(np.asarray(linalg.svdvals(xp.asarray(graded.T))), [1.0, 1e-8, 1e-16], rtol=1e-12)


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_symmetric_matrices(dtype):
    tolerance = 5 * TOLERANCE[dtype]
    for batch, n in itertools.product(BATCHES, (1, 2, 3, 6, 9)):
        a = matrices(batch, n, n, dtype)
        a += transposed(a)
        values, vectors = linalg.eigh(xp.asarray(a))
        close(values, np.linalg.eigvalsh(a), tolerance)
        q = np.asarray(vectors)
        assert orthonormal(q, tolerance) and np.allclose(
            a @ q, q * np.asarray(values)[..., None, :], atol=10 * tolerance
        )
        close(linalg.eigvalsh(xp.asarray(a)), np.linalg.eigvalsh(a), tolerance)
        definite = (a @ a + np.eye(n)).astype(dtype)
        lower = np.linalg.cholesky(definite)
        close(linalg.cholesky(xp.asarray(definite)), lower, tolerance)
        close(linalg.cholesky(xp.asarray(definite), upper=True), transposed(lower), tolerance)
    equal = np.asarray(linalg.eigh(xp.eye(4, dtype=xp.float64)).eigenvectors)
    assert orthonormal(equal, 1e-15)


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_linear_equations(dtype):
    tolerance = 50 * TOLERANCE[dtype]
    for batch, n in itertools.product(BATCHES, (1, 2, 5, 8)):
        a = matrices(batch, n, n, dtype) + (3 * np.eye(n)).astype(dtype)
        x = xp.asarray(a)
        close(linalg.inv(x), np.linalg.inv(a), tolerance)
        close(linalg.det(x), np.linalg.det(a), tolerance)
        for ours, theirs in zip(linalg.slogdet(x), np.linalg.slogdet(a), strict=True):
            close(ours, theirs, tolerance)
        for shape in ((n,), (n, 2), (3, n, 1)):
            right = matrices((), math.prod(shape), 1, dtype).reshape(shape)
            vector = right.ndim == 1
            theirs = np.linalg.solve(a, right[:, None])[..., 0] if vector else np.linalg.solve(a, right)
            close(linalg.solve(x, xp.asarray(right)), theirs, tolerance)
        for power in (0, 1, 2, 5, -1, -2):
            close(linalg.matrix_power(x, power), np.linalg.matrix_power(a, power), tolerance, 1e3 * tolerance)
    assert linalg.matrix_power(x, 1) is not x
    permuted = xp.asarray([[0.0, 1.0], [1.0, 0.0]])
    assert float(linalg.det(permuted)) == -1 and linalg.inv(permuted).tolist() == permuted.tolist()
    singular = linalg.slogdet(xp.zeros((2, 2)))
    assert float(singular.sign) == 0 and float(singular.logabsdet) == -math.inf


def test_norms_and_diagonals():
    a = matrices((2,), 3, 4)
    x = xp.asarray(a)
    orders = (2, 1, 0, -1, -2, math.inf, -math.inf, 3, 0.5, -7.25)
    for axis, keepdims, order in itertools.product((None, 0, -1, (0, 2)), (False, True), orders):
        ours = linalg.vector_norm(x, axis=axis, keepdims=keepdims, ord=order)
        close(ours, np.linalg.vector_norm(a, axis=axis, keepdims=keepdims, ord=order))
    for keepdims, order in itertools.product((False, True), ("fro", "nuc", 1, -1, 2, -2, math.inf, -math.inf)):
        close(
            linalg.matrix_norm(x, keepdims=keepdims, ord=order), np.linalg.matrix_norm(a, keepdims=keepdims, ord=order)
        )
    for offset in (0, 1, -2, 3, -3, 10_000):
        close(
            linalg.diagonal(x, offset=offset), np.diagonal(a, offset, -2, -1) if abs(offset) < 9 else np.zeros((2, 0))
        )
        close(linalg.trace(x, offset=offset), np.trace(a, offset, -2, -1) if abs(offset) < 9 else np.zeros(2))
    small = xp.asarray([[100, 1], [1, 100]], dtype=xp.int8)
    assert linalg.trace(small).dtype == xp.int64 and int(linalg.trace(small)) == 200
    assert linalg.trace(small, dtype=xp.float32).dtype == xp.float32
    for first, second, axis in [((3,), (3,), -1), ((2, 3), (3,), -1), ((4, 3, 2), (3, 1), -2), ((3, 2), (3, 2), 0)]:
        p, q = matrices((), 1, math.prod(first)).reshape(first), matrices((), math.prod(second), 1).reshape(second)
        close(linalg.cross(xp.asarray(p), xp.asarray(q), axis=axis), np.cross(*np.broadcast_arrays(p, q), axis=axis))
    assert linalg.outer(xp.asarray([1, 2], dtype=xp.int8), xp.asarray([3], dtype=xp.uint8)).dtype == xp.int16


def test_empty_stacks_and_matrices():
    none, empty = xp.zeros((0, 3, 2)), xp.zeros((0, 0))
    assert [part.shape for part in linalg.svd(none)] == [(0, 3, 3), (0, 2), (0, 2, 2)]
    assert linalg.qr(none).Q.shape == (0, 3, 2) and linalg.pinv(none).shape == (0, 2, 3)
    square = xp.zeros((0, 2, 2), dtype=xp.float64)
    assert linalg.inv(square).shape == (0, 2, 2) and linalg.det(square).shape == (0,)
    assert linalg.eigh(square).eigenvalues.shape == (0, 2) and linalg.cholesky(square).dtype == xp.float64
    assert float(linalg.det(empty)) == 1 and linalg.inv(empty).shape == (0, 0)
    assert linalg.eigvalsh(empty).shape == (0,) and linalg.svd(empty).U.shape == (0, 0)


def test_what_is_refused():
    for call in (
        lambda: linalg.cholesky(-xp.eye(2)),
        lambda: linalg.inv(xp.zeros((2, 2))),
        lambda: linalg.solve(xp.ones((2, 2)), xp.ones(2)),
    ):
        with pytest.raises(linalg.LinAlgError):
            call()
    for call in (
        lambda: linalg.inv(xp.ones((2, 3))),
        lambda: linalg.qr(xp.ones(3)),
        lambda: linalg.qr(xp.eye(2), mode="full"),
        lambda: linalg.solve(xp.eye(2), xp.ones(3)),
        lambda: linalg.cross(xp.ones(2), xp.ones(2)),
        lambda: linalg.outer(xp.ones((1, 1)), xp.ones(1)),
        lambda: linalg.matrix_norm(xp.eye(2), ord=3),
    ):
        with pytest.raises(ValueError):
            call()
    with pytest.raises(TypeError):
        linalg.svd(xp.ones((2, 2), dtype=xp.int64))
    with pytest.raises(v.AutogradError):
        linalg.inv(v.eye(2).requires_grad_())


def test_products_are_differentiable():
    x = v.tensor([[3.0, 4.0], [1.0, 2.0]], requires_grad=True)
    (linalg.matrix_norm(x) + linalg.trace(x)).backward()
    expected = (x / linalg.matrix_norm(x) + xp.eye(2)).detach()
    assert v.allclose(x.grad, expected)
