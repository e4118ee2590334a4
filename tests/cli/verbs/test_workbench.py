"""The command line of the workbench, on SQLite: what a server's administrator does without its pages."""

import json
import re
import shlex
import signal
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
import typer
from sqlalchemy import select
from typer.testing import CliRunner

from steelyard.annotation.task_kinds import TaskRules
from steelyard.cli.main import build_app
from steelyard.core.errors import ConfigError, EvidenceError, FileError, OutputError
from steelyard.io.cases import read_cases, write_cases
from steelyard.workbench.accounts.people import NewPerson, add_person, log_in, make_key
from steelyard.workbench.pipeline.projects import ProjectSettings, add_project, is_simulated, settings_of
from steelyard.workbench.qualification.results import qualification_figures
from steelyard.workbench.serving import Reach, options_of
from steelyard.workbench.simulated_projects import import_batch, start_project
from steelyard.workbench.simulation import work_until_finished
from steelyard.workbench.storage.database import Database
from steelyard.workbench.storage.tables import StoredEvent, StoredItem, StoredPerson, StoredProject
from task_kind_cases import cases_for
from workbench_people import NOON, answer_all, cases, cases_with_reference

ROOT = Path(__file__).parents[3]


@pytest.fixture
def address(tmp_path):
    return f"sqlite:///{tmp_path / 'workbench.db'}"


@pytest.fixture
def run(address):
    def run(verb, *words):
        return CliRunner().invoke(build_app(), ["workbench", verb, *map(str, words), "--database", address])

    return run


@pytest.fixture
def opened(address):
    database = Database(address)
    yield database
    database.close()


def test_a_file_with_reference_answers_becomes_a_qualification(run, opened, tmp_path):
    write_cases(tmp_path / "reference.jsonl", cases_with_reference(2))
    write_cases(tmp_path / "bare.jsonl", cases(1))
    run("import", tmp_path / "bare.jsonl", "--project", "p")
    made = run("import", tmp_path / "reference.jsonl", "--project", "p", "--qualification")
    assert made.exit_code == 0
    assert made.output.startswith("2 qualification tasks in project p.\n  none is asked for yet")
    refused = run("import", tmp_path / "bare.jsonl", "--project", "p", "--qualification").exception
    assert isinstance(refused, EvidenceError)
    assert "'q0' has no reference order" in str(refused)
    with opened.reading() as session:
        assert len(session.scalars(select(StoredItem)).all()) == 1
        assert qualification_figures(session, session.get_one(StoredProject, 1)).available == 2


@pytest.mark.parametrize("option", [("--batch", "b"), ("--set", "seed=1"), ("--without-review",)])
def test_a_qualification_refuses_options_of_real_work(run, tmp_path, option):
    write_cases(tmp_path / "reference.jsonl", cases_with_reference(2))
    words = ("import", tmp_path / "reference.jsonl", "--project", "p")
    refused = run(*words, "--qualification", *option).exception
    assert isinstance(refused, ConfigError)
    assert (refused.where, refused.do) == (option[0], f"omit {option[0]}, or omit --qualification")
    assert [path.name for path in tmp_path.iterdir()] == ["reference.jsonl"]
    # Both remedies of the message.
    assert run(*words, *option).exit_code == 0
    assert run(*words, "--qualification").exit_code == 0


def test_the_first_password_opens_the_account(run, opened):
    result = run("add-person", "ada", "--role", "delivery", "--language", "zh", "--skill", "maths")
    assert result.exit_code == 0
    password = re.search(r"first password: (\S+)", result.output)[1]
    opened.write(make_key)
    assert opened.write(lambda session: log_in(session, "ada", password, address="", at=0.0))
    with opened.reading() as session:
        person = session.scalars(select(StoredPerson)).one()
        assert (person.role, person.language, person.skills) == ("delivery", "zh", ["maths"])


