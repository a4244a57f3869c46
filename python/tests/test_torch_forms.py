"""Arguments of PyTorch's that Python adds to the ops: rounding modes, decimals, weights, orders; and their gradients."""

import numpy as np
import pytest

import volta as v

X = [[-2.5, 0.5, 1.5], [3.25, -0.75, 0.0]]


def test_rounding_modes_of_division():
    a = np.array([7, -7, 7, -7, 6], dtype=np.int32)
    b = np.array([2, 2, -2, -2, 3], dtype=np.int32)
    x, y = v.tensor(a), v.tensor(b)
    assert x.div(y, rounding_mode="trunc").tolist() == [3, -3, -3, 3, 2]
    assert v.divide(x, y, rounding_mode="floor").tolist() == (a // b).tolist()
    assert v.div(x, 2, rounding_mode="trunc").dtype is v.int32 and v.div(x, 2).dtype is v.float32
    z = v.tensor([7.5, -7.5])
    assert z.div(2, rounding_mode="trunc").tolist() == [3, -3] and z.div_(2, rounding_mode="floor").tolist() == [3, -4]
    assert z.div_(2).tolist() == [1.5, -2]
    with pytest.raises(ValueError, match="rounding_mode"):
        v.div(x, y, rounding_mode="up")


def test_decimals():
    x = v.tensor([1.25, -1.35, 123.0], dtype=v.float64)
    assert x.round(decimals=1).tolist() == [1.2, -1.4, 123] and v.round(x, decimals=-1).tolist() == [0, 0, 120]
    assert x.round_(decimals=0).tolist() == [1, -1, 123] and v.tensor([3]).round().tolist() == [3]
    with pytest.raises(v.DTypeError):
        v.round(v.tensor([13]), decimals=1)


def test_differences_with_more_around():
    x = v.tensor(X)
    expected = np.diff(np.array(X, dtype=np.float32), axis=1, prepend=np.ones((2, 1), np.float32), append=[[0], [2]])
    assert v.diff(x, prepend=v.ones(2, 1), append=v.tensor([[0.0], [2.0]])).tolist() == expected.tolist()
    assert x.diff(axis=0).tolist() == [[5.75, -1.25, -1.5]] and x.diff(n=0, append=x) is x


def test_where_elements_are():
    x = v.tensor(X)
    rows, columns = x.nonzero(as_tuple=True)
    assert rows.tolist() == [0, 0, 0, 1, 1] and columns.tolist() == [0, 1, 2, 0, 1]
    assert v.nonzero(x).tolist() == [[0, 0], [0, 1], [0, 2], [1, 0], [1, 1]]
    assert x.argsort(dim=1, stable=True).tolist() == [[0, 1, 2], [1, 2, 0]]
    assert v.take_along_dim(x, v.tensor([[-1], [-3]]), 1).tolist() == [[1.5], [3.25]]
    with pytest.raises(v.IndexError, match="-4"):
        v.take_along_dim(x, v.tensor([[-4], [0]]), 1)


def test_searching():
    edges, x = v.tensor([1.0, 3.0, 5.0]), v.tensor([3.0, 0.0, 6.0])
    assert v.bucketize(x, edges, out_int32=True).tolist() == [1, 0, 3] and v.bucketize(3.0, edges).item() == 1
    shuffled, order = v.tensor([5.0, 1.0, 3.0]), v.tensor([1, 2, 0])
    found = v.searchsorted(shuffled, x, side="right", sorter=order, out_int32=True)
    assert found.tolist() == [2, 0, 3] and found.dtype is v.int32
    with pytest.raises(ValueError, match="side"):
        v.searchsorted(edges, x, side="left", right=True)
    with pytest.raises(ValueError, match="side"):
        v.searchsorted(edges, x, side="middle")


def test_logit_within_bounds():
    x = v.tensor([0.0, 0.1, 0.5, 1.0], dtype=v.float64, requires_grad=True)
    y = x.logit(0.1)
    np.testing.assert_allclose(y.detach().numpy(), np.log([1 / 9, 1 / 9, 1, 9]), atol=1e-15)
    y.sum().backward()
    assert x.grad[0].item() == 0 and x.grad[2].item() == 4 and x.grad[3].item() == 0
    assert v.tensor([0, 1]).logit(eps=0.5).tolist() == [0, 0]


def test_runs_of_equal_elements():
    x = v.tensor([1, 1, 2, 2, 2, 1])
    assert x.unique_consecutive().tolist() == [1, 2, 1]
    values, counts = v.unique_consecutive(x, return_counts=True)
    assert values.tolist() == [1, 2, 1] and counts.tolist() == [2, 3, 1]
    values, inverse, counts = x.unique_consecutive(True, True)
    assert inverse.tolist() == [0, 0, 1, 1, 1, 2] and counts.tolist() == [2, 3, 1]
    assert v.repeat_interleave(x, 2, output_size=12).tolist()[:4] == [1, 1, 1, 1]


def test_norms_by_name():
    a = np.array(X)
    x = v.tensor(X, dtype=v.float64)
    np.testing.assert_allclose(x.norm().item(), np.linalg.norm(a))
    np.testing.assert_allclose(x.norm("fro", dim=1).numpy(), np.linalg.norm(a, axis=1))
    np.testing.assert_allclose(v.norm(x, "nuc").item(), np.linalg.norm(a, "nuc"))
    assert v.norm(x, "nuc", dim=(0, 1), keepdim=True).shape == (1, 1) and x.norm(dtype=v.float32).dtype is v.float32
    assert v.stack([x, x]).norm("nuc", (1, 2)).shape == (2,)


def test_spread_and_mean():
    a = np.array(X)
    x = v.tensor(X, dtype=v.float64)
    for unbiased in (False, True):
        spread, mean = v.var_mean(x, unbiased)
        np.testing.assert_allclose([spread.item(), mean.item()], [np.var(a, ddof=unbiased), a.mean()])
    spread, mean = v.std_mean(x, 1, unbiased=False, keepdim=True)
    np.testing.assert_allclose(spread.numpy(), a.std(axis=1, keepdims=True))
    np.testing.assert_allclose(v.std_mean(x, axis=1, correction=1)[0].numpy(), a.std(axis=1, ddof=1))


def test_histograms_of_weights_and_edges():
    a = np.array([0.1, 0.4, 0.4, 0.9, 1.0, 7.0])
    w = np.array([1.0, 2, 3, 4, 5, 6])
    x = v.tensor(a, dtype=v.float64)
    for keys in ({"bins": 4}, {"bins": 3, "range": (0.0, 1.0)}, {"bins": v.tensor([0.0, 0.4, 1.0], dtype=v.float64)}):
        bins = keys["bins"] if isinstance(keys["bins"], int) else keys["bins"].numpy()
        for weight in (None, w):
            for density in (False, True):
                expected, edges = np.histogram(a, bins, keys.get("range"), density=density, weights=weight)
                given = v.histogram(x, **keys, weight=None if weight is None else v.tensor(w), density=density)
                np.testing.assert_allclose(given.hist.numpy(), expected)
                np.testing.assert_allclose(given.bin_edges.numpy(), edges)
    assert given.counts is given.hist and given.edges is given.bin_edges


def test_shapes():
    x = v.ones(1, 2, 1)
    assert x.squeeze().shape == (2,) and x.squeeze(0).shape == (2, 1) and v.squeeze(x, (0, 2)).shape == (2,)
    assert x.squeeze(()).shape == (1, 2, 1) and x.squeeze([]).shape == (1, 2, 1)
    parts = v.atleast_2d(v.ones(3), v.ones(2, 2))
    assert [p.shape for p in parts] == [(1, 3), (2, 2)] and v.atleast_1d([v.tensor(1.0)])[0].shape == (1,)
    assert v.atleast_3d(x).shape == (1, 2, 1)
    assert [p.tolist() for p in v.arange(5).tensor_split(v.tensor([1, 4]))] == [[0], [1, 2, 3], [4]]
    assert [p.numel() for p in v.tensor_split(v.arange(5), v.tensor(2))] == [3, 2]


def test_scatter_with_reduce():
    x, index = v.ones(3), v.tensor([1, 1, 0])
    assert x.scatter(0, index, v.tensor([2.0, 3.0, 4.0]), reduce="add").tolist() == [5, 6, 1]
    assert v.scatter(x * 2, 0, index, 3, reduce="multiply").tolist() == [6, 18, 2]
    assert x.scatter(0, index, value=7).tolist() == [7, 7, 1]
    assert x.scatter_(0, index[:1], 5.0).tolist() == [1, 5, 1]
    assert x.scatter_(0, index[:1], 2.0, reduce="add").tolist() == [1, 7, 1]
    with pytest.raises(ValueError, match="reduce"):
        x.scatter(0, index, x, reduce="mean")


def test_bounds_of_which_one_is_missing():
    x = v.tensor([-2.0, 0.5, 2.0])
    assert x.clip(None, 1).tolist() == [-2, 0.5, 1] and v.clip(x, min=0).tolist() == [0, 0.5, 2]
    assert x.clone().clamp_(0, None).tolist() == [0, 0.5, 2] and x.clone().clip_(max=0).tolist() == [-2, 0, 0]
    assert x.clone().clamp_(-1, 1).tolist() == [-1, 0.5, 1] and x.clamp(-1, 1).tolist() == [-1, 0.5, 1]
    assert v.nn.functional.hardshrink(x, lambd=1).tolist() == [-2, 0, 2] and x.softshrink(lambd=1).tolist() == [
        -1,
        0,
        1,
    ]
    assert v.max(x, v.tensor(1)).tolist() == [1, 1, 2] and x.min(v.tensor(0.0)).tolist() == [-2, 0, 0]


def test_results_changed_in_place_keep_their_gradient():
    functional = v.nn.functional
    for change, slope in (
        (lambda y: y.multiply_(y), 4.0),
        (lambda y: y.arctan_(), 0.5),
        (lambda y: functional.elu_(y), 1.0),
        (lambda y: functional.leaky_relu_(y), 1.0),
        (lambda y: y.clip_(max=3.0), 1.0),
        (lambda y: y.div_(2, rounding_mode="floor"), 0.0),
    ):
        x = v.tensor([0.5], requires_grad=True)
        change(x * 2).sum().backward()
        assert x.grad.item() == pytest.approx(slope * (2 if slope in (0.5, 1.0) else 1))
    assert v.normal(v.zeros(3, dtype=v.float16), 1.0).dtype is v.float16
    assert v.scalar_tensor(2, requires_grad=True).requires_grad


def test_functional_forms():
    functional, x = v.nn.functional, v.tensor([-3, 0, 9])
    assert functional.hardtanh(x, -1, 4).tolist() == [-1, 0, 4] and functional.relu6(x).dtype is v.int64
    images, where = v.randn(1, 1, 6, 6), v.full((1, 1, 2), 0.5)
    pooled, indices = functional.fractional_max_pool2d_with_indices(images, 2, output_size=3, _random_samples=where)
    again = functional.fractional_max_pool2d(images, 2, output_size=3, _random_samples=where)
    assert pooled.tolist() == again.tolist() and indices.shape == (1, 1, 3, 3)
    a = v.tensor([[1.0, 2.0, 4.0]], dtype=v.float16)
    assert v.cov(a, aweights=v.tensor([1.0, 2.0, 1.0])).dtype is v.float32 and a.cov(correction=0).dtype is v.float16
