"""Programs as a user of PyTorch writes them, with the package as `v`: test_programs.py runs each with both packages.

`T(...)` gives normal numbers and `N(n, ...)` integers below n, `fill(module)` fills its parameters, all by one seed of
NumPy, so that both compute the same; the value `r` is compared.
"""

PROGRAMS = {}


def program(function):
    PROGRAMS[function.__name__] = function
    return function


def _train(v, net, loss, data, opt, steps=4):
    values = []
    for _ in range(steps):
        opt.zero_grad()
        value = loss(net(data[0]), data[1])
        value.backward()
        opt.step()
        values.append(value.item())
    return values


@program
def classifier(v, nn, F, optim, T, N, fill):
    net = fill(nn.Sequential(nn.Linear(4, 8), nn.ReLU(inplace=True), nn.Dropout(0.0), nn.Linear(8, 3)))
    x, y = T(16, 4), N(3, 16)
    values = _train(v, net, nn.CrossEntropyLoss(label_smoothing=0.1), (x, y), optim.SGD(net.parameters(), lr=0.1))
    net.eval()
    with v.no_grad():
        accuracy = (net(x).argmax(dim=1) == y).float().mean()
    return values, accuracy


@program
def convolutional_net(v, nn, F, optim, T, N, fill):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv1 = nn.Conv2d(1, 4, 3, padding=1, bias=False)  # the norm after it takes a bias away
            self.bn = nn.BatchNorm2d(4)
            self.conv2 = nn.Conv2d(4, 8, 3, stride=2)
            self.fc = nn.Linear(8, 5)

        def forward(self, x):
            x = F.max_pool2d(F.relu(self.bn(self.conv1(x))), 2)
            x = F.adaptive_avg_pool2d(F.relu(self.conv2(x)), (1, 1))
            return F.log_softmax(self.fc(v.flatten(x, 1)), dim=1)

    net = fill(Net())
    values = _train(v, net, F.nll_loss, (T(6, 1, 12, 12), N(5, 6)), optim.Adam(net.parameters(), lr=1e-2))
    return values, net.bn.running_mean, net.bn.num_batches_tracked


@program
def variational_autoencoder(v, nn, F, optim, T, N, fill):
    class VAE(nn.Module):
        def __init__(self):
            super().__init__()
            self.enc, self.mu, self.logvar = nn.Linear(6, 8), nn.Linear(8, 2), nn.Linear(8, 2)
            self.dec = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 6))

        def forward(self, x, eps):
            h = v.tanh(self.enc(x))
            mu, logvar = self.mu(h), self.logvar(h)
            z = mu + eps * v.exp(0.5 * logvar)
            return self.dec(z), mu, logvar

    net, opt_values = fill(VAE()), []
    opt = optim.AdamW(net.parameters(), lr=1e-2, weight_decay=1e-3)
    x = v.sigmoid(T(8, 6))
    for _ in range(3):
        out, mu, logvar = net(x, T(8, 2))
        kld = -0.5 * v.sum(1 + logvar - mu.pow(2) - logvar.exp(), dim=1).mean()
        loss = F.binary_cross_entropy_with_logits(out, x, reduction="sum") / x.size(0) + kld
        opt.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), max_norm=1.0)
        opt.step()
        opt_values.append(loss.item())
    return opt_values


@program
def adversarial_nets(v, nn, F, optim, T, N, fill):
    g = fill(nn.Sequential(nn.Linear(2, 8), nn.LeakyReLU(0.2, inplace=True), nn.Linear(8, 3)))
    d = fill(nn.Sequential(nn.Linear(3, 8), nn.LeakyReLU(0.2), nn.Linear(8, 1)))
    og = optim.Adam(g.parameters(), lr=2e-3, betas=(0.5, 0.999))
    od = optim.Adam(d.parameters(), lr=2e-3, betas=(0.5, 0.999))
    criterion, values = nn.BCEWithLogitsLoss(), []
    for _ in range(3):
        real, fake = T(8, 3), g(T(8, 2))
        od.zero_grad()
        loss_d = criterion(d(real), v.ones(8, 1)) + criterion(d(fake.detach()), v.zeros(8, 1))
        loss_d.backward()
        od.step()
        og.zero_grad()
        loss_g = criterion(d(fake), v.ones_like(d(fake)))
        loss_g.backward()
        og.step()
        values += [loss_d.item(), loss_g.item()]
    return values


