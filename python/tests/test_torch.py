"""PyTorch as the oracle: the same expressions in both, values and gradients, contiguous and not. Skipped without torch."""

import numpy as np
import pytest

import volta

torch = pytest.importorskip("torch")

# x, y, z [3, 4]; p, q positive; m [4, 5]; b [2, 3, 4], c [2, 4, 5]; u, w vectors of 4; s [2, 3, 8, 8]; t [2, 3, 9];
# i integers [3, 4]; k labels [3]; g mask [3, 4]; n numbers of classes in x: 4.
POINTWISE = """abs acos acosh asin asinh atan atanh ceil cos cosh deg2rad digamma erf erfc erfinv exp exp2 expm1 floor frac
isfinite isinf isnan lgamma log log10 log1p log2 logical_not logit neg positive rad2deg reciprocal relu round rsqrt selu
sigmoid sign signbit sin sinc sinh sqrt square tan tanh trunc celu absolute arccos arcsinh arctan negative""".split()
BINARY = """add atan2 copysign div eq fmax fmin fmod ge gt hypot le lt logaddexp logaddexp2 logical_and
logical_or logical_xor maximum minimum mul ne pow remainder sub xlogy arctan2 multiply subtract true_divide
greater less_equal not_equal""".split()
EXPRESSIONS = [
    *(f"lib.{name}(p * 0.9)" if name not in ("acosh",) else f"lib.{name}(p + 1)" for name in POINTWISE),
    *(f"lib.{name}(p, q)" for name in BINARY),
    "lib.floor_divide(p.detach(), q.detach())",
    "lib.nextafter(p.detach(), q.detach())",
    *(f"p.{name}(q)" for name in ("add", "mul", "pow", "maximum", "lt")),
    "lib.bitwise_and(i, 3)",
    "lib.bitwise_or(i, i.T.reshape(3, 4))",
    "~i",
    "i << 1",
    "i >> 1",
    "lib.bitwise_xor(i, 5)",
    "lib.where(g, x, y)",
    "lib.lerp(x, y, 0.3)",
    "lib.clamp(x, -0.5, 0.5)",
    "lib.clamp(x, min=0.1)",
    "x.clamp(max=0.2)",
    "lib.clip(x, -0.1, 0.3)",
    "lib.add(x, y, alpha=0.5)",
    "x.sub(y, alpha=2)",
    "lib.addcmul(x, y, z, value=0.5)",
    "lib.addcdiv(x, y, p, value=2.0)",
    "lib.heaviside(x.detach(), y.detach())",
    "lib.nan_to_num(x, nan=1.0, posinf=2.0)",
    "lib.polygamma(1, p)",
    "2 - x",
    "2 / p",
    "x % 0.3",
    "p ** 2.5",
    "2 ** x",
    "F.leaky_relu(x, negative_slope=0.2)",
    "F.elu(x, alpha=0.5)",
    "F.celu(x, 0.7)",
    "F.gelu(x)",
    "F.silu(x)",
    "F.mish(x)",
    "F.gelu(x, approximate='tanh')",
    "F.softplus(x, beta=2, threshold=10)",
    "F.hardtanh(x, -0.5, 0.7)",
    "F.softsign(x)",
    "F.hardsigmoid(x)",
    "F.hardswish(x)",
    "F.logsigmoid(x)",
    "F.threshold(x, 0.1, 20.0)",
    "F.tanhshrink(x)",
    "F.relu6(x * 9)",
    "F.softshrink(x, 0.3)",
    "F.hardshrink(x, 0.3)",
    "F.glu(x, dim=-1)",
    "F.prelu(x, u)",
    "F.softmin(x, dim=1)",
    "lib.sum(x)",
    "x.sum(1)",
    "x.sum(dim=(0, 1), keepdim=True)",
    "x.mean(0, True)",
    "x.prod(dim=1)",
    "x.amax(dim=(0, 1))",
    "x.amin(1)",
    "x.max()",
    "x.min(1).values",
    "x.max(dim=0, keepdim=True).indices",
    "lib.argmax(x, dim=1)",
    "x.argmin()",
    "lib.all(g, dim=1)",
    "g.any(0)",
    "lib.count_nonzero(x, dim=1)",
    "lib.var(x, dim=1, correction=0)",
    "x.std(1, correction=1)",
    "lib.std(x, dim=0)",
    "x.norm(2, 1)",
    "lib.norm(x, p=3, dim=0)",
    "x.median(1).values",
    "lib.nansum(x)",
    "lib.nanmean(x, 1)",
    "lib.quantile(x, 0.3, dim=1)",
    "lib.quantile(x, 0.3, dim=1, keepdim=True, interpolation='lower')",
    "lib.aminmax(x.detach()).max",  # some versions of PyTorch have no derivative
    "lib.var_mean(x, dim=1)[0]",
    "lib.std_mean(x, dim=1)[1]",
    "lib.cov(x)",
    "lib.cov(x, correction=0)",
    "lib.corrcoef(x)",
    "lib.trapezoid(x)",
    "lib.cumulative_trapezoid(x, dim=0)",
    "lib.logsumexp(x, 1)",
    "lib.softmax(x, dim=1)",
    "lib.log_softmax(x, 0)",
    "x.cumsum(1)",
    "lib.cumprod(x, dim=0)",
    "x.cummax(1).values",
    "x.cummin(0).indices",
    "lib.logcumsumexp(x, dim=1)",
    "lib.diff(x, n=2, dim=1)",
    "x @ m",
    "lib.mm(x, m)",
    "lib.bmm(b, c)",
    "lib.mv(x, u)",
    "lib.dot(u, w)",
    "lib.outer(u, w)",
    "lib.matmul(b, c)",
    "lib.addmm(lib.ones(5, dtype=x.dtype), x, mat2=m, beta=0.5, alpha=2.0)",
    "lib.baddbmm(b @ c, b, c, alpha=0.5)",
    "lib.addbmm(x @ m, b, c)",
    "lib.addmv(lib.ones(3, dtype=x.dtype), x, u)",
    "lib.addr(x[:, :4], x[:, 0], u)",
    "lib.cdist(x, y)",
    "lib.cdist(x, y, p=1.0)",
    "F.pdist(x)",
    "lib.dist(x, y)",
    "lib.dist(x, y, p=1.0)",
    "lib.vander(u.detach(), N=3)",
    "F.linear(x, m.T, None)",
    "lib.kron(x, y)",
    "lib.tensordot(b, c, dims=([2], [1]))",
    "lib.tensordot(x, m, dims=1)",
    "lib.trace(x)",
    "lib.cross(x[:, :3], y[:, :3], dim=1)",
    "lib.einsum('bij,bjk->bik', [b, c])",
    "lib.einsum('bij,bjk->bik', b, c)",
    "lib.einsum('ij->ji', x)",
    "F.bilinear(x, y, b[:, :4, :].expand(2, 3, 4)[:, [0, 1, 2, 0]])",
    "x.reshape(2, 6)",
    "x.permute(1, 0)",
    "b.transpose(0, 2)",
    "x.t()",
    "b.mT",
    "b.movedim(0, -1)",
    "lib.swapaxes(b, 0, 1)",
    "lib.atleast_3d(x)",
    "x.tensor_split(2)[1]",
    "x.tensor_split([1, 2], dim=1)[2]",
    "lib.hsplit(x, 2)[1]",
    "x.hsplit([1, 3])[2]",
    "lib.vsplit(x, indices=[1])[1]",
    "b.dsplit([1])[1]",
    "lib.broadcast_tensors(x, u)[1]",
    "x.ravel()",
    "x.reshape_as(m[:, :3])",
    "lib.diagflat(u, 1)",
    "x.select_scatter(u, 0, -1)",
    "lib.slice_scatter(x, y[:, 1:3], dim=1, start=1, end=3)",
    "lib.diagonal_scatter(x, u[:3], offset=1)",
    "lib.index_reduce(x, 0, lib.tensor([2, 0, 2]), y, 'amax', include_self=False)",
    "lib.mode(x, dim=0, keepdim=True).values",
    "lib.msort(x)",
    "lib.renorm(x, 2, 0, 1.5)",
    "lib.float_power(x.abs() + 0.5, 1.5)",
    "lib.inner(x, u)",
    "lib.unravel_index(lib.tensor([3, 7]), (3, 4))[1] * x.sum()",
    "F.channel_shuffle(b.reshape(1, 4, -1), 2)",
    "x.fliplr()",
    "x[:1].expand(3, 4)",
    "x[:, :1].broadcast_to((3, 4))",
    "x[:1].squeeze(0)",
    "x.unsqueeze(-1)",
    "b.flatten(1)",
    "x.unflatten(1, (2, 2))",
    "x.narrow(1, 1, 2)",
    "x.select(0, -1)",
    "lib.flip(x, dims=(0,))",
    "x.diagonal(1)",
    "x.unfold(1, 2, 1)",
    "x.split(2)[0]",
    "x.split([1, 3], dim=1)[1]",
    "x.chunk(2, dim=1)[0]",
    "x.unbind(1)[2]",
    "lib.cat([x, y], dim=1)",
    "lib.stack([x, y], 1)",
    "lib.vstack([x, y])",
    "lib.hstack([u, w])",
    "lib.dstack([x, y])",
    "lib.column_stack([u, w])",
    "lib.block_diag(x, y)",
    "lib.cartesian_prod(u, w)",
    "lib.rot90(x)",
    "lib.combinations(u, r=2)",
    "u.diag_embed()",
    "x.roll(1, 0)",
    "lib.roll(x, (1, 2), (0, 1))",
    "lib.tile(x, (2, 1))",
    "x.repeat(2, 2)",
    "x.repeat_interleave(2, dim=1)",
    "F.pad(x, (1, 2))",
    "F.pad(x, (1, 2, 0, 1), mode='constant', value=3.0)",
    "F.pad(t, (2, 1), mode='reflect')",
    "x.tril()",
    "lib.triu(x, 1)",
    "lib.diag(u)",
    "x.masked_fill(g, 2.0)",
    "x.masked_select(g)",
    "x.gather(1, j)",
    "x.scatter(1, j, y[:, :2])",
    "x.scatter_add(1, j, y[:, :2])",
    "x.index_select(1, k)",
    "x.index_add(0, k, y)",
    "x.scatter_reduce(1, j, y[:, :2], reduce='amax')",
    "x.take(j)",
    "lib.take_along_dim(x, j, 1)",
    "x[g]",
    "x[k]",
    "x[:, k]",
    "lib.sort(x, dim=1, descending=True).values",
    "x.argsort(0)",
    "x.topk(2, dim=1).values",
    "lib.nonzero(g)",
    "x.kthvalue(2, dim=1).values",
    "lib.searchsorted(u.sort().values, w)",
    "lib.isin(i, k)",
    "F.one_hot(k, 4)",
    "lib.unique(i)",
    "lib.bincount(k)",
    "lib.bucketize(x, u.sort().values)",
    "F.layer_norm(x, (4,), u, w, eps=1e-3)",
    "F.rms_norm(x, (4,), u)",
    "F.group_norm(t.repeat(1, 2, 1), 3)",
    "F.batch_norm(x, u.detach() * 0, p[0].detach(), u, w, training=False)",
    "F.normalize(x)",
    "F.instance_norm(s)",
    "F.local_response_norm(s, 2)",
    "F.cosine_similarity(x, y, dim=1)",
    "F.pairwise_distance(x, y, p=1.0)",
    "F.scaled_dot_product_attention(b, b, b, is_causal=True)",
    "F.scaled_dot_product_attention(b, b, b, scale=0.3)",
    "F.conv1d(t, t[:, :, :3], stride=2, padding=1)",
    "F.conv2d(s, s[:, :, :3, :2], None, 2, (1, 0))",
    "F.conv2d(s, s[:, :, :3, :3], padding='same', dilation=2)",
    "F.conv_transpose2d(s, s[0, :, None, :3, :3], stride=2, output_padding=1)",
    "F.max_pool2d(s, 2)",
    "F.max_pool2d(s, (3, 2), stride=(2, 1), padding=1, ceil_mode=True)",
    "F.avg_pool2d(s, 3, 2, 1, False, False)",
    "F.max_pool1d(t, 3)",
    "F.avg_pool1d(t, 3, 2)",
    "F.lp_pool2d(p.reshape(1, 1, 3, 4), 2.0, 2)",
    "F.adaptive_avg_pool2d(s, (3, 2))",
    "F.adaptive_max_pool2d(s, 3)",
    "F.interpolate(s, scale_factor=2.0)",
    "F.interpolate(s, size=(5, 11), mode='bilinear', align_corners=True)",
    "F.interpolate(t, scale_factor=1.5, mode='linear')",
    "F.grid_sample(s, s[:, :2].permute(0, 2, 3, 1).tanh(), align_corners=False)",
    "F.affine_grid(x[:2, :3].expand(1, 2, 3), (1, 1, 4, 5), align_corners=True)",
    "F.unfold(s, 3, padding=1)",
    "F.fold(F.unfold(s, 2), (8, 8), 2)",
    "F.pixel_shuffle(s.reshape(2, 12, 4, 4), 2)",
    "F.embedding(k, y)",
    "F.embedding(k, y, padding_idx=1)",
    "F.mse_loss(x, y)",
    "F.l1_loss(x, y, reduction='sum')",
    "F.smooth_l1_loss(x, y, beta=0.3)",
    "F.huber_loss(x, y, delta=0.4)",
    "F.cross_entropy(x, k)",
    "F.cross_entropy(x, k, weight=p[0].detach(), label_smoothing=0.1)",
    "F.cross_entropy(x, k, ignore_index=1, reduction='sum')",
    "F.nll_loss(x.log_softmax(1), k)",
    "F.kl_div(x, p, reduction='batchmean')",
    "F.binary_cross_entropy(x.sigmoid(), p)",
    "F.binary_cross_entropy_with_logits(x, p, pos_weight=u.detach().exp())",
    "F.poisson_nll_loss(x, p)",
    "F.gaussian_nll_loss(x, y, p)",
    "F.hinge_embedding_loss(x, y.detach().sign())",
    "F.soft_margin_loss(x, y.detach().sign())",
    "F.margin_ranking_loss(u, w, w.detach().sign(), margin=0.1)",
    "F.cosine_embedding_loss(x, y, x[:, 0].detach().sign())",
    "F.triplet_margin_loss(x, y, z, margin=0.5)",
    "F.multi_margin_loss(x, k)",
    "F.multilabel_soft_margin_loss(x, g.to(x.dtype))",
    "F.ctc_loss(t.permute(2, 0, 1).log_softmax(2), lib.tensor([[1, 2], [2, 1]]), [9, 9], [2, 2])",
    "lib.arange(2, 11, 3)",
    "lib.linspace(0, 1, 5)",
    "lib.full((2, 3), 1.5)",
    "lib.eye(3, 4)",
    "lib.zeros_like(x)",
    "lib.tril_indices(3, 3)",
    "lib.isclose(x, x + 1e-9)",
    "lib.meshgrid([u, w], indexing='xy')[1]",
    "x.new_full((2,), 3.0)",
    "x.type_as(k)",
    "x.double()",
]


