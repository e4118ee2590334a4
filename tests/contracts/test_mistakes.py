"""Mistakes that people make: each is told with what was found, where, what is allowed, and what to do."""

import gzip
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from example_folder import done, invoke
from steelyard.core.errors import UserError

STEELYARD = str(Path(sys.executable).with_name("steelyard"))
ONE_LINE = {"prompt": {"id": "q", "messages": []}, "responses": []}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("mistakes")
    done(
        "demo",
        "--data",
        "--out",
        made / "sim",
        "--set",
        "num_prompts=48",
        "--set",
        "test_share=0.34",
        "--set",
        "llm_share=0.5",
    )
    done("resolve", made / "sim" / "cases.jsonl", "--out", made / "resolved")
    (made / "empty.jsonl").touch()
    (made / "broken.jsonl").write_text('{"prompt": 3}\n', encoding="utf-8")
    (made / "pointer.jsonl").write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n", "utf-8")
    (made / "table.csv").write_text("a,b\n1,2\n", encoding="utf-8")
    (made / "blank.jsonl").write_text("\n \n", encoding="utf-8")
    (made / "packed.jsonl").write_bytes(gzip.compress((made / "sim" / "cases.jsonl").read_bytes())[:-9])
    (made / "wide.jsonl").write_bytes((made / "sim" / "cases.jsonl").read_text("utf-8").encode("utf-16-le"))
    (made / "array.jsonl").write_text("[" + ",".join([json.dumps(ONE_LINE)] * 2) + "]", encoding="utf-8")
    (made / "deep.jsonl").write_text('{"a": ' + "[" * 10**5 + "]" * 10**5 + "}", encoding="utf-8")
    (made / "deep.toml").write_bytes("seed = 3".encode("utf-16-le"))
    (made / "loop").symlink_to("loop")
    (made / "latin.jsonl").write_bytes(json.dumps(ONE_LINE).encode() + b"\xe9\n")
    return made