@program
def character_model(v, nn, F, optim, T, N, fill):
    class Model(nn.Module):
        def __init__(self, n):
            super().__init__()
            self.emb = nn.Embedding(n, 6)
            self.rnn = nn.LSTM(6, 8, num_layers=2, batch_first=True)
            self.head = nn.Linear(8, n)

        def forward(self, x, state=None):
            y, state = self.rnn(self.emb(x), state)
            return self.head(y), state

    net, values, state = fill(Model(7)), [], None
    opt = optim.RMSprop(net.parameters(), lr=1e-2)
    for _ in range(3):
        x = N(7, 3, 5)
        logits, state = net(x[:, :-1], state)
        state = tuple(s.detach() for s in state)
        loss = F.cross_entropy(logits.reshape(-1, 7), x[:, 1:].reshape(-1))
        opt.zero_grad()
        loss.backward()
        opt.step()
        values.append(loss.item())
    return values, [p.grad.norm() for p in net.parameters()]


@program
def language_transformer(v, nn, F, optim, T, N, fill):
    class Model(nn.Module):
        def __init__(self, n, d=8):
            super().__init__()
            self.tok, self.pos = nn.Embedding(n, d), nn.Parameter(v.zeros(1, 16, d))
            layer = nn.TransformerEncoderLayer(d, 2, 16, dropout=0.0, batch_first=True, norm_first=True)
            self.body = nn.TransformerEncoder(layer, 2, norm=nn.LayerNorm(d), enable_nested_tensor=False)
            self.head = nn.Linear(d, n, bias=False)
            self.head.weight = self.tok.weight

        def forward(self, x, pad):
            h = self.tok(x) + self.pos[:, : x.shape[1]]
            mask = nn.Transformer.generate_square_subsequent_mask(x.shape[1])
            return self.head(self.body(h, mask=mask, src_key_padding_mask=pad, is_causal=True))

    net, values = fill(Model(9)), []
    pad = v.zeros(2, 5).masked_fill(v.tensor([[False] * 5, [False] * 3 + [True] * 2]), float("-inf"))
    opt = optim.AdamW(net.parameters(), lr=3e-3)
    for _ in range(3):
        x = N(9, 2, 6)
        loss = F.cross_entropy(net(x[:, :-1], pad).transpose(1, 2), x[:, 1:], ignore_index=0)
        opt.zero_grad()
        loss.backward()
        opt.step()
        values.append(loss.item())
    return values, sum(p.numel() for p in net.parameters())


@program
def translation_transformer(v, nn, F, optim, T, N, fill):
    net = fill(nn.Transformer(8, 2, 1, 2, 16, dropout=0.0, batch_first=True, activation="gelu"))
    src, tgt = T(2, 5, 8), T(2, 4, 8)
    pad = v.tensor([[False] * 5, [False] * 3 + [True] * 2])
    mask = v.triu(v.ones(4, 4, dtype=v.bool), diagonal=1)
    out = net(src, tgt, tgt_mask=mask, src_key_padding_mask=pad, memory_key_padding_mask=pad)
    out.pow(2).mean().backward()
    return out, net.encoder.layers[0].linear1.weight.grad


