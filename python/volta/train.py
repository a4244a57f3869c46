"""fit: training without a loop of one's own, over the same parts that such a loop uses; evaluate; what they give."""

import copy
import math
import time
from types import SimpleNamespace

from . import _volta, callbacks
from ._grad_mode import no_grad
from ._volta import Tensor
from .metrics import metric_of
from .nn import functional, utils
from .utils.data import DataLoader, Dataset, TensorDataset

__all__ = ["fit", "evaluate", "History", "FitState"]

_CHECK_EVERY = 50  # batches, where reading the loss waits for a device


class History:
    """What fit measured: `epochs` has a dict for each epoch, `history["loss"]` the values of all of them."""

    def __init__(self):
        self.epochs = []
        self.interrupted = False  # by Ctrl-C
        self.stopped = False  # by a callback, before the last epoch

    @property
    def names(self):
        return list(dict.fromkeys(name for record in self.epochs for name in record))

    def __getitem__(self, name):
        if name not in self.names:
            raise KeyError(f"{name!r} was not measured; there are {', '.join(self.names) or 'no epochs'}")
        return [record.get(name, math.nan) for record in self.epochs]

    def __len__(self):
        return len(self.epochs)

    def _rows(self):
        return [self.names, *([callbacks.text_of(r.get(name, math.nan)) for name in self.names] for r in self.epochs)]

    def __repr__(self):
        if not self.epochs:
            return "History of no epochs"
        rows = self._rows()
        widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
        return "\n".join("  ".join(cell.rjust(width) for cell, width in zip(row, widths)) for row in rows)

    def _repr_html_(self):
        from ._html import table

        rows = self._rows()
        return table(rows[0], rows[1:])


class FitState:
    """Where fit is, as callbacks see it. Setting `stop` ends the training after this step or epoch."""

    def __init__(self, model, optimizer, epochs, metrics):
        self.model, self.optimizer, self.epochs = model, optimizer, epochs
        self.epoch = 0  # counts from 0
        self.step = 0  # steps of the optimizer since the beginning of training
        self.batch = 0  # batches seen in this epoch
        self.batches = None  # in an epoch, where the data knows
        self.samples = 0  # seen in this epoch
        self.skipped = 0  # batches of this epoch left out by non_finite="skip"
        self.stop = False
        self.history = History()
        self._total, self._metrics = None, metrics

    def loss(self):
        """Mean over the epoch so far."""
        return math.nan if self._total is None else float(self._total) / self.samples

    def metrics(self):
        """Of the epoch so far, by name."""
        return {m.name: m.compute() for m in self._metrics}


def _batches(data, batch_size, shuffle):
    if isinstance(data, tuple) and len(data) == 2 and all(isinstance(x, Tensor) for x in data):
        data = TensorDataset(*data)
    if isinstance(data, Dataset):
        return DataLoader(data, batch_size, shuffle=shuffle)
    if not hasattr(data, "__iter__") and not hasattr(data, "__getitem__"):
        raise TypeError(f"data is batches (x, y), a data set or a pair of tensors, not {type(data).__name__}")
    return data


def _moved(x, device):
    if device is None:
        return x
    if isinstance(x, (tuple, list)):
        return type(x)(_moved(item, device) for item in x)
    if isinstance(x, dict):
        return {name: _moved(item, device) for name, item in x.items()}
    return x.to(device)


def _pair(item, device):
    if not isinstance(item, (tuple, list)) or len(item) != 2:
        raise TypeError(f"fit: the data must give pairs (x, y), not {type(item).__name__}")
    return _moved(item[0], device), _moved(item[1], device)


def _samples(x):
    while isinstance(x, (tuple, list, dict)):
        x = next(iter(x.values() if isinstance(x, dict) else x))
    return x.shape[0] if x.shape else 1


def _forward(model, loss, x, y):
    prediction = model(*x) if isinstance(x, (tuple, list)) else model(**x) if isinstance(x, dict) else model(x)
    value = loss(prediction, y)
    if not isinstance(value, Tensor) or value.numel() != 1:
        got = f"shape {value.shape}" if isinstance(value, Tensor) else type(value).__name__
        raise ValueError(f"fit: the loss is one number, got {got}; use a reduction such as mean")
    return prediction, value


def _detached(prediction):
    if isinstance(prediction, (tuple, list)):
        return type(prediction)(_detached(p) for p in prediction)
    return prediction.detach() if isinstance(prediction, Tensor) else prediction


def _loss_of(loss):
    if loss is None:
        return _volta.cross_entropy
    if isinstance(loss, str):
        return getattr(functional, loss)
    if not callable(loss):
        raise TypeError(f"loss is a function of prediction and target, not {type(loss).__name__}")
    return loss