def make(lib):
    rng = np.random.default_rng(7)

    def floats(*shape, positive=False):
        a = rng.uniform(0.05, 0.95, shape) if positive else rng.normal(size=shape)
        return a

    arrays = {
        "x": floats(3, 4),
        "y": floats(3, 4),
        "z": floats(3, 4),
        "p": floats(3, 4, positive=True),
        "q": floats(3, 4, positive=True),
        "m": floats(4, 5),
        "b": floats(2, 3, 4),
        "c": floats(2, 4, 5),
        "u": floats(4),
        "w": floats(4),
        "s": floats(2, 3, 8, 8),
        "t": floats(2, 3, 9),
        "i": rng.integers(0, 9, (3, 4)),
        "k": np.array([2, 0, 1]),
        "j": np.array([[0, 3], [1, 2], [2, 0]]),
        "g": rng.integers(0, 2, (3, 4)).astype(bool),
    }
    return {
        name: lib.tensor(a.tolist(), dtype=lib.float64) if a.dtype == np.float64 else lib.tensor(a.tolist())
        for name, a in arrays.items()
    }


def run(lib, functional, expression, transposed, wants_grad):
    names = make(lib)
    leaves = {}
    for name, x in names.items():
        if transposed:
            names[name] = x = x.mT.contiguous().mT if len(x.shape) > 1 else x
        if wants_grad and x.dtype == lib.float64:
            x.requires_grad_()
            leaves[name] = x
    result = eval(expression, {"lib": lib, "F": functional, **names})
    gradients = {}
    if wants_grad and result.requires_grad:
        (
            result * lib.linspace(-1, 1, max(result.numel(), 1), dtype=result.dtype).reshape(result.shape)
        ).sum().backward()
        gradients = {name: np.array(x.grad.tolist()) for name, x in leaves.items() if x.grad is not None}
    return str(result.dtype).split(".")[-1], tuple(result.shape), np.array(result.detach().tolist()), gradients


