"""The type stubs: all that the extension has is in them, and checkers accept them."""

import ast
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

    good, bad = check(program), check(wrong)
    assert good.returncode == 0, good.stdout
    assert bad.returncode == 1 and 'Unexpected keyword argument "axis"' in bad.stdout, bad.stdout
