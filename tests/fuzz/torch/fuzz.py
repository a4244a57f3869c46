#!/usr/bin/env python3
"""Random chains of ops, run by PyTorch here and by Volta in another program, and compared.

    fuzz.py --program build/…/volta_fuzz_torch --count 200000 --seed 1        (or: make fuzz-torch)

A chain is 2 to 10 ops on small tensors of several dtypes: pointwise ops, reductions, views, indexing, products, writes in
place; then a loss, its gradients, and in some chains the gradients of those. What is compared is every tensor of the chain
as it is at its end (so that aliasing shows), and the gradients. A chain depends on the seed and its number alone.

Ops that PyTorch refuses, or that give NaN or large numbers (where rounding decides), are not taken. Where a result is
further from PyTorch's than the dtype explains, the chain is run once more in f64: PyTorch's own error is then known, and a
few times that is allowed.
"""

import argparse
import os
import random
import subprocess
import sys
import tempfile
import warnings

import numpy as np
import torch

from generate import make_chain
from ops import OPS

warnings.filterwarnings("ignore")
WORDS = {
    torch.bool: "bool", torch.uint8: "u8", torch.int8: "i8", torch.int16: "i16", torch.int32: "i32",
    torch.int64: "i64", torch.float32: "f32", torch.float64: "f64",
}  # fmt: skip
STRICTER = "a gradient is refused, for what it needs was changed in place"
TOLERANCE = {torch.float64: 1e-9, torch.float32: 1e-4}


def run(chain, wide=False):
    """Every tensor at the end of the chain, and the gradients; floats as f64 when `wide`."""
    registers, leaves = [], []
    for step in chain.steps:
        if step[0] == "in":
            _, x, grad = step
            x = x.double() if wide and x.is_floating_point() else x.clone()
            if grad:
                x.requires_grad_()
                leaves.append(x)
            registers.append(x)
        else:
            name, where, integers, numbers = step
            converts = name == "to_f32"
            if converts and not wide and registers[where[0]].dtype != torch.float32:
                chain.copies.add(len(registers))
            name = "to_f64" if wide and converts else name
            made = OPS[name](*[registers[i] for i in where], ints=integers, nums=numbers)
            # A conversion that copied does so in f64 too, lest what is written later be something else.
            registers += [y.clone() for y in made] if wide and len(registers) in chain.copies else made
    loss = None
    for r in chain.roots:
        y = registers[r].double()
        part = (y * y * 0.5 + y).sum()
        loss = part if loss is None else loss + part
    results = [x.detach() for x in registers]
    if loss is None or not leaves:
        return results
    first = torch.autograd.grad(loss, leaves, create_graph=chain.second, allow_unused=True)
    results += [None if g is None else g.detach() for g in first]
    squares = [(g * g).sum().double() for g in first if g is not None and g.requires_grad]
    if chain.second:
        again = torch.autograd.grad(sum(squares), leaves, allow_unused=True) if squares else [None] * len(leaves)
        results += [None if g is None else g.detach() for g in again]
    return results


def write(chain, out):
    out.append(f"chain {chain.number}")
    for step in chain.steps:
        if step[0] == "in":
            _, x, grad = step
            floats = x.is_floating_point()
            values = " ".join(float(v).hex() if floats else str(int(v)) for v in x.reshape(-1).tolist())
            sizes = " ".join(map(str, x.shape))
            out.append(f"in {WORDS[x.dtype]} {int(grad)} {x.dim()} {sizes} {values}")
            continue
        name, where, integers, numbers = step
        parts = [" ".join(map(str, where)), " ".join(map(str, integers)), " ".join(float(d).hex() for d in numbers)]
        out.append(f"op {name} " + " / ".join(parts))
    out.append(f"end {int(chain.second)} " + " ".join(map(str, chain.roots)))


def read(path):
    """By number: (status, tensors or the error's text)."""
    data, at, found = open(path, "rb").read(), 0, {}

    def words(n):
        nonlocal at
        at += 8 * n
        return np.frombuffer(data, np.int64, n, at - 8 * n)

    while at < len(data):
        number, status, count = (int(w) for w in words(3))
        if status:
            found[number] = (status, data[at : at + count].decode())
            at += count
            continue
        tensors = []
        for _ in range(count):
            dtype = words(1).tobytes().rstrip(b"\0").decode()
            if not dtype:
                tensors.append(None)
                continue
            shape = tuple(int(n) for n in words(int(words(1)[0])))
            values = words(int(np.prod(shape, dtype=np.int64)))
            floats = dtype in ("f16", "bf16", "f32", "f64")
            tensors.append((dtype, (values.view(np.float64) if floats else values).reshape(shape)))
        found[number] = (0, tensors)
    return found


