"""The notebooks run, cell by cell, and give the outputs that are stored in them.

`python python/tests/test_notebooks.py` runs them and stores the outputs anew. Nothing of Jupyter is needed.
"""

import ast
import contextlib
import io
import json
import os
import pathlib

FOLDER = pathlib.Path(__file__).resolve().parents[1] / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


def outputs_of(source, names):
    """What a cell prints, and its last expression."""
    tree = ast.parse(source)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed, value = io.StringIO(), None
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, "cell", "exec"), names)
        if last is not None:
            value = eval(compile(ast.Expression(last.value), "cell", "eval"), names)
    outputs = []
    if printed.getvalue():
        lines = printed.getvalue().splitlines(keepends=True)
        outputs.append({"name": "stdout", "output_type": "stream", "text": lines})
    if value is not None:
        data = {"text/plain": repr(value).splitlines(keepends=True)}
        if hasattr(value, "_repr_html_"):
            data["text/html"] = value._repr_html_().splitlines(keepends=True)
        outputs.append({"data": data, "metadata": {}, "output_type": "execute_result"})
    return outputs


def executed(path):
    """The notebook's cells of code, with the outputs they give now."""
    book, names, here = json.loads(path.read_text(encoding="utf-8")), {"__name__": "__main__"}, os.getcwd()
    cells = [cell for cell in book["cells"] if cell["cell_type"] == "code"]
    os.chdir(FOLDER)
    try:
        for number, cell in enumerate(cells, 1):
            found = outputs_of("".join(cell["source"]), names)
            for output in found:
                if output["output_type"] == "execute_result":
                    output["execution_count"] = number
            yield cell, number, found
    finally:
        os.chdir(here)
    return book


def pytest_generate_tests(metafunc):
    if "notebook" in metafunc.fixturenames:
        metafunc.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)


def test_notebook_gives_its_outputs(notebook):
    for cell, number, found in executed(notebook):
        source = "".join(cell["source"])
        assert json.loads(json.dumps(found)) == cell["outputs"], f"cell {number}:\n{source}\ngives {found}"
        assert cell["execution_count"] == number


def test_there_are_notebooks():
    assert len(NOTEBOOKS) >= 2
    for path in NOTEBOOKS:
        book = json.loads(path.read_text(encoding="utf-8"))
        assert book["nbformat"] == 4 and all(isinstance(c["source"], list) for c in book["cells"])


def update(path):
    book = json.loads(path.read_text(encoding="utf-8"))
    cells = iter([cell for cell in book["cells"] if cell["cell_type"] == "code"])
    for _, number, found in executed(path):
        next(cells).update(outputs=found, execution_count=number)
    path.write_text(json.dumps(book, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    for notebook_path in NOTEBOOKS:
        update(notebook_path)
