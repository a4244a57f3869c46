"""Averages of weights over the training: of all (SWA), or with those of late counting more (EMA)."""

import copy

from .. import _volta
from .._grad_mode import no_grad
from ..nn.module import Module
from .lr_scheduler import SWALR  # noqa: F401

__all__ = ["AveragedModel", "SWALR", "get_ema_avg_fn", "get_ema_multi_avg_fn", "get_swa_avg_fn", "update_bn"]


def get_ema_avg_fn(decay=0.999):
    """The average that keeps a share `decay` of what it was."""
    if not 0 <= decay <= 1:
        raise ValueError(f"a decay of {decay} is not within 0 and 1")

    def average(averaged, current, num_averaged):
        return averaged * decay + current * (1 - decay)

    return average


def get_swa_avg_fn():
    """The plain average."""

    def average(averaged, current, num_averaged):
        return averaged + (current - averaged) / (num_averaged + 1)

    return average


def get_ema_multi_avg_fn(decay=0.999):
    """As get_ema_avg_fn, of lists of tensors, in place."""
    one = get_ema_avg_fn(decay)

    def average(averaged, current, num_averaged):
        for a, c in zip(averaged, current):
            a.copy_(one(a, c.to(a.device), num_averaged) if a.dtype.is_floating_point else c)

    return average


class AveragedModel(Module):
    """A copy of a model whose parameters are averages: `update_parameters(model)` after each step."""

    def __init__(self, model, device=None, avg_fn=None, multi_avg_fn=None, use_buffers=False):
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise ValueError("AveragedModel: either avg_fn or multi_avg_fn is given")
        self.module = copy.deepcopy(model)
        if device is not None:
            self.module.to(device)
        self.register_buffer("n_averaged", _volta.tensor(0, dtype=_volta.int64, device=device))
        self.avg_fn, self.multi_avg_fn, self.use_buffers = avg_fn, multi_avg_fn, use_buffers

    def forward(self, *args, **kwargs):
        return self.module(*args, **kwargs)

    def _tensors(self, model):
        return [*model.parameters(), *(model.buffers() if self.use_buffers else ())]

    def update_parameters(self, model):
        """Takes the parameters of the model into the averages; buffers are averaged too, or copied."""
        with no_grad():
            averaged, current = self._tensors(self.module), [x.detach() for x in self._tensors(model)]
            count = self.n_averaged.item()
            if count == 0:
                for a, c in zip(averaged, current):
                    a.copy_(c.to(a.device))
            elif self.multi_avg_fn is not None:
                self.multi_avg_fn([a.detach() for a in averaged], current, count)
            else:
                average = self.avg_fn or get_swa_avg_fn()
                for a, c in zip(averaged, current):
                    c = c.to(a.device)
                    a.copy_(average(a.detach(), c, count) if a.dtype.is_floating_point else c)
            if not self.use_buffers:
                for a, c in zip(self.module.buffers(), model.buffers()):
                    a.copy_(c.to(a.device))
            self.n_averaged.add_(1)


def update_bn(loader, model, device=None):
    """Statistics of batch norms anew, from batches of a loader."""
    norms = [m for m in model.modules() if getattr(m, "running_mean", None) is not None and hasattr(m, "momentum")]
    if not norms:
        return
    before, training = [m.momentum for m in norms], model.training
    for m in norms:
        m.running_mean.zero_()
        m.running_var.fill_(1)
        m.num_batches_tracked.zero_()
        m.momentum = None
    model.train()
    with no_grad():
        for batch in loader:
            x = batch[0] if isinstance(batch, (tuple, list)) else batch
            model(x if device is None else x.to(device))
    for m, momentum in zip(norms, before):
        m.momentum = momentum
    model.train(training)