MISTAKES = {
    "resolve nothere.jsonl --out out": ["nothere.jsonl: there is no such file", "do: check the path"],
    "resolve empty.jsonl --out out": ["empty.jsonl: the file is empty"],
    "resolve broken.jsonl --out out": ["broken.jsonl:1 at prompt", "got `int`"],
    "resolve pointer.jsonl --out out": ["pointer.jsonl", "git-LFS pointer", "do: run `git lfs pull`"],
    "resolve latin.jsonl --out out": ["latin.jsonl:1", "UTF-8"],
    "score blank.jsonl --model longer --out out": ["blank.jsonl: the file has blank lines only"],
    "merge sim/cases.jsonl packed.jsonl --out out": ["packed.jsonl: the gzip file is cut off", "do: copy or download"],
    "split wide.jsonl --out out": ["wide.jsonl: this is UTF-16LE, not text in UTF-8", "do: convert it: iconv"],
    "split array.jsonl --out out": ["array.jsonl:1: an array where a case should be", "steelyard convert IN OUT"],
    "convert deep.jsonl out.jsonl": ["deep.jsonl:1: lists within lists, too deep to be read"],
    "evaluate --bench deep.jsonl --model longer --out out": ["deep.jsonl:1: lists within lists, too deep"],
    "run deep.toml --out out": ["deep.toml: this is UTF-16LE, not text in UTF-8"],
    "report loop --out out.html": ["loop: this folder holds no finished run"],
    "leaderboard resolved loop --out out": ["resolved: the folder holds a run of resolve"],
    "correlate table.csv --outcomes table.csv --out out": ["table.csv: benches and outcomes are the same", "--columns"],
    "correlate table.csv --columns b --outcomes table.csv --out out": [
        "table.csv:1: no column has the names of the models"
    ],
    "report sim/cases.jsonl --out out.html": [
        "sim/cases.jsonl: this is a file",
        "do: name the folder",
    ],
    "resolve sim --out out": ["sim: this is a folder", "do: name a file in it"],
    "resolve sim/cases.jsonl --out out --aggregate vote": ["resolve: aggregate is 'vote'", "majority, none"],
    "resolve sim/cases.jsonl --out out --only people=human": [
        "unknown key 'people'",
        "allowed: batch, evidence, judge, kind",
    ],
    "resolve sim/cases.jsonl --out resolved --only kind=human": ["resolved: holds another run", "--force"],
    "resolve table.csv --out out": ["table.csv:1: the line is not JSON", "steelyard convert table.csv cases.jsonl"],
    "resolve sim/cases.jsonl --out table.csv": ["table.csv: --out names a file", "allowed: a folder"],
    "demo --data --out out --set num_prompt=4": ["unknown setting 'num_prompt'", "did you mean 'num_prompts'?"],
    "demo --data --out out --set num_prompts=four": ["num_prompts is 'four'", "allowed: a whole number"],
    "demo --data --out out --set human.spread=wide": ["human.spread is 'wide'", "allowed: a number"],
    "demo --data --out out --set num_prompts": ["'num_prompts' has no key and value", "do: write --set KEY=VALUE"],
    "split sim/cases.jsonl --out out --part train": ["--part 'train' has no key", "do: write --part KEY=VALUE"],
    "split sim/cases.jsonl --out out --part a=0.9 --part b=0.9": ["shares {'a': 0.9, 'b': 0.9}", "that sum to 1"],
    "split sim/cases.jsonl --out out --part a=most": ["split: parts.a is 'most'", "allowed: a number"],
    "evaluate --bench sim/test.jsonl --out out": ["exactly one of model and scores", "do: use --model M"],
    "evaluate --bench sim/test.jsonl --model longr --out out": ["no 'longr' in models", "did you mean 'longer'?"],
    "evaluate --bench cheembench=sim/test.jsonl --model first --out out": ["did you mean 'cheemsbench'?"],
    "evaluate --bench sim/cases.jsonl --model longer --out out": ["has a comparable pair", "do: ", "steelyard resolve"],
    "score sim/cases.jsonl --model ./nomodel --out out": ["nomodel: there is no such", "do: check the path"],
    "train resolved/cases.jsonl --model ./nomodel --out out": ["./nomodel: there is no such model folder"],
    "train sim/cases.jsonl --model ./nomodel --out out": ["./nomodel: there is no such model folder"],
    "convert table.csv out.jsonl": ["table.csv", "allowed: "],
    "convert sim/cases.jsonl out.jsonl --to openrlfh": ["no 'openrlfh' in formats", "did you mean 'openrlhf'?"],
    "convert sim/cases.jsonl out.xlsx": ["out.xlsx", "allowed: ", "do: say --to KIND"],
    "report nowhere --out out.html": [
        "nowhere: this folder holds no finished run",
        "do: name the folder",
    ],
    "report resolved --out out.pdf": ["out.pdf: a report is a page of HTML", "allowed: a name ending in .html"],
    "report resolved --out out.html --language fr": ["report: language is 'fr'", "allowed: en, zh"],
    "debias sim/cases.jsonl --out out": ["sim/cases.jsonl: no case has a pair", "do: rank the cases first"],
    "debias resolved/cases.jsonl --out out --by colour": ["by is 'colour'", "allowed: author, length, markdown"],
    "debias resolved/cases.jsonl --out out --set length_tolerance=0.05": [
        "there are no scores",
        "do: give --scores FILE",
    ],
    "merge sim/cases.jsonl --out out": ["there is one file to merge", "do: name two case files or more"],
    "inspect sim/cases.jsonl --id nope": ["no item with id 'nope'", "do: without --id the command lists the items"],
    "languages resolved --out out": [
        "resolved: the folder holds a run of resolve",
        "allowed: the folder of a run of `steelyard evaluate`",
    ],
    "run nothing": ["nothing: there is no such recipe", "allowed: a .toml file, or cheems, cheems_bench, "],
    "run demo --from nostage --dry-run": ["the recipe has no stage 'nostage'", "allowed: "],
    "list format": ["there is no package of plug-ins 'format'", "did you mean 'formats'?"],
    "supervise sim/llm.jsonl --out out": ["neither model nor scores", "do: "],
    "supervise sim/llm.jsonl --model longer --out out --min-precision 0.9": ["go together", "do: set both, or neither"],
    "supervise sim/llm.jsonl --model longer --out out --only judge=gtp": [
        "judge=gtp admits no judgment",
        "allowed: judge",
    ],
    "run nothere.toml": ["nothere.toml: there is no such file", "do: check the path"],
}


