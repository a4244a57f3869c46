"""Every op of the chains as PyTorch calls it: f(*tensors, ints=…, nums=…) gives the list of its results."""

import torch


def one(f):
    return lambda x, ints, nums: [f(x)]


def two(f):
    return lambda a, b, ints, nums: [f(a, b)]


def axes(ints):
    return tuple(ints[1:])


def nothing(f):
    def call(*x, ints, nums):
        f(*x, ints=ints, nums=nums)
        return []

    return call


def row(values):
    return torch.tensor(values, dtype=torch.int64)


UNARY = """neg abs tanh sin cos relu sigmoid square exp sqrt log rsqrt atan erf sign floor round expm1 log1p trunc asinh
logical_not reciprocal""".split()
OPS = {name: one(getattr(torch, name)) for name in UNARY}
OPS.update(
    silu=one(torch.nn.functional.silu),
    softplus=one(torch.nn.functional.softplus),
    gelu=one(torch.nn.functional.gelu),
    softsign=one(torch.nn.functional.softsign),
)
BINARY = "add sub mul div maximum minimum lt ge eq atan2 logical_and hypot".split()
for _name in BINARY:
    _f = getattr(torch, _name)
    OPS[_name] = two(_f)
    if _name in ("add", "sub", "mul", "div", "lt", "ge", "eq"):
        OPS[_name + "_number"] = lambda x, ints, nums, f=_f: [f(x, nums[0])]
        OPS[_name + "_integer"] = lambda x, ints, nums, f=_f: [f(x, ints[0])]
OPS.update(
    pow_number=lambda x, ints, nums: [torch.pow(x, nums[0])],
    clamp=lambda x, ints, nums: [torch.clamp(x, nums[0], nums[1])],
    where=lambda c, a, b, ints, nums: [torch.where(c, a, b)],
    lerp=lambda a, b, ints, nums: [torch.lerp(a, b, nums[0])],
    addcmul=lambda x, a, b, ints, nums: [torch.addcmul(x, a, b, value=nums[0])],
    to_f64=lambda x, ints, nums: [x.double()],
    to_f32=lambda x, ints, nums: [x.float()],
    to_i64=lambda x, ints, nums: [x.long()],
)
for _name in "sum mean amax amin any all logsumexp nansum".split():
    OPS[_name] = lambda x, ints, nums, f=getattr(torch, _name): [f(x, dim=axes(ints), keepdim=bool(ints[0]))]
