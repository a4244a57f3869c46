"""Arguments for the functions that PyTorch's list of operators lacks, or calls in another order."""

import torch


def numbers(*shape, dtype, low=-4, high=4):
    x = torch.rand(shape) * (high - low) + low
    return x > 0 if dtype is torch.bool else (x.abs() if not dtype.is_signed else x).to(dtype)


def indices(*shape, below):
    return torch.randint(0, below, shape)


def floating(make):
    """Samples of floating dtypes alone."""
    return lambda dtype: list(make(dtype)) if dtype.is_floating_point else []


def once(make):
    """Samples that do not depend on the dtype: with f32 alone."""
    return lambda dtype: list(make()) if dtype is torch.float32 else []


def where(dtype):
    a, b, mask = numbers(3, 4, dtype=dtype), numbers(4, dtype=dtype), torch.rand(3, 1) > 0.5
    yield (mask, a, b), {}
    yield (mask[:, 0], b[:3], 2), {}
    yield (torch.tensor(True), 1, a), {}
    yield (a > 0, a, a.new_zeros(())), {}
    yield (mask,), {}


def einsum(dtype):
    a, b, c = numbers(3, 4, dtype=dtype), numbers(4, 5, dtype=dtype), numbers(2, 3, 4, dtype=dtype)
    for equation, operands in {
        "ij,jk->ik": (a, b),
        "ij,jk": (a, b),
        "ij->ji": (a,),
        "ij->": (a,),
        "bij,jk->bk": (c, b),
        "...ij,jk->...ik": (c, b),
        "ij,ij->i": (a, a),
        "bij,ij,jk->bk": (c, a, b),
        "ii->i": (numbers(3, 3, dtype=dtype),),
        "i,j->ij": (a[:, 0], b[0]),
    }.items():
        yield (equation, *operands), {}
        yield (equation, list(operands)), {}


def polygamma(dtype):
    for n in range(5):
        yield (n, numbers(3, 4, dtype=dtype, low=0.2, high=9)), {}
    yield (1, numbers(3, 4, dtype=dtype)), {}


def embedding(dtype):
    weight = numbers(7, 4, dtype=dtype)
    yield (indices(3, 2, below=7), weight), {}
    yield (indices(below=7), weight), {}
    yield (indices(5, below=7).int(), weight), {"padding_idx": 2}
    yield (indices(5, below=7), weight), {"padding_idx": -1}
    yield (indices(8, below=7), weight), {"scale_grad_by_freq": True}
    yield (indices(0, 3, below=7), weight), {}


def embedding_bag(dtype):
    weight = numbers(7, 4, dtype=dtype)
    offsets = torch.tensor([0, 3, 3])
    for mode in ("sum", "mean", "max"):
        yield (indices(8, below=7), weight, offsets), {"mode": mode}
        yield (indices(3, 4, below=7), weight), {"mode": mode}
        yield (indices(3, 4, below=7), weight), {"mode": mode, "padding_idx": 2}
        yield (indices(8, below=7), weight, torch.tensor([0, 2, 8])), {"mode": mode, "include_last_offset": True}
    yield (indices(3, 4, below=7), weight), {"mode": "sum", "per_sample_weights": numbers(3, 4, dtype=dtype)}


def pools(n, adaptive, fractional=False):
    def make(dtype):
        x = numbers(2, 3, *[7, 6, 5][:n], dtype=dtype)
        if adaptive:
            settings = [((2,), {}), (((3, 2, 4)[:n],), {}), ((1,), {})]
        elif fractional:
            given = torch.rand(2, 3, n).to(dtype)
            settings = [((2,), {"output_size": (3, 2, 2)[:n], "_random_samples": given})]
        else:
            settings = [((2,), {}), ((3, 2, 1), {}), ((2,), {"stride": 1, "dilation": 2}), ((3,), {"ceil_mode": True})]
        for args, kwargs in settings:
            yield (x, *args), kwargs
            if not fractional:
                yield (x[0], *args), kwargs

    return floating(make)


def unpool(n):
    """Indices as pooling gives them: none twice, for which PyTorch leaves the gradient open."""
    pool = getattr(torch.nn.functional, f"max_pool{n}d_with_indices")

    def make(dtype):
        x = torch.randn(2, 3, *[6, 8, 4][:n]).to(dtype)
        for kernel, stride in ((2, None), (2, 3), ((3, 2, 1)[:n], None)):
            values, places = pool(x, kernel, stride)
            yield (values, places, kernel), {"stride": stride, "output_size": x.shape[2:]}
            yield (values[0], places[0], kernel), {"stride": stride, "output_size": x.shape[2:]}
        yield pool(x, 2) + (2,), {}

    return floating(make)