@program
def attention_by_hand(v, nn, F, optim, T, N, fill):
    class Attention(nn.Module):
        def __init__(self, d, h):
            super().__init__()
            self.h, self.qkv, self.out = h, nn.Linear(d, 3 * d, bias=False), nn.Linear(d, d)
            self.register_buffer("mask", v.tril(v.ones(8, 8)).view(1, 1, 8, 8), persistent=False)

        def forward(self, x):
            b, t, c = x.size()
            q, k, w = self.qkv(x).split(c, dim=2)
            q, k, w = (z.view(b, t, self.h, c // self.h).transpose(1, 2) for z in (q, k, w))
            att = (q @ k.transpose(-2, -1)) * (1.0 / (k.size(-1) ** 0.5))
            att = F.softmax(att.masked_fill(self.mask[:, :, :t, :t] == 0, float("-inf")), dim=-1)
            return self.out((att @ w).transpose(1, 2).contiguous().view(b, t, c))

    net, x = fill(Attention(8, 2)), T(2, 5, 8).requires_grad_()
    net(x).square().sum().backward()
    return x.grad, net.qkv.weight.grad, list(net.state_dict())


@program
def custom_function(v, nn, F, optim, T, N, fill):
    class Straight(v.autograd.Function):
        @staticmethod
        def forward(ctx, x, bound):
            ctx.save_for_backward(x)
            ctx.bound = bound
            return x.sign()

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return grad * (x.abs() <= ctx.bound).to(grad.dtype), None

    net, x = fill(nn.Linear(4, 4)), T(3, 4)
    Straight.apply(net(x), 1.0).sum().backward()
    return net.weight.grad, net.bias.grad


@program
def mixed_optimizers(v, nn, F, optim, T, N, fill):
    net = fill(nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 1)))
    decay = [p for n, p in net.named_parameters() if n.endswith("weight")]
    rest = [p for n, p in net.named_parameters() if n.endswith("bias")]
    a = optim.AdamW([{"params": decay, "weight_decay": 0.1}], lr=1e-2)
    b = optim.SGD(rest, lr=0.1, momentum=0.9)
    sa = optim.lr_scheduler.CosineAnnealingLR(a, T_max=4)
    sb = optim.lr_scheduler.LambdaLR(b, lambda e: 0.5**e)
    x, y = T(8, 4), T(8, 1)
    for _ in range(4):
        a.zero_grad()
        b.zero_grad()
        F.mse_loss(net(x), y).backward()
        for opt, schedule in ((a, sa), (b, sb)):
            opt.step()
            schedule.step()
    return list(net.parameters()), a.param_groups[0]["lr"], sb.get_last_lr()


@program
def freezing_and_fine_tuning(v, nn, F, optim, T, N, fill):
    net = fill(nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.ReLU(), nn.Linear(6, 2)))
    for p in net[:2].parameters():
        p.requires_grad = False
    net[3] = fill(nn.Linear(6, 3))
    opt = optim.SGD(filter(lambda p: p.requires_grad, net.parameters()), lr=0.1, nesterov=True, momentum=0.9)
    values = _train(v, net, F.cross_entropy, (T(8, 4), N(3, 8)), opt)
    net.requires_grad_(True)
    opt.add_param_group({"params": net[0].parameters(), "lr": 1e-3})
    values += _train(v, net, F.cross_entropy, (T(8, 4), N(3, 8)), opt)
    return values, [p.requires_grad for p in net.parameters()], net[0].weight


@program
def checkpoint_and_resume(v, nn, F, optim, T, N, fill):
    import io

    def make():
        net = fill(nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1)))
        opt = optim.Adam(net.parameters(), lr=0.05)
        return net, opt, optim.lr_scheduler.StepLR(opt, step_size=2, gamma=0.5)

    net, opt, schedule = make()
    data = T(8, 3), T(8, 1)
    _train(v, net, F.mse_loss, data, opt)
    schedule.step()
    file = io.BytesIO()
    v.save({"net": net.state_dict(), "opt": opt.state_dict(), "schedule": schedule.state_dict(), "epoch": 3}, file)
    file.seek(0)
    other, opt2, schedule2 = make()
    saved = v.load(file, map_location="cpu")
    missing, unexpected = other.load_state_dict(saved["net"])
    opt2.load_state_dict(saved["opt"])
    return _train(v, other, F.mse_loss, data, opt2), _train(v, net, F.mse_loss, data, opt), saved["epoch"], missing


