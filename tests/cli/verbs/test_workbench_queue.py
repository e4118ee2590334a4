"""The command line of queues by priority: at import, later, and as a dry run."""

import json

import pytest
from sqlalchemy import select
from typer.testing import CliRunner

from steelyard.cli.main import build_app
from steelyard.core.errors import ConfigError, RecordError
from steelyard.io.cases import write_cases
from steelyard.workbench.storage.database import Database
from steelyard.workbench.storage.queue_tables import StoredQueuePlace
from steelyard.workbench.storage.tables import StoredItem, StoredProject
from workbench_people import cases


@pytest.fixture
def run(tmp_path):
    def run(verb, *words):
        address = f"sqlite:///{tmp_path / 'workbench.db'}"
        return CliRunner().invoke(build_app(), ["workbench", verb, *map(str, words), "--database", address])

    return run


@pytest.fixture
def files(tmp_path):
    """Cases, and scores by which the first question is sure and the others are less so, the higher their number."""
    write_cases(tmp_path / "cases.jsonl", cases(20))
    lines = [
        json.dumps({"prompt": f"q{number}", "scores": {f"r{place}": place * (20.0 - number) for place in range(3)}})
        for number in range(20)
    ]
    (tmp_path / "model.jsonl").write_text("\n".join(lines) + "\n")
    return tmp_path / "cases.jsonl", tmp_path / "model.jsonl"


def stored(tmp_path, table):
    database = Database(f"sqlite:///{tmp_path / 'workbench.db'}")
    with database.reading() as session:
        found = session.scalars(select(table).order_by(table.id)).all()
    database.close()
    return found


def test_an_import_orders_its_items(run, files, tmp_path):
    path, scores = files
    result = run("import", path, "--project", "p", "--scores", scores, "--random-share", 0.25)
    assert result.stdout.startswith("20 items with 20 tasks in project p.\n  ordered by model; ")
    places = stored(tmp_path, StoredQueuePlace)
    assert sorted(place.place for place in places) == list(range(1, 21))
    prompts = {item.id: item.prompt for item in stored(tmp_path, StoredItem)}
    chosen = [prompts[place.item_id] for place in sorted(places, key=lambda each: each.place) if not place.is_random]
    assert chosen == sorted(chosen, key=lambda name: -int(name[1:]))
    assert 0 < len(chosen) < 20


def test_a_wrong_line_leaves_no_project(run, files, tmp_path):
    path, scores = files
    scores.write_text(scores.read_text().replace("q7", "q77"))
    refused = run("import", path, "--project", "p", "--scores", scores)
    assert isinstance(refused.exception, RecordError)
    assert str(refused.exception).startswith(f"{scores}:8")
    assert not (tmp_path / "workbench.db").exists() or stored(tmp_path, StoredProject) == []


def test_a_dry_run_shows_the_order_and_stores_nothing(run, files, tmp_path):
    path, scores = files
    assert run("import", path, "--project", "p").exit_code == 0
    shown = run("queue", "--project", "p", "--scores", scores, "--dry-run")
    assert shown.exit_code == 0, shown.output
    assert "p: would order 20 items by model." in shown.output
    assert "model: 60 pairs, no labels" in shown.output
    assert stored(tmp_path, StoredQueuePlace) == []
    record = json.loads(run("queue", "--project", "p", "--scores", scores, "--random-share", 0, "--json").stdout)
    assert record["num_ordered"] == 20
    assert [item["prompt"] for item in record["items"][:3]] == ["q19", "q18", "q17"]
    assert [each["num_items"] for each in record["deciles"]] == [2] * 10
    assert len(stored(tmp_path, StoredQueuePlace)) == 20


def test_what_cannot_order_is_refused(run, files):
    path, scores = files
    assert run("import", path, "--project", "p").exit_code == 0
    for words in (
        ["--project", "p"],
        ["--project", "q", "--scores", scores],
        ["--project", "p", "--scores", scores, "--random-share", 1.5],
        ["--project", "p", "--scores", scores, "--scores", scores],
    ):
        assert isinstance(run("queue", *words).exception, ConfigError), words
