"""Every kind of terminal: without colour, with 40 columns, with nothing but ASCII."""

import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest
from rich.cells import cell_len
from typer.main import get_command

from each_value import each
from example_folder import invoke
from steelyard.cli.main import build_app, verbs_by_name
from steelyard.io.cases import read_cases

VERBS = sorted(verbs_by_name())
STEELYARD = str(Path(sys.executable).with_name("steelyard"))
ASCII = {"LANG": "C", "LC_ALL": "C", "PYTHONIOENCODING": "ascii", "TERM": "dumb"}
COLOUR = re.compile(rb"\x1b\[[0-9;]*?(?:3[0-8]|4[0-8]|9[0-7]|10[0-7])[0-9;]*m")
JUDGE = "标注员甲"


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """A folder with a Chinese name and, in it, cases with a judge of a Chinese name."""
    folder = tmp_path_factory.mktemp("终端") / "语料"
    assert (
        invoke(
            [
                "demo",
                "--data",
                "--out",
                str(folder),
                "--set",
                "num_prompts=48",
                "--set",
                "test_share=0.34",
                "--set",
                "llm_share=0.5",
            ]
        ).exit_code
        == 0
    )
    path = folder / "案例.jsonl"
    text = (folder / "cases.jsonl").read_text(encoding="utf-8")
    path.write_text(text.replace("simulated-human-1", JUDGE), encoding="utf-8")
    assert JUDGE in path.read_text(encoding="utf-8")
    return folder


def joined(text):
    """The text without frames, marks of Markdown, spaces and line breaks: what must be the same at every width.

    An example is a command in a block, continued by backslashes.
    """
    return re.sub(r"[\s│╭╮╰╯─`*\\]", "", text)


def in_terminal(words, **environment):
    """What a program writes to a terminal, as bytes, and its exit code."""
    child, terminal = pty.fork()
    if child == 0:
        os.execvpe(words[0], words, os.environ | {"TERM": "xterm-256color"} | environment)
    told = b""
    try:
        while piece := os.read(terminal, 65536):
            told += piece
    except OSError:  # how Linux says that the other side has ended
        pass
    os.close(terminal)
    return told, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def in_ascii(words, folder, **environment):
    return subprocess.run(
        [STEELYARD, *words], capture_output=True, check=False, cwd=folder, env=os.environ | ASCII | environment
    )


@each("columns", [40, 70, 110])
@each("verb", VERBS)
def test_help_loses_nothing_at_any_width(verb, columns):
    command = get_command(build_app()).commands[verb]
    result = invoke([verb, "--help"], COLUMNS=str(columns))
    assert result.exit_code == 0
    shown = joined(result.output)
    for name in (name for parameter in command.params for name in parameter.opts):
        assert name in shown
    for paragraph in command.help.split("\n\n"):
        assert joined(paragraph.replace("Example: ", "")) in shown


@each("verb", VERBS)
def test_help_keeps_to_forty_eight_columns(verb):
    lines = invoke([verb, "--help"], COLUMNS="48").output.splitlines()
    # A word cannot be broken, and neither can a word of an example with its backslash.
    words = [line.removesuffix(" \\").split() for line in lines if cell_len(line) > 48 and "Usage" not in line]
    too_long = [line for line in words if len(line) > 1]
    assert too_long == []


def test_the_list_of_verbs_keeps_every_summary():
    narrow, wide = (joined(invoke(["--help"], COLUMNS=columns).output) for columns in ("40", "200"))
    for verb in VERBS:
        summary = joined(get_command(build_app()).commands[verb].help.split("\n")[0])
        assert f"{verb}{summary}" in wide
        assert f"{verb}{summary}" in narrow


RESULTS = [
    ["resolve", "案例.jsonl", "--out", "{}/解决"],
    ["split", "案例.jsonl", "--out", "{}/切分", "--part", "train=0.5", "--part", "test=0.5"],
    ["debias", "gold.jsonl", "--out", "{}/去偏"],
    ["evaluate", "--bench", "test.jsonl", "--model", "longer", "--out", "{}/评测", "--set", "num_resamples=20"],
    ["inspect", "案例.jsonl", "--language", "zh"],
    ["list"],
]


