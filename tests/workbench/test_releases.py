"""Releases: the same bytes after later work and erased people, hashes that hold, and a card that says what it is."""

import hashlib
import json
import threading
import tomllib
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import msgspec
import pytest
from sqlalchemy import select, update
from typer.testing import CliRunner

from steelyard.cli.main import build_app
from steelyard.core.errors import ConfigError, EvidenceError, OutputError
from steelyard.core.types import Pair, Rating
from steelyard.io.cases import read_cases
from steelyard.ranking.judgment_table import Only
from steelyard.stages.evaluate import Config, evaluate
from steelyard.stages.resolve import Config as ResolveConfig
from steelyard.stages.resolve import resolve
from steelyard.workbench.accounts.people import erase_person
from steelyard.workbench.pipeline.changed_settings import change_settings
from steelyard.workbench.pipeline.projects import settings_of
from steelyard.workbench.results.release_bench import ReleaseCounts, rank_cases
from steelyard.workbench.results.releases import files_of, make_release, release_file, releases_of
from steelyard.workbench.storage.database import Database
from steelyard.workbench.storage.release_tables import StoredRelease, StoredReleasePart
from steelyard.workbench.storage.tables import StoredEvent, StoredItem, StoredPerson, StoredProject
from steelyard.workbench.views.guidelines import NewGuideline, add_guideline
from strategies import case, judgment
from workbench_people import NOON, answer_all, make_project

FILES = {
    "bench.toml", "cases.jsonl", "README.md", "README.zh.md", "figures.json", "manifest.json",
    "paper.en.md", "paper.en.tex", "paper.zh.md", "paper.zh.tex",
}  # fmt: skip


def finish(database, *prompts):
    database.write(
        lambda session: session.execute(
            update(StoredItem).where(StoredItem.prompt.in_(prompts)).values(state="finished")
        )
    )


def contents(database, name):
    """The bytes of every file of a release."""
    with database.reading() as session:
        release = session.scalars(select(StoredRelease).filter_by(name=name)).one()
        return {path: b"".join(release_file(session, release, path)) for path in files_of(release)}


@pytest.fixture
def worked(database):
    """A database with a project of three items, all answered and two of them finished, under a guideline."""
    project, people = make_project(database, num_cases=3)

    def write(session):
        row = session.get_one(StoredProject, project)
        add_guideline(session, row, NewGuideline("", "en", "Be exact."), by=None, at=NOON)

    database.write(write)
    answer_all(database, project, people)
    finish(database, "q0", "q1")
    return database, project, people


def release(database, project, name, **changes):
    return make_release(database, project, name, **({"evidence": "both", "by": None, "at": NOON} | changes))


def test_a_release_is_the_same_after_later_work_and_erased_people(worked):
    database, project, people = worked
    made = release(database, project, "1.0", by=people[1])
    before = contents(database, "1.0")
    assert before.keys() == FILES
    manifest = json.loads(before["manifest.json"])
    assert made.sha256 == hashlib.sha256(before["manifest.json"]).hexdigest()
    for path, noted in manifest["files"].items():
        assert noted == {"bytes": len(before[path]), "sha256": hashlib.sha256(before[path]).hexdigest()}
    assert (manifest["items"], manifest["judgments"], manifest["ratings"], manifest["judges"]) == (2, 12, 12, 2)
    assert manifest["guidelines"][0]["sha256"] == hashlib.sha256(b"Be exact.").hexdigest()
    assert manifest["exported_at"] == "2023-11-14T22:13:20Z"

    def work(session):
        row = session.get_one(StoredProject, project)
        settings = settings_of(row)
        rules = msgspec.structs.replace(settings.rules, least_agreement=0.5)
        change_settings(session, row, msgspec.structs.replace(settings, rules=rules), by=None, at=NOON)
        add_guideline(session, row, NewGuideline("", "en", "Be brief."), by=None, at=NOON)
        person = session.get_one(StoredPerson, people[0])
        assert person.pseudonym.encode() in before["cases.jsonl"]
        erase_person(session, person, by=None, at=NOON)
        item = session.scalars(select(StoredItem).filter_by(prompt="q0")).one()
        item.state, item.round, item.discarded = "annotating", 2, ["r1"]

    database.write(work)
    finish(database, "q2")
    assert contents(database, "1.0") == before
    release(database, project, "1.1")
    later = contents(database, "1.1")
    assert [json.loads(line)["prompt"]["id"] for line in later["cases.jsonl"].splitlines()] == ["q1", "q2"]
    assert contents(database, "1.0") == before
    with database.reading() as session:
        assert [each.name for each in releases_of(session, project)] == ["1.1", "1.0"]
        events = session.scalars(select(StoredEvent).filter_by(action="released")).all()
        exporter = session.get_one(StoredPerson, people[1]).pseudonym
    assert [event.detail["release"] for event in events] == ["1.0", "1.1"]
    assert events[0].person_id == people[1]
    assert manifest["exported_by"] == exporter


