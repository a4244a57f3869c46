"""grad, custom functions, checkpoints and numerical checks."""

from . import _volta
from ._grad_mode import enable_grad, inference_mode, no_grad, set_grad_enabled  # noqa: F401
from ._volta import Tensor, gradcheck, gradgradcheck, hessian, jacobian  # noqa: F401


def grad(outputs, inputs, grad_outputs=None, retain_graph=None, create_graph=False, allow_unused=False):
    """Gradients of the outputs by the inputs, returned; nothing is accumulated. One for each input."""
    return _volta._grad(outputs, inputs, grad_outputs, retain_graph, create_graph, allow_unused)


def backward(tensors, grad_tensors=None, retain_graph=None, create_graph=False):
    """Accumulates the gradients of several results."""
    tensors = [tensors] if isinstance(tensors, Tensor) else list(tensors)
    given = [None] * len(tensors) if grad_tensors is None else list(grad_tensors)
    for number, (x, g) in enumerate(zip(tensors, given, strict=True)):
        keep = bool(retain_graph) or create_graph or number + 1 < len(tensors)
        x.backward(g, retain_graph=keep, create_graph=create_graph)


class Context:
    """What a function's forward leaves for its backward."""

    def __init__(self, needs_input_grad):
        self.needs_input_grad = needs_input_grad
        self._saved = ()

    def save_for_backward(self, *tensors):
        self._saved = tuple(x if x is None else (x, x._version) for x in tensors)

    @property
    def saved_tensors(self):
        for pair in self._saved:
            if pair is not None and pair[0]._version != pair[1]:
                raise _volta.AutogradError("backward: a tensor that was saved has been changed in place since")
        return tuple(x if x is None else x[0] for x in self._saved)


class Function:
    """A function with a derivative of one's own: static methods forward(ctx, ...) and backward(ctx, *gradients)."""

    @staticmethod
    def forward(ctx, *args):
        raise NotImplementedError

    @staticmethod
    def backward(ctx, *grad_outputs):
        raise NotImplementedError

    @classmethod
    def apply(cls, *args):
        """The result, recorded."""
        places = [i for i, x in enumerate(args) if isinstance(x, Tensor)]
        inputs = [args[i] for i in places]
        ctx = Context(tuple(isinstance(x, Tensor) and x.requires_grad for x in args))
        with no_grad():
            result = cls.forward(ctx, *args)
        values = list(result) if isinstance(result, (tuple, list)) else [result]
        if not _volta.is_grad_enabled() or not any(ctx.needs_input_grad):
            return result

        def rule(*gradients):
            given = cls.backward(ctx, *gradients)
            given = given if isinstance(given, (tuple, list)) else (given,)
            if len(given) != len(args):
                raise _volta.AutogradError(
                    f"{cls.__name__}: backward gave {len(given)} gradients for {len(args)} arguments of forward"
                )
            return [given[i] for i in places]

        # A result that is an input would be recorded on itself.
        values = [x.detach() if any(x is y for y in inputs) else x for x in values]
        recorded = _volta._with_backward(cls.__name__, values, inputs, rule)
        return recorded if isinstance(result, (tuple, list)) else recorded[0]


def checkpoint(function, *args, use_reentrant=None):
    """function(*args) without keeping its intermediates: the backward pass runs it again."""
    several = []

    def run(*tensors):
        result = function(*tensors)
        several.append(isinstance(result, (tuple, list)))
        return result

    results = _volta._checkpoint(run, list(args))
    return results if several[0] else results[0]
