"""volta.linalg, the names of PyTorch over the array API's decompositions, against NumPy; and the switches around it."""

import math

import numpy as np
import pytest

import volta as v
from volta import linalg, nn

DTYPES = [v.float32, v.float64]


def near(ours, theirs, tolerance=1e-5):
    ours, theirs = np.asarray(ours), np.asarray(theirs)
    assert ours.shape == theirs.shape
    np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance)


def matrices(*shape):
    return np.random.default_rng(0).normal(size=shape)


@pytest.mark.parametrize("dtype", DTYPES)
def test_decompositions(dtype):
    a = matrices(2, 4, 4)
    x, symmetric = v.tensor(a, dtype=dtype), a + a.mT
    near(linalg.inv(x), np.linalg.inv(a), 1e-4)
    near(v.inverse(x), np.linalg.inv(a), 1e-4)
    near(v.det(x), np.linalg.det(a))
    near(v.logdet(x @ x.mT), np.linalg.slogdet(a @ a.mT).logabsdet, 1e-4)
    assert math.isnan(v.logdet(v.tensor([[0.0, 1.0], [1.0, 0.0]])).item())
    near(v.slogdet(x).logabsdet, np.linalg.slogdet(a).logabsdet)
    near(v.matrix_power(x, 3), np.linalg.matrix_power(a, 3), 1e-4)
    near(linalg.cholesky(x @ x.mT + v.eye(4, dtype=dtype)), np.linalg.cholesky(a @ a.mT + np.eye(4)), 1e-4)
    near(linalg.svdvals(x), np.linalg.svdvals(a))
    u, s, vh = linalg.svd(x[:, :3], full_matrices=False)
    near((u * s.unsqueeze(-2)) @ vh, a[:, :3], 1e-4)
    q, r = linalg.qr(x[:, :3])
    near(q @ r, a[:, :3], 1e-4)
    # One triangle is read, whatever the other says.
    for triangle, half in (("L", np.tril), ("U", np.triu)):
        values, vectors = linalg.eigh(v.tensor(half(symmetric), dtype=dtype), triangle)
        near(values, np.linalg.eigvalsh(symmetric), 1e-4)
        near((vectors * values.unsqueeze(-2)) @ vectors.mT, symmetric, 1e-4)
        near(linalg.eigvalsh(v.tensor(half(symmetric), dtype=dtype), triangle), np.linalg.eigvalsh(symmetric), 1e-4)
    with pytest.raises(ValueError):
        linalg.eigh(x, "X")


def test_equations():
    a, b = matrices(2, 3, 3), matrices(2, 3, 2)
    x = v.tensor(a)
    assert x.dtype == v.float64
    near(linalg.solve(x, v.tensor(b)), np.linalg.solve(a, b), 1e-9)
    near(linalg.solve(x[0], v.tensor(b[0, :, 0])), np.linalg.solve(a[0], b[0, :, 0]), 1e-9)
    near(
        linalg.solve(x, v.tensor(b[:, :, 0])), np.linalg.solve(a, b[:, :, :1])[..., 0], 1e-9
    )  # a vector for each matrix
    near(linalg.solve(x, v.tensor(b.mT.copy()), left=False) @ x, b.mT, 1e-9)
    with pytest.raises(linalg.LinAlgError):
        linalg.solve(v.zeros(2, 2), v.ones(2))


def test_ranks_and_pseudo_inverses():
    a = matrices(5, 3) @ np.diag([1.0, 1e-3, 1e-9]) @ matrices(3, 3)
    x = v.tensor(a)
    for options in ({}, {"rtol": 1e-6}, {"atol": 1e-6}, {"atol": 1e-2, "rtol": 1e-12}, {"tol": 1e-2}):
        s = np.linalg.svdvals(a)
        rtol = options.get("rtol", 0 if options else 5 * np.finfo("f8").eps)
        expected = int((s > max(s[0] * rtol, options.get("atol", options.get("tol", 0)))).sum())
        assert linalg.matrix_rank(x, **options).item() == expected
        if "tol" not in options and expected < 3:
            inverse = linalg.pinv(x, **options)
            assert linalg.matrix_rank(inverse, rtol=1e-9).item() == expected
    near(v.pinverse(x[:, :2]), np.linalg.pinv(a[:, :2]), 1e-6)
    assert linalg.pinv(v.zeros(2, 3)).tolist() == [[0.0, 0.0]] * 3 and linalg.matrix_rank(v.zeros(0, 3)).item() == 0


