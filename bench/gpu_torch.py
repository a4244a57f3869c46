"""The cases of gpu.cpp in PyTorch, printed the same way."""
import json
import time

import torch


def measure(name, calls, f):
    for _ in range(3):
        f()
    best = 1e9
    for _ in range(7):
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(calls):
            f()
        torch.cuda.synchronize()
        best = min(best, (time.perf_counter() - start) / calls)
    print(json.dumps({"case": name, "seconds": best}), flush=True)


def memory_bound():
    x, y = (torch.randn(1 << 27, device="cuda") for _ in range(2))
    measure("copy", 20, lambda: x.clone())
    measure("add", 20, lambda: x + y)
    measure("gelu", 20, lambda: torch.nn.functional.gelu(x))
    measure("sum", 20, lambda: x.sum())
    rows = x.reshape(1 << 15, 1 << 12)
    measure("sum_rows", 20, lambda: rows.sum(1))
    measure("sum_columns", 20, lambda: rows.sum(0))
    measure("softmax_rows", 20, lambda: rows.softmax(1))
    measure("transpose_copy", 20, lambda: rows.t().contiguous())
    halves = rows.bfloat16()
    measure("transpose_copy_bf16", 20, lambda: halves.t().contiguous())
    bias = torch.randn(1 << 12, device="cuda")
    measure("add_bias", 20, lambda: rows + bias)


def products():
    a, b = (torch.randn(4096, 4096, device="cuda") for _ in range(2))
    torch.backends.cuda.matmul.allow_tf32 = False
    measure("matmul_f32", 10, lambda: a @ b)
    torch.backends.cuda.matmul.allow_tf32 = True
    measure("matmul_tf32", 20, lambda: a @ b)
    torch.backends.cuda.matmul.allow_tf32 = False
    half_a, half_b = a.bfloat16(), b.bfloat16()
    measure("matmul_bf16", 50, lambda: half_a @ half_b)
    for dtype, kind in ((torch.float32, "f32"), (torch.bfloat16, "bf16")):
        def draw(*shape):
            return torch.randn(*shape, device="cuda").to(dtype)
        x, y = draw(64, 512, 512), draw(64, 512, 512)
        measure(f"bmm_{kind}_64x512", 50, lambda: x @ y)
        measure(f"bmm_{kind}_64x512_transposed", 50, lambda: x @ y.mT)
        rows, w = draw(8192, 4096)[::2], draw(4096, 4096)
        measure(f"matmul_{kind}_strided", 10, lambda: rows @ w)


def small():
    x, y = (torch.randn(4, device="cuda") for _ in range(2))
    measure("small_add", 1000, lambda: x + y)
    measure("small_sum", 1000, lambda: x.sum())
    measure("small_item", 200, lambda: x.sum().item())
    w = torch.randn(4, device="cuda", requires_grad=True)
    measure("small_backward", 200, lambda: torch.autograd.grad((w * y).sum(), [w]))


def both_ways(name, calls, inputs, f, backward=None):
    forward, backward = (name, backward) if backward else (name + "_fwd", name + "_bwd")
    with torch.no_grad():
        measure(forward, calls, lambda: f(*inputs))
    leaves = [x.detach().requires_grad_() for x in inputs]
    y = f(*leaves)
    g = torch.randn_like(y)
    measure(backward, calls, lambda: torch.autograd.grad(y, leaves, g, retain_graph=True))


