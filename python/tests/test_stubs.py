"""The type stubs: all that the extension has is in them, and checkers accept them."""

import ast
import importlib.util
import os
import pathlib
import subprocess
import sys

import pytest

import volta as v
from volta import _volta

FOLDER = pathlib.Path(v.__file__).parent


def test_stubs_name_everything_public():
    tree = ast.parse((FOLDER / "_volta.pyi").read_text())
    names = {n.name for n in tree.body if isinstance(n, (ast.FunctionDef, ast.ClassDef))}
    names |= {n.target.id for n in tree.body if isinstance(n, ast.AnnAssign)}
    here = {n for n, value in vars(_volta).items() if getattr(v, n, None) is value and not n.startswith("_")}
    missing = here - names
    assert not missing
    (tensor,) = [n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == "Tensor"]
    members = {n.name for n in tensor.body if isinstance(n, ast.FunctionDef)}
    members |= {n.target.id for n in tensor.body if isinstance(n, ast.AnnAssign)}
    missing = [n for n in dir(v.Tensor) if not n.startswith("_") and n not in members]
    assert not missing


def test_stubs_of_nn_are_current():
    """What python/stubs/make_stubs.py would write now is what is there."""
    folder = pathlib.Path(__file__).resolve().parents[1]
    spec = importlib.util.spec_from_file_location("make_stubs", folder / "stubs/make_stubs.py")
    maker = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(maker)
    for path, write in maker.STUBS.items():
        assert write() == (folder / "volta" / path).read_text(encoding="utf-8"), f"make_stubs.py has not run for {path}"


PROGRAM = """
import volta
from volta import autograd, callbacks, metrics, nn, optim
from volta.nn import functional as F
from volta.optim.lr_scheduler import CosineAnnealingLR, StepLR, WarmupLR
from volta.utils.data import DataLoader, Dataset, TensorDataset


class Net(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(1, width, 3, padding=1)
        self.layers = nn.ModuleList([nn.Linear(width, width), nn.Linear(width, 3)])
        self.scale = nn.Parameter(volta.ones(1))

    def forward(self, x: volta.Tensor) -> volta.Tensor:
        x = F.relu(self.conv(x), inplace=True).mean((2, 3))
        for layer in self.layers:
            x = layer(x)
        return F.softmax(x * self.scale, dim=-1, dtype=volta.float64)


class Points(Dataset):
    def __len__(self) -> int:
        return 4

    def __getitem__(self, i: int) -> tuple[volta.Tensor, int]:
        return volta.ones(1, 8, 8) * i, i % 3


net = Net(4).to(volta.float32).train()
opt = optim.AdamW([{"params": net.parameters(), "lr": 1e-3}], lr=1e-2)
schedule = WarmupLR(opt, 10, then=CosineAnnealingLR(opt, T_max=5))
for x, y in DataLoader(Points(), batch_size=2, shuffle=True):
    opt.zero_grad()
    loss = F.cross_entropy(net(x), y, label_smoothing=0.1)
    loss.backward()
    nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    opt.step()
    schedule.step()
with volta.no_grad():
    total: float = float(net(volta.ones(1, 1, 8, 8)).sum())
result = net.load_state_dict(net.state_dict(), strict=False)
names: list[str] = result.missing_keys
handle = net.register_forward_hook(lambda module, args, out: None)
handle.remove()
history = volta.fit(
    nn.Sequential(nn.Linear(2, 2)),
    (volta.ones(4, 2), volta.zeros(4, dtype=volta.int64)),
    metrics=["accuracy", metrics.F1(2)],
    callbacks=[callbacks.EarlyStopping(monitor="loss")],
    progress=False,
)
print(nn.summary(net, (1, 1, 8, 8)), history["loss"], volta.ones(2).std(unbiased=False), StepLR(opt, 2).get_last_lr())
spread: volta.Tensor = volta.softmax(volta.ones(2), dim=0, dtype=volta.float64)
(gradient,) = autograd.grad((volta.ones(2, requires_grad=True) * 2).sum(), [volta.ones(2, requires_grad=True)], allow_unused=True)
"""


def test_the_program_runs():
    exec(compile(PROGRAM, "program", "exec"), {"__name__": "program"})


def test_pyright_accepts_the_stubs_and_a_program(tmp_path):
    pytest.importorskip("pyright")
    run = [sys.executable, "-m", "pyright", "--pythonpath", sys.executable]
    try:
        there = subprocess.run([*run, "--version"], capture_output=True, text=True, cwd=tmp_path, timeout=300)
    except subprocess.TimeoutExpired:
        pytest.skip("pyright does not start")
    if there.returncode:
        pytest.skip("pyright has no Node.js, or may not fetch itself")
    program, wrong = tmp_path / "program.py", tmp_path / "wrong.py"
    program.write_text(PROGRAM)
    wrong.write_text("import volta\nfrom volta import nn\nvolta.softmax(volta.ones(2), axes=1)\nnn.Lineer(1, 2)\n")
    stubs = [str(p) for p in sorted(FOLDER.rglob("*.pyi"))]
    good = subprocess.run([*run, str(program), *stubs], capture_output=True, text=True, cwd=tmp_path)
    assert good.returncode == 0, good.stdout
    bad = subprocess.run([*run, str(wrong)], capture_output=True, text=True, cwd=tmp_path)
    assert bad.returncode == 1 and '"axes"' in bad.stdout and '"Lineer"' in bad.stdout, bad.stdout


def test_mypy_accepts_a_program(tmp_path):
    pytest.importorskip("mypy")
    program = tmp_path / "program.py"
    program.write_text(
        "import volta\nfrom volta import optim\n"
        "x: volta.Tensor = volta.conv2d(volta.randn(1, 2, 8, 8), volta.randn(4, 2, 3, 3), padding='same', stride=1)\n"
        "values, indices = x.max(1, keepdim=True)\ny: volta.Tensor = (2 * values + 1).reshape(2, -1)\n"
        "opt = optim.Adam([x], lr=1e-3, betas=(0.9, 0.99))\nopt.step()\nn: int = x.size(0)\n"
    )
    wrong = tmp_path / "wrong.py"
    wrong.write_text("import volta\nvolta.softmax(volta.ones(2), axis=1)\n")
    run = [
        sys.executable,
        "-m",
        "mypy",
        "--no-incremental",
        "--follow-imports=silent",
        "--cache-dir",
        str(tmp_path / "cache"),
    ]
    # An installed package is found by itself; a build tree has to be named.
    path = {} if FOLDER.parent.name == "site-packages" else {"MYPYPATH": str(FOLDER.parent)}

    def check(file):
        return subprocess.run(
            [*run, str(file)], capture_output=True, text=True, cwd=tmp_path, env={**os.environ, **path}
        )

    longer = tmp_path / "longer.py"
    longer.write_text(PROGRAM)
    good, bad, long_one = check(program), check(wrong), check(longer)
    assert good.returncode == 0, good.stdout
    assert long_one.returncode == 0, long_one.stdout
    assert bad.returncode == 1 and 'Unexpected keyword argument "axis"' in bad.stdout, bad.stdout
