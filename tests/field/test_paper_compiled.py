"""The paper's paragraph and tables through XeLaTeX: hostile names compile, and no table leaves the page."""

import re
import shutil
import subprocess

import msgspec
import pytest

from steelyard.workbench.demo import demo_cases
from steelyard.workbench.results.paper_figures import paper_figures
from steelyard.workbench.results.paper_pages import paper_pages
from steelyard.workbench.simulated_projects import import_batch, start_project
from steelyard.workbench.simulation import work_until_finished
from steelyard.workbench.storage.database import Database
from steelyard.workbench.storage.tables import StoredProject
from workbench_people import NOON

XELATEX = shutil.which("xelatex")
pytestmark = [pytest.mark.field, pytest.mark.skipif(XELATEX is None, reason="no XeLaTeX here: texlive-xetex has it")]
NAMES = (r"50% & #1_{x} \^~$ | <b>", "[1, 2]", "数学与逻辑_推理", "الرياضيات & منطق", "a\nb\x07c", "\\end{table}")
CLASSES = {"en": r"\documentclass{article}", "zh": r"\documentclass{ctexart}"}


@pytest.fixture(scope="module")
def figures(tmp_path_factory):
    folder = tmp_path_factory.mktemp("compiled")
    database = Database(f"sqlite:///{folder / 'workbench.db'}")
    database.migrate()
    material = demo_cases(folder / "cases", seed=3, num_prompts=6)
    start = start_project(database, material, seed=3, begun_at=NOON, num_annotators=16)
    import_batch(start, material, "first")
    work_until_finished(start)
    with database.reading() as session:
        made = paper_figures(session, session.get_one(StoredProject, 1), at=NOON)
    database.close()
    hostile = [msgspec.structs.replace(made.categories[0], name=name) for name in NAMES]
    return msgspec.structs.replace(made, project=" ".join(NAMES), categories=tuple(hostile))


@pytest.mark.parametrize("language", CLASSES)
@pytest.mark.parametrize("columns", [1, 2])
def test_the_text_compiles_and_tables_stay_on_the_page(figures, tmp_path, language, columns):
    page = paper_pages(figures)[f"paper.{language}.tex"]
    packages = re.search(r"\\usepackage\{([^}]*)\}", page)[0]
    head = [CLASSES[language].replace("{", "[twocolumn]{" if columns == 2 else "{"), packages, r"\begin{document}"]
    (tmp_path / "paper.tex").write_text("\n".join([*head, page, r"\end{document}", ""]), encoding="utf-8")
    command = [XELATEX, "-interaction=nonstopmode", "-halt-on-error", "paper.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout[-2000:]
    assert (tmp_path / "paper.pdf").stat().st_size > 10_000
    # An alignment that is too wide; words of a paragraph may be, by a little.
    too_wide = [float(points) for points in re.findall(r"Overfull \\hbox \(([\d.]+)pt", done.stdout)]
    assert all(points < 20 for points in too_wide)
