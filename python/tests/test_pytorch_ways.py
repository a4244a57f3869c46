"""What a user of PyTorch relies on: registration, hooks, containers, states, groups, modes, functions of one's own."""

import io

import pytest

import volta as v
from volta import autograd, nn, optim
from volta.nn import functional as F
from volta.utils import data


def test_registration_is_checked():
    m = nn.Linear(2, 2)
    for call, error in (
        (lambda: m.register_buffer("weight", v.ones(1)), KeyError),
        (lambda: m.register_buffer("a.b", v.ones(1)), KeyError),
        (lambda: m.register_buffer("", v.ones(1)), KeyError),
        (lambda: m.register_buffer(3, v.ones(1)), TypeError),
        (lambda: m.register_buffer("q", 3), TypeError),
        (lambda: m.register_parameter("q", v.ones(1)), TypeError),
        (lambda: m.register_parameter("forward", None), KeyError),
        (lambda: m.add_module("x", 3), TypeError),
        (lambda: m.get_submodule("nothing"), AttributeError),
        (lambda: m.get_parameter("nothing"), AttributeError),
        (lambda: m.nothing, AttributeError),
        (lambda: m.train("yes"), ValueError),
        (lambda: m.load_state_dict([1]), TypeError),
        (lambda: m.load_state_dict({**m.state_dict(), "bias": 3}), RuntimeError),
    ):
        with pytest.raises(error):
            call()
    m.register_buffer("scratch", v.ones(1), persistent=False)
    assert "scratch" not in m.state_dict() and "scratch" in dict(m.named_buffers())
    assert repr(m.load_state_dict(m.state_dict())) == "<All keys matched successfully>"
    weight = v.zeros(2, 2)
    m.load_state_dict({**m.state_dict(), "weight": weight}, assign=True)
    assert m.weight.shares_storage(weight) and isinstance(m.weight, nn.Parameter) and m.weight.requires_grad


def test_containers_change_like_lists():
    s = nn.Sequential(nn.Linear(1, 1), nn.ReLU())
    s.append(nn.Tanh()).insert(0, nn.Identity())
    s[1] = nn.Linear(1, 2)
    del s[0]
    assert [type(m).__name__ for m in s + nn.Sequential(nn.GELU())] == ["Linear", "ReLU", "Tanh", "GELU"]
    assert len(s[:2]) == 2 and s.pop(-1)._get_name() == "Tanh" and len(s * 2) == 4
    assert "2 x Linear" in repr(nn.ModuleList([nn.Linear(1, 1), nn.Linear(1, 1)]))
    d = nn.ModuleDict({"a": nn.ReLU()})
    d["b"] = nn.Tanh()
    assert list(d) == ["a", "b"] and "b" in d and d.pop("a")._get_name() == "ReLU"
    p = nn.ParameterList([v.ones(1), v.zeros(2)])
    p += [nn.Parameter(v.ones(3))]
    p[0] = v.ones(4)
    assert [x.numel() for x in p] == [4, 2, 3] and list(p.state_dict()) == ["0", "1", "2"]
    q = nn.ParameterDict({"a": v.ones(1)})
    q["z"] = v.ones(2)
    assert isinstance(q.z, nn.Parameter) and list(q.state_dict()) == ["a", "z"]


def test_hooks_of_modules():
    m, seen = nn.Linear(2, 2), []
    m.register_forward_hook(lambda m, a, k, out: seen.append(sorted(k)), with_kwargs=True)
    with m.register_full_backward_hook(lambda m, gi, go: (gi[0] * 2,)):
        x = v.ones(1, 2, requires_grad=True)
        m(x).sum().backward()
    plain = v.ones(1, 2, requires_grad=True)
    m(input=plain).sum().backward()
    assert v.allclose(x.grad, plain.grad * 2) and seen == [[], ["input"]]
    order = []
    net = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1))
    for i, layer in enumerate(net):
        layer.register_full_backward_hook(lambda m, gi, go, i=i: order.append((i, gi[0] is None)))
    net(v.ones(1, 2)).sum().backward()
    assert order == [(1, False), (0, True)]


