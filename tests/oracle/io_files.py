#!/usr/bin/env python3
"""Writes tests/data/io: small files by the libraries whose formats are read (torch, numpy, safetensors), with known values.

    python3 tests/oracle/io_files.py        # needs torch, numpy and safetensors

Every tensor holds arange(n) of its shape, reduced so that each dtype holds it exactly: values[i] = i % 100, booleans i % 3 == 0.
"""

import collections
import copy
import gzip
import pathlib

import numpy as np
import safetensors.numpy
import safetensors.torch
import torch
from training import newton_schulz

OUT = pathlib.Path(__file__).resolve().parent.parent / "data" / "io"
DTYPES = {
    "f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32, "f64": torch.float64, "i8": torch.int8,
    "i16": torch.int16, "i32": torch.int32, "i64": torch.int64, "u8": torch.uint8, "u16": torch.uint16,
    "u32": torch.uint32, "u64": torch.uint64, "bool": torch.bool,
}


def values(shape, dtype):
    n = int(np.prod(shape))
    base = torch.arange(n, dtype=torch.int64) % 100
    return (base % 3 == 0 if dtype == torch.bool else base.to(dtype)).reshape(shape)


def all_dtypes():
    state = {f"{name}.full": values((2, 3), dtype) for name, dtype in DTYPES.items()}
    state |= {f"{name}.scalar": values((), dtype) for name, dtype in DTYPES.items()}
    state |= {f"{name}.empty": values((0, 4), dtype) for name, dtype in DTYPES.items()}
    return state


def write_safetensors():
    safetensors.torch.save_file(all_dtypes(), OUT / "dtypes.safetensors", metadata={"format": "pt"})
    names = {"größe \"x\"\n": torch.tensor([1.0]), "日本": torch.tensor([2])}
    safetensors.torch.save_file(names, OUT / "names.safetensors")


def write_torch():
    torch.save(all_dtypes(), OUT / "dtypes.pt")
    base = values((4, 6), torch.float32)
    module = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2))
    with torch.no_grad():
        for p in module.parameters():
            p.copy_(values(p.shape, p.dtype))
    nested = {
        "epoch": 3, "big": 2**40, "negative": -5, "lr": 0.1, "name": "größe", "none": None, "flags": [True, False],
        "betas": (0.9, 0.999), "size": torch.Size([2, 3]), "shared": [base, base.t(), base[1:3, ::2]],
        "parameter": torch.nn.Parameter(values((2,), torch.float32)), "model": module.state_dict(),
        "expanded": torch.tensor([7.0]).expand(3, 2), "by_number": {0: "a", 7: "b"},
    }
    torch.save(nested, OUT / "nested.pt")
    torch.save(nested, OUT / "nested_protocol4.pt", pickle_protocol=4)
    torch.save(module.state_dict(), OUT / "module.pt")
    torch.save({"x": base}, OUT / "legacy.pt", _use_new_zipfile_serialization=False)
    torch.save({"x": collections.Counter("abca"), "y": {2}, 3: collections.Counter()}, OUT / "counter.pt")  # MultiStepLR keeps one
    torch.save({"x": pathlib.PurePosixPath("a")}, OUT / "refused.pt")
    torch.save({"x": torch.tensor([1 + 2j])}, OUT / "complex.pt")
    torch.save({"imag": torch.tensor([1 + 2j, 3 + 4j]).conj().imag, "view": torch._neg_view(torch.ones(3)),
                "whole": torch._neg_view(torch.arange(3)), "plain": torch.ones(2)}, OUT / "negated.pt")


def write_numpy():
    arrays = {}
    for name, dtype in DTYPES.items():
        if name == "bf16":
            continue
        a = values((2, 3), dtype).numpy()
        arrays[name] = a
        arrays[name + "_big"] = a.astype(a.dtype.newbyteorder(">"))
        arrays[name + "_fortran"] = np.asfortranarray(a)
    arrays["scalar"] = np.float32(2.5)
    arrays["empty"] = np.zeros((0, 3), np.int32)
    np.savez(OUT / "stored.npz", **arrays)
    np.savez_compressed(OUT / "deflated.npz", **arrays, large=np.arange(5000, dtype=np.int64) % 100)
    np.save(OUT / "plain.npy", values((2, 3), torch.float32).numpy())
    np.save(OUT / "scalar.npy", np.float64(2.5))
    np.save(OUT / "vector.npy", np.arange(7, dtype=np.uint16))
    for name, a in {"object": np.array([{}], dtype=object), "complex": np.array([1j]), "text": np.array(["ab"]),
                    "date": np.array(["2020-01-01"], dtype="datetime64[D]"), "void": np.zeros(2, "V2"),
                    "record": np.zeros(2, [("a", "f4"), ("b", "i4")]), "long": np.zeros(1, np.longdouble)}.items():
        np.save(OUT / f"refused_{name}.npy", a, allow_pickle=True)


def optimizers():
    yield "SGD", torch.optim.SGD, dict(lr=0.1, momentum=0.9, nesterov=True)
    yield "SGD_plain", torch.optim.SGD, dict(lr=0.1)
    yield "Adam", torch.optim.Adam, dict(lr=0.01, amsgrad=True)
    yield "AdamW", torch.optim.AdamW, dict(lr=0.01)
    yield "Adamax", torch.optim.Adamax, dict()
    yield "NAdam", torch.optim.NAdam, dict()
    yield "RAdam", torch.optim.RAdam, dict()
    yield "RMSprop", torch.optim.RMSprop, dict(momentum=0.5, centered=True)
    yield "Adagrad", torch.optim.Adagrad, dict()
    yield "Adadelta", torch.optim.Adadelta, dict()
    yield "ASGD", torch.optim.ASGD, dict()
    yield "Rprop", torch.optim.Rprop, dict()
    yield "Adafactor", torch.optim.Adafactor, dict()
    yield "Muon", torch.optim.Muon, dict()
    yield "LBFGS", torch.optim.LBFGS, dict(lr=0.1, max_iter=3)


def train(optimizer, weights, steps):
    for _ in range(steps):
        def closure():
            optimizer.zero_grad()
            loss = sum(((w - 0.5) ** 2 * (i + 1)).sum() for i, w in enumerate(weights))
            loss.backward()
            return loss
        optimizer.step(closure)


def write_optimizers():
    """State after two steps, weights then, and weights after two more. Muon runs in the parameter's dtype instead of bf16."""
    torch.optim._muon._zeropower_via_newtonschulz = newton_schulz
    for name, kind, options in optimizers():
        matrices = name == "Muon"
        weights = [torch.linspace(-1, 1, 6).reshape(2, 3).requires_grad_(),
                   torch.linspace(0, 1, 4).reshape((2, 2) if matrices else (4,)).requires_grad_()]
        groups = weights if name == "LBFGS" else [{"params": weights[:1]}, {"params": weights[1:], "lr": 0.005}]
        optimizer = kind(groups, **options)
        train(optimizer, weights, 2)
        saved = {"optimizer": copy.deepcopy(optimizer.state_dict()), "before": [w.detach().clone() for w in weights]}
        train(optimizer, weights, 2)
        saved["after"] = [w.detach().clone() for w in weights]
        torch.save(saved, OUT / f"optimizer_{name}.pt")


def write_gzip():
    data = bytes(i * i % 251 for i in range(20000))
    with open(OUT / "squares.gz", "wb") as f, gzip.GzipFile("squares", "wb", fileobj=f, mtime=0) as z:
        z.write(data)


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    write_safetensors()
    write_torch()
    write_numpy()
    write_optimizers()
    write_gzip()


if __name__ == "__main__":
    main()