@pytest.mark.parametrize("expression", EXPRESSIONS)
@pytest.mark.parametrize("transposed", [False, True], ids=["plain", "strided"])
def test_expression(expression, transposed):
    ours = run(volta, volta.nn.functional, expression, transposed, True)
    theirs = run(torch, torch.nn.functional, expression, transposed, True)
    assert ours[:2] == theirs[:2]
    # Both compute in float64; special functions agree to about 1e-10.
    np.testing.assert_allclose(ours[2], theirs[2], rtol=1e-9, atol=1e-10)
    zeros = {name for name, g in theirs[3].items() if not np.any(g)}
    assert set(ours[3]) - zeros <= set(theirs[3]) and set(theirs[3]) - zeros <= set(ours[3])
    rtol = 1e-7 if "hardsigmoid" in expression else 1e-8  # PyTorch's derivative has 1/6 as a float32
    for name in set(ours[3]) & set(theirs[3]):
        np.testing.assert_allclose(ours[3][name], theirs[3][name], rtol=rtol, atol=1e-9, err_msg=name)


@pytest.mark.parametrize(
    "dtype", ["float16", "bfloat16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "bool"]
)
def test_tensors_are_shared_with_torch(dtype):
    theirs = torch.tensor([[1, 0, 1], [0, 1, 1]], dtype=getattr(torch, dtype))
    for view in (theirs, theirs.T, theirs[:, 1:], theirs[::1]):
        ours = volta.from_dlpack(view)
        assert ours.data_ptr() == view.data_ptr() and ours.shape == tuple(view.shape) and ours.dtype.name == dtype
        assert ours.tolist() == view.tolist()
        back = torch.from_dlpack(ours)
        assert back.data_ptr() == view.data_ptr() and back.dtype == view.dtype and back.stride() == view.stride()
    ours = volta.ones(2, 3, dtype=getattr(volta, dtype))
    other = torch.from_dlpack(ours)
    other[0, 0] = 0
    assert ours[0, 0].item() == 0


def test_states_move_between_both(tmp_path):
    theirs = torch.nn.Sequential(
        torch.nn.Conv2d(1, 2, 3), torch.nn.BatchNorm2d(2), torch.nn.Flatten(), torch.nn.Linear(8, 3)
    )
    nn = volta.nn
    ours = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.Flatten(), nn.Linear(8, 3))
    torch.save(theirs.state_dict(), tmp_path / "net.pt")
    ours.load_state_dict(volta.load(tmp_path / "net.pt"))
    x = np.random.default_rng(0).normal(size=(2, 1, 4, 4)).astype(np.float32)
    with torch.no_grad():
        expected = theirs.eval()(torch.from_numpy(x)).numpy()
    np.testing.assert_allclose(ours.eval()(volta.from_numpy(x)).detach().numpy(), expected, rtol=1e-5, atol=1e-6)
    volta.save(dict(ours.state_dict()), tmp_path / "ours.pt")
    assert list(torch.load(tmp_path / "ours.pt", weights_only=True)) == list(theirs.state_dict())