def differs(got, want, narrow, exact=None):
    """Why a result of Volta is not PyTorch's, or nothing."""
    if want is None or got is None:
        if want is None and got is None:
            return None
        values = got[1] if want is None else want.double().numpy(force=True)
        return None if not np.any(values) else f"a gradient is missing: {got} {want}"
    dtype, values = got
    if dtype != WORDS[want.dtype] or values.shape != tuple(want.shape):
        return f"{dtype}{list(values.shape)} for {WORDS[want.dtype]}{list(want.shape)}"
    if not want.is_floating_point():
        return None if np.array_equal(values, want.to(torch.int64).numpy(force=True)) else f"{values} for {want}"
    w = want.double().numpy(force=True)
    if w.size == 0:
        return None
    finite = np.isfinite(w)
    if not np.array_equal(finite, np.isfinite(values)):
        return f"{values} for {w}"
    scale = 1 + (np.abs(w[finite]).max() if finite.any() else 0)
    slack = TOLERANCE[torch.float32 if narrow else torch.float64] * scale
    if exact is not None:
        e = exact.double().numpy(force=True)
        slack = slack + 8 * np.abs(w - e)[finite].max(initial=0)
    off = np.abs(values - w)[finite]
    if (off > slack).any() or not np.array_equal(values[~finite], w[~finite], equal_nan=True):
        return f"off by {off.max(initial=0):.3g} (allowed {np.max(slack):.3g}):\n{values}\nfor\n{w}"
    return None


def run_wide(chain):
    try:
        return run(chain, wide=True)
    except RuntimeError:  # where conversions no longer copy, something may be overwritten
        return []


def compare(chain, wanted, answer):
    status, got = answer
    if status:
        # What a rule saves is its own affair: here some save their result where PyTorch saves operands, and the other way.
        if status == 2 and "was changed in place" in got:
            return STRICTER
        return f"{'an op' if status == 1 else 'a gradient'} is refused: {got}"
    if len(got) != len(wanted):
        return f"{len(got)} results for {len(wanted)}"
    exact = None
    for i, (g, w) in enumerate(zip(got, wanted)):
        why = differs(g, w, chain.narrow)
        if why and w is not None and w.is_floating_point() and chain.narrow:
            if exact is None:
                exact = run_wide(chain)
            if len(exact) == len(wanted) and exact[i] is not None and exact[i].shape == w.shape:
                why = differs(g, w, True, exact[i])
        if why:
            return f"result {i}: {why}"
    return None


def batch(seed, first, count, program, folder):
    """Makes, runs and compares chains [first, first + count); gives how many were compared, in how many a
    gradient was refused for a change in place, and what differed."""
    chains, wanted, lines = [], [], []
    for number in range(first, first + count):
        chain = make_chain(number, random.Random(f"{seed}/{number}"))
        try:
            wanted.append(run(chain))
        except RuntimeError:  # a tensor that the backward pass needs was overwritten, for one
            continue
        chains.append(chain)
        write(chain, lines)
    programs, results = os.path.join(folder, "chains"), os.path.join(folder, "results")
    with open(programs, "w") as f:
        f.write("\n".join(lines) + "\n")
    subprocess.run([program, programs, results], check=True)
    answers, wrong, stricter = read(results), [], 0
    for chain, want in zip(chains, wanted):
        why = compare(chain, want, answers[chain.number])
        stricter += why == STRICTER
        if why and why != STRICTER:
            text = []
            write(chain, text)
            wrong.append((chain.number, why, "\n".join(text)))
    return len(chains), stricter, wrong


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", required=True)
    parser.add_argument("--count", type=int, default=200000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="the number of the first chain")
    parser.add_argument("--batch", type=int, default=2000)
    parser.add_argument("--show", type=int, default=20, help="print so many differences in full")
    options = parser.parse_args()
    torch.set_num_threads(1)
    done, refused, wrong = 0, 0, []
    with tempfile.TemporaryDirectory() as folder:
        for first in range(options.first, options.first + options.count, options.batch):
            count = min(options.batch, options.first + options.count - first)
            n, stricter, found = batch(options.seed, first, count, options.program, folder)
            done, refused = done + n, refused + stricter
            for number, why, text in found:
                if len(wrong) < options.show:
                    print(f"--- chain {number}: {why}\n{text}\n", flush=True)
                wrong.append(number)
            print(f"{done} chains compared, {len(wrong)} differ", file=sys.stderr, flush=True)
    print(
        f"{done} chains compared, {len(wrong)} differ; seed {options.seed}; in {refused} a tensor was overwritten that "
        "our rules had saved and PyTorch's had not"
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
