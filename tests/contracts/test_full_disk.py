"""No room for a file, the first one that a verb writes or its largest: named, nothing half-written, repeatable.

A limit on the size of files stands for the full disk: every system has it, and needs no right to mount one. Both end in
an error of the same call, and share their handling.
"""

import resource
import shutil
from contextlib import contextmanager

import pytest

from hostile_files import GOOD, plans
from steelyard.cli.main import main, verbs_by_name
from steelyard.cli.stage_verb import StageVerb

pytestmark = pytest.mark.slow

RECIPE = """
[stages.resolved]
verb = "resolve"
cases = "good.jsonl"
"""
VERBS = {
    "audit": "audit good.jsonl --out {}",
    "clean": "clean good.jsonl --workers 1 --out {}",
    "compare": "compare one two --out {}",
    "convert": "convert good.jsonl {}.jsonl --to trl",
    "correlate": "correlate table.csv --columns bench --outcomes table.csv --out {}",
    "debias": "debias good.jsonl --out {}",
    "best-of-n": "best-of-n good.jsonl --scores scored/scores.jsonl --gold none --out {}",
    "inspect": "inspect good.jsonl --out {}",
    "evaluate": "evaluate --bench good.jsonl --model longer --baselines none --set num_resamples=10 --out {}",
    "judge": "judge good.jsonl --chat recorded --set chat.path=replies.jsonl --out {}",
    "languages": "languages one --out {}",
    "leaderboard": "leaderboard one two --out {}",
    "merge": "merge good.jsonl other.jsonl --out {}",
    "prompts": "prompts good.jsonl --workers 1 --out {}",
    "report": "report one --out {}.html",
    "resolve": "resolve good.jsonl --out {}",
    "run": "run recipe.toml --out {}",
    "sample": "sample good.jsonl --plan plan.toml --out {}",
    "score": "score good.jsonl --model longer --out {}",
    "demo": "demo --data --out {} --set num_prompts=4",
    "split": "split good.jsonl --out {}",
    "supervise": "supervise good.jsonl --model longer --out {}",
    "translate": "translate good.jsonl --from zh --to ru --with recorded --set chat.path=translated.jsonl"
    " --allow-failed 99 --out {}",
}
ELSEWHERE = {
    "train": "tests/training/test_disk.py",
    "workbench": "tests/workbench/test_full_disk.py",
}
"""Verbs that write, with the reason why they are not here."""
ROOM = 40
"""Bytes: less than any file of a run."""


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("full_disk") / "inputs"
    folder.mkdir()
    (folder / "good.jsonl").write_bytes(GOOD)
    (folder / "other.jsonl").write_bytes(GOOD)
    (folder / "plan.toml").write_bytes(plans()["good"])
    (folder / "recipe.toml").write_text(RECIPE)
    (folder / "table.csv").write_text("model,bench,gold\na,1,2\nb,2,3\nc,3,1\n")
    (folder / "replies.jsonl").write_text('{"text": "[[A]]"}\n')
    (folder / "translated.jsonl").write_text('{"text": "Старый город стоит у реки."}\n')
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for name, model in (("one", "longer"), ("two", "shorter")):
            words = f"evaluate --bench good.jsonl --model {model} --baselines none --set num_resamples=10 --out {name}"
            assert code_of(words, patch) == 0
        assert code_of("score good.jsonl --model longer --out scored", patch) == 0
    return folder


@contextmanager
def room_for(size):
    """Refuse to let files grow over this many bytes."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def code_of(words, patch):
    """The exit code of a command line, in this process."""
    patch.setattr("sys.argv", ["steelyard", *words.split()])
    try:
        main()
    except SystemExit as ended:
        return ended.code or 0
    return 0


def files(folder):
    return {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}


def test_every_verb_that_writes_is_here():
    stages = {name for name, verb in verbs_by_name().items() if isinstance(verb, StageVerb)}
    assert stages <= VERBS.keys() | ELSEWHERE.keys()


@pytest.mark.parametrize("verb", VERBS)
def test_a_file_without_room_is_named_and_the_same_command_works_with_room(verb, inputs, tmp_path, monkeypatch, capsys):
    here = tmp_path / "here"
    shutil.copytree(inputs, here)
    monkeypatch.chdir(here)
    given = files(here).keys()
    assert code_of(VERBS[verb].format("whole"), monkeypatch) == 0, capsys.readouterr().err
    whole = {name: path.stat().st_size for name, path in files(here).items() if name not in given}
    whole_sizes = {
        name.replace("whole", "out", 1): size for name, size in whole.items() if not name.endswith(".sqlite")
    }
    before = files(here).keys()
    for room in (ROOM, max(whole.values()) // 2):
        capsys.readouterr()
        with room_for(room):
            code = code_of(VERBS[verb].format("out"), monkeypatch)
        error = capsys.readouterr().err
        assert code == 2, error
        assert "\n  do: " in error
        assert "error: out" in error, error
        left = {name: path.stat().st_size for name, path in files(here).items() if name not in before}
        assert not [name for name in left if name.endswith(".part") or name.startswith(".")], left
        # What stands under its name is whole; an unfinished run keeps its state and what it goes on from.
        assert all(left[name] == size for name, size in whole_sizes.items() if name in left), left
        assert "out/run.json" not in left
    assert code_of(VERBS[verb].format("out"), monkeypatch) == 0, capsys.readouterr().err
    made = {name for name in files(here) if name not in before}
    assert {name.replace("out", "whole", 1) for name in made} == whole.keys()