@pytest.mark.parametrize(
    "name,arguments,shape",
    [
        ("LSTM", (4, 5, 2), (3, 2, 4)),
        ("GRU", (4, 5), (3, 2, 4)),
        ("RNN", (4, 5), (3, 2, 4)),
        ("MultiheadAttention", (8, 2), (5, 2, 8)),
        ("TransformerEncoderLayer", (8, 2, 16, 0.0), (5, 2, 8)),
        ("Linear", (4, 3), (2, 4)),
        ("ConvTranspose2d", (2, 3, 3, 2, 1, 1), (1, 2, 4, 4)),
        ("LayerNorm", ((4,),), (2, 4)),
        ("GroupNorm", (2, 4), (2, 4, 3)),
        ("InstanceNorm1d", (3, 1e-5, 0.1, True), (2, 3, 5)),
        ("Embedding", (7, 3), None),
        ("PReLU", (3,), (2, 3)),
    ],
)
def test_layers_as_torch(name, arguments, shape):
    theirs, ours = getattr(torch.nn, name)(*arguments), getattr(volta.nn, name)(*arguments)
    state = {k: volta.tensor(v.tolist(), dtype=volta.float32) for k, v in theirs.state_dict().items()}
    assert list(state) == list(ours.state_dict())
    ours.load_state_dict(state)
    if shape is None:
        a, b = torch.tensor([[1, 2], [3, 6]]), volta.tensor([[1, 2], [3, 6]])
    else:
        array = np.random.default_rng(1).normal(size=shape).astype(np.float32)
        a, b = torch.from_numpy(array), volta.from_numpy(array)
    count = 3 if name == "MultiheadAttention" else 1
    theirs.train(), ours.train()
    expected, got = theirs(*[a] * count), ours(*[b] * count)
    expected, got = (r[0] if isinstance(r, tuple) else r for r in (expected, got))
    np.testing.assert_allclose(got.detach().numpy(), expected.detach().numpy(), rtol=1e-4, atol=1e-5)
    expected.square().sum().backward()
    got.square().sum().backward()
    for (key, p), q in zip(theirs.named_parameters(), ours.parameters(), strict=True):
        np.testing.assert_allclose(q.grad.numpy(), p.grad.numpy(), rtol=1e-3, atol=1e-4, err_msg=key)
