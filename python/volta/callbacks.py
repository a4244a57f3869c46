"""What happens beside the training that fit does. One's own is a function of the state, called after each epoch, or an
object with some of the methods of Callback:

class Bell(callbacks.Callback):
    def epoch_end(self, state):
        print("\\a", state.loss())
"""

import csv
import json
import math
import os
import shutil
import sys
import time

from ._tensor import save

__all__ = ["Callback", "Progress", "EarlyStopping", "Checkpoint", "CSVLogger", "JSONLogger", "Functions"]


class Callback:
    """Moments of the training; each is given the FitState."""

    def begin(self, state): ...

    def epoch_begin(self, state):
        """The model is in training mode."""

    def step_end(self, state):
        """After each step of the optimizer; gradients are still there."""

    def epoch_end(self, state):
        """After validation; the last record of the history is this epoch's."""

    def end(self, state):
        """Also when interrupted or stopped, not after an exception."""


class Functions(Callback):
    """Functions of the state at moments of the training: Functions(step_end=lambda state: ...)."""

    def __init__(self, **moments):
        for name, function in moments.items():
            if name not in ("begin", "epoch_begin", "step_end", "epoch_end", "end"):
                raise TypeError(f"fit has no moment named {name!r}")
            setattr(self, name, function)


def nothing(state):
    """A moment that a callback does not care about."""


def callback_of(given):
    """A callback, or a function as one that is called after each epoch."""
    if any(callable(getattr(given, name, None)) for name in ("begin", "epoch_begin", "step_end", "epoch_end", "end")):
        return given
    if callable(given):
        return Functions(epoch_end=given)
    raise TypeError(f"a callback is a function or has moments such as epoch_end; {type(given).__name__} has none")


def measures(scheduler):
    """Whether a schedule's step takes the loss."""
    from .optim import ReduceLROnPlateau

    return isinstance(scheduler, ReduceLROnPlateau)


def text_of(value):
    """A number as progress lines and tables show it."""
    if isinstance(value, float):
        return f"{value:.4g}"
    return str(value)


