"""grad, custom functions, checkpoints and numerical checks."""

from types import SimpleNamespace as _SimpleNamespace

from . import _volta
from ._grad_mode import enable_grad, inference_mode, no_grad, set_grad_enabled  # noqa: F401
from ._volta import Tensor, gradcheck, gradgradcheck, hessian, jacobian  # noqa: F401

functional = _SimpleNamespace(jacobian=jacobian, hessian=hessian)  # where PyTorch has them


def grad(
    outputs,
    inputs,
    grad_outputs=None,
    retain_graph=None,
    create_graph=False,
    allow_unused=None,
    materialize_grads=False,
):
    """Gradients of the outputs by the inputs, returned; nothing is accumulated. One for each input."""
    allow_unused = materialize_grads if allow_unused is None else allow_unused
    if not isinstance(inputs, Tensor):
        inputs = list(inputs)
    found = _volta._grad(outputs, inputs, grad_outputs, retain_graph, create_graph, allow_unused)
    if not materialize_grads:
        return found
    inputs = [inputs] if isinstance(inputs, Tensor) else inputs
    return tuple(_volta.zeros_like(x) if g is None else g for x, g in zip(inputs, found))


def backward(tensors, grad_tensors=None, retain_graph=None, create_graph=False, inputs=None):
    """Accumulates the gradients of several results, in all leaves or only in `inputs`."""
    tensors = [tensors] if isinstance(tensors, Tensor) else list(tensors)
    if grad_tensors is None or isinstance(grad_tensors, Tensor):
        given = [grad_tensors] * len(tensors)
    else:
        given = list(grad_tensors)
    if inputs is not None:
        inputs = [inputs] if isinstance(inputs, Tensor) else list(inputs)
        given = [_volta.ones_like(x) if g is None else g for x, g in zip(tensors, given)]
        found = grad(tensors, inputs, given, retain_graph, create_graph, allow_unused=True)
        for x, g in zip(inputs, found):
            if g is not None:
                x.grad = g if x.grad is None else x.grad + g
        return
    for number, (x, g) in enumerate(zip(tensors, given, strict=True)):
        keep = bool(retain_graph) or create_graph or number + 1 < len(tensors)
        x.backward(g, retain_graph=keep, create_graph=create_graph)


class Context:
    """What a function's forward leaves for its backward."""

    def __init__(self, needs_input_grad):
        self.needs_input_grad = needs_input_grad
        self._saved, self._constant, self._materialize = (), (), True

    def save_for_backward(self, *tensors):
        """Tensors for the backward pass, which is an error if they are changed in place until then."""
        for x in tensors:
            if x is not None and not isinstance(x, Tensor):
                raise TypeError(
                    f"save_for_backward takes Tensors, not {type(x).__name__}; others are attributes of ctx"
                )
        self._saved = tuple(x if x is None else (x, x._version) for x in tensors)

    def mark_non_differentiable(self, *tensors):
        """Results that have no gradient."""
        self._constant = tensors

    def mark_dirty(self, *tensors):
        """Inputs that forward changed in place and gave back."""

    def set_materialize_grads(self, value):
        """Whether backward is given zeros, or None, for results that nothing depends on."""
        self._materialize = bool(value)

    @property
    def saved_tensors(self):
        for pair in self._saved:
            if pair is not None and pair[0]._version != pair[1]:
                raise _volta.AutogradError("backward: a tensor that was saved has been changed in place since")
        return tuple(x if x is None else x[0] for x in self._saved)


class Function:
    """A function with a derivative of one's own: static methods forward(ctx, ...) and backward(ctx, *gradients).

    As in PyTorch, forward(...) may also be without ctx where there is setup_context(ctx, inputs, output).
    """

    @staticmethod
    def forward(ctx, *args):
        raise NotImplementedError("a Function has a static method forward")

    @staticmethod
    def setup_context(ctx, inputs, output):
        raise NotImplementedError("this Function has no setup_context")

    @staticmethod
    def backward(ctx, *grad_outputs):
        raise NotImplementedError("this Function has no static method backward: it has no gradient")

    def __init__(self):
        raise TypeError(f"{type(self).__name__} is not made: call {type(self).__name__}.apply")

    @classmethod
    def apply(cls, *args):
        """The result, recorded."""
        ctx = Context(tuple(isinstance(x, Tensor) and x.requires_grad for x in args))
        with no_grad():
            if cls.setup_context is Function.setup_context:
                result = cls.forward(ctx, *args)
            else:
                result = cls.forward(*args)
                cls.setup_context(ctx, args, result)
        if not _volta.is_grad_enabled() or not any(ctx.needs_input_grad):
            return result
        several = isinstance(result, (tuple, list))
        values = list(result) if several else [result]
        # Those that have a gradient.
        places = [
            i
            for i, x in enumerate(values)
            if isinstance(x, Tensor) and x.is_floating_point() and not any(x is y for y in ctx._constant)
        ]
        if places:
            inputs = [x for x in args if isinstance(x, Tensor)]
            # A result that is an input would be recorded on itself.
            given = [values[i].detach() if any(values[i] is y for y in inputs) else values[i] for i in places]
            rule = cls._rule(ctx, args, [x if isinstance(x, Tensor) else None for x in values], places)
            for i, x in zip(places, _volta._with_backward(cls.__name__, given, inputs, rule)):
                values[i] = x
        if not several:
            return values[0]
        return type(result)(*values) if hasattr(result, "_fields") else type(result)(values)

    @classmethod
    def _rule(cls, ctx, args, values, places):
        """What the backward pass calls: gradients of the recorded results in, those of the tensors in args out."""
        shapes = [None if x is None else (x.shape, x.dtype, x.device) for x in values]

        def rule(*gradients):
            by_place = dict(zip(places, gradients))
            full = [by_place.get(i) for i in range(len(shapes))]
            if ctx._materialize:
                full = [
                    _volta.zeros(s[0], dtype=s[1], device=s[2]) if g is None and s is not None else g
                    for g, s in zip(full, shapes)
                ]
            given = cls.backward(ctx, *full)
            given = tuple(given) if isinstance(given, (tuple, list)) else (given,)
            if len(given) < len(args) or any(g is not None for g in given[len(args) :]):
                raise _volta.AutogradError(
                    f"{cls.__name__}: backward gave {len(given)} gradients for {len(args)} arguments of forward"
                )
            return [g for g, x in zip(given, args) if isinstance(x, Tensor)]

        return rule


def checkpoint(function, *args, use_reentrant=None, preserve_rng_state=True, **kwargs):
    """function(*args) without keeping its intermediates: the backward pass runs it again, with the same random numbers."""
    several = []
    places = [i for i, x in enumerate(args) if isinstance(x, Tensor)]

    def run(*tensors):
        given = list(args)
        for i, x in zip(places, tensors):
            given[i] = x
        result = function(*given, **kwargs)
        several.append(isinstance(result, (tuple, list)))
        return result

    results = _volta._checkpoint(run, [args[i] for i in places])
    return results if several[0] else results[0]