def test_what_is_imported_comes_back_when_it_is_finished(run, opened, tmp_path):
    write_cases(tmp_path / "cases.jsonl", cases(3))
    result = run("import", tmp_path / "cases.jsonl", "--project", "p", "--set", "rules.num_annotators=3")
    assert result.output == "3 items with 3 tasks in project p.\n"

    def finish(session):
        project = session.scalars(select(StoredProject)).one()
        assert settings_of(project).rules.num_annotators == 3
        for item in session.scalars(select(StoredItem).where(StoredItem.prompt != "q1")):
            item.state = "finished"

    opened.write(finish)
    out = tmp_path / "out.jsonl"
    assert run("export", "--project", "p", "--out", out, "--evidence", "aligned").exit_code == 0
    assert [case.prompt.id for case in read_cases(out)] == ["q0", "q2"]
    with opened.reading() as session:
        assert session.scalars(select(StoredEvent.action)).all()[-1] == "exported"


def make_annotators(session):
    return [add_person(session, NewPerson(name, "annotator"), by=None, at=NOON).id for name in ("ada", "bo")]


def test_two_annotators_have_a_bench_without_reviewers(run, opened, tmp_path):
    write_cases(tmp_path / "cases.jsonl", cases(4))
    assert run("import", tmp_path / "cases.jsonl", "--project", "p", "--without-review").exit_code == 0
    people = opened.write(make_annotators)
    answer_all(opened, 1, people, order=lambda person, shown: sorted(shown, reverse=person == people[1]))
    refused = run("export", "--project", "p", "--out", tmp_path / "out.jsonl").exception
    assert isinstance(refused, EvidenceError)
    assert "no item is finished: 4 items in alignment (annotator: Align)" in str(refused)
    assert not (tmp_path / "out.jsonl").exists()
    write_cases(tmp_path / "more.jsonl", cases(2, first=9))
    assert run("import", tmp_path / "more.jsonl", "--project", "p").exit_code == 0
    answer_all(opened, 1, people)
    done = run("export", "--project", "p", "--out", tmp_path / "out.jsonl")
    assert done.output.splitlines() == [
        f"2 finished items in {tmp_path / 'out.jsonl'}.",
        "  not finished: 4 items in alignment (annotator: Align)",
    ]


def test_an_export_without_finished_items_says_who_has_to_act(run, opened, tmp_path):
    write_cases(tmp_path / "cases.jsonl", cases(20))
    assert run("import", tmp_path / "cases.jsonl", "--project", "p").exit_code == 0
    answer_all(opened, 1, opened.write(make_annotators))
    text = str(run("export", "--project", "p", "--out", tmp_path / "out.jsonl").exception)
    assert "6 items in delivery review (delivery: Review; nobody is: steelyard workbench add-person" in text
    assert "in validation (researcher: Review; nobody is" in text
    run("add-person", "cy", "--role", "delivery")
    text = str(run("export", "--project", "p", "--out", tmp_path / "out.jsonl").exception)
    assert "6 items in delivery review (delivery: Review)," in text


def test_the_settings_of_a_project_are_listed_with_their_meaning(run):
    lines = run("import", "--settings").output.splitlines()
    assert "rules.validation = true  true or false" in lines
    assert any(line.startswith("rules.delivery_share = 0.3") for line in lines)
    assert any(line.startswith("qualification.num_tasks = 0") for line in lines)


def test_a_broken_case_file_leaves_no_project(run, opened, tmp_path):
    path = tmp_path / "cases.jsonl"
    write_cases(path, cases(2))
    path.write_bytes(path.read_bytes() + b'{"prompt": 1}\n')
    error = run("import", path, "--project", "p").exception
    assert str(error).startswith(f"{path}:3")
    # One with a single response fails later, in the middle of the transaction.
    write_cases(path, [*cases(2), *cases(1, 1, first=2)])
    assert "1 response gets no task" in str(run("import", path, "--project", "p").exception)
    opened.migrate()
    with opened.reading() as session:
        assert session.scalars(select(StoredProject)).all() == []


def test_settings_of_a_project_that_is_there_are_not_changed_by_an_import(run, tmp_path):
    write_cases(tmp_path / "a.jsonl", cases(1))
    write_cases(tmp_path / "b.jsonl", cases(1, first=1))
    assert run("import", tmp_path / "a.jsonl", "--project", "p").exit_code == 0
    refused = run("import", tmp_path / "b.jsonl", "--project", "p", "--set", "seed=1").exception
    assert isinstance(refused, ConfigError)
    assert run("import", tmp_path / "b.jsonl", "--project", "p").exit_code == 0
    assert "allowed: p" in str(run("export", "--project", "q", "--out", tmp_path / "o.jsonl").exception)


