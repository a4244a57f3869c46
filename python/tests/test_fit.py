"""fit and evaluate: the loop they stand for, metrics, callbacks, progress, interruption, resuming."""

import io
import math
import os
import signal
import sys
import types

import pytest

import volta as v
from volta import callbacks, metrics, nn, optim
from volta.utils.data import DataLoader, TensorDataset


def net(seed=0):
    v.manual_seed(seed)
    return nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3))


def batches(count=5, size=6):
    v.manual_seed(1)
    return [(v.randn(size, 4), v.randint(0, 3, (size,))) for _ in range(count)]


def weights(model):
    return [p.tolist() for p in model.parameters()]


def quiet(model, data, optimizer=None, **options):
    return v.fit(model, data, optimizer, progress=False, **options)


def test_it_gives_the_bits_of_the_loop():
    data = batches()
    a, b = net(), net()
    opt = optim.Adam(a.parameters(), lr=0.01)
    schedule = optim.lr_scheduler.StepLR(opt, step_size=1, gamma=0.5)
    for _ in range(3):
        for x, y in data:
            opt.zero_grad()
            nn.functional.cross_entropy(a(x), y).backward()
            nn.utils.clip_grad_norm_(a.parameters(), 0.5)
            opt.step()
        schedule.step()
    opt = optim.Adam(b.parameters(), lr=0.01)
    history = quiet(
        b, data, opt, epochs=3, scheduler=optim.lr_scheduler.StepLR(opt, step_size=1, gamma=0.5), max_grad_norm=0.5
    )
    assert weights(a) == weights(b)
    assert history["lr"] == [0.01, 0.005, 0.0025] and history["step"] == [5, 10, 15] and len(history) == 3
    assert history["loss"][-1] < history["loss"][0] and b.training


def test_kinds_of_data():
    x, y = v.randn(10, 4), v.randint(0, 3, (10,))
    for data in ((x, y), TensorDataset(x, y), DataLoader(TensorDataset(x, y), 4), [(x, y)], [[x, y]]):
        assert len(quiet(net(), data, epochs=2, batch_size=4, metrics="accuracy")) == 2

    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(4, 3)

        def forward(self, a, b):
            return self.fc(a + b)

    quiet(Two(), [((x, x), y)])
    quiet(Two(), [({"a": x, "b": x}, y)])
    for bad in (3, [x], [(x, y, y)], [5]):
        with pytest.raises(TypeError):
            quiet(net(), bad)
    with pytest.raises(ValueError, match="no batch"):
        quiet(net(), [])
    with pytest.raises(ValueError, match="iterate it again"):
        quiet(net(), iter([(x, y)]), epochs=2)


def test_groups_of_batches_are_one_large_batch():
    parts = [(x[:n], y[:n]) for (x, y), n in zip(batches(3), (6, 2, 4))]
    whole = [(v.cat([x for x, _ in parts]), v.cat([y for _, y in parts]))]
    a, b = net(), net()
    quiet(a, whole, optim.SGD(a.parameters(), lr=0.1), epochs=2)
    history = quiet(b, parts, optim.SGD(b.parameters(), lr=0.1), epochs=2, accumulate=3)
    assert all(v.allclose(p, q, atol=1e-6) for p, q in zip(a.parameters(), b.parameters()))
    assert history["step"] == [1, 2]
    assert quiet(net(), batches(5), accumulate=2)["step"] == [3]  # the last group is shorter


def test_clipping_of_values():
    model = net()
    seen = []
    watch = callbacks.Functions(step_end=lambda s: seen.extend(p.grad.abs().amax().item() for p in model.parameters()))
    quiet(model, batches(), clip_value=1e-3, callbacks=[watch])
    assert max(seen) <= 1e-3 + 1e-9


def spoiled():
    data = batches(4)
    data[1] = (data[1][0] * math.inf, data[1][1])
    return data