def test_no_file_of_a_release_names_a_person_and_the_card_counts_what_it_has(worked):
    database, project, _ = worked
    release(database, project, "1.0", evidence="aligned")
    files = contents(database, "1.0")
    assert not any(b"person 0" in text or b"person 1" in text for text in files.values())
    card = files["README.md"].decode()
    assert "# P, release 1.0" in card
    assert "2 prompts with 12 judgments and 12 scores of 2 people" in card
    assert hashlib.sha256(files["cases.jsonl"]).hexdigest() in card
    assert "2 annotators gave 6 answers" in card.replace("\\", "")
    assert "2 个提示词，2 人给出的 12 个判断" in files["README.zh.md"].decode()


def test_what_was_changed_in_the_database_is_noticed(worked):
    database, project, _ = worked
    release(database, project, "1.0")

    def tamper(session):
        parts = {row.path: row for row in session.scalars(select(StoredReleasePart))}
        parts["cases.jsonl"].content = parts["README.md"].content

    database.write(tamper)
    with pytest.raises(EvidenceError, match=r"cases\.jsonl of the release '1\.0'"):
        contents(database, "1.0")


def test_a_name_is_taken_once_and_names_files(worked):
    database, project, _ = worked
    release(database, project, "1.0-a")
    for name in ("1.0-a", "1.0-A", "", "../x", "a b", "发布", "x" * 101, ".hidden"):
        with pytest.raises(ConfigError):
            release(database, project, name)
    with database.reading() as session:
        assert len(releases_of(session, project)) == 1


def test_of_releases_at_once_whose_names_are_one_file_the_first_is_made(worked):
    database, project, _ = worked
    for number in range(4):
        names = [f"v{number}", f"V{number}"] * 2
        start = threading.Barrier(len(names))

        def make(name, start=start):
            start.wait()
            try:
                return release(database, project, name).name
            except ConfigError as refused:
                return "refused" if "has a release" in str(refused) else str(refused)

        with ThreadPoolExecutor(len(names)) as pool:
            assert Counter(pool.map(make, names))["refused"] == len(names) - 1


def test_nothing_finished_is_nothing_to_release(database):
    project, _ = make_project(database)
    with pytest.raises(ConfigError, match="no item"):
        release(database, project, "1.0")


def test_the_pages_and_programs_make_list_and_send_releases(visit):
    finish(visit.database, "q0")
    site = visit.site
    page = f"/manage/projects/{site.project}/releases"
    browser, csrf = visit.browser("administrator"), visit.csrf("administrator")
    assert browser.post(page, data={"name": "1.0", "evidence": "aligned", "csrf": csrf}).status_code == 303
    shown = browser.get(page).text
    assert "1.0" in shown
    assert f"{page}/1?file=cases.jsonl" in shown
    sent = browser.get(f"{page}/1?file=cases.jsonl")
    assert sent.headers["content-disposition"] == 'attachment; filename="1.0-cases.jsonl"'
    assert [json.loads(line)["prompt"]["id"] for line in sent.text.splitlines()] == ["q0"]
    program = visit.program(site.tokens["researcher"])
    rest = f"/api/v1/projects/{site.project}/releases"
    assert program.post(rest, json={"name": "1.1"}).json()["items"] == 1
    taken = program.post(rest, json={"name": "1.1"})
    assert (taken.status_code, "has a release" in taken.json()["error"]) == (400, True)
    assert [note["name"] for note in program.get(rest).json()] == ["1.1", "1.0"]
    manifest = program.get(f"{rest}/1", params={"file": "manifest.json"})
    assert hashlib.sha256(manifest.content).hexdigest() == program.get(rest).json()[1]["sha256"]
    assert program.get(f"{rest}/1", params={"file": "../x"}).status_code == 404
    assert program.get("/api/v1/projects/999/releases/1").status_code == 404