OPS.update(
    prod=lambda x, ints, nums: [torch.prod(x, ints[1], bool(ints[0]))],
    var=lambda x, ints, nums: [torch.var(x, axes(ints), correction=nums[0], keepdim=bool(ints[0]))],
    std=lambda x, ints, nums: [torch.std(x, axes(ints), correction=nums[0], keepdim=bool(ints[0]))],
    norm=lambda x, ints, nums: [torch.linalg.vector_norm(x, nums[0], axes(ints), bool(ints[0]))],
    max=lambda x, ints, nums: list(torch.max(x, ints[0], bool(ints[1]))),
    min=lambda x, ints, nums: list(torch.min(x, ints[0], bool(ints[1]))),
    sort=lambda x, ints, nums: list(torch.sort(x, dim=ints[0], descending=bool(ints[1]), stable=True)),
    topk=lambda x, ints, nums: [torch.topk(x, ints[1], ints[0]).values],
    kthvalue=lambda x, ints, nums: [torch.kthvalue(x, ints[1], ints[0]).values],
    median=lambda x, ints, nums: [torch.median(x, ints[0]).values],
    argmax=lambda x, ints, nums: [torch.argmax(x, ints[0])],
    cummax=lambda x, ints, nums: [torch.cummax(x, ints[0]).values],
    softmax=lambda x, ints, nums: [torch.softmax(x, ints[0])],
    log_softmax=lambda x, ints, nums: [torch.log_softmax(x, ints[0])],
    cumsum=lambda x, ints, nums: [torch.cumsum(x, ints[0])],
    cumprod=lambda x, ints, nums: [torch.cumprod(x, ints[0])],
    logcumsumexp=lambda x, ints, nums: [torch.logcumsumexp(x, ints[0])],
    quantile=lambda x, ints, nums: [torch.quantile(x, nums[0], ints[0], bool(ints[1]))],
    diff=lambda x, ints, nums: [torch.diff(x, 1, ints[0])],
    reshape=lambda x, ints, nums: [x.reshape(ints)],
    transpose=lambda x, ints, nums: [x.transpose(*ints)],
    permute=lambda x, ints, nums: [x.permute(ints)],
    expand=lambda x, ints, nums: [x.expand(ints)],
    unsqueeze=lambda x, ints, nums: [x.unsqueeze(ints[0])],
    squeeze=lambda x, ints, nums: [x.squeeze()],
    narrow=lambda x, ints, nums: [x.narrow(*ints)],
    slice=lambda x, ints, nums: [x[(slice(None),) * ints[0] + (slice(*ints[1:]),)]],
    select=lambda x, ints, nums: [x.select(*ints)],
    diagonal=lambda x, ints, nums: [x.diagonal(*ints)],
    unfold=lambda x, ints, nums: [x.unfold(*ints)],
    flip=lambda x, ints, nums: [x.flip(ints[0])],
    clone=lambda x, ints, nums: [x.clone()],
    contiguous=lambda x, ints, nums: [x.contiguous()],
    roll=lambda x, ints, nums: [x.roll(ints[0], ints[1])],
    rot90=lambda x, ints, nums: [x.rot90(ints[0])],
    tril=lambda x, ints, nums: [x.tril(ints[0])],
    diag_embed=lambda x, ints, nums: [x.diag_embed(ints[0])],
    repeat=lambda x, ints, nums: [x.repeat(ints)],
    repeat_interleave=lambda x, ints, nums: [x.repeat_interleave(ints[1], ints[0])],
    pad=lambda x, ints, nums: [torch.nn.functional.pad(x, ints, value=nums[0])],
    chunk=lambda x, ints, nums: list(x.chunk(*ints)),
    tensor_split=lambda x, ints, nums: list(x.tensor_split(*ints)),
    unbind=lambda x, ints, nums: list(x.unbind(ints[0])),
    cat=lambda *x, ints, nums: [torch.cat(x, ints[0])],
    stack=lambda *x, ints, nums: [torch.stack(x, ints[0])],
    vstack=lambda *x, ints, nums: [torch.vstack(x)],
    hstack=lambda *x, ints, nums: [torch.hstack(x)],
    matmul=two(torch.matmul),
    outer=two(torch.outer),
    cdist=lambda a, b, ints, nums: [torch.cdist(a, b, nums[0], compute_mode="donot_use_mm_for_euclid_dist")],
    index_select=lambda x, ints, nums: [x.index_select(ints[0], row(ints[1:]))],
    index=lambda x, ints, nums: [x[row(ints)]],
    take=lambda x, ints, nums: [x.take(row(ints))],
    gather=lambda x, i, ints, nums: [x.gather(ints[0], i)],
    scatter=lambda x, i, v, ints, nums: [x.scatter(ints[0], i, v)],
    scatter_add=lambda x, i, v, ints, nums: [x.scatter_add(ints[0], i, v)],
    index_add=lambda x, v, ints, nums: [x.index_add(ints[0], row(ints[1:]), v)],
    index_fill=lambda x, ints, nums: [x.index_fill(ints[0], row(ints[1:]), nums[0])],
    masked_fill=lambda x, m, ints, nums: [x.masked_fill(m, nums[0])],
    masked_select=lambda x, m, ints, nums: [x.masked_select(m)],
    nonzero=lambda x, ints, nums: [x.nonzero()],
    add_=nothing(lambda x, y, ints, nums: x.add_(y)),
    mul_=nothing(lambda x, y, ints, nums: x.mul_(y)),
    add_number_=nothing(lambda x, ints, nums: x.add_(nums[0])),
    mul_number_=nothing(lambda x, ints, nums: x.mul_(nums[0])),
    copy_=nothing(lambda x, y, ints, nums: x.copy_(y)),
    fill_=nothing(lambda x, ints, nums: x.fill_(nums[0])),
    zero_=nothing(lambda x, ints, nums: x.zero_()),
    relu_=nothing(lambda x, ints, nums: x.relu_()),
    tanh_=nothing(lambda x, ints, nums: x.tanh_()),
    square_=nothing(lambda x, ints, nums: x.square_()),
    masked_fill_=nothing(lambda x, m, ints, nums: x.masked_fill_(m, nums[0])),
    index_add_=nothing(lambda x, v, ints, nums: x.index_add_(ints[0], row(ints[1:]), v)),
    index_copy_=nothing(lambda x, v, ints, nums: x.index_copy_(ints[0], row(ints[1:]), v)),
    index_fill_=nothing(lambda x, ints, nums: x.index_fill_(ints[0], row(ints[1:]), nums[0])),
    index_put_=nothing(lambda x, v, ints, nums: x.index_put_((row(ints[1:]),), v, bool(ints[0]))),
    scatter_add_=nothing(lambda x, i, v, ints, nums: x.scatter_add_(ints[0], i, v)),
    set_index=nothing(lambda x, v, ints, nums: x.__setitem__(ints[0], v)),
    set_slice=nothing(lambda x, ints, nums: x.__setitem__(slice(*ints), nums[0])),
    set_mask=nothing(lambda x, m, ints, nums: x.__setitem__(m, nums[0])),
)
