"""Computation without keeping its intermediates."""

from ..autograd import checkpoint

__all__ = ["checkpoint", "checkpoint_sequential"]


def checkpoint_sequential(functions, segments, input, use_reentrant=None):
    """A Sequential or a list of functions in so many parts, each of which keeps only its input."""
    functions = list(functions)
    if not 1 <= segments <= len(functions):
        raise ValueError(f"checkpoint_sequential: {segments} segments of {len(functions)} functions")

    def run(part):
        def forward(x):
            for function in part:
                x = function(x)
            return x

        return forward

    size = len(functions) // segments
    for number in range(segments - 1):
        input = checkpoint(run(functions[number * size : (number + 1) * size]), input)
    return run(functions[(segments - 1) * size :])(input)
