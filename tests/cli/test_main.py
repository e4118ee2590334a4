import errno
import subprocess
import sys
from importlib.metadata import version

import pytest
from typer.testing import CliRunner

from steelyard.cli import main as cli
from steelyard.core.errors import ConfigError


def run(*words):
    return subprocess.run(
        [sys.executable, "-c", "from steelyard.cli.main import main; main()", *words],
        capture_output=True,
        text=True,
        check=False,
    )


def test_help_names_every_verb_and_teaches():
    result = CliRunner().invoke(cli.build_app(), ["--help"], env={"COLUMNS": "120"})
    assert result.exit_code == 0
    for name in cli.verb_names():
        assert name.rstrip("_").replace("_", "-") in result.output
    assert "steelyard demo" in result.output


@pytest.mark.parametrize("name", cli.verb_names())
def test_every_verb_s_help_has_an_example(name):
    verb = name.rstrip("_").replace("_", "-")
    result = CliRunner().invoke(cli.build_app(), [verb, "--help"], env={"COLUMNS": "200"})
    assert result.exit_code == 0
    assert f"steelyard {verb}" in result.output


@pytest.mark.parametrize(
    ("words", "do"),
    [
        (["train", "c.jsonl", "--lr", "1e-5"], "write --learning-rate VALUE"),
        (["train", "c.jsonl", "--per-device-train-batch-size=4"], "write --prompts-per-step VALUE"),
        (["train", "c.jsonl", "--num_train_epochs", "3"], "write --epochs VALUE"),
        (["train", "c.jsonl", "--model_name_or_path", "m"], "write --model VALUE"),
        (["train", "c.jsonl", "--warmup-ratio", "0.1"], "write --set warm_up=VALUE"),
        (["compare", "a", "b", "--output_dir", "c"], "write --out VALUE"),
    ],
)
def test_another_librarys_option_is_answered_with_ours(words, do):
    refused = CliRunner().invoke(cli.build_app(), words).exception
    assert isinstance(refused, ConfigError)
    assert refused.do == do


def test_the_version_is_the_package_s():
    result = CliRunner().invoke(cli.build_app(), ["--version"])
    assert result.output.strip() == f"steelyard {version('steelyard')}"


def test_help_imports_nothing_heavy():
    code = "import sys; from steelyard.cli.main import build_app; build_app(); print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"torch", "transformers", "pyarrow", "scipy", "sklearn"} & set(loaded)


def test_a_user_s_error_ends_in_2_with_one_clear_message():
    result = run("list", "formts")
    assert result.returncode == 2
    assert result.stderr.startswith(
        "error: there is no package of plug-ins 'formts'\n  allowed: did you mean 'formats'?"
    )
    assert "Traceback" not in result.stderr


def test_an_unknown_verb_ends_in_2():
    assert run("resolv").returncode == 2


@pytest.mark.parametrize(
    ("raised", "code", "said"),
    [
        (ConfigError("wrong", do="so"), 2, "error: wrong\n  do: so"),
        (ModuleNotFoundError("no torch", name="torch"), 2, "pip install 'steelyard[train]'"),
        (ModuleNotFoundError("no such", name="inner"), 1, "a defect of ours"),
        (PermissionError(errno.EACCES, "Permission denied", "out"), 2, "error: out: permission denied\n  do: ask for"),
        (OSError(errno.ENOSPC, "No space left on device"), 2, "error: no space left on device\n  do: make room there"),
        (FileExistsError(errno.EEXIST, "File exists", "c.jsonl"), 2, "error: c.jsonl: file exists\n  do: name another"),
        (OSError(errno.EBADF, "Bad file descriptor", "c.jsonl"), 1, "Steelyard failed (OSError: [Errno 9]"),
        (KeyboardInterrupt(), 130, "stopped"),
        (ZeroDivisionError("division by zero"), 1, "Steelyard failed (ZeroDivisionError: division by zero)"),
    ],
)
def test_every_failure_leaves_by_the_right_door(monkeypatch, capsys, raised, code, said):
    def app():
        def fail():
            raise raised

        return fail

    monkeypatch.setattr(cli, "build_app", app)
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    assert stopped.value.code == code
    assert said in capsys.readouterr().err
