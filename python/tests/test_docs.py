"""The Python blocks of the documents run."""

import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BLOCKS = [
    pytest.param(block, id=f"{page.name}-{number}")
    for page in [ROOT / "README.md", ROOT / "docs/python.md"]
    for number, block in enumerate(re.findall(r"^```python\n(.*?)^```$", page.read_text(encoding="utf-8"), re.M | re.S))
]


@pytest.mark.parametrize("block", BLOCKS)
def test_block_runs(block, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    exec(compile(block, "block", "exec"), {"__name__": "block"})


def test_there_are_blocks():
    assert len(BLOCKS) >= 2