def test_cases_with_too_few_responses_are_skipped_as_the_error_says(run, tmp_path):
    path = tmp_path / "cases.jsonl"
    write_cases(path, [*cases(2), *cases(1, 1, first=2), *cases(1, 2, first=3)])
    refused = run("import", path, "--project", "p").exception
    assert "tasks.too_few=skip" in refused.do
    result = run("import", path, "--project", "p", "--set", "tasks.too_few=skip")
    assert result.output == "3 items with 3 tasks in project p; 1 case left out.\n"


def test_a_backup_is_a_workbench(run, tmp_path):
    run("add-person", "ada")
    copy = tmp_path / "copy.db"
    assert run("backup", copy).exit_code == 0
    database = Database(f"sqlite:///{copy}")
    with database.reading() as session:
        assert session.scalars(select(StoredPerson.name)).all() == ["ada"]
    database.close()
    assert isinstance(run("backup", copy).exception, OutputError)


def test_erasing_asks_first(run, opened):
    run("add-person", "ada")
    refused = run("erase", "ada").exception
    assert isinstance(refused, ConfigError)
    assert refused.do.startswith("add --yes")
    result = run("erase", "ada", "--yes")
    with opened.reading() as session:
        person = session.scalars(select(StoredPerson)).one()
    assert person.name == f"erased {person.pseudonym}"
    assert person.pseudonym in result.output
    assert isinstance(run("erase", "ada", "--yes").exception, ConfigError)


@pytest.mark.parametrize(
    "words", [["export", "--project", "p", "--out", "o.jsonl"], ["backup", "copy.db"], ["erase", "ada", "--yes"]]
)
def test_a_database_that_is_not_there_is_not_made(run, tmp_path, words):
    assert isinstance(run(*words).exception, FileError)
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_something_else_is_refused(run, tmp_path):
    (tmp_path / "workbench.db").write_text("no database\n" * 200)
    refused = run("add-person", "ada").exception
    assert isinstance(refused, OutputError)
    assert "not a database" in str(refused)


@pytest.mark.parametrize("name", ["workbench.md", "workbench.zh.md"])
def test_the_commands_of_the_how_to_exist(name):
    text = (ROOT / "docs" / "howto" / name).read_text(encoding="utf-8")
    lines = re.findall("^steelyard workbench (.*)$", text, flags=re.MULTILINE)
    group = typer.main.get_command(build_app()).commands["workbench"]
    assert {line.split()[0] for line in lines} == {
        "demo",
        "serve",
        "add-person",
        "import",
        "export",
        "tasks",
        "answers",
        "backup",
        "erase",
    }
    for verb, *words in map(shlex.split, lines):
        group.commands[verb].make_context(verb, words)


EXPORTED = {
    "cases": {"--out", "--evidence", "--force"},
    "answers": {"--out", "--force"},
    "gold": {"--out", "--force"},
    "native": {"--out", "--force", "--json"},
    "paper": {"--out"},
    "release": {"--out", "--name", "--freeze", "--evidence", "--json"},
}
VALUES = {"--name": ["1.0"], "--evidence": ["both"], "--freeze": [], "--force": [], "--json": []}