def families():
    F = torch.nn.functional
    torch.backends.cudnn.benchmark = True
    torch.backends.cudnn.allow_tf32 = False
    words = torch.randint(0, 50304, (8192,), device="cuda")
    for dtype, kind in ((torch.float32, "f32"), (torch.bfloat16, "bf16")):
        def draw(*shape):
            return torch.randn(*shape, device="cuda").to(dtype)
        both_ways("layer_norm_" + kind, 10, [draw(16384, 8192), draw(8192), draw(8192)],
                  lambda x, w, b: F.layer_norm(x, (8192,), w, b))
        both_ways("batch_norm_" + kind, 10, [draw(64, 256, 56, 56), draw(256), draw(256)],
                  lambda x, w, b: F.batch_norm(x, None, None, w, b, True))
        both_ways("max_pool_" + kind, 10, [draw(128, 64, 112, 112)], lambda x: F.max_pool2d(x, 3, 2, 1))
        both_ways(f"embedding_{kind}_50304x768", 10, [draw(50304, 768)], lambda w: F.embedding(words, w))
        both_ways(f"dropout_{kind}_64M", 10, [draw(1 << 26)], lambda x: F.dropout(x, 0.1))
        for name, batch, inputs, outputs, size, kernel, stride in (("seed_B32C64H128K3", 32, 64, 64, 128, 3, 1),
                                                                  ("stem", 32, 3, 64, 224, 7, 2),
                                                                  ("r50_3x3_56", 128, 64, 64, 56, 3, 1),
                                                                  ("r50_1x1_56", 128, 256, 64, 56, 1, 1)):
            both_ways(f"conv_{kind}_{name}", 5, [draw(batch, inputs, size, size), draw(outputs, inputs, kernel, kernel)],
                      lambda x, w: F.conv2d(x, w, stride=stride, padding=kernel // 2))
    images = [torch.randn(*shape, device="cuda").bfloat16().contiguous(memory_format=torch.channels_last)
              for shape in ((32, 64, 128, 128), (64, 64, 3, 3))]
    both_ways("conv_bf16_nhwc_seed_B32C64H128K3", 5, images, lambda x, w: F.conv2d(x, w, padding=1))
    for width in (64, 128):
        for time in (1024, 4096, 8192):
            shape = (16384 // time, 1024 // width, time, width)
            both_ways(f"attention_bf16_{width}_T{time}", 5, [torch.randn(shape, device="cuda").bfloat16() for _ in range(3)],
                      lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True))
    logits = torch.randn(8192, 50304, device="cuda").bfloat16().requires_grad_()
    labels = torch.randint(0, 50304, (8192,), device="cuda")
    measure("cross_entropy_bf16_8192x50304", 5, lambda: torch.autograd.grad(F.cross_entropy(logits, labels), logits))


def shapes_of_products():
    matmul = torch.backends.cuda.matmul
    for n in (1024, 4096, 8192):
        for dtype, kind in ((torch.bfloat16, "bf16"), (torch.float16, "f16"), (torch.float32, "f32")):
            x, y = (torch.randn(n, n, device="cuda").to(dtype) for _ in range(2))
            matmul.allow_tf32 = False
            measure(f"matmul_{kind}_{n}", 10, lambda: x @ y)
            if kind == "f32":
                matmul.allow_tf32 = True
                measure(f"matmul_tf32_{n}", 10, lambda: x @ y)
                matmul.allow_tf32 = False


def shapes_of_memory():
    data = torch.zeros(1 << 30, dtype=torch.uint8, device="cuda")
    measure("copy_1GiB", 10, lambda: data.clone())
    for dtype, kind in ((torch.float32, "f32"), (torch.bfloat16, "bf16")):
        a, b = (torch.randn(1 << 27, device="cuda").to(dtype) for _ in range(2))
        m, r = a.view(16384, 8192), torch.randn(8192, device="cuda").to(dtype)
        measure(f"add_{kind}_128M", 10, lambda: a + b)
        measure(f"gelu_{kind}_128M", 10, lambda: torch.nn.functional.gelu(a))
        measure(f"chain4_{kind}_128M", 10, lambda: (a * b + a).sigmoid() * b)
        measure(f"sum_{kind}_128M", 10, lambda: a.sum())
        measure(f"sum0_{kind}_16384x8192", 10, lambda: m.sum(0))
        measure(f"transpose_{kind}_16384x8192", 10, lambda: m.t().contiguous())
        measure(f"bcast_add_{kind}_16384x8192", 10, lambda: m + r)
        measure(f"softmax_{kind}_16384x8192", 10, lambda: m.softmax(-1))


def shapes_of_convolutions():
    cudnn = torch.backends.cudnn
    for name, batch, inputs, outputs, size, kernel, stride in (("seed_B32C64H128K3", 32, 64, 64, 128, 3, 1),
                                                              ("stem", 32, 3, 64, 224, 7, 2),
                                                              ("r50_3x3_56", 128, 64, 64, 56, 3, 1),
                                                              ("r50_1x1_56", 128, 256, 64, 56, 1, 1),
                                                              ("r50_3x3_7", 128, 512, 512, 7, 3, 1),
                                                              ("cifar3_16", 64, 3, 16, 32, 3, 1)):
        for kind in ("f32", "tf32", "bf16cl"):
            cudnn.allow_tf32 = kind == "tf32"

            def draw(*shape):
                x = torch.randn(*shape, device="cuda")
                return x.bfloat16().contiguous(memory_format=torch.channels_last) if kind == "bf16cl" else x

            both_ways(f"conv_fwd_{kind}_{name}", 5, [draw(batch, inputs, size, size), draw(outputs, inputs, kernel, kernel)],
                      lambda x, w: torch.nn.functional.conv2d(x, w, stride=stride, padding=kernel // 2),
                      f"conv_bwd_{kind}_{name}")
    cudnn.allow_tf32 = False


def shapes_of_attention():
    for time in (128, 1024, 4096, 8192):
        shape = (16384 // time, 16, time, 64)
        both_ways(f"sdpa_causal_fwd_bf16_T{time}", 5, [torch.randn(shape, device="cuda").bfloat16() for _ in range(3)],
                  lambda q, k, v: torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True),
                  f"sdpa_causal_bwd_bf16_T{time}")


def shapes():
    shapes_of_products()
    shapes_of_memory()
    shapes_of_convolutions()
    shapes_of_attention()


def optimizers():
    parameters = [torch.randn(1 << 20, device="cuda", requires_grad=True) for _ in range(124)]
    for p in parameters:
        p.grad = torch.randn_like(p)
    adamw = torch.optim.AdamW(parameters, fused=True)
    measure("adamw_124M_f32", 10, adamw.step)


def step(name, model, x, calls, amp=False):
    sequence = not x.is_floating_point()
    model, x, target = model.cuda(), x.cuda(), torch.randint(0, 10, (x.numel() if sequence else x.shape[0],)).cuda()
    if amp and not sequence:
        model, x = model.to(memory_format=torch.channels_last), x.contiguous(memory_format=torch.channels_last)
    optimizer = torch.optim.Adam(model.parameters())

    def run():
        optimizer.zero_grad()
        with torch.autocast("cuda", torch.bfloat16, enabled=amp):
            scores = model(x)
            loss = torch.nn.functional.cross_entropy(scores.flatten(0, 1) if sequence else scores, target)
        loss.backward()
        optimizer.step()

    measure(name, calls, run)


class CharLSTM(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = torch.nn.Embedding(96, 128)
        self.lstm = torch.nn.LSTM(128, 256, 2, batch_first=True)
        self.head = torch.nn.Linear(256, 96)

    def forward(self, x):
        return self.head(self.lstm(self.embedding(x))[0])


class Block(torch.nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        nn = torch.nn
        self.heads = heads
        self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.c_attn, self.c_proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.c_fc, self.c_out = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        n, t, c = x.shape
        F = torch.nn.functional
        q, k, v = self.c_attn(self.ln_1(x)).view(n, t, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(n, t, c)
        x = x + self.c_proj(y)
        return x + self.c_out(F.gelu(self.c_fc(self.ln_2(x)), approximate="tanh"))


class GPT(torch.nn.Module):
    def __init__(self):
        super().__init__()
        nn = torch.nn
        self.wte, self.wpe = nn.Embedding(50304, 768), nn.Embedding(1024, 768)
        self.h = nn.ModuleList(Block(768, 12) for _ in range(12))
        self.ln_f = nn.LayerNorm(768)

    def forward(self, x):
        h = self.wte(x) + self.wpe.weight[:x.shape[1]]
        for block in self.h:
            h = block(h)
        return torch.nn.functional.linear(self.ln_f(h), self.wte.weight)


def steps():
    nn = torch.nn
    step("step_mlp", nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 256), nn.ReLU(), nn.Linear(256, 10)),
         torch.randn(128, 784), 100)
    lenet = nn.Sequential(nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 16, 5), nn.ReLU(),
                          nn.MaxPool2d(2), nn.Flatten(), nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(),
                          nn.Linear(84, 10))
    step("step_lenet", lenet, torch.randn(64, 1, 28, 28), 20)
    step("step_mlp_784_128_10_b64", nn.Sequential(nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 10)),
         torch.randn(64, 784), 100)
    step("step_charlstm_2x256_b64_T128", CharLSTM(), torch.randint(0, 96, (64, 128)), 10)
    step("step_gpt2_bf16_b8_T1024", GPT().bfloat16(), torch.randint(0, 50257, (8, 1024)), 5)
    step("step_gpt2_amp_b32_T1024", GPT(), torch.randint(0, 50257, (32, 1024)), 3, amp=True)
    try:
        import torchvision
        step("step_resnet50_b64", torchvision.models.resnet50(), torch.randn(64, 3, 224, 224), 2)
        step("step_resnet50_amp_nhwc_b256", torchvision.models.resnet50(), torch.randn(256, 3, 224, 224), 5, True)
    except ImportError:
        pass


memory_bound()
products()
small()
families()
shapes()
optimizers()
steps()