def test_losses_that_are_not_finite():
    model = net()
    before = weights(model)
    with pytest.raises(v.ArgumentError, match="the loss is nan at batch 2 of epoch 0"):
        quiet(model, spoiled())
    assert weights(model) != before and all(math.isfinite(n) for w in weights(model)[1] for n in [w])
    assert all(p.grad is None for p in model.parameters())
    model = net()
    history = quiet(model, spoiled(), non_finite="skip")
    assert history["skipped"] == [1] and history["step"] == [3] and math.isfinite(history["loss"][0])
    assert quiet(net(), spoiled(), non_finite="ignore")["step"] == [4]


def test_validation_and_metrics():
    model = net()
    model[1].eval()  # modes of layers come back after each measure
    result = v.evaluate(model, batches(), metrics=["accuracy", metrics.TopK(2)])
    assert not model[1].training and model[0].training and set(result) == {"loss", "accuracy", "top2"}
    assert 0 <= result["accuracy"] <= result["top2"] <= 1
    modes = []
    history = quiet(
        model,
        batches(),
        epochs=2,
        validation=batches(2),
        metrics=[metrics.Accuracy, lambda p, y: (p.argmax(1) == y).double().mean()],
        callbacks=[lambda state: modes.append(model.training)],
    )
    assert modes == [True, True] and history["val_accuracy"] == history["val_<lambda>"]
    assert history["val_loss"][-1] == pytest.approx(v.evaluate(model, batches(2))["loss"])
    with pytest.raises(ValueError, match="two metrics"):
        quiet(net(), batches(), metrics=["accuracy", "accuracy"])
    with pytest.raises(ValueError, match="one number"):
        quiet(net(), batches(), loss=lambda p, y: p)
    with pytest.raises(KeyError, match="loss"):
        history["nothing"]


def test_metrics_by_hand():
    scores = v.tensor([[0.9, 0.1, 0.0], [0.2, 0.5, 0.3], [0.1, 0.2, 0.7], [0.6, 0.3, 0.1]])
    labels = v.tensor([0, 1, 1, 2])

    def of(metric):
        assert math.isnan(metric.compute())
        for rows in (slice(0, 1), slice(1, 4)):  # batches give what the whole gives
            metric.update(scores[rows], labels[rows])
        return metric.compute()

    assert of(metrics.Accuracy()) == 0.5 and of(metrics.TopK(2)) == 0.75
    assert of(metrics.ConfusionMatrix(3)) == [[1, 0, 0], [0, 1, 1], [1, 0, 0]]
    assert of(metrics.Precision(3)) == pytest.approx((1 / 2 + 1 + 0) / 3)
    assert of(metrics.Recall(3)) == pytest.approx((1 + 1 / 2 + 0) / 3)
    assert of(metrics.F1(3, average="micro")) == 0.5
    assert of(metrics.F1(3, average="weighted")) == pytest.approx((2 / 3 + 2 * 2 / 3 + 0) / 4)
    assert of(metrics.Perplexity()) == pytest.approx(math.exp(nn.functional.cross_entropy(scores, labels).item()))
    p, t = v.tensor([1.0, 2.0, 3.0]), v.tensor([1.0, 2.0, 5.0])
    for metric, expected in ((metrics.MAE(), 2 / 3), (metrics.MSE(), 4 / 3), (metrics.R2(), 1 - 4 / (26 / 3))):
        metric.update(p, t)
        assert metric.compute() == pytest.approx(expected)
        metric.reset()
        assert math.isnan(metric.compute())
    binary = metrics.Accuracy(threshold=0.0)
    binary.update(v.tensor([-1.0, 2.0]), v.tensor([0.0, 0.0]))
    assert binary.compute() == 0.5
    for bad in (lambda: metrics.Accuracy().update(v.ones(3, 2), v.ones(4)), lambda: metrics.F1(average="none")):
        with pytest.raises(ValueError):
            bad()


