"""Losses with their gradients, 100 steps of every optimizer, the rates of every scheduler: tests/data/training, in the
format of make.py. Losses take their tensors in PyTorch's order, then weights. Optimizers take parameters and the
gradients of all steps, and give the parameters after 1, 10 and 100 of them. Schedulers give the rate and the momentum
at the start and after each step. Lion and LAMB, which PyTorch lacks, follow their papers; Muon runs in the parameter's
own dtype instead of bf16."""

import math

import torch
import torch.nn.functional as F
from torch import optim

from make import NAMES, Fixed, evaluate

lr_scheduler = optim.lr_scheduler
STEPS = 100


def normal(dtype, *shape, seed=0, scale=1.0):
    g = torch.Generator().manual_seed(seed + sum(shape) * 7)
    return (torch.randn(*shape, generator=g, dtype=torch.float64) * scale).to(NAMES[dtype])


def uniform(dtype, *shape, seed=0, low=0.0, high=1.0):
    g = torch.Generator().manual_seed(seed + sum(shape) * 7)
    return (low + (high - low) * torch.rand(*shape, generator=g, dtype=torch.float64)).to(NAMES[dtype])


def labels(classes, *shape, seed=0, dtype=torch.int64):
    g = torch.Generator().manual_seed(seed)
    return Fixed(torch.randint(0, classes, shape, generator=g).to(dtype))


def signs(*shape, dtype):
    g = torch.Generator().manual_seed(3)
    return Fixed((torch.randint(0, 2, shape, generator=g) * 2 - 1).to(NAMES[dtype]))


def focal(x, y, alpha, gamma, reduction):
    p = torch.sigmoid(x)
    loss = F.binary_cross_entropy_with_logits(x, y, reduction="none")
    loss = loss * (1 - (p * y + (1 - p) * (1 - y))) ** gamma
    if alpha >= 0:
        loss = loss * (alpha * y + (1 - alpha) * (1 - y))
    return {"none": loss, "mean": loss.mean(), "sum": loss.sum()}[reduction]


def gaussian_kl(mean, log_variance, reduction):
    loss = -0.5 * (1 + log_variance - mean**2 - log_variance.exp())
    return {"none": loss, "mean": loss.mean(), "sum": loss.sum()}[reduction]


