"""Programs of PyTorch's users: they run, and where PyTorch is there they compute the same with both packages."""

import importlib

import numpy as np
import pytest
from programs import PROGRAMS


def run(package, program):
    v = importlib.import_module(package)
    nn, optim = (importlib.import_module(f"{package}.{name}") for name in ("nn", "optim"))
    rng = np.random.RandomState(0)

    def normal(*shape):
        return v.tensor(rng.randn(*shape).astype("float32"))

    def integers(n, *shape):
        return v.tensor(rng.randint(0, n, shape))

    def fill(module):
        with v.no_grad():
            for p in module.parameters():
                p.copy_(normal(*p.shape) * 0.3)
        return module

    return plain(v, program(v, nn, nn.functional, optim, normal, integers, fill))


def plain(v, value):
    if isinstance(value, v.Tensor):
        return value.detach().to(v.float64).numpy()
    if isinstance(value, v.dtype):
        return str(value).split(".")[-1]
    if isinstance(value, (tuple, list)):
        return [plain(v, item) for item in value]
    return value


def same(a, b):
    if isinstance(a, list):
        assert isinstance(b, list) and len(a) == len(b)
        for x, y in zip(a, b):
            same(x, y)
    elif isinstance(a, str):
        assert a == b
    else:
        np.testing.assert_allclose(a, b, rtol=2e-3, atol=2e-4)


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name):
    ours = run("volta", PROGRAMS[name])
    try:
        importlib.import_module("torch")
    except ImportError:
        return
    same(ours, run("torch", PROGRAMS[name]))