@pytest.mark.parametrize("words", RESULTS, ids=lambda words: words[0])
def test_results_lose_no_word_in_forty_columns(words, corpus, tmp_path, monkeypatch):
    monkeypatch.chdir(corpus)
    told = {}
    for columns in ("40", "160"):
        # Without it a table is shown only where it fits.
        whole = ["--verbose"] if words[0] not in ("inspect", "list") else []
        result = invoke([*(word.format(tmp_path / columns) for word in words), *whole], COLUMNS=columns)
        assert result.exit_code == 0, result.output
        told[columns] = set(re.findall(r"[^\s,;]+", result.output.replace(str(tmp_path / columns), "")))
    if words[0] != "inspect":  # which says less of a prompt where there is less room, and that it goes on
        assert told["160"] - told["40"] <= {"Conflicts", "Pairs"}
    assert not any(word.startswith("Traceback") for word in told["40"])


@pytest.mark.parametrize(
    ("words", "code"),
    [
        pytest.param(["resolve", "--help"], 0, marks=pytest.mark.slow),
        (["inspect", "案例.jsonl"], 0),
        pytest.param(["list", "nothing"], 2, marks=pytest.mark.slow),
        (["resolv"], 2),
    ],
    ids=lambda given: given[0] if isinstance(given, list) else "",
)
def test_no_escape_codes_on_a_dumb_terminal_and_no_colour_where_none_is_wanted(words, code, corpus, monkeypatch):
    monkeypatch.chdir(corpus)
    monkeypatch.delenv("NO_COLOR", raising=False)
    dumb, dumb_code = in_terminal([STEELYARD, *words], TERM="dumb")
    assert b"\x1b" not in dumb
    plain, plain_code = in_terminal([STEELYARD, *words], NO_COLOR="1")
    assert COLOUR.search(plain) is None
    assert dumb_code == plain_code == code
    assert len(dumb) > 50


def test_a_terminal_with_colour_gets_colour(corpus, monkeypatch):
    # So that the absence of colour above means something.
    monkeypatch.delenv("NO_COLOR", raising=False)
    told, _ = in_terminal([STEELYARD, "resolve", "--help"])
    assert COLOUR.search(told)


@pytest.mark.slow
def test_chinese_names_and_texts_where_there_is_only_ascii(corpus, tmp_path):
    results = {
        words[0]: in_ascii([word.format(tmp_path) for word in words], corpus)
        for words in RESULTS
        if words[0] in ("resolve", "evaluate", "inspect")
    }
    results["json"] = in_ascii(["inspect", "案例.jsonl", "--json"], corpus)
    results["help"] = in_ascii(["--help"], corpus)
    results["verdicts"] = in_ascii(["resolve", "案例.jsonl", "--out", f"{tmp_path}/解决", "--verbose"], corpus)
    results["again"] = in_ascii(["resolve", "案例.jsonl", "--out", f"{tmp_path}/解决"], corpus)
    results["report"] = in_ascii(["report", "解决", "评测", "--out", "报告.html"], tmp_path)
    for name, done in results.items():
        assert done.returncode == 0, (name, done.stderr)
        # Typer writes UTF-8 where it is told ASCII, tables write code points: nobody fails and nothing is lost.
        assert (done.stdout + done.stderr).decode("utf-8")
    verdicts = results["verdicts"].stdout
    assert JUDGE.encode() in verdicts or JUDGE.encode("unicode_escape") in verdicts
    assert "杆秤".encode("unicode_escape") in results["help"].stdout
    # What is written to the disk is UTF-8 all the same.
    assert any(own.judge == JUDGE for case in read_cases(tmp_path / "解决" / "cases.jsonl") for own in case.judgments)
    assert "奖励模型报告" in (tmp_path / "报告.html").read_text(encoding="utf-8")


def test_an_error_about_a_chinese_name_where_there_is_only_ascii(tmp_path):
    done = in_ascii(["resolve", "无.jsonl", "--out", "果"], tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith(b"error: \\u65e0.jsonl: there is no such file")


def test_a_name_that_is_no_text_here_is_refused_with_what_to_do(tmp_path):
    nowhere = {"PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    (tmp_path / "案例.jsonl").write_text(json.dumps({}), encoding="utf-8")
    done = in_ascii(["resolve", "案例.jsonl", "--out", "out"], tmp_path, **nowhere)
    assert done.returncode == 2
    assert b"is not UTF-8" in done.stderr
    assert b"LANG=C.UTF-8" in done.stderr
    assert not (tmp_path / "out").exists()