@pytest.mark.parametrize("what", EXPORTED)
def test_an_option_of_another_export_is_refused_by_its_name(run, tmp_path, what):
    for option in VALUES.keys() - EXPORTED[what]:
        refused = run("export", "--project", "p", "--what", what, "--out", "o", option, *VALUES[option]).exception
        assert isinstance(refused, ConfigError)
        owners = ", ".join(other for other in EXPORTED if option in EXPORTED[other])
        assert (refused.where, refused.allowed) == (option, f"with --what {owners}")
        assert refused.do.startswith(f"omit {option}")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "where", "do"),
    [
        (["--what", "cases"], "--out", "name it: --out FILE"),
        ([], "--out", "name it: --out FILE"),
        (["--what", "answers"], "--out", "name it: --out FILE"),
        (["--what", "gold"], "--out", "name it: --out FILE"),
        (["--what", "paper"], "--out", "name it: --out FOLDER"),
        (["--what", "answers", "--out", "a.csv"], "--out", "name it: --out NAME.jsonl"),
        (["--what", "gold", "--out", "a"], "--out", "name it: --out NAME.jsonl"),
        (["--what", "native", "--out", "a.jsonl"], "--out", "name it: --out NAME.json"),
        (["--what", "native", "--force"], "--force", "name it: --out FILE"),
        (["--what", "release", "--out", "r"], "--out", "name the release: --name NAME"),
        (["--what", "release", "--evidence", "both"], "--evidence", "name the release: --name NAME"),
        (["--what", "release", "--freeze"], "--freeze", "name the release: --name NAME"),
    ],
)
def test_an_export_that_cannot_be_written_is_refused_before_anything_is_opened(run, tmp_path, words, where, do):
    refused = run("export", "--project", "p", *words).exception
    assert isinstance(refused, ConfigError)
    assert (refused.where, refused.do) == (where, do)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_every_export_has_an_example_that_runs(run, opened, tmp_path, monkeypatch):
    finish_project(opened)
    command = typer.main.get_command(build_app()).commands["workbench"].commands["export"]
    examples = [shlex.split(line)[3:] for line in re.findall("Example: `(steelyard [^`]+)`", command.help)]
    monkeypatch.chdir(tmp_path)
    exported = {example[example.index("--what") + 1] if "--what" in example else "cases" for example in examples}
    assert exported == set(EXPORTED)
    for example in examples:
        example[example.index("--project") + 1] = "Simulated project"
        assert run("export", *example).exit_code == 0
    written = {"answers.jsonl", "bench.jsonl", "gold.jsonl", "paper", "bench-1.0"}
    assert written <= {path.name for path in tmp_path.iterdir()}


def test_every_command_that_a_text_names_exists():
    commands = typer.main.get_command(build_app()).commands["workbench"].commands
    pages = [
        ROOT / "README.md",
        ROOT / "README.zh.md",
        *(ROOT / "docs").glob("*.md"),
        *(ROOT / "docs/howto").glob("*.*"),
    ]
    sources = [path for path in (ROOT / "src").rglob("*") if path.suffix in (".py", ".toml", ".html", ".js")]
    texts = [path.read_text(encoding="utf-8") for path in (*pages, *sources)]
    named = {
        name
        for text in texts
        for name in re.findall(r"(?:steelyard workbench|Command\(\"workbench) ([a-z][a-z-]*)", text)
    }
    assert {"export", "import", "add-person"} <= named <= set(commands)


def test_the_network_is_reached_by_https_or_not_by_accident():
    with pytest.raises(ConfigError, match="unencrypted") as refused:
        options_of(Reach("192.0.2.1"))
    assert "behind_https=true" in refused.value.do
    assert "insecure=true" in refused.value.do
    assert "192.0.2.1" in options_of(Reach("192.0.2.1", is_insecure=True)).hosts
    for reach in (Reach("0.0.0.0", is_insecure=True), Reach(proxy="127.0.0.1"), Reach("::", proxy="192.0.2.2")):
        with pytest.raises(ConfigError, match="public_name"):
            options_of(reach)
        options = options_of(reach._replace(public_names=("label.example.org",)))
        assert "label.example.org" in options.hosts
        assert options.is_secure == (reach.proxy is not None)
    assert options_of(Reach()).hosts == ("localhost", "127.0.0.1", "[::1]")


