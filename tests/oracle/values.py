"""The numbers the oracle is asked about, by dtype: awkward ones first, then ordinary ones from a fixed seed."""

import numpy as np
import torch

from make import FLOATS, NAMES, NUMPY, SIGNED

SPECIAL = [
    np.nan,
    np.inf,
    -np.inf,
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    -0.5,
    2.0,
    3.0,
    -3.0,
    6.0,
    -2.5,
    1.5,
    20.0,
    -20.0,
    88.5,
    -88.0,
    400.0,
    -400.0,
    709.0,
    1e-3,
    -1e-3,
    1e-5,
    0.1,
    -0.9,
    0.999,
    1.001,
    12.25,
    -7.75,
    3.14159265358979,
    100.0,
]


def extremes(dtype):
    """Smallest denormal, a large denormal, smallest normal, largest; with both signs."""
    info = torch.finfo(NAMES[dtype])
    tiny = info.smallest_normal
    least = tiny * info.eps
    return [least, -least, tiny * 0.75, tiny, info.max, -info.max]


def special(dtype):
    """39 awkward numbers, shaped [3, 13]."""
    x = torch.tensor(SPECIAL, dtype=torch.float64).to(NAMES[dtype])
    return torch.cat([x, torch.tensor(extremes(dtype), dtype=torch.float64).to(NAMES[dtype])]).reshape(3, 13)


def integer_limits(dtype):
    info = np.iinfo(NUMPY[dtype])
    return [int(info.min), int(info.max), int(info.max) // 2 + 1]


def special_integers(dtype):
    """17 integers with the limits among them; every awkward remainder sign."""
    low = 0 if dtype.startswith("u") else -1
    values = integer_limits(dtype) + [0, 1, 1 + low * 2, 2, 3, 7, 5 + low * 12, 6, 10, 64 + low * 100, 100, 31, 33, 127]
    return torch.from_numpy(np.array(values, dtype=NUMPY[dtype]))


def ordinary(dtype, shape, seed, low=-2.0, high=2.0, whole=(-5, 9)):
    """Numbers without surprises: reals of [low, high], small integers with repeats, truths."""
    rng = np.random.default_rng(seed)
    if dtype == "bool":
        return torch.from_numpy(rng.integers(0, 2, shape).astype(bool)).reshape(shape)
    if dtype in FLOATS:
        return torch.tensor(rng.uniform(low, high, shape), dtype=torch.float64).reshape(shape).to(NAMES[dtype])
    first = whole[0] if dtype in SIGNED else max(0, whole[0])
    return torch.from_numpy(np.asarray(rng.integers(first, whole[1] + 1, shape)).astype(NUMPY[dtype])).reshape(shape)


def with_limits(x, dtype):
    """The same with the smallest and the largest integer, or NaN-free infinities, put in the middle."""
    flat = x.clone().reshape(-1)
    if dtype == "bool" or flat.numel() < 4:
        return x
    if dtype in FLOATS:
        return x
    lowest, highest, _ = integer_limits(dtype)
    array = flat.numpy().copy()
    array[flat.numel() // 2] = highest
    array[flat.numel() // 3] = lowest
    return torch.from_numpy(array).reshape(x.shape)