def test_the_command_line_makes_lists_and_writes_releases(sqlite_template, tmp_path):
    path = tmp_path / "workbench.db"
    path.write_bytes(sqlite_template.read_bytes())
    database = Database(f"sqlite:///{path}")
    project, people = make_project(database, num_cases=2)
    answer_all(database, project, people)

    def run(*words):
        place = ("export", "--project", "P", "--what", "release", "--database", f"sqlite:///{path}")
        return CliRunner().invoke(build_app(), ["workbench", *map(str, (*place, *words))])

    assert "no release '1.0'" in str(run("--name", "1.0").exception)
    assert isinstance(run("--name", "1.0", "--freeze").exception, ConfigError)
    assert run().output == "P has no release.\n"
    finish(database, "q0", "q1")
    out = tmp_path / "out"
    out.mkdir()
    (out / "mine.txt").write_text("a week of work\n")
    assert "a date of its own" in str(run("--name", "1.0", "--freeze", "--out", out).exception)
    assert run().output == "P has no release.\n"
    (out / "mine.txt").unlink()
    made = run("--name", "1.0", "--freeze", "--out", out)
    assert made.output.splitlines() == [
        "Release 1.0 of P: 2 items with 12 judgments.",
        f"  SHA-256 of its manifest: {hashlib.sha256((out / 'manifest.json').read_bytes()).hexdigest()}",
        f"{out} has release 1.0 of P.",
    ]
    assert {file.name: file.read_bytes() for file in out.iterdir()} == contents(database, "1.0")
    assert len(list(read_cases(out / "cases.jsonl"))) == 2
    words = ("--name", "1.0", "--out", out)
    assert run(*words).output == f"{out} has release 1.0 of P. It was there, with equal content.\n"
    assert run(*words[:2], "--out", tmp_path / "again").output == f"{tmp_path / 'again'} has release 1.0 of P.\n"
    assert (tmp_path / "again" / "manifest.json").read_bytes() == (out / "manifest.json").read_bytes()
    (out / "cases.jsonl").write_text("a week of work\n")
    assert isinstance(run(*words).exception, OutputError)
    assert (out / "cases.jsonl").read_text() == "a week of work\n"
    assert [path.name for path in tmp_path.iterdir() if path.suffix == ".part"] == []
    assert "has a release '1.0'" in str(run("--name", "1.0", "--freeze").exception)
    assert "write it: --out FOLDER" in str(run("--name", "1.0").exception)
    assert "has the evidence aligned" in str(run(*words, "--evidence", "both").exception)
    assert run("--name", "1.1", "--freeze", "--evidence", "both").exit_code == 0
    mistyped = run("--name", "1.O", "--out", tmp_path / "mistyped").exception
    assert isinstance(mistyped, ConfigError)
    assert (mistyped.where, mistyped.allowed) == ("--name", "1.1, 1.0")
    assert not (tmp_path / "mistyped").exists()
    listed = json.loads(run("--json").output)
    assert [(each["release"], each["evidence"]) for each in listed] == [("1.1", "both"), ("1.0", "aligned")]
    assert json.loads(run("--name", "1.0", "--out", tmp_path / "again", "--json").output) == listed[1]
    database.close()


def written(database, name, folder):
    folder.mkdir()
    for path, content in contents(database, name).items():
        (folder / path).write_bytes(content)
    return folder


def evaluated(folder, out, **bench):
    return evaluate([folder], out, Config(num_resamples=50, bench=bench), model="longer").summary


def test_a_release_is_a_bench_with_a_headline(worked, tmp_path):
    database, project, _ = worked
    for evidence in ("aligned", "both"):
        release(database, project, evidence, evidence=evidence)
        folder = written(database, evidence, tmp_path / evidence)
        summary = evaluated(folder, tmp_path / f"{evidence}-evaluated")
        assert (summary.bench, summary.headline) == (f"P {evidence}", "overall")
        assert summary.overall.n == 2
        # Equal to the ranking that `resolve` makes of what stands.
        only = Only(kind=("human",), evidence=("aligned",))
        resolve(folder / "cases.jsonl", tmp_path / f"{evidence}-resolved", ResolveConfig(only=only))
        expected = [case.ranking for case in read_cases(tmp_path / f"{evidence}-resolved" / "cases.jsonl")]
        assert [case.ranking for case in read_cases(folder / "cases.jsonl")] == expected