def test_functions_of_ones_own():
    class Sorted(autograd.Function):
        @staticmethod
        def forward(ctx, x):
            values, order = x.sort()
            ctx.mark_non_differentiable(order)
            ctx.save_for_backward(order)
            return values, order

        @staticmethod
        def backward(ctx, g, _):
            (order,) = ctx.saved_tensors
            out = v.zeros_like(g)
            out[order] = g
            return out

    x = v.tensor([3.0, 1.0, 2.0], requires_grad=True)
    values, order = Sorted.apply(x)
    (values * v.arange(3)).sum().backward()
    assert x.grad.tolist() == [2, 0, 1] and not order.requires_grad

    class Exp(autograd.Function):
        @staticmethod
        def forward(x):
            return x.exp()

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(output)

        @staticmethod
        def backward(ctx, g):
            return g * ctx.saved_tensors[0]

    x = v.tensor([0.5], requires_grad=True)
    Exp.apply(x).backward()
    assert v.allclose(x.grad, x.exp())
    with pytest.raises(TypeError):
        Exp()


def test_modes_in_all_forms():
    @v.no_grad()
    def numbers():
        yield v.is_grad_enabled()
        yield v.is_grad_enabled()

    assert list(numbers()) == [False, False] and v.is_grad_enabled()
    with v.inference_mode(False):
        assert v.is_grad_enabled()
    v.set_grad_enabled(False)
    assert not v.is_grad_enabled()
    v.set_grad_enabled(True)
    assert v.is_grad_enabled()

    @v.set_grad_enabled(False)
    def off():
        return v.is_grad_enabled()

    assert not off() and v.is_grad_enabled()


def test_functional_keywords():
    x = v.randn(1, 2, 4, 4)
    values, places = F.max_pool2d(x, 2, 2, return_indices=True)
    assert (values == F.max_pool2d(x, 2)).all() and places.dtype == v.int64
    assert F.softmax(x, dim=-1, dtype=v.float64).dtype == v.softmax(x, -1, dtype=v.float64).dtype == v.float64
    assert (F.leaky_relu(x, 0.2, True) == F.leaky_relu(x, negative_slope=0.2)).all()
    assert F.batch_norm(x, None, None, training=True).shape == x.shape
    assert F.adaptive_avg_pool2d(x, (None, 2)).shape == (1, 2, 4, 2)
    assert v.allclose(x.std(unbiased=False), x.std(correction=0)) and v.normal(0.0, 1.0, (2, 3)).shape == (2, 3)
    assert nn.init.uniform_(v.empty(3), a=1.0, b=2.0).amin() >= 1 and nn.init.constant_(v.empty(1), val=3.0).item() == 3


def test_optimizers_and_schedules():
    w = nn.Parameter(v.ones(1))
    opt = optim.SGD([{"params": [w], "name": "only"}], lr=0.1, momentum=0.9, foreach=True)
    group = opt.param_groups[0]
    assert group["name"] == "only" and group["nesterov"] is False and opt.defaults["momentum"] == 0.9
    with pytest.raises(KeyError):
        group["nesterov"] = True
    warm = optim.lr_scheduler.WarmupLR(opt, 2, then=optim.lr_scheduler.StepLR(opt, 1, 0.5))
    rates = []
    for _ in range(5):
        rates.append(group["lr"])
        opt.step()
        warm.step()
    assert rates == pytest.approx([0.0, 0.05, 0.1, 0.05, 0.025])
    file = io.BytesIO()
    (w * 2).sum().backward()
    opt.step()
    v.save(opt.state_dict(), file)
    file.seek(0)
    other = optim.SGD([w], lr=0.5)
    other.load_state_dict(v.load(file))
    assert other.param_groups[0]["lr"] == group["lr"] and "momentum_buffer" in other.state[w]


