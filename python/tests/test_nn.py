"""Modules: attributes, names, states, modes, devices; layers, losses, optimizers, schedules, loaders."""

import copy
import math
import pickle
import signal

import numpy as np
import pytest

import volta as v
from volta import nn, optim
from volta.nn import functional as F
from volta.utils import data


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 3)
        self.scale = nn.Parameter(v.ones(3))
        self.register_buffer("count", v.zeros(()))
        self.register_buffer("scratch", v.zeros(2), persistent=False)

    def forward(self, x):
        return self.fc(x) * self.scale


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([Block(), Block()])
        self.head = nn.Sequential(nn.Linear(3, 2), nn.ReLU())
        self.name = "net"

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def test_names_and_states():
    net = Net()
    names = [name for name, _ in net.named_parameters()]
    assert names == [
        "blocks.0.scale",
        "blocks.0.fc.weight",
        "blocks.0.fc.bias",
        "blocks.1.scale",
        "blocks.1.fc.weight",
        "blocks.1.fc.bias",
        "head.0.weight",
        "head.0.bias",
    ]
    assert [n for n, _ in net.named_buffers()] == [
        "blocks.0.count",
        "blocks.0.scratch",
        "blocks.1.count",
        "blocks.1.scratch",
    ]
    state = net.state_dict()
    assert "blocks.0.count" in state and "blocks.0.scratch" not in state and len(state) == 10
    assert state["head.0.bias"].data_ptr() == net.head[0].bias.data_ptr()
    assert len(list(net.modules())) == 9 and [n for n, _ in net.named_children()] == ["blocks", "head"]
    assert net.get_submodule("blocks.1.fc") is net.blocks[1].fc


def test_loading_states():
    a, b = Net(), Net()
    result = b.load_state_dict(a.state_dict())
    assert result.missing_keys == [] and (b.head[0].weight == a.head[0].weight).all()
    state = a.state_dict()
    del state["head.0.bias"]
    state["more"] = v.ones(1)
    state["blocks.0.scale"] = v.ones(4)
    before = b.blocks[0].scale.tolist()
    with pytest.raises(RuntimeError) as caught:
        b.load_state_dict(state)
    assert all(text in str(caught.value) for text in ("head.0.bias", "more", "blocks.0.scale"))
    assert b.blocks[0].scale.tolist() == before
    del state["blocks.0.scale"]
    result = b.load_state_dict(state, strict=False)
    assert result.missing_keys == ["blocks.0.scale", "head.0.bias"] and result.unexpected_keys == ["more"]


def test_counts_of_batches_may_be_absent():
    a, b = (nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2)) for _ in range(2))
    state = {name: x for name, x in a.state_dict().items() if not name.endswith("num_batches_tracked")}
    assert len(state) == 6
    result = b.load_state_dict(state)
    assert result.missing_keys == [] and (b[0].weight == a[0].weight).all() and b[1].num_batches_tracked.item() == 0
    nn.BatchNorm1d(2).load_state_dict({name[2:]: x for name, x in state.items() if name.startswith("1.")})
    del state["1.running_mean"]
    with pytest.raises(RuntimeError, match="missing: 1.running_mean$"):
        b.load_state_dict(state)


def test_attributes():
    block = Block()
    with pytest.raises(TypeError):
        block.scale = v.ones(3)
    with pytest.raises(TypeError):
        block.fc = "text"
    block.scale = nn.Parameter(v.zeros(3))
    block.count = v.ones(())
    assert block.state_dict()["count"].item() == 1
    block.fc = None
    assert [n for n, _ in block.named_parameters()] == ["scale"]
    del block.scale
    with pytest.raises(AttributeError, match="no attribute 'scale'"):
        block.scale

    class Forgot(nn.Module):
        def __init__(self):
            self.fc = nn.Linear(1, 1)

    with pytest.raises(AttributeError, match="super"):
        Forgot()


def test_tied_weights_count_once():
    net = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))
    net[1].weight = net[0].weight
    assert len(list(net.parameters())) == 3 and len(net.state_dict()) == 4


