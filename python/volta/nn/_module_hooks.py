"""Hooks of modules: before and after calls, and around their backward passes."""

from types import SimpleNamespace

from .. import _volta
from .._volta import Tensor


class Hooks:
    """The hooks of one module by kind, in the order they run."""

    def __init__(self):
        self.forward_pre, self.forward, self.backward_pre, self.backward = [], [], [], []

    def add(self, kind, hook, prepend, **settings):
        """Gives the function that takes it away again."""
        entry = SimpleNamespace(call=hook, **settings)
        entries = getattr(self, kind)
        entries.insert(0 if prepend else len(entries), entry)
        return lambda: entries.remove(entry) if any(e is entry for e in entries) else None

    def __bool__(self):
        return bool(self.forward_pre or self.forward or self.backward_pre or self.backward)


def _tuple(value):
    return value if isinstance(value, tuple) else (value,)


def called_with_hooks(module, args, kwargs):
    """module.forward(*args, **kwargs) with the module's hooks."""
    hooks = module._hooks
    done = set()
    try:
        for hook in list(hooks.forward_pre):
            if hook.with_kwargs:
                changed = hook.call(module, args, kwargs)
                if changed is not None:
                    if not isinstance(changed, tuple) or len(changed) != 2:
                        raise RuntimeError("a forward pre-hook with kwargs returns None or a pair (args, kwargs)")
                    args, kwargs = changed
            else:
                changed = hook.call(module, args)
                args = args if changed is None else _tuple(changed)
        around = _Backward(module, hooks) if hooks.backward or hooks.backward_pre else None
        if around:
            args = around.inputs(args)
        result = module.forward(*args, **kwargs)
        for hook in list(hooks.forward):
            done.add(id(hook))
            result = _after(hook, module, args, kwargs, result)
        return around.outputs(result) if around else result
    except Exception:
        for hook in list(hooks.forward):
            if hook.always_call and id(hook) not in done:
                _after(hook, module, args, kwargs, None)
        raise


def _after(hook, module, args, kwargs, result):
    changed = hook.call(module, args, kwargs, result) if hook.with_kwargs else hook.call(module, args, result)
    return result if changed is None else changed


def _replaced(values, rule, name):
    """The tensors of a tuple that take part in the backward pass, recorded with a rule of their own."""
    places = [i for i, x in enumerate(values) if isinstance(x, Tensor) and x.requires_grad]
    if not places or not _volta.is_grad_enabled():
        return values, False

    def full(*gradients):
        given = [None] * len(values)
        for i, gradient in zip(places, gradients):
            given[i] = gradient
        found = rule(tuple(given))
        return [found[i] for i in places]

    inputs = [values[i] for i in places]
    recorded = _volta._with_backward(name, [x.detach() for x in inputs], inputs, full)
    changed = list(values)
    for i, x in zip(places, recorded):
        changed[i] = x
    return tuple(changed), True


class _Backward:
    """Backward hooks of one call: identities around the inputs and the outputs see the gradients pass."""

    def __init__(self, module, hooks):
        self.module, self.hooks = module, hooks
        self.grad_output = None
        self.has_inputs = False

    def inputs(self, args):
        args, self.has_inputs = _replaced(args, self._at_inputs, "backward_hook")
        self.count = len(args)
        return args

    def outputs(self, result):
        several = isinstance(result, (tuple, list))
        changed, _ = _replaced(tuple(result) if several else (result,), self._at_outputs, "backward_hook")
        return type(result)(changed) if several else changed[0]

    def _at_outputs(self, gradients):
        for hook in list(self.hooks.backward_pre):
            changed = hook.call(self.module, gradients)
            gradients = gradients if changed is None else _tuple(changed)
        self.grad_output = gradients
        if not self.has_inputs:
            self._run((None,) * self.count)
        return gradients

    def _at_inputs(self, gradients):
        return self._run(gradients)

    def _run(self, gradients):
        for hook in list(self.hooks.backward):
            changed = hook.call(self.module, gradients, self.grad_output)
            if changed is not None:
                changed = _tuple(changed)
                if len(changed) != len(gradients):
                    raise RuntimeError(f"a backward hook returned {len(changed)} gradients for {len(gradients)} inputs")
                gradients = changed
        return gradients