def test_norms():
    a = matrices(2, 3, 4)
    x = v.tensor(a)
    near(linalg.norm(x), np.linalg.norm(a), 1e-12)
    near(linalg.norm(x, dim=1), np.linalg.norm(a, axis=1), 1e-12)
    near(linalg.norm(x, dim=(0, 2), keepdim=True), np.linalg.norm(a, axis=(0, 2), keepdims=True), 1e-12)
    for order in (None, "fro", "nuc", 1, -1, 2, -2, math.inf, -math.inf):
        near(linalg.norm(x[0], order), np.linalg.norm(a[0], order), 1e-9)
        near(linalg.norm(x, order, (2, 0)), np.linalg.norm(a, order, (2, 0)), 1e-9)
        if order is not None:
            expected = np.linalg.norm(a, order, (0, -1), keepdims=True)
            near(linalg.matrix_norm(x, order, (0, -1), keepdim=True), expected, 1e-9)
    for order in (0, 1, 2, 3.5, math.inf, -math.inf):
        near(linalg.norm(x[0, 0], order), np.linalg.norm(a[0, 0], order), 1e-12)
        near(linalg.vector_norm(x, order, dim=[0, 2]), np.linalg.vector_norm(a, ord=order, axis=(0, 2)), 1e-12)
    assert linalg.vector_norm(x, dtype=v.float32).dtype == v.float32
    with pytest.raises(ValueError):
        linalg.norm(x, 2)
    w = v.tensor([3.0, 4.0], requires_grad=True)
    linalg.norm(w).backward()
    near(w.grad, [0.6, 0.8])


def test_products():
    a, b = matrices(3, 4), matrices(4, 2)
    near(linalg.multi_dot([v.tensor(a), v.tensor(b), v.tensor(a[:2])]), np.linalg.multi_dot([a, b, a[:2]]), 1e-12)
    near(linalg.vecdot(v.tensor(a), v.tensor(a[:1]), dim=0 - 1), np.linalg.vecdot(a, a[:1]), 1e-12)
    near(linalg.cross(v.tensor(a[:, :3]), v.tensor(a[:, 1:]), dim=1), np.linalg.cross(a[:, :3], a[:, 1:]), 1e-12)
    near(linalg.diagonal(v.tensor(a), offset=1), np.linalg.diagonal(a, offset=1), 0)


def test_what_is_refused_and_what_is_not():
    w = nn.Parameter(v.eye(2) * 2)
    with pytest.raises(v.Error, match="derivative"):
        linalg.inv(w)
    with v.no_grad():
        assert linalg.inv(w).tolist() == [[0.5, 0.0], [0.0, 0.5]]
    with pytest.raises(ValueError):
        linalg.det(v.ones(2, 3))
    with pytest.raises(TypeError):
        linalg.inv(v.ones(2, 2, dtype=v.int64))


def test_switches_that_programs_set():
    assert not v.backends.mps.is_available() and v.backends.cudnn.is_available() == v.cuda.is_available()
    v.backends.cudnn.benchmark, v.backends.cudnn.deterministic = False, True
    v.backends.cuda.matmul.allow_tf32 = True
    assert v.backends.cuda.matmul.allow_tf32
    v.backends.cuda.matmul.allow_tf32 = False
    v.cuda.manual_seed_all(3)
    v.cuda.empty_cache()


def test_print_options():
    x = v.tensor([1.23456, 2.5])
    try:
        v.set_printoptions(precision=2, sci_mode=False)
        assert repr(x) == "tensor([1.23, 2.50])"
        v.set_printoptions(profile="default")
        assert repr(x) == "tensor([1.2346, 2.5000])" and "..." in repr(v.arange(2000))
        v.set_printoptions(threshold=math.inf, linewidth=40)
        assert "..." not in repr(v.arange(2000)) and len(repr(v.arange(2000)).splitlines()) > 300
        v.set_printoptions(profile="short", edgeitems=1)
        assert repr(v.arange(2000)).count(",") == 2
        for wrong in ({"precision": -1}, {"profile": "long"}, {"edgeitems": 0}):
            with pytest.raises(ValueError):
                v.set_printoptions(**wrong)
    finally:
        v.set_printoptions(profile="default")
