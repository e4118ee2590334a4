"""What a paper says of a project: figures that are those of the raw rows, sentences that fit, LaTeX that compiles."""

import random
import re

import msgspec
import numpy as np
import pytest
from sqlalchemy import select
from typer.testing import CliRunner

from steelyard.annotation.pipeline import PipelineRules
from steelyard.cli.main import build_app
from steelyard.core.errors import OutputError
from steelyard.report.text_tables import TextTable, latex_table, markdown_table
from steelyard.statistics.intervals import Estimate
from steelyard.workbench.demo import add_guidelines, demo_cases
from steelyard.workbench.results.paper_figures import paper_figures
from steelyard.workbench.results.paper_pages import methods_paragraph, paper_pages, paper_tables
from steelyard.workbench.simulated_people import Habits
from steelyard.workbench.simulated_projects import import_batch, start_project
from steelyard.workbench.simulation import work_until_finished
from steelyard.workbench.storage.database import Database
from steelyard.workbench.storage.figure_tables import StoredGateResult, StoredPairAgreement
from steelyard.workbench.storage.tables import (
    StoredAnswer,
    StoredEvent,
    StoredPerson,
    StoredProject,
    StoredReview,
    StoredTask,
)
from workbench_people import NOON, answer_all, make_project

HOSTILE = "R&D 50% #1_{x}\\ ^~ 中文\x07 | <b>"


@pytest.fixture(scope="module")
def worked(sqlite_template, tmp_path_factory):
    """A project of simulated people that is finished: reviews reject, people pass on, gold tasks are answered."""
    folder = tmp_path_factory.mktemp("paper")
    path = folder / "workbench.db"
    path.write_bytes(sqlite_template.read_bytes())
    database = Database(f"sqlite:///{path}")
    random.seed(1)
    material = demo_cases(folder / "cases", seed=3, num_prompts=6)
    habits = Habits(rejected_share=0.4, stubborn_share=0.9, passed_on_share=0.9)
    rules = PipelineRules(gold_share=0.25)
    start = start_project(database, material, seed=3, begun_at=NOON, num_annotators=16, rules=rules, habits=habits)
    add_guidelines(start)
    for batch, part in (("first", material[:3]), ("second", material[3:])):
        import_batch(start, part, batch)
        work_until_finished(start)
    yield database
    database.close()


@pytest.fixture(scope="module")
def figures(worked):
    with worked.reading() as session:
        return paper_figures(session, session.get_one(StoredProject, 1), at=NOON)


def test_figures_are_those_of_the_rows(worked, figures):
    with worked.reading() as session:
        answers = session.execute(
            select(StoredAnswer.person_id, StoredAnswer.seconds).where(StoredAnswer.stage == "annotation")
        ).all()
        pseudonyms = dict(session.execute(select(StoredPerson.id, StoredPerson.pseudonym)).all())
        gates = session.scalars(select(StoredGateResult.is_passed)).all()
        reviews = session.execute(
            select(StoredReview.layer, StoredReview.decision).where(StoredReview.decision.is_not(None))
        ).all()
        events = session.execute(select(StoredEvent.action, StoredEvent.subject_id, StoredEvent.detail)).all()
        tasks = session.scalars(
            select(StoredTask.id).where(StoredTask.is_gold.is_(False), StoredTask.num_answered > 0)
        ).all()
    assert figures.answers == len(answers) == sum(row.answers for row in figures.people)
    assert figures.tasks == len(tasks)
    assert figures.seconds == pytest.approx(np.quantile([seconds for _, seconds in answers], (0.25, 0.5, 0.75)))
    for row in figures.people:
        own = [seconds for person, seconds in answers if pseudonyms[person] == row.pseudonym]
        assert row.median_seconds == pytest.approx(np.median(own))
    assert (figures.gates, figures.gate.value) == (len(gates), pytest.approx(np.mean(gates)))
    for layer, state in zip(figures.layers, ("aligning", "with delivery", "with operations"), strict=True):
        decisions = [decision for name, decision in reviews if name == layer.name]
        assert layer.reviewed == len(decisions)
        assert layer.rejected.value == pytest.approx(decisions.count("rejected") / len(decisions))
        passed_on = {
            (item, detail["round"])
            for action, item, detail in events
            if action == "unresolved" and detail["from"] == state
        }
        assert layer.passed_on.value == pytest.approx(len(passed_on) / len(gates))
        assert passed_on
    assert sum(row.items for row in figures.categories) == figures.items.total == 6
    assert sum(row.answers for row in figures.guidelines) == len(answers)


def test_the_paragraph_has_the_figures_in_both_languages(figures):
    english, chinese = (methods_paragraph(figures, language) for language in ("en", "zh"))
    for text in (english, chinese):
        for shown in (
            f"{figures.answers:,}",
            f"{figures.gate.value:.1%} [{figures.gate.low:.1%}, {figures.gate.high:.1%}; n = {figures.gates}]",
            f"{figures.agreement.alpha.value:.2f}",
            f"{figures.gold.value:.1%}",
            f"{figures.seconds[1]:,.0f}",
            "90%",
            "25%",
        ):
            assert shown in text
    assert "simulated" in english
    assert "模拟" in chinese
    assert len(re.findall(r"[.。]", chinese)) > 10