def _duration(seconds):
    minutes, seconds = divmod(int(seconds + 0.5), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"


def _in_notebook():
    shell = sys.modules.get("IPython") and sys.modules["IPython"].get_ipython()
    return shell is not None and type(shell).__name__ == "ZMQInteractiveShell"


class _Shown:
    """What a notebook shows of a bar: HTML, or the line where it shows texts only."""

    def __init__(self, done, text):
        self.done, self.text = done, text

    def __repr__(self):
        return self.text

    def _repr_html_(self):
        from ._html import bar

        return bar(self.done, self.text)


class Progress(Callback):
    """A line with bar, rate, time left, loss and metrics that is updated in place in a terminal or notebook; elsewhere
    a plain line for each epoch."""

    def __init__(self, file=None, terminal=None, notebook=None, interval=0.1):
        self.file, self.terminal, self.notebook, self.interval = file, terminal, notebook, interval
        self._display, self._shown, self._length = None, 0.0, 0

    @property
    def _out(self):
        return self.file if self.file is not None else sys.stdout

    def _kind(self):
        if self.notebook or (self.notebook is None and self.file is None and _in_notebook()):
            return "notebook"
        on_terminal = self.terminal
        if on_terminal is None:
            on_terminal = hasattr(self._out, "isatty") and self._out.isatty()
        return "terminal" if on_terminal else "lines"

    def _put(self, done, text, last):
        kind = self._kind()
        if kind == "notebook":
            self._put_in_notebook(_Shown(done, text), last)
        elif kind == "terminal":
            filled = "" if done is None else "[" + "=" * int(20 * done) + " " * (20 - int(20 * done)) + "] "
            line = (filled + text)[: max(shutil.get_terminal_size().columns - 1, 20)]
            self._out.write("\r" + line + " " * max(0, self._length - len(line)) + ("\n" if last else ""))
            self._length = 0 if last else len(line)
            self._out.flush()
        elif last:
            self._out.write(text + "\n")
            self._out.flush()

    def _put_in_notebook(self, shown, last):
        from IPython.display import display

        if self._display is None:
            self._display = display(shown, display_id=True)
        else:
            self._display.update(shown)
        if last:
            self._display = None

    def _text(self, state, values):
        epoch = f"epoch {state.epoch + 1}/{state.epochs}"
        return " · ".join([epoch, *(f"{name} {text_of(value)}" for name, value in values.items())])

    def epoch_begin(self, state):
        self._start = time.perf_counter()

    def step_end(self, state):
        now = time.perf_counter()
        if now - self._shown < self.interval or self._kind() == "lines":
            return
        self._shown = now
        spent = now - self._start
        done = state.batch / state.batches if state.batches else None
        batches = f"{state.batch}/{state.batches}" if state.batches else str(state.batch)
        values = {"batch": batches, "loss": state.loss(), **state.metrics()}
        if done:
            values["left"] = _duration(spent / done - spent)
        values["samples/s"] = int(state.samples / spent) if spent else 0
        self._put(done, self._text(state, values), False)

    def epoch_end(self, state):
        values = {n: x for n, x in state.history.epochs[-1].items() if n not in ("epoch", "step", "seconds", "lr")}
        seconds = state.history.epochs[-1]["seconds"]
        self._put(1.0, self._text(state, values) + f" · {seconds:.1f} s", True)

    def end(self, state):
        if state.history.interrupted:
            self._put(None, f"interrupted in epoch {state.epoch + 1}/{state.epochs}, step {state.step}", True)


def _better(value, best, mode, min_delta=0.0):
    if mode not in ("min", "max"):
        raise ValueError(f"mode is min or max, not {mode!r}")
    if math.isnan(value):
        return False
    return best is None or (value < best - min_delta if mode == "min" else value > best + min_delta)


def _measured(state, monitor):
    record = state.history.epochs[-1]
    if monitor not in record:
        raise KeyError(f"{monitor!r} is not measured; there are {', '.join(record)}")
    return record[monitor]


class EarlyStopping(Callback):
    """Ends the training after `patience` epochs without an improvement by more than min_delta."""

    def __init__(self, monitor="val_loss", patience=3, min_delta=0.0, mode="min", restore_best=False):
        _better(0.0, None, mode)
        self.monitor, self.patience, self.min_delta, self.mode = monitor, patience, min_delta, mode
        self.restore_best = restore_best

    def begin(self, state):
        self.best, self.best_epoch, self._waited, self._kept = None, None, 0, None

    def epoch_end(self, state):
        value = _measured(state, self.monitor)
        if _better(value, self.best, self.mode, self.min_delta):
            self.best, self.best_epoch, self._waited = value, state.epoch, 0
            if self.restore_best:
                self._kept = {name: x.clone() for name, x in state.model.state_dict().items()}
            return
        self._waited += 1
        state.stop = state.stop or self._waited >= self.patience

    def end(self, state):
        if self._kept is not None:
            state.model.load_state_dict(self._kept)


class Checkpoint(Callback):
    """Saves every so many epochs or steps, and at the end where something is not saved yet.

    A path that ends in .safetensors gets the model's state. Any other gets all that training needs to go on, in torch's
    format: "model", "optimizer", "scheduler", "epoch", "step", "generator". The path may name values:
    "run/{epoch:02}-{val_loss:.3f}.safetensors". With `monitor`, only an epoch better than all before is saved.
    """

    def __init__(self, path, every=1, unit="epoch", monitor=None, mode="min", scheduler=None):
        if unit not in ("epoch", "step") or every < 1:
            raise ValueError(f"Checkpoint: every {every} {unit}: the unit is epoch or step, and every at least 1")
        if monitor is not None and unit == "step":
            raise ValueError("Checkpoint: what is monitored is known at the end of an epoch")
        _better(0.0, None, mode)
        self.path, self.every, self.unit = os.fspath(path), every, unit
        self.monitor, self.mode, self.scheduler = monitor, mode, scheduler

    def begin(self, state):
        self.best, self._saved_at = None, state.step

    def step_end(self, state):
        if self.unit == "step" and state.step % self.every == 0:
            self.save(state)

    def epoch_end(self, state):
        if self.unit == "step" or (state.epoch + 1) % self.every:
            return
        if self.monitor is not None:
            value = _measured(state, self.monitor)
            if not _better(value, self.best, self.mode):
                return
            self.best = value
        self.save(state)

    def end(self, state):
        if self.monitor is None and self._saved_at != state.step:
            self.save(state)

    def save(self, state):
        """Writes beside the path first, so that a cut cannot spoil what is there."""
        values = {
            **(state.history.epochs[-1] if state.history.epochs else {}),
            "epoch": state.epoch,
            "step": state.step,
        }
        path = self.path.format(**values)
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        folder, name = os.path.split(path)
        unfinished = os.path.join(folder, "unfinished-" + name)
        save(self._contents(state) if not path.endswith(".safetensors") else state.model.state_dict(), unfinished)
        os.replace(unfinished, path)
        self._saved_at, self.last = state.step, path

    def _contents(self, state):
        from . import _volta

        done = len(state.history.epochs) and state.history.epochs[-1]["epoch"] == state.epoch
        return {
            "model": dict(state.model.state_dict()),
            "optimizer": state.optimizer.state_dict(),
            "scheduler": None if self.scheduler is None else self.scheduler.state_dict(),
            "generator": list(_volta.default_generator().get_state()),
            "epoch": state.epoch + bool(done),
            "step": state.step,
        }


class _File(Callback):
    def __init__(self, path, append=False):
        self.path, self.append = os.fspath(path), append

    def begin(self, state):
        if not self.append:
            open(self.path, "w").close()


class CSVLogger(_File):
    """A row for each epoch."""

    def epoch_end(self, state):
        record = state.history.epochs[-1]
        with open(self.path, "a", newline="") as file:
            rows = csv.writer(file)
            if file.tell() == 0:
                rows.writerow(record)
            rows.writerow(record.values())


class JSONLogger(_File):
    """An object for each epoch, one in a line."""

    def epoch_end(self, state):
        with open(self.path, "a") as file:
            file.write(json.dumps(state.history.epochs[-1]) + "\n")