def _metrics_of(given):
    found = [metric_of(m) for m in ([given] if isinstance(given, str) else given)]
    names = [m.name for m in found]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"two metrics are named {name!r}")
    return found


def evaluate(model, data, *, loss=None, metrics=(), batch_size=32, device=None):
    """The loss and the metrics by name, in eval mode and without a graph; each layer is in its own mode afterwards."""
    loss, metrics = _loss_of(loss), _metrics_of(metrics)
    for m in metrics:
        m.reset()
    if device is not None:
        model.to(device)
    modes = [(m, m.training) for m in model.modules()]
    total, samples = None, 0
    try:
        model.eval()
        with no_grad():
            for item in _batches(data, batch_size, False):
                x, y = _pair(item, device)
                prediction, value = _forward(model, loss, x, y)
                part = value.reshape(()).to(_volta.float64) * _samples(x)
                total, samples = part if total is None else total + part, samples + _samples(x)
                for m in metrics:
                    m.update(prediction, y)
    finally:
        for module, training in modes:
            object.__setattr__(module, "training", training)
    if total is None:
        raise ValueError("evaluate: the data gave no batch")
    return {"loss": float(total) / samples, **{m.name: m.compute() for m in metrics}}


class _Trainer:
    def __init__(self, model, data, optimizer, options):
        self.data, self.o = data, options
        self.loss, metrics = _loss_of(options.loss), _metrics_of(options.metrics)
        self.params = [p for group in optimizer.param_groups for p in group["params"]]
        self.state = FitState(model, optimizer, options.epochs, metrics)
        self.state.step = options.start_step
        self.callbacks = [callbacks.callback_of(c) for c in options.callbacks]
        if options.progress and not any(isinstance(c, callbacks.Progress) for c in self.callbacks):
            self.callbacks.insert(0, callbacks.Progress())
        self.open = []  # sizes of the batches whose gradients wait for a step

    def tell(self, moment):
        for c in self.callbacks:
            getattr(c, moment, callbacks.nothing)(self.state)

    def run(self):
        state = self.state
        if self.o.device is not None:
            state.model.to(self.o.device)
        state.model.train()
        try:
            self.tell("begin")
            for state.epoch in range(self.o.start_epoch, state.epochs):
                self.epoch()
                if state.stop:
                    break
        except KeyboardInterrupt:
            state.optimizer.zero_grad()  # what a step that was not finished has accumulated
            if not self.o.catch_interrupt:
                raise
            state.history.interrupted = True
        except BaseException:
            state.optimizer.zero_grad()
            raise
        state.history.stopped = state.stop and not state.history.interrupted
        self.tell("end")
        return state.history

    def epoch(self):
        state, start = self.state, time.perf_counter()
        state.batch = state.samples = state.skipped = 0
        state._total = None
        try:
            state.batches = len(self.data)
        except TypeError:
            state.batches = None
        for m in state._metrics:
            m.reset()
        self.tell("epoch_begin")
        for item in self.data:
            self.batch(*_pair(item, self.o.device))
            if state.stop:
                break
        if not state.batch:
            again = ": it must be possible to iterate it again" if state.epoch > self.o.start_epoch else ""
            raise ValueError(f"fit: the data gave no batch in epoch {state.epoch}{again}")
        self.step()
        if state.samples:
            self.require_finite(state.loss())
        self.record(time.perf_counter() - start)
        self.tell("epoch_end")

    def batch(self, x, y):
        state = self.state
        if not self.open:
            state.optimizer.zero_grad()
        prediction, loss = _forward(state.model, self.loss, x, y)
        state.batch += 1
        if self.accepted(loss):
            self.contribute(loss, _samples(x))
            for m in state._metrics:
                m.update(_detached(prediction), y)
        else:
            self.open.append(0)
        if len(self.open) == self.o.accumulate:
            self.step()

    def accepted(self, loss):
        """Whether the batch is used. Reading a loss on a GPU waits for it, so that it is read now and then only."""
        policy = self.o.non_finite
        if policy == "skip":
            finite = math.isfinite(loss.item())
            self.state.skipped += not finite
            return finite
        if policy == "error":
            if not loss.is_cuda:
                self.require_finite(loss.item())
            elif self.state.batch % _CHECK_EVERY == 0 and self.state.samples:
                self.require_finite(self.state.loss())
        return True

    def require_finite(self, loss):
        if self.o.non_finite == "error" and not math.isfinite(loss):
            s = self.state
            raise _volta.ArgumentError(
                f"fit: the loss is {loss} at batch {s.batch} of epoch {s.epoch}, step {s.step}: lower the learning "
                'rate, set max_grad_norm, or leave such batches out with non_finite="skip"'
            )

    def contribute(self, loss, samples):
        """Gradients of a group of batches are sums weighted by sizes relative to the first; `step` divides them."""
        first = next((n for n in self.open if n), samples)
        (loss if samples == first else loss * (samples / first)).backward()
        self.open.append(samples)
        part = loss.detach().reshape(()).to(_volta.float64) * samples
        self.state._total = part if self.state._total is None else self.state._total + part
        self.state.samples += samples

    def step(self):
        state, sizes = self.state, [n for n in self.open if n]
        batches, self.open = len(self.open), []
        if not sizes:
            return  # every batch of the group was left out
        gradients = [p.grad for p in self.params if p.grad is not None]
        with no_grad():
            if len(sizes) > 1:
                for gradient in gradients:
                    gradient.mul_(sizes[0] / sum(sizes))
            if self.o.non_finite == "skip" and not all(bool(g.isfinite().all()) for g in gradients):
                state.skipped += batches
                return
        if self.o.clip_value is not None:
            utils.clip_grad_value_(self.params, self.o.clip_value)
        if self.o.max_grad_norm is not None:
            utils.clip_grad_norm_(self.params, self.o.max_grad_norm)
        state.optimizer.step()
        state.step += 1
        if self.o.scheduler is not None and self.o.schedule_every == "step":
            self.o.scheduler.step()
        self.tell("step_end")

    def record(self, seconds):
        state, o = self.state, self.o
        record = {"epoch": state.epoch, "step": state.step, "loss": state.loss(), **state.metrics()}
        measure = record["loss"]
        if o.validation is not None:
            metrics = copy.deepcopy(state._metrics)
            found = evaluate(state.model, o.validation, loss=self.loss, metrics=metrics, device=o.device)
            record.update({f"val_{name}": value for name, value in found.items()})
            measure = found["loss"]
        record.update(lr=state.optimizer.param_groups[0]["lr"], seconds=seconds)
        if o.non_finite == "skip":
            record["skipped"] = state.skipped
        # An epoch that a callback cut short has not ended for the schedule.
        whole = not state.stop or state.batches == state.batch
        if o.scheduler is not None and o.schedule_every == "epoch" and whole:
            o.scheduler.step(*([measure] if callbacks.measures(o.scheduler) else []))
        state.history.epochs.append(record)