@pytest.mark.parametrize("command", MISTAKES)
def test_a_mistake_is_told_and_leaves_nothing_behind(command, folder, monkeypatch):
    monkeypatch.chdir(folder)
    before = sorted(folder.rglob("*"))
    result = invoke(command.split())
    assert isinstance(result.exception, UserError), (result.output, result.exception)
    for said in MISTAKES[command]:
        assert said in str(result.exception)
    assert sorted(folder.rglob("*")) == before


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("resolve sim/cases.jsonl", "Missing option '--out'"),
        ("resolve sim/cases.jsonl --out out --worker 2", "(Possible options: --force, --workers)"),
        ("resolv sim/cases.jsonl --out out", "Did you mean 'resolve'?"),
        ("resolve sim/cases.jsonl --out out --workers many", "parse string as an integer"),
    ],
)
def test_what_the_parser_refuses_says_what_to_write(command, said, folder):
    result = invoke(command.split())
    assert result.exit_code == 2
    assert said in " ".join(result.stderr.replace("│", "").split())


def test_at_the_door_a_mistake_is_one_message_without_a_traceback(folder):
    done_ = subprocess.run(
        [STEELYARD, "evaluate", "--bench", "sim/test.jsonl", "--model", "longr", "--out", "out"],
        capture_output=True, text=True, check=False, cwd=folder,
    )  # fmt: skip
    assert (done_.returncode, done_.stdout) == (2, "")
    assert done_.stderr.startswith("error: there is no 'longr' in models\n  allowed: did you mean 'longer'?")


# Who is root reads and writes anything: the right to do so is taken from what is started here.
AS_ANYBODY = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"] if os.geteuid() == 0 else []


@pytest.mark.skipif(os.geteuid() == 0 and not shutil.which("setpriv"), reason="root may read anything")
@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("evaluate --bench locked.jsonl --model longer --out out", "error: locked.jsonl: this file may not be read"),
        ("run locked.toml", "error: locked.toml: this file may not be read"),
        ("merge locked.jsonl sim/cases.jsonl --out out", "is not readable"),
        ("resolve sim/cases.jsonl --out shut/out", "error: shut/out: permission denied\n  do: change its permissions"),
        ("resolve sim/cases.jsonl --out table.csv/out", "error: table.csv/out: not a directory"),
        ("convert sim/cases.jsonl table.csv/out.parquet", "error: table.csv: file exists\n  do: choose another path"),
    ],
)
def test_what_the_machine_refuses_is_one_message_without_a_traceback(command, said, folder):
    for name in ("locked.jsonl", "locked.toml"):
        (folder / name).write_text("seed = 0\n", encoding="utf-8")
        (folder / name).chmod(0)
    (folder / "shut").mkdir(mode=0o555, exist_ok=True)
    done_ = subprocess.run(
        [*AS_ANYBODY, STEELYARD, *command.split()], capture_output=True, text=True, check=False, cwd=folder
    )
    assert (done_.returncode, done_.stdout) == (2, "")
    assert said in done_.stderr
    assert "Traceback" not in done_.stderr
    assert not (folder / "out").exists()