def test_callbacks_and_their_moments():
    seen = []

    class All(callbacks.Callback):
        pass

    for name in ("begin", "epoch_begin", "step_end", "epoch_end", "end"):
        setattr(All, name, lambda self, state, name=name: seen.append((name, state.epoch, state.step)))
    quiet(net(), batches(2), epochs=2, callbacks=[All()])
    assert seen == [
        ("begin", 0, 0),
        *[("epoch_begin", 0, 0), ("step_end", 0, 1), ("step_end", 0, 2), ("epoch_end", 0, 2)],
        *[("epoch_begin", 1, 2), ("step_end", 1, 3), ("step_end", 1, 4), ("epoch_end", 1, 4)],
        ("end", 1, 4),
    ]

    class Halt:  # not a Callback
        def step_end(self, state):
            state.stop = state.step == 3

    history = quiet(net(), batches(), epochs=4, callbacks=[Halt()])
    assert history.stopped and len(history) == 1 and history["step"] == [3]
    for bad in ([3], [object()]):
        with pytest.raises(TypeError):
            quiet(net(), batches(), callbacks=bad)
    with pytest.raises(TypeError):
        callbacks.Functions(nothing=print)

    def fails(state):
        raise KeyError("inside")

    model = net()
    with pytest.raises(KeyError, match="inside"):
        quiet(model, batches(), callbacks=[fails])
    assert all(p.grad is None for p in model.parameters())


def test_early_stopping():
    model, data = net(), batches()
    kept = []
    stop = callbacks.EarlyStopping(monitor="loss", patience=2, restore_best=True)
    opt = optim.SGD(model.parameters(), lr=0.1)

    def spoil(state):  # after the second epoch the rate only does harm
        kept.append(weights(model))
        if state.epoch == 1:
            opt.param_groups[0]["lr"] = 1e3

    history = quiet(model, data, opt, epochs=20, callbacks=[spoil, stop], non_finite="ignore")
    assert history.stopped and len(history) < 20 and stop.best == min(history["loss"])
    assert weights(model) == kept[stop.best_epoch]
    with pytest.raises(KeyError, match="val_loss"):
        quiet(net(), data, callbacks=[callbacks.EarlyStopping()])
    with pytest.raises(ValueError):
        callbacks.EarlyStopping(mode="least")


def test_checkpoints_and_logs(tmp_path):
    model = net()
    path = tmp_path / "deep" / "{epoch:02}-{loss:.2f}.safetensors"
    history = quiet(
        model,
        batches(),
        epochs=2,
        callbacks=[
            callbacks.Checkpoint(path),
            callbacks.Checkpoint(tmp_path / "best.safetensors", monitor="loss"),
            callbacks.CSVLogger(tmp_path / "log.csv"),
            callbacks.JSONLogger(tmp_path / "log.json"),
        ],
    )
    names = sorted(p.name for p in (tmp_path / "deep").iterdir())
    assert names == [f"{e:02}-{loss:.2f}.safetensors" for e, loss in enumerate(history["loss"])]
    other = net(7)
    other.load_state_dict(v.load(tmp_path / "best.safetensors"))
    assert weights(other) == weights(model)
    rows = (tmp_path / "log.csv").read_text().splitlines()
    assert len(rows) == 3 and rows[0].startswith("epoch,step,loss")
    assert len((tmp_path / "log.json").read_text().splitlines()) == 2
    for bad in ({"unit": "hour"}, {"every": 0}, {"unit": "step", "monitor": "loss"}):
        with pytest.raises(ValueError):
            callbacks.Checkpoint("x", **bad)


def test_resuming_gives_the_same_bits(tmp_path):
    def parts(model):
        opt = optim.AdamW(model.parameters(), lr=0.01)
        return opt, optim.lr_scheduler.CosineAnnealingLR(opt, T_max=4)

    whole = net()
    opt, schedule = parts(whole)
    quiet(whole, batches(), opt, epochs=4, scheduler=schedule)
    first = net()
    opt, schedule = parts(first)
    saving = callbacks.Checkpoint(tmp_path / "run.pt", scheduler=schedule)
    quiet(first, batches(), opt, epochs=2, scheduler=schedule, callbacks=[saving])
    saved = v.load(tmp_path / "run.pt")
    second = net(9)
    opt, schedule = parts(second)
    second.load_state_dict(saved["model"])
    opt.load_state_dict(saved["optimizer"])
    schedule.load_state_dict(saved["scheduler"])
    history = quiet(
        second, batches(), opt, epochs=4, scheduler=schedule, start_epoch=saved["epoch"], start_step=saved["step"]
    )
    assert weights(second) == weights(whole) and history["epoch"] == [2, 3] and history["step"] == [15, 20]