def test_modes_copies_and_conversions():
    net = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Dropout(0.5))
    opt = optim.SGD(net.parameters(), lr=0.1)
    assert not net.eval()[2].training and net.train()[2].training
    x = v.randn(5, 3)
    other = copy.deepcopy(net)
    assert (other[0].weight == net[0].weight).all() and not other[0].weight.shares_storage(net[0].weight)
    again = pickle.loads(pickle.dumps(net.eval()))
    assert (again(x) == net(x)).all()
    weight = net[0].weight
    net.double()
    assert weight is net[0].weight and weight.dtype == v.float64 and net[1].num_batches_tracked.dtype == v.int64
    before = weight.tolist()
    net(x.double()).sum().backward()
    opt.step()
    assert weight.tolist() != before
    with pytest.raises(TypeError):
        net.to(v.int32)
    assert net.requires_grad_(False)[0].weight.requires_grad is False


def test_forward_hooks():
    layer = nn.Linear(2, 2)
    seen = []
    a = layer.register_forward_pre_hook(lambda m, args: (args[0] * 0,))
    b = layer.register_forward_hook(lambda m, args, y: seen.append(args[0].sum().item()) or y + 1)
    y = layer(v.ones(1, 2))
    assert seen == [0] and v.allclose(y[0], layer.bias + 1)
    a.remove()
    b.remove()
    layer(v.ones(1, 2))
    assert len(seen) == 1


def test_texts():
    assert repr(nn.Linear(2, 3)) == "Linear(in_features=2, out_features=3, bias=True)"
    assert "(0): Linear" in repr(nn.Sequential(nn.Linear(1, 1)))
    assert "kernel_size=(3, 3)" in repr(nn.Conv2d(1, 2, 3))


LAYERS = [
    (lambda: nn.Linear(4, 3), (2, 4)),
    (lambda: nn.Conv1d(2, 4, 3, padding=1, groups=2), (2, 2, 7)),
    (lambda: nn.Conv2d(2, 3, (3, 1), stride=2, bias=False), (2, 2, 7, 7)),
    (lambda: nn.Conv3d(1, 2, 2), (1, 1, 3, 4, 5)),
    (lambda: nn.Conv2d(2, 3, 3, padding="same", padding_mode="reflect"), (1, 2, 5, 5)),
    (lambda: nn.ConvTranspose2d(2, 3, 3, stride=2, output_padding=1), (1, 2, 4, 4)),
    (lambda: nn.BatchNorm1d(4), (5, 4)),
    (lambda: nn.BatchNorm2d(3), (4, 3, 2, 2)),
    (lambda: nn.InstanceNorm2d(3, affine=True), (2, 3, 4, 4)),
    (lambda: nn.LayerNorm((3, 4)), (2, 3, 4)),
    (lambda: nn.RMSNorm(4), (2, 4)),
    (lambda: nn.GroupNorm(2, 4), (2, 4, 3)),
    (lambda: nn.PReLU(3), (2, 3, 4)),
    (lambda: nn.RNN(4, 5, 2, nonlinearity="relu"), (3, 2, 4)),
    (lambda: nn.LSTM(4, 5, 2, bidirectional=True, batch_first=True), (2, 3, 4)),
    (lambda: nn.GRU(4, 5), (3, 2, 4)),
    (lambda: nn.LSTM(4, 6, proj_size=2), (3, 2, 4)),
    (lambda: nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0), (3, 2, 8)),
    (lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, 0.0, batch_first=True), 2), (2, 3, 8)),
]


@pytest.mark.parametrize("make,shape", LAYERS, ids=lambda p: str(p) if isinstance(p, tuple) else "")
def test_no_parameter_is_left_behind(make, shape):
    v.manual_seed(1)
    layer = make()
    y = layer(v.randn(*shape))
    y = y[0] if isinstance(y, tuple) else y
    (y * v.randn(y.shape)).sum().backward()
    opt = optim.SGD(layer.parameters(), lr=1.0)
    before = [p.tolist() for p in layer.parameters()]
    for name, p in layer.named_parameters():
        assert p.grad is not None and p.grad.isfinite().all(), name
    opt.step()
    changed = [a != b.tolist() for a, b in zip(before, layer.parameters())]
    assert all(changed), changed