def test_samplers_and_loaders():
    items = list(range(10))
    assert sorted(data.RandomSampler(items)) == items
    assert sorted(data.SubsetRandomSampler([3, 5])) == [3, 5]
    assert set(data.WeightedRandomSampler([0.0, 1.0], 4)) == {1}
    assert list(data.BatchSampler(items, 4, True)) == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert [b.tolist() for b in data.DataLoader(items, batch_sampler=[[0, 9], [4]])] == [[0, 9], [4]]
    seen = []
    loader = data.DataLoader(
        items, 5, num_workers=2, worker_init_fn=lambda i: seen.append((i, data.get_worker_info().num_workers))
    )
    assert [b.tolist() for b in loader] == [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9]] and (0, 2) in seen
    both = data.ConcatDataset([[1, 2], [3]])
    assert both[-1] == 3 and len(both) == 3 and data.get_worker_info() is None
    for bad in ({"batch_size": 0}, {"shuffle": True, "sampler": items}, {"num_workers": -1}):
        with pytest.raises(ValueError):
            data.DataLoader(items, **bad)


def test_mixed_precision():
    with v.autocast("cpu", dtype=v.bfloat16):
        assert (v.ones(2, 2) @ v.ones(2, 2)).dtype == v.bfloat16 and v.is_autocast_enabled()
    assert not v.is_autocast_enabled() and (v.ones(2, 2) @ v.ones(2, 2)).dtype == v.float32

    @v.autocast("cpu")
    def products():
        yield (v.ones(2, 2) @ v.ones(2, 2)).dtype

    running = products()
    assert next(running) == v.bfloat16 and not v.is_autocast_enabled()
    w = nn.Parameter(v.ones(2))
    opt, scaler = optim.SGD([w], lr=0.1), v.amp.GradScaler("cpu", init_scale=8.0)
    scaler.scale((w * 3).sum()).backward()
    assert w.grad.tolist() == [24, 24]
    scaler.unscale_(opt)
    scaler.step(opt)
    scaler.update()
    assert w.tolist() == pytest.approx([0.7, 0.7]) and scaler.get_scale() == 8 and "scale" in scaler.state_dict()


def test_weights_that_are_computed():
    m = nn.utils.weight_norm(nn.Linear(2, 3))
    assert sorted(m.state_dict()) == ["bias", "weight_g", "weight_v"]
    m(v.ones(1, 2)).sum().backward()
    assert m.weight_g.grad is not None and m.weight_v.grad is not None
    before = m(v.ones(1, 2))
    assert v.allclose(nn.utils.remove_weight_norm(m)(v.ones(1, 2)), before, atol=1e-6)
    s = nn.utils.spectral_norm(nn.Linear(4, 4), n_power_iterations=30)
    s(v.ones(1, 4))
    unit = v.randn(50, 4)
    assert ((unit @ s.weight.T).norm(dim=1) <= unit.norm(dim=1) * 1.01).all()


def test_averages_of_weights():
    net = nn.Linear(2, 2)
    average = optim.swa_utils.AveragedModel(net, multi_avg_fn=optim.swa_utils.get_ema_multi_avg_fn(0.5))
    nn.init.zeros_(net.weight)
    average.update_parameters(net)
    nn.init.ones_(net.weight)
    average.update_parameters(net)
    assert average.module.weight.tolist() == [[0.5, 0.5], [0.5, 0.5]] and average.n_averaged.item() == 2


def test_numbers_and_arrays_of_numpy_keep_their_dtype():
    numpy = pytest.importorskip("numpy")
    for name in ("float64", "float32", "float16", "int8", "int32", "int64", "uint8", "uint64", "bool"):
        number = getattr(numpy, "bool_" if name == "bool" else name)(1)
        assert v.tensor(number).dtype == v.tensor([[number, number]]).dtype == getattr(v, name), name
        assert (
            v.as_tensor([number]).dtype == getattr(v, name) and v.tensor([number], dtype=v.float32).dtype == v.float32
        )
    assert v.tensor([numpy.float32(1), numpy.float64(0.1)]).tolist() == [1.0, 0.1]
    assert v.tensor([numpy.array(0.1), 2.5]).dtype == v.float64
    # Python's numbers are weak beside them, but a fraction beside whole numbers makes a float.
    assert v.tensor([numpy.int8(1), 2]).dtype == v.int8 and v.tensor([2, numpy.int8(1)]).dtype == v.int8
    assert v.tensor([numpy.int8(1), 2.5]).dtype == v.float32 and v.tensor([True, numpy.int8(1)]).dtype == v.int8
    assert v.tensor([numpy.bool_(True), 2]).dtype == v.int64
    with pytest.raises(ValueError):
        v.tensor([numpy.int8(1), 300])
    loader = data.DataLoader([(v.ones(1), numpy.float64(0.1)), (v.ones(1), numpy.float64(0.2))], batch_size=2)
    assert next(iter(loader))[1].tolist() == [0.1, 0.2]