def test_interruption(interruptible):
    ended = []
    model = net()

    class Interrupt(callbacks.Callback):
        def step_end(self, state):
            if state.step == 7:
                os.kill(os.getpid(), signal.SIGINT)

        def end(self, state):
            ended.append(state.step)

    history = quiet(model, batches(), epochs=9, callbacks=[Interrupt()])
    assert history.interrupted and not history.stopped and len(history) == 1 and ended == [7]
    assert all(p.grad is None for p in model.parameters())
    with pytest.raises(KeyboardInterrupt):
        quiet(net(), batches(), epochs=9, callbacks=[Interrupt()], catch_interrupt=False)


def test_plateau_is_given_the_validation_loss():
    model = net()
    opt = optim.SGD(model.parameters(), lr=1.0)
    given = []
    schedule = optim.lr_scheduler.ReduceLROnPlateau(opt)
    schedule.step = given.append
    history = quiet(model, batches(), opt, epochs=2, scheduler=schedule, validation=batches(1))
    assert given == history["val_loss"]
    with pytest.raises(ValueError, match="every epoch"):
        quiet(model, batches(), opt, scheduler=schedule, schedule_every="step")


@pytest.mark.parametrize(
    "wrong",
    [
        {"epochs": -1},
        {"accumulate": 0},
        {"non_finite": "maybe"},
        {"schedule_every": "hour"},
        {"max_grad_norm": 0},
        {"clip_value": -1.0},
        {"metrics": ["beauty"]},
    ],
)
def test_bad_options(wrong):
    with pytest.raises(ValueError):
        quiet(net(), batches(), **wrong)
    with pytest.raises(TypeError):
        quiet(net(), batches(), loss=3)


def test_progress_lines_and_bars(capsys):
    v.fit(net(), batches(), epochs=2, metrics=["accuracy"])
    lines = capsys.readouterr().out.splitlines()
    assert (
        len(lines) == 2 and lines[0].startswith("epoch 1/2 · loss ") and "accuracy" in lines[0] and "\r" not in lines[0]
    )
    out = io.StringIO()
    v.fit(net(), batches(), epochs=2, callbacks=[callbacks.Progress(file=out, terminal=True, interval=0)])
    text = out.getvalue()
    assert text.count("\n") == 2 and text.count("\r") == 12 and "batch 3/5" in text and "[====" in text
    assert capsys.readouterr().out == ""
    v.fit(net(), batches(), progress=False)
    assert capsys.readouterr().out == ""


def test_progress_in_a_notebook(monkeypatch):
    shown = []

    class ZMQInteractiveShell:
        pass

    class Display:
        def update(self, what):
            shown.append(what)

    def display(what, display_id):
        shown.append(what)
        return Display()

    shell = types.ModuleType("IPython")
    shell.get_ipython = lambda: ZMQInteractiveShell()
    shell.display = types.ModuleType("IPython.display")
    shell.display.display = display
    monkeypatch.setitem(sys.modules, "IPython", shell)
    monkeypatch.setitem(sys.modules, "IPython.display", shell.display)
    v.fit(net(), batches(), callbacks=[callbacks.Progress(interval=0)])
    assert len(shown) == 6 and "<progress" in shown[0]._repr_html_() and "batch 1/5" in repr(shown[0])


def test_texts_of_a_history():
    history = quiet(net(), batches(), epochs=2)
    assert (
        repr(history).splitlines()[0].split()[:3] == ["epoch", "step", "loss"] and len(repr(history).splitlines()) == 3
    )
    assert history._repr_html_().count("<tr>") == 3
    assert "no epochs" in repr(quiet(net(), batches(), epochs=0))