def test_recurrence_is_half_under_autocast():
    x, h = v.randn(3, 2, 4), v.zeros(1, 2, 5)
    for layer in (nn.LSTM(4, 5, 2), nn.GRU(4, 5, batch_first=True), nn.RNN(4, 5, nonlinearity="relu")):
        with v.autocast("cpu", dtype=v.bfloat16):
            y, _ = layer(x)
        assert y.dtype == v.bfloat16
        y.sum().backward()
        assert all(p.grad.dtype == v.float32 for p in layer.parameters())
    gru = nn.GRU(4, 5)
    with v.autocast("cpu", dtype=v.bfloat16):
        y, _ = v.gru(x, h, list(gru.parameters()))
        assert y.dtype == nn.GRUCell(4, 5)(x[0]).dtype == nn.LSTMCell(4, 5)(x[0])[1].dtype == v.bfloat16
        assert (y == gru(x, h)[0]).all()


def test_recurrent_layers_by_hand():
    v.manual_seed(2)
    x = v.randn(3, 2, 4)
    gru, cell = nn.GRU(4, 5), nn.GRUCell(4, 5)
    for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"):
        getattr(cell, name).data = getattr(gru, name + "_l0").detach()
    y, h = gru(x)
    state = None
    for t in range(3):
        state = cell(x[t], state)
        assert v.allclose(y[t], state, atol=1e-6)
    assert v.allclose(h[0], state, atol=1e-6)
    lstm, lcell = nn.LSTM(4, 5), nn.LSTMCell(4, 5)
    for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"):
        getattr(lcell, name).data = getattr(lstm, name + "_l0").detach()
    y, (h, c) = lstm(x)
    state = None
    for t in range(3):
        state = lcell(x[t], state)
    assert v.allclose(h[0], state[0], atol=1e-6) and v.allclose(c[0], state[1], atol=1e-6)
    packed = nn.utils.rnn.pack_padded_sequence(x, [3, 2])
    out, (h, _) = lstm(packed)
    padded, lengths = nn.utils.rnn.pad_packed_sequence(out)
    assert (
        lengths.tolist() == [3, 2]
        and v.allclose(padded[:2, 1], y[:2, 1], atol=1e-6)
        and v.allclose(h[0, 1], y[1, 1], atol=1e-6)
    )


def test_attention_agrees_with_its_weights():
    v.manual_seed(3)
    layer, x = nn.MultiheadAttention(8, 2, batch_first=True).eval(), v.randn(2, 5, 8)
    padding = v.tensor([[False] * 5, [False, False, False, True, True]])
    mask = ~v.ones(5, 5, dtype=v.bool).tril()
    for options in (
        {},
        {"key_padding_mask": padding},
        {"attn_mask": mask},
        {"attn_mask": mask, "key_padding_mask": padding},
    ):
        a, weights = layer(x, x, x, **options)
        b, none = layer(x, x, x, need_weights=False, **options)
        assert none is None and v.allclose(a, b, atol=1e-5) and v.allclose(weights.sum(-1), v.ones(2, 5), atol=1e-5)
    assert weights[1, :, 3:].amax().item() == 0


def test_layers_are_their_functions():
    x = v.randn(2, 3, 8, 8)
    pairs = [
        (nn.MaxPool2d(2), F.max_pool2d(x, 2)),
        (nn.AvgPool2d(3, 2, 1), F.avg_pool2d(x, 3, 2, 1)),
        (nn.AdaptiveAvgPool2d(1), F.adaptive_avg_pool2d(x, 1)),
        (nn.Flatten(), x.flatten(1)),
        (nn.Upsample(scale_factor=2), F.interpolate(x, scale_factor=2)),
        (nn.ZeroPad2d(1), F.pad(x, [1, 1, 1, 1])),
        (nn.ReflectionPad2d((1, 2, 3, 0)), F.pad(x, [1, 2, 3, 0], mode="reflect")),
        (nn.GELU("tanh"), F.gelu(x, approximate="tanh")),
        (nn.LeakyReLU(0.2), F.leaky_relu(x, 0.2)),
        (nn.Softmax(dim=1), x.softmax(1)),
        (nn.Hardtanh(-2, 2), x.clamp(-2, 2)),
        (nn.ELU(0.5), F.elu(x, 0.5)),
    ]
    for layer, expected in pairs:
        assert (layer(x) == expected).all(), layer
    values, indices = nn.MaxPool2d(2, return_indices=True)(x)
    assert indices.dtype == v.int64 and (values == F.max_pool2d(x, 2)).all()
    with pytest.raises(TypeError):
        nn.MaxPool2d()
    with pytest.raises(TypeError):
        nn.ReLU(alpha=1)