def test_a_release_that_is_cut_is_refused_and_named_as_incomplete(worked, tmp_path):
    database, project, _ = worked
    release(database, project, "1.0")
    folder = written(database, "1.0", tmp_path / "release")
    lines = (folder / "cases.jsonl").read_bytes().splitlines(keepends=True)
    (folder / "cases.jsonl").write_bytes(lines[0])
    with pytest.raises(EvidenceError, match=r"this file has changed since the list of files of the benchmark P 1\.0"):
        evaluated(folder, tmp_path / "out")
    assert evaluated(folder, tmp_path / "out", files={}).missing == {"all": "1 prompt, expected 2"}


@pytest.mark.parametrize("subset", ["open", 'a "quoted" \\ name', "数学\n\x7f"])
def test_the_subsets_of_a_release_are_those_of_its_cases(subset):
    counts = ReleaseCounts()
    for name in (subset, None, None, "other"):
        counts.add(case(subset=name, ranking=(("a",), ("b",))))
    text = counts.bench_file(name="P", release="1", files={"cases.jsonl": "0a"})
    assert tomllib.loads(text) == {
        "name": "P", "version": "1", "measures": ["accuracy", "exact_match"], "default_subset": "other 2",
        "subsets": {subset: 1, "other": 1, "other 2": 2}, "files": {"cases.jsonl": "0a"},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("languages", "is_by_language"), [("en en it it", True), ("en en en it", False), ("en", False)]
)
def test_a_release_of_parallel_items_is_a_bench_of_its_languages(languages, is_by_language):
    counts = ReleaseCounts()
    for language in languages.split():
        counts.add(case(subset="chat", language=language, ranking=(("a",), ("b",))))
    table = tomllib.loads(counts.bench_file(name="P", release="1", files={}))
    assert table.get("languages") == (["en", "it"] if is_by_language else None)
    assert table["subsets"] == {"chat": 2 if is_by_language else len(languages.split())}


def test_people_who_align_a_judgment_are_counted_one_by_one():
    joint = msgspec.structs.replace(judgment("a>b", judge="aligned"), meta={"people": ["a1", "a2"]})
    counts = ReleaseCounts()
    counts.add(case("x", "ab", [joint, judgment("a>b", judge="a2"), judgment("a>b", kind="llm")]))
    assert counts.facts(release="1", at="now", evidence="aligned", sha256="0a")["judges"] == "2"


def test_people_who_rate_translations_are_counted_and_the_languages_are_those_of_both_texts():
    rating = Rating(response="a", rater="p1", kind="human", dimension="mqm", value=-1.0)
    aligned = msgspec.structs.replace(rating, rater="alignment", meta={"people": ["p1", "p2"]})
    rated = case("x", "ab", language="en")
    prompt = msgspec.structs.replace(rated.prompt, meta={"answer_language": "he"})
    counts = ReleaseCounts()
    counts.add(msgspec.structs.replace(rated, prompt=prompt, ratings=(rating,)))
    counts.add(
        msgspec.structs.replace(rated, ratings=(aligned, msgspec.structs.replace(rating, kind="model", rater="m")))
    )
    assert counts.people == {"p1", "p2"}
    assert counts.languages == {"en → he": 1, "en": 1}


def test_cases_that_order_nothing_are_no_bench():
    counts = ReleaseCounts()
    counts.add(case(ranking=(("a", "b"),)))
    assert counts.bench_file(name="P", release="1", files={}) is None


def test_what_people_decided_comes_before_the_imported_order():
    older = (Pair(better="b", worse="a"),)
    answered = case("x", "ab", ["a>b"], ranking=(("b",), ("a",)), pairs=older)
    by_a_model = case("y", "ab", [judgment("a>b", kind="llm")], ranking=(("b",), ("a",)), pairs=older)
    first, second = rank_cases([answered, by_a_model])
    assert (first.ranking, first.pairs) == ((("a",), ("b",)), None)
    assert second == by_a_model