@pytest.mark.slow
def test_a_wide_host_ends_with_2_before_anything_is_made(tmp_path):
    words = ["workbench", "serve", "--host", "0.0.0.0", "--database", f"sqlite:///{tmp_path / 'w.db'}"]
    done = subprocess.run([sys.executable, "-m", "steelyard", *words], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "unencrypted" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_pages_of_simulated_people_say_so_however_they_are_served(address, opened):
    opened.migrate()
    assert not opened.write(is_simulated)
    opened.write(lambda session: add_project(session, "p", ProjectSettings(), by=None, at=0.0))
    assert not opened.write(is_simulated)
    opened.write(lambda session: add_project(session, "q", ProjectSettings(), by=None, at=0.0, is_simulated=True))
    assert opened.write(is_simulated)


@pytest.mark.slow
def test_serve_answers_on_a_free_port_and_ends_at_ctrl_c(address):
    command = [sys.executable, "-m", "steelyard", "workbench", "serve", "--port", "0", "--database", address]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as server:
        try:
            line = server.stdout.readline()
            url = line.strip().rpartition(" ")[2]
            with urllib.request.urlopen(f"{url}login") as answer:
                assert answer.status == 200
                assert "default-src 'self'" in answer.headers["content-security-policy"]
        finally:
            server.send_signal(signal.SIGINT)
            errors = server.communicate()[1]
    assert line.startswith(address)
    assert "add-person NAME --role administrator" in errors
    assert "Traceback" not in errors
    assert server.returncode == 0
    assert errors.count("stopped") == 1


@pytest.mark.slow
def test_results_of_native_speakers_are_printed_by_language(run, opened, tmp_path):
    opened.migrate()
    every = cases_for("native_check", 6)
    simulation = start_project(
        opened, every, seed=1, begun_at=0.0, num_annotators=3, tasks=TaskRules(kind="native_check")
    )
    import_batch(simulation, every, "b", has_reference=True)
    assert "No finished item" in run("export", "--project", "Simulated project", "--what", "native").output
    work_until_finished(simulation)
    printed = run("export", "--project", "Simulated project", "--what", "native")
    assert printed.exit_code == 0
    for word in ("simulated people", "as reference", "reads native", "ar", "zh"):
        assert word in " ".join(printed.output.split())
    words, out = ("export", "--project", "Simulated project", "--what", "native"), tmp_path / "native.json"
    results = json.loads(run(*words, "--json").output)
    assert sorted(each["language"] for each in results) == ["ar", "en", "zh"]
    assert all(each["simulated"] and each["num_items"] == 2 for each in results)
    written = run(*words, "--out", out)
    assert written.output == f"{printed.output}3 languages in {out}.\n"
    assert run(*words, "--out", out, "--json").output == out.read_text(encoding="utf-8")
    assert json.loads(out.read_text(encoding="utf-8")) == results
    out.write_text("a week of work\n")
    assert isinstance(run(*words, "--out", out).exception, OutputError)
    assert run(*words, "--out", out, "--force").exit_code == 0
    assert json.loads(out.read_text(encoding="utf-8")) == results


def test_an_export_says_how_many_prompts_were_dropped(run, opened, tmp_path):
    opened.migrate()
    every = cases_for("prompt_review", 12)
    simulation = start_project(
        opened, every, seed=1, begun_at=0.0, num_annotators=3, tasks=TaskRules(kind="prompt_review")
    )
    import_batch(simulation, every, "b")
    num_finished = work_until_finished(simulation)["finished"]
    output = run("export", "--project", "Simulated project", "--out", tmp_path / "o.jsonl").output
    num_written = len(list(read_cases(tmp_path / "o.jsonl")))
    assert 0 < num_written < num_finished
    assert f"{num_finished - num_written} prompt" in output


@pytest.mark.parametrize("reach", [["--behind-https", "--public-name", "a.org"], ["--host", "0.0.0.0", "--insecure"]])
def test_a_demonstration_is_for_this_machine_alone(run, opened, reach):
    opened.migrate()
    new = NewPerson("annotator", "annotator", "simulated people", is_simulated=True)
    opened.write(lambda session: add_person(session, new, by=None, at=0.0))
    reach = [*reach, *(["--public-name", "a.org"] if "--insecure" in reach else [])]
    assert "a password that everybody knows" in str(run("serve", *reach).exception)


def test_several_processes_need_a_server_of_databases(run):
    assert "SQLite has one writer" in str(run("serve", "--processes", "2", "--port", "0").exception)


def test_an_export_replaces_nothing_that_it_did_not_write(run, opened, tmp_path):
    finish_project(opened)
    words, out = ("export", "--project", "Simulated project", "--out"), tmp_path / "bench.jsonl"
    out.write_text("a week of work\n")
    refused = run(*words, out)
    assert isinstance(refused.exception, OutputError)
    assert out.read_text() == "a week of work\n"
    assert [path.name for path in tmp_path.glob(".bench*")] == []
    # Both remedies of the message.
    assert "name another, or say --force" in refused.exception.do
    assert run(*words, tmp_path / "another.jsonl").exit_code == 0
    assert run(*words, out, "--force").exit_code == 0
    exported = out.read_bytes()
    assert exported == (tmp_path / "another.jsonl").read_bytes()
    again = run(*words, out)
    assert again.output.endswith("It was there, with equal content.\n")
    assert out.read_bytes() == exported


def finish_project(opened):
    opened.migrate()
    every = cases_for("pairwise", 4)
    simulation = start_project(opened, every, seed=1, begun_at=0.0, tasks=TaskRules(kind="pairwise"))
    import_batch(simulation, every, "b", has_reference=True)
    work_until_finished(simulation)


@pytest.mark.parametrize(
    ("typed", "host"),
    [
        ("label.example.org", "label.example.org"),
        ("Label.Example.org:8443", "label.example.org"),
        ("测试.example.org.", "xn--0zwm56d.example.org"),
        ("192.0.2.7", "192.0.2.7"),
        ("[2001:DB8::1]:443", "[2001:db8::1]"),
    ],
)
def test_a_public_name_is_compared_as_browsers_send_it(typed, host):
    assert host in options_of(Reach(public_names=(typed,))).hosts


@pytest.mark.parametrize(
    "name",
    [
        "",
        " ",
        "a b",
        "a\nb",
        "a\0b",
        "https://a.org",
        "a.org/x",
        "*",
        "*.a.org",
        "a..b",
        "-a",
        "[x]",
        "a" * 64,
        "a," * 99,
    ],
)
def test_a_public_name_that_is_none_is_refused_with_what_to_give(run, tmp_path, name):
    refused = run("serve", "--behind-https", "--public-name", name).exception
    assert isinstance(refused, ConfigError)
    assert refused.where == "public_name"
    assert list(tmp_path.iterdir()) == []
    # The remedy of the message.
    option, remedy = refused.do.split()[-2:]
    assert (option, remedy in options_of(Reach(public_names=(remedy,))).hosts) == ("--public-name", True)


@pytest.mark.parametrize("proxy", ["", "*", "proxy.example.org", "256.1.1.1", "10.0.0.0/33", "127.0.0.1:80"])
def test_a_proxy_is_an_address(run, tmp_path, proxy):
    words = ("serve", "--behind-https", "--public-name", "a.org", "--proxy")
    refused = run(*words, proxy).exception
    assert refused.where == "proxy"
    assert list(tmp_path.iterdir()) == []
    option, remedy = refused.do.split()[-2:]
    assert option == "--proxy"
    for address in (remedy, "10.1.2.3/8", "::1"):
        options_of(Reach(public_names=("a.org",), proxy=address))


@pytest.mark.parametrize(
    ("made", "problem", "remedy"),
    [
        ("sqlite:///{folder}", "is not a file", "name the file of a workbench, or a new one"),
        ("sqlite:////dev/null", "is not a file", "name the file of a workbench, or a new one"),
        ("sqlite+aiosqlite:///{folder}/w.db", "no address of a database", None),
        pytest.param(
            "postgresql://u:secret@127.0.0.1:{silent}/x?connect_timeout=2",
            "timeout expired",
            "start the server",
            marks=pytest.mark.slow,
        ),
        ("postgresql://u:secret@127.0.0.1:{closed}/x", "refused", "start the server"),
    ],
)
def test_a_database_that_cannot_be_opened_says_what_to_do(tmp_path, made, problem, remedy):
    with socket.socket() as silent, socket.socket() as closed:
        # One takes connections and says nothing, as a machine behind a firewall may; nobody listens at the other.
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        closed.bind(("127.0.0.1", 0))
        address = made.format(folder=tmp_path, silent=silent.getsockname()[1], closed=closed.getsockname()[1])
        words = ["workbench", "export", "--what", "native", "--project", "p", "--database", address]
        refused = CliRunner().invoke(build_app(), words).exception
    assert problem in str(refused)
    assert remedy is None or refused.do.startswith(remedy)
    assert "secret" not in str(refused)
