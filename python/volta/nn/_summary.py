"""summary: the layers of a model with what they give and how many parameters they have."""

from .. import _volta
from .._grad_mode import no_grad
from .._volta import Tensor


def _shapes(result):
    if isinstance(result, Tensor):
        return str(tuple(result.shape))
    if isinstance(result, dict):
        return "{" + ", ".join(f"{name}: {_shapes(item)}" for name, item in result.items()) + "}"
    if isinstance(result, (tuple, list)):
        return "[" + ", ".join(_shapes(item) for item in result) + "]"
    return type(result).__name__


def _inputs(given, dtype, device):
    """Zeros of one shape or of several; tensors as they are."""
    if isinstance(given, Tensor):
        return [given]
    given = list(given)
    if all(isinstance(n, int) for n in given):
        given = [tuple(given)]
    return [x if isinstance(x, Tensor) else _volta.zeros(tuple(x), dtype=dtype, device=device) for x in given]


class Summary:
    """What `summary` gives: a text, or a table in a notebook; its numbers are attributes."""

    def __init__(self, rows, parameters, trainable, buffers, size):
        self.rows = rows  # (depth, name, type, shape of the output, parameters of its own) of each layer
        self.parameters, self.trainable, self.buffers, self.nbytes = parameters, trainable, buffers, size

    header = ("layer", "type", "output", "parameters")

    def _texts(self):
        for depth, name, kind, shape, count in self.rows:
            yield "  " * depth + name, kind, shape, f"{count:,}" if count else ""

    def _totals(self):
        frozen = self.parameters - self.trainable
        text = f"{self.parameters:,} parameters"
        text += f" ({self.trainable:,} trainable, {frozen:,} frozen)" if frozen else ""
        text += f", {self.buffers:,} numbers in buffers" if self.buffers else ""
        return f"{text}, {self.nbytes / 2**20:.2f} MiB"

    def __repr__(self):
        rows = [self.header, *self._texts()]
        widths = [max(len(row[i]) for row in rows) for i in range(4)]
        lines = [
            "  ".join(c.ljust(w) if i < 3 else c.rjust(w) for i, (c, w) in enumerate(zip(r, widths))) for r in rows
        ]
        rule = "-" * len(lines[0])
        return "\n".join([lines[0], rule, *lines[1:], rule, self._totals()])

    def _repr_html_(self):
        from html import escape

        from .._html import table

        # Spaces that a browser keeps.
        rows = [(name.replace("  ", "\u2003"), *rest) for name, *rest in self._texts()]
        return table(self.header, rows) + f"<p>{escape(self._totals())}</p>"


def summary(model, input_shape=None, *, dtype=None, device=None):
    """The layers of a model: what each gives for an input of this shape, and the parameters that it holds itself.

    `input_shape` has the batch too; a list of shapes or tensors is for models of several inputs. The model runs once, in
    eval mode and without a graph, on zeros of `dtype`; without a shape it does not run, and no outputs are shown. A
    parameter that several layers share is counted with the first.
    """
    if device is None:
        device = next((p.device for p in model.parameters()), None)
    outputs, handles = {}, []
    if input_shape is not None:
        modes = [(m, m.training) for m in model.modules()]

        def note(module, args, result):
            outputs.setdefault(id(module), _shapes(result))

        try:
            handles = [m.register_forward_hook(note) for m in model.modules()]
            model.eval()
            with no_grad():
                model(*_inputs(input_shape, dtype, device))
        finally:
            for handle in handles:
                handle.remove()
            for module, training in modes:
                object.__setattr__(module, "training", training)
    rows, seen = [], set()
    for name, module in model.named_modules():
        own = [p for p in module._parameters.values() if p is not None and id(p) not in seen]
        seen.update(id(p) for p in own)
        depth = name.count(".") + 1 if name else 0
        label = name.rpartition(".")[2] if name else "model"
        rows.append((depth, label, type(module).__name__, outputs.get(id(module), ""), sum(p.numel() for p in own)))
    every = list(model.parameters())
    return Summary(
        rows,
        sum(p.numel() for p in every),
        sum(p.numel() for p in every if p.requires_grad),
        sum(b.numel() for b in model.buffers()),
        sum(x.nbytes for x in [*every, *model.buffers()]),
    )
