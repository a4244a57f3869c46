"""Parameters, buffers and modules as attributes: what the class finds, and what __getattr__ does."""

import copy
import pickle

import pytest

import volta as v
from volta import nn


def test_parts_are_attributes_whatever_the_way_in():
    class Net(nn.Module):
        shadow = "of the class"

        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(2, 2)
            self.register_buffer("mean", v.zeros(2))
            self.register_parameter("none", None)
            self.shadow = nn.Linear(1, 1)

    net, other = Net(), Net()
    assert net.fc is net._modules["fc"] and net.mean is net._buffers["mean"] and net.none is None
    assert net.fc is not other.fc and net.shadow == "of the class"
    fresh = net._modules["fc"] = nn.Linear(2, 3)  # changed behind the module's back
    assert net.fc is fresh
    del net._modules["fc"]
    assert not hasattr(net, "fc") and hasattr(other, "fc")
    with pytest.raises(AttributeError, match="'Net' object has no attribute 'fc'"):
        net.fc
    with pytest.raises(AttributeError, match="fc"):
        Net.fc
    assert not hasattr(Net, "fc")
    net.fc = "text"  # a plain attribute now
    assert net.fc == "text" and "fc" in net.__dict__
    net.fc = nn.Linear(2, 4)
    assert net.fc.out_features == 4 and "fc" not in net.__dict__
    del other.mean
    assert not hasattr(other, "mean") and net.mean.shape == (2,)
    copied = copy.deepcopy(net)
    assert copied.fc is not net.fc and copied.fc.out_features == 4
    part = pickle.loads(pickle.dumps(Net.__dict__["fc"]))  # as libraries that pickle classes do
    assert part.__get__(net, Net) is net.fc


def test_a_getattr_of_ones_own_is_asked_first():
    class Wrapped(nn.Module):
        def __init__(self, inner):
            super().__init__()
            self.inner = inner

        def __getattr__(self, name):
            try:
                return super().__getattr__(name)
            except AttributeError:
                return getattr(super().__getattr__("inner"), name)

    class Tells(nn.Module):
        def __getattr__(self, name):
            return "told" if name == "weight" else super().__getattr__(name)

    assert Wrapped(nn.Linear(2, 3)).out_features == 3
    tells = Tells()
    tells.weight = nn.Parameter(v.ones(1))
    assert tells.weight == "told"
    tells = nn.ParameterDict({"weight": v.ones(1)})
    assert "weight" not in vars(nn.ParameterDict) and tells["weight"] is tells.weight