def test_losses():
    logits, labels = v.randn(4, 3, requires_grad=True), v.tensor([0, 2, 1, 1])
    weight = v.tensor([1.0, 2.0, 3.0])
    loss = nn.CrossEntropyLoss(weight=weight, label_smoothing=0.1)
    expected = F.cross_entropy(logits, labels, weight=weight, label_smoothing=0.1)
    assert loss(logits, labels).item() == expected.item() and "weight" in loss.state_dict()
    loss(logits, labels).backward()
    assert logits.grad.isfinite().all()
    a, b = v.rand(4), v.rand(4)
    assert math.isclose(nn.MSELoss()(a, b).item(), np.mean((np.asarray(a) - np.asarray(b)) ** 2), rel_tol=1e-6)
    assert nn.L1Loss(reduction="none")(a, b).shape == (4,)
    assert (
        nn.TripletMarginWithDistanceLoss(distance_function=lambda p, q: (p - q).abs().sum(-1))(
            v.ones(2, 3), v.ones(2, 3), v.zeros(2, 3)
        ).item()
        == 0
    )
    with pytest.raises(TypeError):
        nn.MSELoss(nonsense=1)


OPTIMIZERS = [
    "SGD",
    "Adam",
    "AdamW",
    "Adamax",
    "NAdam",
    "RAdam",
    "RMSprop",
    "Adagrad",
    "Adadelta",
    "Lion",
    "LAMB",
    "ASGD",
    "Rprop",
    "Adafactor",
]


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizers_lower_a_loss_and_resume(name):
    def run(steps, saved=None):
        v.manual_seed(0)
        w = nn.Parameter(v.tensor([2.0, -3.0]) if saved is None else saved[0].clone())
        opt = getattr(optim, name)([w], lr=0.01)
        if saved is not None:
            opt.load_state_dict(saved[1])
        for _ in range(steps):
            opt.zero_grad()
            loss = (w * w).sum()
            loss.backward()
            opt.step()
        return w, opt, loss.item()

    first, opt, loss = run(10)
    assert loss < 13
    whole, _, _ = run(20)
    resumed, _, _ = run(10, (first.detach(), opt.state_dict()))
    assert resumed.tolist() == whole.tolist()


def test_groups_and_settings():
    a, b = nn.Parameter(v.ones(1)), nn.Parameter(v.ones(1))
    opt = optim.SGD([{"params": [a]}, {"params": b, "lr": 0.5}], lr=0.1, momentum=0.9)
    assert [g["lr"] for g in opt.param_groups] == [0.1, 0.5] and opt.param_groups[0]["params"][0] is a
    for group in opt.param_groups:
        group["lr"] *= 2
    (a + b).sum().backward()
    opt.step()
    assert math.isclose(a.item(), 0.8, rel_tol=1e-6) and math.isclose(b.item(), 0.0, abs_tol=1e-6)
    opt.add_param_group({"params": [nn.Parameter(v.ones(1))], "lr": 1.0})
    assert len(opt.param_groups) == 3
    for bad in (
        lambda: optim.SGD([], lr=0.1),
        lambda: optim.SGD([a], lr=-1),
        lambda: optim.SGD(a, lr=0.1),
        lambda: optim.SGD([a], speed=1),
        lambda: optim.SGD([{"params": [a], "speed": 1}], lr=0.1),
    ):
        with pytest.raises((ValueError, TypeError)):
            bad()