def lp_pool(n):
    def make(dtype):
        x = numbers(2, 3, *[7, 6, 5][:n], dtype=dtype, low=0.1)
        for norm in (1.0, 2.0, 3.0):
            yield (x, norm, 2), {}
        yield (x, 2, 3), {"stride": 2, "ceil_mode": True}
        yield (x[0], 2.0, (2, 3, 2)[:n]), {}

    return floating(make)


def affine_grid(dtype):
    yield (numbers(2, 2, 3, dtype=dtype), (2, 3, 4, 5)), {"align_corners": False}
    yield (numbers(2, 2, 3, dtype=dtype), (2, 3, 4, 5)), {"align_corners": True}
    yield (numbers(2, 3, 4, dtype=dtype), (2, 3, 4, 5, 3)), {"align_corners": False}


def recurrent(gates, states=1):
    """Two layers in both directions, and one without biases; states as torch takes them."""

    def make(dtype):
        for layers, directions, biases in ((2, 2, True), (1, 1, False)):
            params = []
            for i in range(layers * directions):
                inputs = 3 if i < directions else 4 * directions
                shapes = [(4 * gates, inputs), (4 * gates, 4)] + [(4 * gates,)] * (2 * biases)
                params += [numbers(*shape, dtype=dtype, low=-0.5, high=0.5) for shape in shapes]
            hx = [numbers(layers * directions, 2, 4, dtype=dtype, low=-1, high=1) for _ in range(states)]
            hx = hx if states == 2 else hx[0]
            for batch_first, shape in ((False, (5, 2, 3)), (True, (2, 5, 3))):
                x = numbers(*shape, dtype=dtype, low=-1, high=1)
                yield (x, hx, params, biases, layers, 0.0, False, directions == 2, batch_first), {}

    return floating(make)


def cell(gates, states=1):
    def make(dtype):
        w_ih, w_hh, *biases = (
            numbers(*shape, dtype=dtype, low=-0.5, high=0.5)
            for shape in ((4 * gates, 3), (4 * gates, 4), (4 * gates,), (4 * gates,))
        )
        for batch in ((2,), ()):
            hx = [numbers(*batch, 4, dtype=dtype, low=-1, high=1) for _ in range(states)]
            x = numbers(*batch, 3, dtype=dtype, low=-1, high=1)
            yield (x, hx if states == 2 else hx[0], w_ih, w_hh, *biases), {}
            yield (x, hx if states == 2 else hx[0], w_ih, w_hh), {}

    return floating(make)


def to(dtype):
    x = numbers(3, 4, dtype=dtype)
    every = [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.int8, torch.bool]
    for other in [*every, torch.int32, torch.int16]:
        yield (x, other), {}
    yield (x, torch.uint8), {} if dtype is not torch.bool else {"non_blocking": True}
    yield (x, "cpu"), {}
    yield (x, "cpu", torch.float64), {}
    yield (x, numbers(2, dtype=torch.int64)), {}
    yield (x,), {"dtype": torch.float32}


def vander(dtype):
    x = numbers(4, dtype=dtype)
    yield (x,), {}
    yield (x,), {"N": 3}
    yield (x,), {"N": 6, "increasing": True}
    yield (x, 0), {}


def fill_diagonal(dtype):
    yield (numbers(4, 4, dtype=dtype), 1), {}
    yield (numbers(7, 3, dtype=dtype), 1), {}
    yield (numbers(7, 3, dtype=dtype), 1), {"wrap": True}
    yield (numbers(3, 3, 3, dtype=dtype), 0), {}


def copied(dtype):
    yield (numbers(3, 4, dtype=dtype), numbers(3, 4, dtype=torch.float32)), {}
    yield (numbers(3, 4, dtype=dtype), numbers(4, dtype=torch.int64)), {}
    yield (numbers(3, 4, dtype=dtype), numbers(3, 4, dtype=dtype)), {}


def triplets(dtype):
    three = tuple(numbers(3, 4, dtype=dtype) for _ in range(3))
    for reduction in ("mean", "sum", "none"):
        yield three, {"reduction": reduction, "margin": 0.7}
        yield three, {"reduction": reduction, "swap": True}


def two(dtype):
    yield (numbers(3, 4, dtype=dtype), numbers(2, dtype=torch.float64)), {}
    yield (numbers(3, 4, dtype=dtype), numbers(2, dtype=torch.int32)), {}


def one(*more, shape=(3, 4), **kwargs):
    return lambda dtype: [((numbers(*shape, dtype=dtype), *more), kwargs)]


def triangle():
    for n, m, offset in ((3, 3, 0), (4, 2, 1), (2, 5, -1), (0, 3, 0), (3, 0, 0), (3, 4, 9), (3, 4, -9)):
        yield (n, m, offset), {}
        yield (n, m), {"offset": offset, "dtype": torch.int32}


