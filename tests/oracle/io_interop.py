#!/usr/bin/env python3
"""PyTorch to Volta to PyTorch: tensors of every dtype are equal to the bit, and optimizers continue to the same bits.

    cmake --build build/release --target io_interop
    mkdir out && build/release/tests/io_interop tests/data/io out && python3 tests/oracle/io_interop.py out

Needs torch, numpy and safetensors.
"""

import pathlib
import sys

import io_files
import numpy as np
import safetensors.torch
import torch

HERE = io_files.OUT


def same(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and a.contiguous().numpy(force=True).tobytes() == b.contiguous().numpy(force=True).tobytes()


def bits(state):
    return {k: x.view(torch.int16) if x.dtype == torch.bfloat16 else x for k, x in state.items()}


def check_tensors(out):
    wanted = torch.load(HERE / "dtypes.pt", weights_only=True)
    for state in (torch.load(out / "dtypes.pt", weights_only=True), torch.load(out / "dtypes.pt", weights_only=True, mmap=True),
                  safetensors.torch.load_file(out / "dtypes.safetensors")):
        assert {k: x.dtype for k, x in wanted.items()} == {k: x.dtype for k, x in state.items()}
        a, b = bits(wanted), bits(state)
        assert all(same(a[k], b[k]) for k in a)
    arrays = np.load(out / "dtypes.npz")
    for k, x in wanted.items():
        assert k.startswith("bf16") or (arrays[k].dtype == x.numpy().dtype and np.array_equal(arrays[k], x.numpy())), k


def check_values(out):
    a, b = (torch.load(folder / "nested.pt", weights_only=True) for folder in (HERE, out))
    plain = ("epoch", "big", "negative", "lr", "name", "none", "flags", "betas", "by_number")
    assert all(a[k] == b[k] and type(a[k]) is type(b[k]) for k in plain)
    assert all(torch.equal(x, y) for x, y in zip(a["shared"], b["shared"]))
    assert len({x.untyped_storage().data_ptr() for x in b["shared"]}) == 1


def check_optimizers(out):
    """What was read and written here continues as PyTorch's own state does, on this machine."""
    torch.optim._muon._zeropower_via_newtonschulz = io_files.newton_schulz
    for name, kind, options in io_files.optimizers():
        saved = torch.load(HERE / f"optimizer_{name}.pt", weights_only=True)

        def continued(state):
            weights = [w.clone().requires_grad_() for w in saved["before"]]
            groups = weights if name == "LBFGS" else [{"params": weights[:1]}, {"params": weights[1:], "lr": 0.005}]
            optimizer = kind(groups, **options)
            optimizer.load_state_dict(state)
            io_files.train(optimizer, weights, 2)
            return weights

        ours = continued(torch.load(out / f"optimizer_{name}.pt", weights_only=True))
        assert all(torch.equal(x, y) for x, y in zip(ours, continued(saved["optimizer"]))), name
        assert all(torch.allclose(x, y) for x, y in zip(ours, saved["after"])), name


def main():
    out = pathlib.Path(sys.argv[1])
    check_tensors(out)
    check_values(out)
    check_optimizers(out)
    print("equal to the bit")


if __name__ == "__main__":
    main()