def test_closures():
    w = nn.Parameter(v.tensor([3.0]))
    opt = optim.LBFGS([w], line_search_fn="strong_wolfe")

    def closure():
        opt.zero_grad()
        loss = ((w - 1) ** 2).sum()
        loss.backward()
        return loss

    assert opt.step(closure).item() == 4 and math.isclose(w.item(), 1, rel_tol=1e-4)

    def bad():
        raise KeyError("inside")

    with pytest.raises(KeyError, match="inside"):
        opt.step(bad)


def test_schedules():
    w = nn.Parameter(v.ones(1))
    opt = optim.SGD([w], lr=1.0)
    schedule = optim.lr_scheduler.StepLR(opt, step_size=2, gamma=0.1)
    rates = []
    for _ in range(5):
        rates.append(opt.param_groups[0]["lr"])
        opt.step()
        schedule.step()
    np.testing.assert_allclose(rates, [1, 1, 0.1, 0.1, 0.01])
    assert schedule.last_epoch == 5 and schedule.state_dict()
    plateau = optim.lr_scheduler.ReduceLROnPlateau(opt, patience=0, factor=0.5)
    before = opt.param_groups[0]["lr"]
    for loss in (1.0, 2.0, v.tensor(3.0)):
        plateau.step(loss)
    assert opt.param_groups[0]["lr"] < before
    cosine = optim.lr_scheduler.CosineAnnealingLR(optim.SGD([w], lr=1.0), T_max=10)
    cosine.step()
    assert 0.9 < cosine.get_last_lr()[0] < 1


def rates_of(opt, schedule, steps):
    rates = []
    for _ in range(steps):
        rates.append([g["lr"] for g in opt.param_groups])
        opt.step()
        schedule.step()
    return np.array(rates)


def test_schedules_by_functions():
    groups = [{"params": [nn.Parameter(v.ones(1))], "lr": lr} for lr in (1.0, 0.5)]
    steps = np.arange(6)
    opt = optim.SGD(groups, lr=1.0)
    both = rates_of(opt, optim.lr_scheduler.LambdaLR(opt, lambda t: 0.9**t), 6)
    np.testing.assert_allclose(both, np.outer(0.9**steps, [1, 0.5]))
    opt = optim.SGD(groups, lr=1.0)
    each = rates_of(opt, optim.LambdaLR(opt, [lambda t: 1 / (t + 1), lambda t: v.tensor(2.0)]), 6)
    np.testing.assert_allclose(each, np.stack([1 / (steps + 1), np.ones(6)], 1))
    with pytest.raises(v.ArgumentError, match="one for each group"):
        optim.LambdaLR(opt, [lambda t: 1.0] * 3)
    late = optim.LambdaLR(opt, lambda t: 1.0 if t == 0 else {}["key"])
    with pytest.raises(KeyError):
        late.step()
    with pytest.raises(TypeError):
        optim.LambdaLR(opt, 0.5)


def test_schedules_of_schedules():
    from volta.optim.lr_scheduler import ChainedScheduler, ConstantLR, ExponentialLR, LinearLR, SequentialLR

    def sgd():
        return optim.SGD([nn.Parameter(v.ones(1))], lr=2.0)

    opt = sgd()
    parts = [LinearLR(opt, start_factor=0.25, total_iters=3), ExponentialLR(opt, gamma=0.5)]
    sequence = SequentialLR(opt, parts, milestones=[3])
    del parts
    np.testing.assert_allclose(rates_of(opt, sequence, 6)[:, 0], [0.5, 1, 1.5, 2, 1, 0.5])
    again = sgd()
    resumed = SequentialLR(again, [ConstantLR(again, 0.1, 2), ExponentialLR(again, gamma=0.5)], (3,))
    resumed.load_state_dict(sequence.state_dict())
    assert resumed.last_epoch == 6 and math.isclose(resumed.get_last_lr()[0], 0.25)

    opt = sgd()
    chain = ChainedScheduler([ConstantLR(opt, factor=0.1, total_iters=2), ExponentialLR(opt, gamma=0.5)])
    np.testing.assert_allclose(rates_of(opt, chain, 4)[:, 0], 2 * np.array([0.1, 0.1, 1, 1]) * 0.5 ** np.arange(4))
    nested = ChainedScheduler([SequentialLR(again, [ConstantLR(again), ExponentialLR(again, 0.5)], [1])], again)
    assert nested.last_epoch == 0

    with pytest.raises(ValueError, match="one optimizer"):
        SequentialLR(sgd(), [ConstantLR(opt), ConstantLR(opt)], [1])
    with pytest.raises(v.ArgumentError, match="one milestone"):
        SequentialLR(opt, [ConstantLR(opt), ConstantLR(opt)], [])
    with pytest.raises(ValueError):
        ChainedScheduler([])
    with pytest.raises(TypeError):
        ChainedScheduler([optim.ReduceLROnPlateau(opt)])


