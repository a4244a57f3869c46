"""Memory stays flat over many calls, failing ones included; threads with hooks end."""

import gc
import resource
import threading
import weakref

import numpy as np
import pytest

import volta as v
from volta import nn, optim

X = v.ones(3)


def resident():
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * resource.getpagesize()


def failing(call, error):
    def run():
        try:
            call()
        except error:
            return
        raise AssertionError("no error")

    return run


def hooked():
    x = v.ones(3, requires_grad=True)
    y = x * 2
    y.register_hook(lambda g: g * 1)
    y.sum().backward()


def training():
    net = nn.Linear(3, 2)
    opt = optim.Adam(net.parameters(), lr=0.1)
    net(X).sum().backward()
    opt.step()


CASES = {
    "error": failing(lambda: v.ones(2) @ v.ones(3), ValueError),
    "bad call": failing(lambda: v.softmax(X), TypeError),
    "hook": hooked,
    "training": training,
    "from_numpy": lambda: v.from_numpy(np.zeros(1000)),
    "asarray": lambda: np.asarray(v.zeros(1000)),
    "dlpack": lambda: np.from_dlpack(v.from_dlpack(v.zeros(1000))),
    "lists": lambda: v.tensor([[1.0, 2.0], [3.0, 4.0]]).tolist(),
    "results": lambda: v.max(X, 0).values,
    "calls": lambda: v.softmax(X.reshape(3, 1)[None, ::2], dim=-1).size(0),
}


@pytest.mark.parametrize("name", CASES)
def test_memory_is_flat(name):
    def run(count):
        for _ in range(count):
            CASES[name]()
        gc.collect()

    run(500)
    before = resident()
    run(3000)
    # A page or two of the allocators; a leaked tensor of each call would be 200 KB and more.
    assert resident() - before < 160 * 1024


def test_threads_with_hooks_end():
    w = v.ones(4, requires_grad=True)

    def work():
        for _ in range(500):
            y = w * v.rand(4)
            handle = y.register_hook(lambda g: g * 1)
            y.sum().backward()
            handle.remove()
            assert w.grad is not None

    threads = [threading.Thread(target=work, daemon=True) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(60)
    assert not any(t.is_alive() for t in threads)


def test_models_that_hold_their_schedules_are_collected():
    schedules = optim.lr_scheduler

    def combined(opt, rate):
        return schedules.SequentialLR(opt, [schedules.LambdaLR(opt, rate), schedules.StepLR(opt, 1)], [2])

    for make in (schedules.LambdaLR, schedules.MultiplicativeLR, combined):
        model = nn.Linear(2, 2)
        opt = optim.SGD(model.parameters(), lr=1.0)
        model.schedule = make(opt, lambda step, model=model: 0.5 if model.training else 1.0)
        model.schedule.step()
        rate, gone = opt.param_groups[0]["lr"], weakref.ref(model)
        assert rate == 0.5
        del model
        gc.collect()
        assert gone() is None
    with pytest.raises(TypeError, match="function"):
        schedules.LambdaLR(opt, 0.5)