def fit(
    model,
    data,
    optimizer=None,
    *,
    epochs=1,
    loss=None,
    validation=None,
    metrics=(),
    callbacks=(),
    scheduler=None,
    schedule_every="epoch",
    max_grad_norm=None,
    clip_value=None,
    accumulate=1,
    non_finite="error",
    batch_size=32,
    device=None,
    start_epoch=0,
    start_step=0,
    catch_interrupt=True,
    progress=True,
):
    """Trains a model; gives the History.

    data: batches (x, y) that can be iterated again: a DataLoader, a list; or a data set or a pair of tensors, which
        are shuffled into batches of `batch_size`. A tuple or dict x becomes the model's arguments.
    optimizer: AdamW with a rate of 1e-3 if not given. scheduler: stepped after each epoch or step.
    loss: a function of prediction and target, or its name in nn.functional; cross_entropy if not given.
    validation: data that is measured after each epoch; its values are recorded with "val_" in front.
    metrics: of volta.metrics, "accuracy", or functions of prediction and target.
    callbacks: of volta.callbacks, objects with some of their methods, or functions called at the end of each epoch.
    accumulate: batches for one step, weighted by their sizes as one large batch would be.
    non_finite: what becomes of a loss that is NaN or infinite: "error" before the step, "skip" the batch, "ignore".
    catch_interrupt: Ctrl-C ends the training, and the history so far is given.
    progress: a bar in a terminal or notebook, else a line for each epoch.
    """
    options = SimpleNamespace(**locals())
    from . import optim

    for name, value, known in (
        ("schedule_every", schedule_every, ("epoch", "step")),
        ("non_finite", non_finite, ("error", "skip", "ignore")),
    ):
        if value not in known:
            raise ValueError(f"fit: {name} is one of {', '.join(known)}, not {value!r}")
    if min(epochs, start_epoch, start_step) < 0 or accumulate < 1:
        raise ValueError("fit: epochs, start_epoch and start_step are not negative, and accumulate is at least 1")
    if any(bound is not None and not bound > 0 for bound in (max_grad_norm, clip_value)):
        raise ValueError("fit: max_grad_norm and clip_value are above 0")
    if schedule_every == "step" and isinstance(scheduler, optim.ReduceLROnPlateau):
        raise ValueError("fit: ReduceLROnPlateau is stepped every epoch, not every step")
    if optimizer is None:
        optimizer = optim.AdamW(model.parameters(), lr=1e-3)
    if options.validation is not None:
        options.validation = _batches(validation, batch_size, False)
    return _Trainer(model, _batches(data, batch_size, True), optimizer, options).run()