def sizes():
    yield (2, 3), {}
    yield ((2, 3),), {}
    yield ((0, 3),), {}
    yield ((2,),), {"dtype": torch.float64}


ATTRIBUTES = """bfloat16 detach detach_ dim is_complex is_contiguous is_cpu is_cuda is_floating_point is_signed itemsize
nbytes ndim ndimension nelement numel shape storage_offset stride dtype""".split()

# By place and name, or by the name alone.
WRITTEN = {
    ("", "where"): where,
    ("Tensor", "where"): lambda dtype: [
        ((numbers(3, 4, dtype=dtype), torch.rand(3, 4) > 0.5, numbers(3, 4, dtype=dtype)), {}),
        ((numbers(3, 4, dtype=dtype), torch.rand(3, 1) > 0.5, 2), {}),
    ],
    ("", "einsum"): einsum,
    ("volta", "polygamma"): polygamma,
    ("Tensor", "polygamma"): lambda dtype: [((x, n), kwargs) for (n, x), kwargs in polygamma(dtype)],
    ("Tensor", "polygamma_"): lambda dtype: [((x, n), kwargs) for (n, x), kwargs in polygamma(dtype)],
    ("functional", "embedding"): embedding,
    ("functional", "embedding_bag"): floating(embedding_bag),
    **{("functional", f"max_pool{n}d_with_indices"): pools(n, False) for n in (1, 2, 3)},
    **{("functional", f"adaptive_max_pool{n}d_with_indices"): pools(n, True) for n in (1, 2, 3)},
    **{("functional", f"fractional_max_pool{n}d_with_indices"): pools(n, False, True) for n in (2, 3)},
    **{("functional", f"fractional_max_pool{n}d"): pools(n, False, True) for n in (2, 3)},
    **{("functional", f"max_unpool{n}d"): unpool(n) for n in (1, 2, 3)},
    **{("functional", f"lp_pool{n}d"): lp_pool(n) for n in (1, 2, 3)},
    ("functional", "affine_grid"): floating(affine_grid),
    ("functional", "triplet_margin_with_distance_loss"): floating(triplets),
    ("functional", "gumbel_softmax"): floating(one(tau=0.7)),
    ("", "feature_dropout"): floating(one(0.5, True, shape=(2, 3, 4))),
    ("", "poisson"): floating(lambda dtype: [((numbers(3, 4, dtype=dtype).abs(),), {})]),
    ("volta", "rand"): once(sizes),
    ("volta", "randperm"): once(lambda: [((5,), {}), ((0,), {}), ((7,), {"dtype": torch.int32})]),
    ("volta", "tril_indices"): once(triangle),
    ("volta", "triu_indices"): once(triangle),
    ("volta", "vander"): vander,
    **{("volta", name): recurrent(1) for name in ("rnn_tanh", "rnn_relu")},
    **{("volta", name): cell(1) for name in ("rnn_tanh_cell", "rnn_relu_cell")},
    ("volta", "gru"): recurrent(3),
    ("volta", "gru_cell"): cell(3),
    ("volta", "lstm"): recurrent(4, 2),
    ("volta", "lstm_cell"): cell(4, 2),
    ("Tensor", "to"): to,
    ("Tensor", "type_as"): two,
    ("Tensor", "copy_"): copied,
    **{("Tensor", name): one() for name in ATTRIBUTES},
    ("Tensor", "size"): lambda dtype: [((numbers(3, 4, dtype=dtype), *more), {}) for more in ((), (0,), (-1,))],
    ("Tensor", "new_tensor"): one([[1, 2], [3, 0]]),
    **{("Tensor", name): lambda dtype: [((numbers(1, dtype=dtype),), {})] for name in ("is_nonzero", "item")},
    ("Tensor", "random_"): one(3),
    **{("volta", name): one() for name in "detach is_complex is_floating_point numel".split()},
    ("volta", "is_nonzero"): lambda dtype: [((numbers(1, dtype=dtype),), {})],
    ("functional", "dropout1d"): floating(one(0.5, True, shape=(2, 3, 4))),
    ("functional", "fold"): floating(
        lambda dtype: [
            ((numbers(2, 12, 12, dtype=dtype), (4, 5), 2), {}),
            ((numbers(12, 12, dtype=dtype), (4, 5), 2), {}),
        ]
    ),
    ("functional", "upsample"): floating(one(scale_factor=2, shape=(1, 2, 3, 4))),
    ("Tensor", "fill_diagonal_"): fill_diagonal,
    ("functional", "prelu"): floating(
        lambda dtype: [
            ((numbers(2, 3, 4, dtype=dtype), numbers(3, dtype=dtype)), {}),
            ((numbers(2, 3, 4, dtype=dtype), numbers(1, dtype=dtype)), {}),
            ((numbers(5, dtype=dtype), numbers(1, dtype=dtype)), {}),
        ]
    ),
}
