import errno
import os
import signal
import subprocess
import sys
from importlib.metadata import version

import pytest
from typer.testing import CliRunner

import tiny
from each_value import each
from steelyard.cli import main as cli
from steelyard.core.errors import CeilingError, ConfigError, FailuresError, WaitingError
from steelyard.io.cases import write_cases
from toy_prompts import toy_prompts


def run(*words):
    return subprocess.run(
        [sys.executable, "-c", "from steelyard.cli.main import main; main()", *words],
        capture_output=True,
        text=True,
        check=False,
    )


def test_help_lists_every_verb():
    result = CliRunner().invoke(cli.build_app(), ["--help"], env={"COLUMNS": "120"})
    assert result.exit_code == 0
    assert all(name in result.output for name in cli.verbs_by_name())
    assert "steelyard demo" in result.output


def test_help_groups_verbs_by_task():
    lines = CliRunner().invoke(cli.build_app(), ["--help"], env={"COLUMNS": "120"}).output.splitlines()
    words = ("─ Data ─", "│ convert", "│ split", "─ Judgments ─", "│ resolve", "─ Models ─", "│ train")
    places = [next(place for place, line in enumerate(lines) if word in line) for word in words]
    assert places == sorted(places)


@each("verb", cli.verbs_by_name())
def test_verb_help_has_an_example(verb):
    result = CliRunner().invoke(cli.build_app(), [verb, "--help"], env={"COLUMNS": "200"})
    assert result.exit_code == 0
    assert f"steelyard {verb}" in result.output


@pytest.mark.parametrize(
    ("words", "do"),
    [
        (["train", "c.jsonl", "--lr", "1e-5"], "write --learning-rate VALUE"),
        (["train", "c.jsonl", "--per-device-train-batch-size=4"], "write --batch-size VALUE"),
        (["train", "c.jsonl", "--num_train_epochs", "3"], "write --epochs VALUE"),
        (["train", "c.jsonl", "--model_name_or_path", "m"], "write --model VALUE"),
        (["train", "c.jsonl", "--lr-scheduler-type", "linear"], "write --set schedule=VALUE"),
        (["compare", "a", "b", "--output_dir", "c"], "write --out VALUE"),
    ],
)
def test_option_of_another_library_suggests_ours(words, do):
    refused = CliRunner().invoke(cli.build_app(), words).exception
    assert isinstance(refused, ConfigError)
    assert refused.do == do


def test_version_option_prints_package_version():
    result = CliRunner().invoke(cli.build_app(), ["--version"])
    assert result.output.strip() == f"steelyard {version('steelyard')}"


def test_build_app_imports_no_heavy_package():
    code = "import sys; from steelyard.cli.main import build_app; build_app(); print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"torch", "transformers", "pyarrow", "scipy", "sklearn"} & set(loaded)


def test_train_refuses_a_setting_before_it_imports_a_heavy_package():
    code = (
        "import atexit, sys; atexit.register(lambda: print(*sys.modules)); from steelyard.cli.main import main;"
        "sys.argv = 'steelyard train c.jsonl --model m --out o --set batch_size=x'.split(); main()"
    )
    refused = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert refused.returncode == 2
    assert "batch_size" in refused.stderr
    assert not {"torch", "transformers", "scipy"} & set(refused.stdout.split())


def test_user_error_exits_with_2_and_no_traceback():
    result = run("list", "formts")
    assert result.returncode == 2
    assert result.stderr.startswith(
        "error: there is no package of plug-ins 'formts'\n  allowed: did you mean 'formats'?"
    )
    assert "Traceback" not in result.stderr


def test_unknown_verb_exits_with_2():
    assert run("resolv").returncode == 2