def losses(writer, dtype):
    def case(name, f, operands, reductions=("none", "mean", "sum"), **args):
        for reduction in reductions:
            words = {**args, "reduction": reduction}

            def call(*x):
                return f(*(t.to(x[0].dtype) if t.is_floating_point() else t for t in x), **words)

            writer.case(name, dtype, None, words, operands, *evaluate(call, operands, True, dtype))

    a, b = normal(dtype, 4, 5), normal(dtype, 4, 5, seed=1)
    p, q = uniform(dtype, 4, 5, low=0.05, high=0.95), uniform(dtype, 4, 5, seed=1)
    far = (normal(dtype, 4, 5) * 1e3).clone()
    truths = Fixed(labels(2, 4, 5).tensor.to(NAMES[dtype]))
    case("mse_loss", F.mse_loss, [a, b])
    case("l1_loss", F.l1_loss, [a, b])
    for beta in (1.0, 0.25, 0.0):
        case("smooth_l1_loss", F.smooth_l1_loss, [a, b], beta=beta)
    for delta in (1.0, 0.5):
        case("huber_loss", F.huber_loss, [a, b], delta=delta)
    case("binary_cross_entropy", F.binary_cross_entropy, [p, Fixed(q)])
    weight = Fixed(uniform(dtype, 5, seed=4))
    case("binary_cross_entropy", F.binary_cross_entropy, [p, truths, weight])
    bce = F.binary_cross_entropy_with_logits
    case("binary_cross_entropy_with_logits", bce, [a, q])
    case("binary_cross_entropy_with_logits", bce, [far, truths])
    case("binary_cross_entropy_with_logits", bce, [a, truths, weight])
    positive = lambda x, y, w, v, **k: bce(x, y, w, pos_weight=v, **k)  # noqa: E731
    case("binary_cross_entropy_with_logits", positive, [a, truths, weight, weight])
    for alpha, gamma in ((0.25, 2.0), (-1.0, 1.5)):
        case("sigmoid_focal_loss", focal, [a, truths], alpha=alpha, gamma=gamma)
    log_p, log_q = torch.log_softmax(a, 1), torch.log_softmax(b, 1)
    every = ("none", "mean", "sum", "batchmean")
    case("kl_div", F.kl_div, [log_p, Fixed(torch.softmax(b, 1))], every)
    case("kl_div", F.kl_div, [log_p, log_q], every, log_target=True)
    case("gaussian_kl", gaussian_kl, [a, b])
    for full in (False, True):
        case("gaussian_nll_loss", F.gaussian_nll_loss, [a, b, p], full=full)
        case("gaussian_nll_loss", F.gaussian_nll_loss, [a, b, p[:, :1].clone()], full=full)
        counts = Fixed(labels(6, 4, 5).tensor.to(NAMES[dtype]))
        case("poisson_nll_loss", F.poisson_nll_loss, [a, counts], full=full)
        case("poisson_nll_loss", F.poisson_nll_loss, [p, counts], full=full, log_input=False)
    y = signs(4, 5, dtype=dtype)
    row = signs(4, dtype=dtype)
    for margin in (1.0, 0.3):
        case("hinge_embedding_loss", F.hinge_embedding_loss, [a, y], margin=margin)
        case("margin_ranking_loss", F.margin_ranking_loss, [a, b, y], margin=margin)
        case("cosine_embedding_loss", F.cosine_embedding_loss, [a, b, row], margin=margin - 0.3)
    case("soft_margin_loss", F.soft_margin_loss, [a, y])
    case("soft_margin_loss", F.soft_margin_loss, [far / 100, y])
    for swap in (False, True):
        for order in (2.0, 1.0):
            c = normal(dtype, 4, 5, seed=2)
            case("triplet_margin_loss", F.triplet_margin_loss, [a, b, c], swap=swap, p=order, margin=2.0)
    class_losses(case, dtype)
    sequence_losses(case, dtype)


def class_losses(case, dtype):
    weight = Fixed(uniform(dtype, 7, seed=4, low=0.5, high=2.0))
    large = normal(dtype, 3, 7, scale=1e4)
    for shape, places in (((6, 7), (6,)), ((7,), ()), ((2, 7, 3, 4), (2, 3, 4)), ((40, 7), (40,))):
        x, t = normal(dtype, *shape, scale=3), labels(7, *places)
        some = Fixed(torch.where(t.tensor % 3 == 0, 2, t.tensor))
        case("cross_entropy", F.cross_entropy, [x, t])
        case("cross_entropy", F.cross_entropy, [x, t, weight])
        if places:
            case("cross_entropy", F.cross_entropy, [x, some], ignore_index=2)
            case("cross_entropy", F.cross_entropy, [x, some, weight], label_smoothing=0.2, ignore_index=2)
            case("nll_loss", F.nll_loss, [x, some, weight], ignore_index=2)
        case("cross_entropy", F.cross_entropy, [x, t], label_smoothing=0.1)
        case("nll_loss", F.nll_loss, [x, t])
        goal = torch.softmax(normal(dtype, *shape, seed=9), 1 if places else 0)
        case("cross_entropy", F.cross_entropy, [x, goal])
        case("cross_entropy", F.cross_entropy, [x, goal, weight], label_smoothing=0.1)
    case("cross_entropy", F.cross_entropy, [large, labels(7, 3)])
    x, t = normal(dtype, 6, 7), labels(7, 6)
    for order, margin in ((1, 1.0), (2, 0.5)):
        case("multi_margin_loss", F.multi_margin_loss, [x, t], p=order, margin=margin)
    weighted = lambda x, t, w, **k: F.multi_margin_loss(x, t, weight=w, **k)  # noqa: E731
    case("multi_margin_loss", weighted, [x, t, weight], p=1, margin=1.0)