@program
def averaged_weights(v, nn, F, optim, T, N, fill):
    import copy

    net = fill(nn.Linear(3, 2))
    ema = copy.deepcopy(net).eval().requires_grad_(False)
    opt = optim.SGD(net.parameters(), lr=0.1)
    for _ in range(3):
        _train(v, net, F.mse_loss, (T(4, 3), T(4, 2)), opt, 1)
        with v.no_grad():
            for a, b in zip(ema.parameters(), net.parameters()):
                a.mul_(0.9).add_(b, alpha=0.1)
    return list(ema.parameters()), list(ema.state_dict())


@program
def gradient_accumulation(v, nn, F, optim, T, N, fill):
    net = fill(nn.Linear(3, 1))
    opt = optim.SGD(net.parameters(), lr=0.1)
    x, y = T(8, 3), T(8, 1)
    for i, (a, b) in enumerate(zip(x.chunk(4), y.chunk(4))):
        (F.mse_loss(net(a), b) / 2).backward()
        if (i + 1) % 2 == 0:
            opt.step()
            opt.zero_grad()
    return net.weight, net.bias


@program
def gradient_penalty(v, nn, F, optim, T, N, fill):
    net = fill(nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1)))
    x = T(5, 3).requires_grad_(True)
    out = net(x)
    (g,) = v.autograd.grad(outputs=out, inputs=x, grad_outputs=v.ones_like(out), create_graph=True, retain_graph=True)
    penalty = ((g.norm(2, dim=1) - 1) ** 2).mean()
    penalty.backward()
    return penalty, net[0].weight.grad


@program
def hooks_on_features(v, nn, F, optim, T, N, fill):
    net, features, gradients = fill(nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))), {}, {}
    handles = [
        net[1].register_forward_hook(lambda m, i, o: features.update(relu=o.detach())),
        net[1].register_full_backward_hook(lambda m, gi, go: gradients.update(relu=go[0])),
    ]
    net(T(2, 3)).sum().backward()
    for h in handles:
        h.remove()
    net(T(2, 3))
    return features["relu"], gradients["relu"]


@program
def siamese_pairs(v, nn, F, optim, T, N, fill):
    net = fill(nn.Linear(4, 3))
    a, p, n = F.normalize(net(T(5, 4))), F.normalize(net(T(5, 4))), F.normalize(net(T(5, 4)))
    loss = nn.TripletMarginLoss(margin=0.5)(a, p, n) + nn.CosineEmbeddingLoss()(a, p, v.ones(5))
    loss = loss + F.margin_ranking_loss((a * p).sum(1), (a * n).sum(1), v.ones(5), margin=0.1)
    loss.backward()
    return loss, net.weight.grad


@program
def packed_sequences(v, nn, F, optim, T, N, fill):
    from importlib import import_module

    rnn = import_module(v.__name__ + ".nn.utils.rnn")
    net = fill(nn.GRU(3, 4, bidirectional=True, batch_first=True))
    batch = rnn.pad_sequence([T(5, 3), T(3, 3), T(2, 3)], batch_first=True)
    packed = rnn.pack_padded_sequence(batch, v.tensor([5, 3, 2]), batch_first=True)
    out, h = net(packed)
    padded, lengths = rnn.pad_packed_sequence(out, batch_first=True)
    padded.sum().backward()
    return padded, lengths, h, net.weight_ih_l0.grad


@program
def segmentation(v, nn, F, optim, T, N, fill):
    class UNet(nn.Module):
        def __init__(self):
            super().__init__()
            self.down = nn.ModuleList([nn.Conv2d(1, 4, 3, padding=1), nn.Conv2d(4, 8, 3, padding=1)])
            self.pool = nn.MaxPool2d(2)
            self.up = nn.ConvTranspose2d(8, 4, 2, stride=2)
            self.out = nn.Conv2d(8, 2, 1)

        def forward(self, x):
            a = F.relu(self.down[0](x))
            b = F.relu(self.down[1](self.pool(a)))
            return self.out(v.cat([self.up(b), a], dim=1))

    net = fill(UNet())
    out = net(T(2, 1, 8, 8))
    loss = F.cross_entropy(out, N(2, 2, 8, 8), weight=v.tensor([0.3, 0.7]))
    loss.backward()
    return loss, out.shape, net.up.weight.grad, F.interpolate(out, scale_factor=2, mode="bilinear", align_corners=False)