def test_ranges_are_lists_of_indices():
    x = v.arange(12).reshape(3, 4)
    assert v.tensor(range(3)).tolist() == [0, 1, 2] and v.tensor([range(2), [5, 6]]).tolist() == [[0, 1], [5, 6]]
    assert v.tensor(range(0)).shape == (0,) and v.tensor(range(3), dtype=v.int8).dtype == v.int8
    assert x[range(2)].tolist() == x[:2].tolist() and x[:, range(3, 0, -2)].tolist() == [[3, 1], [7, 5], [11, 9]]
    assert x[range(0)].shape == (0, 4)
    x[range(2), range(2)] = 0
    assert x.tolist() == [[0, 1, 2, 3], [4, 0, 6, 7], [8, 9, 10, 11]]


def test_float_as_a_dtype_is_double():
    assert v.ones(1, dtype=float).dtype == v.ones(1).to(float).dtype == v.tensor([1], dtype=float).dtype == v.float64
    assert v.ones(1, dtype=int).dtype == v.int64 and v.ones(1).to(bool).dtype == v.bool


def test_closures_may_return_anything():
    p = v.ones(2, requires_grad=True)
    opt = optim.SGD([p], lr=0.1)
    for returned in (0.5, 3, None, v.tensor(2.0)):

        def closure():
            opt.zero_grad()
            p.sum().backward()
            return returned

        before = p.tolist()
        result = opt.step(closure)
        assert (result is None) == (returned is None) and (returned is None or float(result) == float(returned))
        assert p.tolist() == pytest.approx([x - 0.1 for x in before])
    with pytest.raises(TypeError, match="closure"):
        optim.LBFGS([p]).step(lambda: None)
    with pytest.raises(ZeroDivisionError):
        opt.step(lambda: 1 / 0)


def test_states_of_schedules_count_in_whole_numbers():
    opt = optim.SGD([v.ones(1, requires_grad=True)], lr=1.0)
    for make in (lambda: optim.lr_scheduler.StepLR(opt, 2), lambda: optim.lr_scheduler.ReduceLROnPlateau(opt)):
        schedule = make()
        opt.step()
        schedule.step(*([1.0] if isinstance(schedule, optim.lr_scheduler.ReduceLROnPlateau) else []))
        state = schedule.state_dict()
        assert type(state["last_epoch"]) is int and state["last_epoch"] == 1
        schedule.load_state_dict(state)
        assert schedule.state_dict() == state


def test_layers_of_transformers_are_modules():
    with pytest.raises(TypeError, match="Module"):
        nn.TransformerEncoder(v.ones(1), 10**30)


def test_copies_on_demand():
    x = v.ones(2)
    for call in (lambda **k: x.to("cpu", **k), lambda **k: x.to(v.float32, **k), lambda **k: x.to(v.zeros(1), **k)):
        assert call().data_ptr() == call(copy=False).data_ptr() == x.data_ptr()
        assert call(copy=True).data_ptr() != x.data_ptr() and call(copy=True, non_blocking=True).tolist() == [1.0, 1.0]
    assert x.to("cpu", v.float64, copy=True).dtype == x.to(v.float64, copy=True).dtype == v.float64


def test_errors_name_options_as_python_writes_them():
    x = v.ones(2, requires_grad=True)
    y = (x * x).sum()
    y.backward()
    with pytest.raises(v.AutogradError, match="retain_graph=True") as error:
        y.backward()
    assert "{" not in str(error.value)
    with pytest.raises(v.AutogradError, match="allow_unused=True"):
        autograd.grad((x * x).sum(), v.ones(1, requires_grad=True))


def test_functional_derivatives_where_pytorch_has_them():
    assert autograd.functional.jacobian(lambda a: a * a, v.ones(2)).tolist() == [[2.0, 0.0], [0.0, 2.0]]
    assert autograd.functional.hessian(lambda a: (a * a).sum(), v.ones(2)).tolist() == [[2.0, 0.0], [0.0, 2.0]]