def test_the_label_error_follows_from_how_often_people_contradict_each_other(worked, figures):
    with worked.reading() as session:
        pairs = session.scalars(select(StoredPairAgreement).where(StoredPairAgreement.project_id == 1)).all()
    strict = np.array(
        [
            [sum(getattr(row, f"num_{first}_{second}") for row in pairs) for second in ("left", "right")]
            for first in ("left", "right")
        ]
    )
    contradicted = figures.agreement.contradicted
    assert contradicted.n == strict.sum() > 0
    assert contradicted.value == pytest.approx((strict[0, 1] + strict[1, 0]) / strict.sum())
    assert contradicted.low < contradicted.value < contradicted.high


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_paragraph_states_the_label_error_and_what_a_perfect_model_reaches(figures, language):
    # Two people who each err on a tenth contradict each other on 2 x 0.1 x 0.9; on 2 x 0.05 x 0.95 and 0.2 x 0.8 x 2.
    row = msgspec.structs.replace(figures.agreement, contradicted=Estimate(0.18, 0.095, 0.32, 400))
    text = methods_paragraph(msgspec.structs.replace(figures, agreement=row), language)
    for shown in (
        "18.0% [9.5%, 32.0%; n = 400]",
        "10.0% [5.0%, 20.0%; n = 400]",
        "82.0% [68.0%, 90.5%; n = 400]",
        "90.0% [80.0%, 95.0%; n = 400]",
    ):
        assert shown in text
    nobody = msgspec.structs.replace(row, contradicted=Estimate(None, None, None, 0))
    assert len(methods_paragraph(msgspec.structs.replace(figures, agreement=nobody), language)) < len(text)


def test_no_file_names_a_person(worked, figures):
    with worked.reading() as session:
        people = session.execute(select(StoredPerson.name, StoredPerson.display_name)).all()
    pages = paper_pages(figures)
    assert sorted(pages) == ["figures.json", "paper.en.md", "paper.en.tex", "paper.zh.md", "paper.zh.tex"]
    for text in pages.values():
        assert not any(display in text for _, display in people)
    assert msgspec.json.decode(pages["figures.json"])["answers"] == figures.answers


def test_a_setting_is_as_precise_as_it_was_chosen(figures):
    rules = msgspec.structs.replace(figures.settings.rules, least_agreement=0.925, num_annotators=2)
    changed = msgspec.structs.replace(figures, settings=msgspec.structs.replace(figures.settings, rules=rules))
    assert "at least 92.5% of" in methods_paragraph(changed, "en")


def test_tables_have_a_cell_for_every_column(figures):
    for language in ("en", "zh"):
        tables = paper_tables(figures, language)
        # Reviewers have a table where somebody has decided on a planted review.
        reviewers = ("reviewers",) if figures.reviewers else ()
        assert [table.label for table in tables] == [
            f"annotation-{name}" for name in ("categories", "layers", "people", *reviewers, "guidelines")
        ]
        assert all(len(row) == len(table.heads) for table in tables for row in table.rows)
        assert [len(table.rows) for table in tables[:3]] == [len(figures.categories), 4, 16]


def test_hostile_names_leave_tables_whole():
    table = TextTable("x", HOSTILE, ("name", "50%"), ((HOSTILE, "[1, 2]"), ("[a]", "3")))
    latex = latex_table(table)
    shown = r"R\&D 50\% \#1\_\{x\}\textbackslash{} \textasciicircum{}\textasciitilde{} 中文 \textbar{} "
    shown += r"\textless{}b\textgreater{}"
    assert rf"\caption{{{shown}}}" in latex
    assert rf"{shown} & [1, 2] \\" in latex
    # A bracket at the start of a row would be read as the argument of the line break before it.
    assert r"{}[a] & 3 \\" in latex
    lines = markdown_table(table).splitlines()
    assert {len(re.findall(r"(?<!\\)\|", line)) for line in lines[2:]} == {3}
    assert "\x07" not in latex + "".join(lines)


def test_a_project_without_answers_says_so_and_one_without_gold_too(sqlite_template, tmp_path):
    path = tmp_path / "workbench.db"
    path.write_bytes(sqlite_template.read_bytes())
    database = Database(f"sqlite:///{path}")
    project, people = make_project(database, num_cases=2)

    def paragraph():
        with database.reading() as session:
            return methods_paragraph(paper_figures(session, session.get_one(StoredProject, project), at=NOON), "en")

    assert paragraph() == "The project P has no answer yet."
    answer_all(database, project, people)
    text = paragraph()
    assert "No task with a known answer was answered." in text
    assert "The project has no guideline." in text
    assert "simulated" not in text
    words = ["workbench", "export", "--project", "P", "--database", f"sqlite:///{path}", "--what", "paper", "--out"]
    words.append(tmp_path / "paper")
    for _ in range(2):
        result = CliRunner().invoke(build_app(), [*map(str, words)])
        assert result.exit_code == 0
        assert "simulated" not in result.output
        # What a run that was killed leaves in the folder is gone after the next one.
        left = sorted(each.name for each in (tmp_path / "paper").iterdir())
        assert [name for name in left if name.startswith(".")] == []
        (tmp_path / "paper" / ".paper.en.md.x1.part").write_text("half")
    assert text in (tmp_path / "paper" / "paper.en.md").read_text(encoding="utf-8").replace("\\", "")
    words[-1] = path
    assert isinstance(CliRunner().invoke(build_app(), [*map(str, words)]).exception, OutputError)
    database.close()