def sequence_losses(case, dtype):
    x, targets = normal(dtype, 12, 3, 5), Fixed(labels(4, 3, 4).tensor + 1)
    targets.tensor[0, 1] = targets.tensor[0, 0]  # a repeated label

    def ctc(x, t, input_lengths, target_lengths, **k):
        lengths = [torch.tensor(input_lengths), torch.tensor(target_lengths)]
        return F.ctc_loss(torch.log_softmax(x, 2), t, *lengths, **k)

    case("ctc_loss", ctc, [x, targets], input_lengths=[12, 12, 12], target_lengths=[4, 4, 4], blank=0)
    case("ctc_loss", ctc, [x, targets], input_lengths=[12, 7, 9], target_lengths=[4, 0, 3], blank=0)
    joined = Fixed(targets.tensor.reshape(-1)[:8] - 1)
    case("ctc_loss", ctc, [x, joined], input_lengths=[12, 11, 9], target_lengths=[4, 1, 3], blank=4)
    case("ctc_loss", ctc, [x, targets], input_lengths=[12, 2, 9], target_lengths=[4, 4, 3], blank=0, zero_infinity=True)


class Lion(optim.Optimizer):
    def __init__(self, params, lr, betas=(0.9, 0.99), weight_decay=0.0):
        super().__init__(params, {"lr": lr, "betas": betas, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            b1, b2 = group["betas"]
            for p in group["params"]:
                m = self.state[p].setdefault("m", torch.zeros_like(p))
                p.mul_(1 - group["lr"] * group["weight_decay"])
                p.sub_(group["lr"] * torch.sign(b1 * m + (1 - b1) * p.grad))
                m.mul_(b2).add_((1 - b2) * p.grad)


class LAMB(optim.Optimizer):
    def __init__(self, params, lr, betas=(0.9, 0.999), eps=1e-6, weight_decay=0.01):
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            b1, b2 = group["betas"]
            for p in group["params"]:
                s = self.state[p]
                s["t"] = s.get("t", 0) + 1
                m, v = s.setdefault("m", torch.zeros_like(p)), s.setdefault("v", torch.zeros_like(p))
                m.mul_(b1).add_((1 - b1) * p.grad)
                v.mul_(b2).add_((1 - b2) * p.grad**2)
                r = m / (1 - b1 ** s["t"]) / ((v / (1 - b2 ** s["t"])).sqrt() + group["eps"])
                r = r + group["weight_decay"] * p
                p.sub_(group["lr"] * p.norm() / r.norm() * r)


def newton_schulz(grad, coefficients, steps, eps):
    a, b, c = coefficients
    tall = grad.size(0) > grad.size(1)
    x = grad.T if tall else grad
    x = x / x.norm().clamp(min=eps)
    for _ in range(steps):
        gram = x @ x.T
        x = a * x + (b * gram + c * gram @ gram) @ x
    return x.T if tall else x


OPTIMIZERS = [
    ("SGD", optim.SGD, {"lr": 0.1}),
    ("SGD", optim.SGD, {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.1}),
    ("SGD", optim.SGD, {"lr": 0.1, "momentum": 0.9, "dampening": 0.3, "maximize": True}),
    ("SGD", optim.SGD, {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.01}),
    ("Adam", optim.Adam, {"lr": 0.01}),
    ("Adam", optim.Adam, {"lr": 0.01, "betas": (0.8, 0.95), "weight_decay": 0.1, "amsgrad": True}),
    ("AdamW", optim.AdamW, {"lr": 0.01}),
    ("AdamW", optim.AdamW, {"lr": 0.01, "weight_decay": 0.1, "amsgrad": True, "maximize": True}),
    ("Adamax", optim.Adamax, {"lr": 0.01, "weight_decay": 0.1}),
    ("NAdam", optim.NAdam, {"lr": 0.01, "weight_decay": 0.1}),
    ("NAdam", optim.NAdam, {"lr": 0.01, "weight_decay": 0.1, "decoupled_weight_decay": True}),
    ("RAdam", optim.RAdam, {"lr": 0.01, "weight_decay": 0.1}),
    ("RAdam", optim.RAdam, {"lr": 0.01, "weight_decay": 0.1, "decoupled_weight_decay": True}),
    ("RMSprop", optim.RMSprop, {"lr": 0.01}),
    ("RMSprop", optim.RMSprop, {"lr": 0.01, "alpha": 0.9, "momentum": 0.9, "weight_decay": 0.1}),
    ("RMSprop", optim.RMSprop, {"lr": 0.01, "momentum": 0.5, "centered": True}),
    ("RMSprop", optim.RMSprop, {"lr": 0.01, "centered": True}),
    ("Adagrad", optim.Adagrad, {"lr": 0.1, "lr_decay": 0.1, "weight_decay": 0.1, "initial_accumulator_value": 0.5}),
    ("Adadelta", optim.Adadelta, {"lr": 1.0, "weight_decay": 0.1}),
    ("Lion", Lion, {"lr": 0.01, "weight_decay": 0.1}),
    ("LAMB", LAMB, {"lr": 0.01}),
    ("Muon", optim.Muon, {"lr": 0.02}),
    ("Muon", optim.Muon, {"lr": 0.02, "nesterov": False, "adjust_lr_fn": "match_rms_adamw"}),
]


def optimizers(writer, dtype):
    torch.set_default_dtype(NAMES[dtype])  # the dtype of the numbers in their state
    for name, make, args in OPTIMIZERS:
        shapes = [(3, 5), (6, 4)] if name == "Muon" else [(3, 5), (7,)]
        start = [normal(dtype, *s) for s in shapes]
        gradients = [normal(dtype, STEPS, *s, seed=5) for s in shapes]
        params = [torch.nn.Parameter(x.clone()) for x in start]
        opt, after = make(params, **args), []
        for i in range(STEPS):
            for p, g in zip(params, gradients):
                p.grad = g[i].clone()
            opt.step()
            if i + 1 in (1, 10, 100):
                after.append([p.detach().clone() for p in params])
        values = [torch.stack([a[k] for a in after]) for k in range(len(shapes))]
        given = [Fixed(x) for x in start + gradients]
        writer.case(name, dtype, None, args, given, values, None, None, None, None)
    torch.set_default_dtype(torch.float32)


def lbfgs(writer):
    for line_search in (None, "strong_wolfe"):
        x = torch.nn.Parameter(normal("f64", 6))
        start = x.detach().clone()
        args = {"lr": 1.0 if line_search else 0.002, "max_iter": 4, "history_size": 5}
        opt, after = optim.LBFGS([x], line_search_fn=line_search, **args), []

        def closure():
            opt.zero_grad()
            loss = (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()
            loss.backward()
            return loss

        for _ in range(10):
            opt.step(closure)
            after.append(x.detach().clone())
        args["strong_wolfe"] = line_search is not None
        writer.case("LBFGS", "f64", None, args, [Fixed(start)], [torch.stack(after)], None, None, None, None)


def sequence(opt):
    s = lr_scheduler
    parts = [s.LinearLR(opt, 0.1, 1.0, 6), s.StepLR(opt, 5, 0.5), s.ExponentialLR(opt, 0.9)]
    return s.SequentialLR(opt, parts, [8, 20])


def chain(opt):
    s = lr_scheduler
    return s.ChainedScheduler([s.ConstantLR(opt, 0.1, 5), s.ExponentialLR(opt, 0.9), s.StepLR(opt, 7, 0.5)])


def schedulers(writer):
    s = lr_scheduler
    whole = {"max_lr": 0.8}
    cycle = {"base_lr": 0.01, "max_lr": 0.2, "step_size_up": 4}
    every = [
        ("StepLR", s.StepLR, {"step_size": 4, "gamma": 0.5}),
        ("MultiStepLR", s.MultiStepLR, {"milestones": [3, 9, 9, 20], "gamma": 0.3}),
        ("ConstantLR", s.ConstantLR, {"factor": 0.25, "total_iters": 6}),
        ("ExponentialLR", s.ExponentialLR, {"gamma": 0.93}),
        ("PolynomialLR", s.PolynomialLR, {"total_iters": 25, "power": 1.7}),
        ("LinearLR", s.LinearLR, {"start_factor": 0.2, "end_factor": 0.8, "total_iters": 12}),
        ("CosineAnnealingLR", s.CosineAnnealingLR, {"T_max": 15, "eta_min": 0.01}),
        ("CosineAnnealingWarmRestarts", s.CosineAnnealingWarmRestarts, {"T_0": 5, "T_mult": 2, "eta_min": 0.01}),
        ("CosineAnnealingWarmRestarts", s.CosineAnnealingWarmRestarts, {"T_0": 7, "T_mult": 1, "eta_min": 0.0}),
        ("OneCycleLR", s.OneCycleLR, {**whole, "total_steps": 40}),
        ("OneCycleLR", s.OneCycleLR, {**whole, "total_steps": 41, "three_phase": True, "anneal_strategy": "linear"}),
        ("CyclicLR", s.CyclicLR, {**cycle, "mode": "triangular", "step_size_down": 7}),
        ("CyclicLR", s.CyclicLR, {**cycle, "mode": "triangular2"}),
        ("CyclicLR", s.CyclicLR, {**cycle, "mode": "exp_range", "gamma": 0.95}),
        ("LambdaLR", lambda o: s.LambdaLR(o, lambda t: 1 / math.sqrt(t + 1)), {}),
        ("SequentialLR", sequence, {}),
        ("ChainedScheduler", chain, {}),
    ]
    for name, make, args in every:
        p = torch.nn.Parameter(torch.zeros(1))
        opt = optim.SGD([p], lr=0.5, momentum=0.9)
        schedule, rates = make(opt, **args), []
        for _ in range(40):
            rates.append([opt.param_groups[0]["lr"], opt.param_groups[0]["momentum"]])
            opt.step()
            schedule.step()
        values = [torch.tensor(rates, dtype=torch.float64)]
        writer.case(name, "f64", None, args, [], values, None, None, None, None)
    plateaus(writer)


def plateaus(writer):
    g = torch.Generator().manual_seed(1)
    metric = torch.exp(-torch.arange(40, dtype=torch.float64) / 6)
    metric += 0.02 * torch.rand(40, generator=g, dtype=torch.float64)
    for args in (
        {"patience": 2, "factor": 0.5},
        {"mode": "max", "patience": 3, "cooldown": 2, "threshold_mode": "abs", "threshold": 0.01, "min_lr": 0.05},
    ):
        opt = optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.5)
        schedule, rates = lr_scheduler.ReduceLROnPlateau(opt, **args), []
        for m in metric:
            opt.step()
            schedule.step(m.item())
            rates.append(opt.param_groups[0]["lr"])
        values = [torch.tensor(rates, dtype=torch.float64)]
        writer.case("ReduceLROnPlateau", "f64", None, args, [Fixed(metric)], values, None, None, None, None)


def write(writer):
    optim._muon._zeropower_via_newtonschulz = newton_schulz
    for dtype in ("f32", "f64"):
        losses(writer, dtype)
        optimizers(writer, dtype)
    lbfgs(writer)
    schedulers(writer)
