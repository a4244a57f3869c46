"""Files: safetensors, torch's, npy and npz; damaged and missing ones."""

import numpy as np
import pytest

import volta as v
from volta import nn


@pytest.fixture
def state():
    v.manual_seed(0)
    return {"a": v.randn(2, 3), "b.c": v.arange(4), "half": v.ones(3, dtype=v.bfloat16), "flag": v.tensor(True)}


def equal(a, b):
    assert sorted(a) == sorted(b)
    for name in a:
        assert a[name].dtype == b[name].dtype and a[name].shape == b[name].shape and bool((a[name] == b[name]).all())


@pytest.mark.parametrize("name", ["s.safetensors", "s.pt", "s.bin"])
def test_states_round_trip(tmp_path, state, name):
    v.save(state, tmp_path / name)
    equal(v.load(tmp_path / name), state)


def test_safetensors_reads_ours_and_the_reverse(tmp_path, state):
    safetensors = pytest.importorskip("safetensors.numpy")
    plain = {k: x for k, x in state.items() if x.dtype != v.bfloat16}
    v.save(plain, tmp_path / "ours.safetensors")
    theirs = safetensors.load_file(tmp_path / "ours.safetensors")
    for name, x in plain.items():
        np.testing.assert_array_equal(theirs[name], np.asarray(x))
    safetensors.save_file({k: np.asarray(x) for k, x in plain.items()}, tmp_path / "theirs.safetensors")
    loaded = v.load(tmp_path / "theirs.safetensors")
    equal({k: loaded[k] for k in plain}, plain)


def test_arrays(tmp_path):
    x = v.randn(3, 4)
    v.save(x, tmp_path / "x.npy")
    np.testing.assert_array_equal(np.load(tmp_path / "x.npy"), np.asarray(x))
    np.savez(tmp_path / "many.npz", a=np.arange(3), b=np.ones((2, 2)))
    assert v.load(tmp_path / "many.npz")["a"].tolist() == [0, 1, 2]
    v.save({"a": x}, tmp_path / "ours.npz")
    np.testing.assert_array_equal(np.load(tmp_path / "ours.npz")["a"], np.asarray(x))


def test_checkpoints_hold_any_value(tmp_path):
    net = nn.Linear(2, 2)
    value = {"model": dict(net.state_dict()), "epoch": 3, "best": 0.5, "names": ["a", None, True], "pair": (1, 2.5)}
    v.save(value, tmp_path / "run.pt")
    loaded = v.load(tmp_path / "run.pt")
    assert loaded["epoch"] == 3 and loaded["names"] == ["a", None, True] and loaded["pair"] == (1, 2.5)
    other = nn.Linear(2, 2)
    other.load_state_dict(loaded["model"])
    assert (other.weight == net.weight).all()
    with pytest.raises(TypeError):
        v.save({"f": object()}, tmp_path / "bad.pt")
    with pytest.raises(TypeError):
        v.save({"f": 3}, tmp_path / "bad.safetensors")


def test_bad_files(tmp_path):
    for name in ("x.safetensors", "x.pt", "x.npy", "x.npz"):
        with pytest.raises(OSError) as caught:
            v.load(tmp_path / name)
        assert isinstance(caught.value, v.Error)
        (tmp_path / name).write_bytes(b"\x80nonsense" * 20)
        with pytest.raises(v.Error):
            v.load(tmp_path / name)


def test_files_of_torch_execute_nothing(tmp_path):
    import pickle

    class Evil:
        def __reduce__(self):
            return print, ("executed",)

    (tmp_path / "evil.pt").write_bytes(pickle.dumps(Evil()))
    with pytest.raises(v.Error):
        v.load(tmp_path / "evil.pt")