def test_an_interrupt_comes_through_the_library(interruptible):
    w = nn.Parameter(v.ones(1))
    opt = optim.SGD([w], lr=1.0)

    def closure():
        signal.raise_signal(signal.SIGINT)
        return (w * 1).sum()

    class Slow(v.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            signal.raise_signal(signal.SIGINT)
            return g

    before = w.item()
    for call in (
        lambda: opt.step(closure),
        lambda: optim.LambdaLR(opt, lambda t: closure().item()),
        lambda: Slow.apply(w).sum().backward(),
    ):
        with pytest.raises(KeyboardInterrupt):
            call()
    assert w.item() == before


def test_clipping():
    w = nn.Parameter(v.tensor([3.0, 4.0]))
    (w * w).sum().backward()
    assert math.isclose(nn.utils.clip_grad_norm_([w], 1.0).item(), 10, rel_tol=1e-6)
    assert math.isclose(w.grad.norm().item(), 1, rel_tol=1e-4)
    nn.utils.clip_grad_value_([w], 0.5)
    assert w.grad.amax().item() <= 0.5


def test_initialisation():
    v.manual_seed(0)
    w = nn.Parameter(v.empty(200, 100))
    assert nn.init.normal_(w, 0, 0.02) is not None and 0.018 < w.detach().std().item() < 0.022
    nn.init.kaiming_uniform_(w, nonlinearity="relu")
    assert w.abs().amax().item() <= math.sqrt(6 / 100) + 1e-6
    nn.init.orthogonal_(w)
    assert v.allclose(w.T.detach() @ w.detach(), v.eye(100), atol=1e-4)
    assert nn.init.calculate_gain("relu") == math.sqrt(2) and w.requires_grad and w.is_leaf


def test_loaders():
    x = v.arange(10).float().reshape(10, 1)
    sets = data.TensorDataset(x, v.arange(10))
    batches = list(data.DataLoader(sets, batch_size=4))
    assert [b[0].shape for b in batches] == [(4, 1), (4, 1), (2, 1)] and batches[1][1].tolist() == [4, 5, 6, 7]
    assert len(data.DataLoader(sets, 4, drop_last=True)) == len(list(data.DataLoader(sets, 4, drop_last=True))) == 2
    v.manual_seed(0)
    order = [int(i) for b in data.DataLoader(sets, 3, shuffle=True) for i in b[1]]
    assert sorted(order) == list(range(10)) and order != sorted(order)

    class Squares(data.Dataset):
        def __len__(self):
            return 7

        def __getitem__(self, i):
            if i == 100:
                raise KeyError(i)
            return {"x": v.tensor(float(i)), "y": i * i, "name": str(i)}

    for workers in (0, 2):
        got = list(data.DataLoader(Squares(), 3, num_workers=workers))
        assert got[1]["y"].tolist() == [9, 16, 25] and got[2]["name"] == ["6"]
    with pytest.raises(KeyError):
        list(data.DataLoader(Squares(), 1, sampler=[100], num_workers=2))
    parts = data.random_split(sets, [0.7, 0.3])
    assert [len(p) for p in parts] == [7, 3]


def test_training_reaches_its_goal():
    v.manual_seed(0)
    net = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 1))
    x, y = v.tensor([[0.0, 0], [0, 1], [1, 0], [1, 1]]), v.tensor([[0.0], [1], [1], [0]])
    opt = optim.Adam(net.parameters(), lr=0.05)
    for _ in range(300):
        opt.zero_grad()
        loss = F.mse_loss(net(x), y)
        loss.backward()
        opt.step()
    assert loss.item() < 1e-3