@program
def reinforcement(v, nn, F, optim, T, N, fill):
    policy = fill(nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)))
    opt, saved = optim.Adam(policy.parameters(), lr=1e-2), []
    for state in T(6, 4):
        log_probs = F.log_softmax(policy(state.unsqueeze(0)), dim=1)
        saved.append(log_probs[0, int(log_probs.argmax())])
    rewards = v.tensor([1.0, 0.5, -0.2, 0.3, 0.1, 1.0])
    returns = v.flip(v.cumsum(v.flip(rewards, [0]), 0), [0])
    returns = (returns - returns.mean()) / (returns.std() + 1e-5)
    loss = v.stack([-p * r for p, r in zip(saved, returns)]).sum()
    opt.zero_grad()
    loss.backward()
    opt.step()
    return loss, list(policy.parameters())


@program
def data_set_of_ones_own(v, nn, F, optim, T, N, fill):
    from importlib import import_module

    data = import_module(v.__name__ + ".utils.data")

    class Points(data.Dataset):
        def __init__(self, n, transform=None):
            self.x, self.transform = T(n, 3), transform

        def __len__(self):
            return len(self.x)

        def __getitem__(self, i):
            x = self.x[i] if self.transform is None else self.transform(self.x[i])
            return {"x": x, "y": int(x.sum() > 0), "id": str(i)}

    loader = data.DataLoader(Points(10, lambda x: x * 2), batch_size=4, shuffle=False, drop_last=False)
    return [(b["x"].sum(), b["y"], b["id"]) for b in loader], len(loader)


@program
def quasi_newton(v, nn, F, optim, T, N, fill):
    x, y, net = T(10, 3), T(10, 1), fill(nn.Linear(3, 1))
    opt = optim.LBFGS(net.parameters(), lr=1, max_iter=10, line_search_fn="strong_wolfe")

    def closure():
        opt.zero_grad()
        loss = F.mse_loss(net(x), y)
        loss.backward()
        return loss

    return opt.step(closure), F.mse_loss(net(x), y)


@program
def optimizer_of_ones_own(v, nn, F, optim, T, N, fill):
    class Sign(optim.Optimizer):
        def __init__(self, params, lr=0.01, beta=0.9):
            super().__init__(params, dict(lr=lr, beta=beta))

        @v.no_grad()
        def step(self, closure=None):
            for group in self.param_groups:
                for p in group["params"]:
                    if p.grad is None:
                        continue
                    state = self.state[p]
                    if not state:
                        state["m"] = v.zeros_like(p)
                    state["m"].mul_(group["beta"]).add_(p.grad, alpha=1 - group["beta"])
                    p.add_(state["m"].sign(), alpha=-group["lr"])

    net = fill(nn.Linear(3, 2))
    opt = Sign(net.parameters(), lr=0.1)
    schedule = optim.lr_scheduler.ExponentialLR(opt, gamma=0.5)
    for _ in range(3):
        _train(v, net, F.mse_loss, (T(4, 3), T(4, 2)), opt, 1)
        schedule.step()
    return net.weight, opt.param_groups[0]["lr"]


@program
def half_precision(v, nn, F, optim, T, N, fill):
    net = fill(nn.Linear(4, 4)).to(v.bfloat16)
    with v.autocast("cpu", dtype=v.bfloat16):
        mixed = fill(nn.Linear(4, 4))(T(2, 4))
    return net(T(2, 4).bfloat16()).dtype, mixed.dtype, [p.dtype for p in net.double().parameters()]