@pytest.mark.parametrize(
    ("raised", "code", "said"),
    [
        (ConfigError("wrong", do="so"), 2, "error: wrong\n  do: so"),
        (FailuresError("3 of 9 requests failed"), 1, "error: 3 of 9 requests failed"),
        (CeilingError("max_cost=1 is reached"), 3, "stopped: max_cost=1 is reached"),
        (WaitingError("3 requests wait"), 3, "waiting: 3 requests wait"),
        (ModuleNotFoundError("no torch", name="torch"), 2, "pip install 'steelyard[train]'"),
        (ModuleNotFoundError("no such", name="inner"), 1, "a defect of ours"),
        (PermissionError(errno.EACCES, "Permission denied", "out"), 2, "out: permission denied\n  do: change its"),
        (OSError(errno.ENOSPC, "No space left on device"), 2, "no space left on device\n  do: free disk space"),
        (FileExistsError(errno.EEXIST, "File exists", "c.jsonl"), 2, "c.jsonl: file exists\n  do: choose another"),
        (OSError(errno.EBADF, "Bad file descriptor", "c.jsonl"), 1, "Steelyard failed (OSError: [Errno 9]"),
        (KeyboardInterrupt(), 130, "stopped"),
        (ZeroDivisionError("division by zero"), 1, "Steelyard failed (ZeroDivisionError: division by zero)"),
    ],
)
def test_exit_code_and_message_of_each_exception(monkeypatch, capsys, raised, code, said):
    def app():
        def fail(**settings):
            raise raised

        return fail

    monkeypatch.setattr(cli, "build_app", app)
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    assert stopped.value.code == code
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "problem", "command"),
    [
        (["resolve", "c.jsonl", "--foreced"], "no such option: --foreced\n  allowed: did you mean --force?", "resolve"),
        (
            ["convert", "a", "b", "--encoding", "cp1252"],
            "no such option: --encoding\n  allowed: --set encoding=VALUE",
            "convert",
        ),
        (["train", "c", "--learning-rate", "1e-4x"], "--learning-rate is '1e-4x'\n  allowed: a number", "train"),
        (["train", "c", "--learning-rate=1e-4x"], "--learning-rate is '1e-4x'\n  allowed: a number", "train"),
        (["view", "--port", "x"], "--port is 'x'\n  allowed: a whole number", "view"),
        (["resolve"], "missing argument 'cases'", "resolve"),
        (["evaluate", "--bench"], "option '--bench' requires an argument", "evaluate"),
        (["list", "formats", "more"], "got unexpected extra argument(s) (more)", "list"),
        (["workbench", "frob"], "no such command 'frob'", "workbench"),
        (
            ["workbench", "add-person", "a", "--role", "king"],
            "--role is 'king'\n  allowed: 'annotator',",
            "workbench add-person",
        ),
    ],
)
def test_wrong_words_are_refused_in_the_form_of_every_error(words, problem, command, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["steelyard", *words])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    printed = capsys.readouterr()
    assert (ended.value.code, printed.out) == (2, "")
    assert printed.err.startswith(f"error: {problem}")
    assert printed.err.endswith("--help\n")
    (remedy,) = [line for line in printed.err.splitlines() if line.startswith("  do: ")]
    # The remedy works when it is pasted.
    pasted = remedy.partition("steelyard ")[2].split()
    assert CliRunner().invoke(cli.build_app(), pasted).exit_code == 0
    assert command in remedy


def test_a_group_without_a_verb_prints_its_help(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["steelyard", "workbench"])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 2
    assert capsys.readouterr().err.startswith("Usage: steelyard workbench")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_no_progress_bar_of_another_library_appears(tmp_path):
    tiny.save_base(tmp_path / "base")
    write_cases(tmp_path / "cases.jsonl", toy_prompts(4, right=True))
    words = ["train", str(tmp_path / "cases.jsonl"), "--model", str(tmp_path / "base"), "--epochs", "1"]
    done = run(*words, "--out", str(tmp_path / "model"))
    assert done.returncode == 0, done.stderr
    assert not any(sign in done.stderr for sign in ("it/s", "Writing", "Loading weights", "━", "█"))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_before_a_verb_begins_exits_with_its_number(monkeypatch, capsys, number):
    def options(**settings):
        os.kill(os.getpid(), number)

    monkeypatch.setattr(cli, "_options", options)
    monkeypatch.setattr(sys, "argv", ["steelyard", "doctor"])
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    assert stopped.value.code == 128 + number
    assert capsys.readouterr().err.strip() == "stopped"
