"""The notebook's cells run and give the outputs that it stores, and its two languages share code and outputs."""

import importlib.util
import json
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
DRAWN = "image/svg+xml"


def stored(name):
    return json.loads((DOCS / name).read_text(encoding="utf-8"))["cells"]


@pytest.mark.slow
def test_the_cells_of_the_notebook_run_and_give_their_outputs():
    spec = importlib.util.spec_from_file_location("notebook_page", DOCS / "notebook_page.py")
    page = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(page)
    cells = [cell for cell in stored("notebook.ipynb") if cell["cell_type"] == "code"]
    assert [cell["source"] for cell in cells] == [cell.code for cell in page.CELLS], "run `make notebook`"
    for cell, outputs in zip(cells, page.run_cells(), strict=True):
        if page.VARIES in cell["metadata"].get("tags", ()):
            assert kinds(cell["outputs"]) == kinds(outputs)
        else:
            assert contents(cell["outputs"]) == contents(outputs), cell["source"]


def kinds(outputs):
    return [sorted(output.get("data", {"stdout": 0})) for output in outputs]


def contents(outputs):
    """The outputs without what fonts and versions of a library change: the drawing of a specification."""
    data = [output.get("data", {"stdout": output.get("text")}) for output in outputs]
    return [{kind: json.loads(json.dumps(value)) for kind, value in one.items() if kind != DRAWN} for one in data]


def test_the_languages_share_code_and_outputs():
    english, chinese = stored("notebook.ipynb"), stored("notebook.zh.ipynb")
    assert [cell["cell_type"] for cell in english] == [cell["cell_type"] for cell in chinese]
    for one, other in zip(english, chinese, strict=True):
        assert (one == other) == (one["cell_type"] == "code")
