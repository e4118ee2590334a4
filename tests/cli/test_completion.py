import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from steelyard.cli.options import (
    BASELINES,
    complete_baselines,
    complete_bench,
    complete_format,
    complete_model,
    complete_package,
)
from steelyard.evaluation.config import UNTRAINED_BASELINES

STEELYARD = Path(sys.executable).with_name("steelyard")


@pytest.fixture
def there(tmp_path, monkeypatch):
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "测试.jsonl").touch()
    (tmp_path / "model-a").mkdir()
    (tmp_path / ".hidden").mkdir()
    (tmp_path / "long.jsonl").touch()
    monkeypatch.chdir(tmp_path)


def asked(words, shell="bash", **environment):
    """What the shell would be told for these words, the last of which is being typed."""
    line = " ".join(words)
    told = {
        "_STEELYARD_COMPLETE": f"complete_{shell}",
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(words) - 1),
        "_TYPER_COMPLETE_ARGS": line,
        "_TYPER_COMPLETE_FISH_ACTION": "get-args",
        "PATH": f"{STEELYARD.parent}:{os.environ['PATH']}",
        **environment,
    }
    return subprocess.run([STEELYARD], capture_output=True, text=True, check=False, env=os.environ | told).stdout


def test_completes_plugin_kinds(there):
    assert complete_package("mo") == ["models"]
    assert complete_package("x") == []
    assert complete_format("pandal") == ["pandalm"]
    assert complete_model("longe") == ["longer"]
    assert complete_bench("cheems") == ["cheemsbench="]


def test_completes_paths_and_hidden_ones_after_a_dot(there):
    assert complete_model("model-") == ["model-a/"]
    assert complete_model("long") == ["longer"]
    assert ".hidden/" not in complete_model("")
    assert complete_model(".h") == [".hidden/"]
    assert complete_bench("parts/") == ["parts/测试.jsonl"]
    assert complete_bench("cheemsbench=parts/测") == ["cheemsbench=parts/测试.jsonl"]
    assert complete_bench("nowhere/") == []


def test_completes_last_of_several_baselines():
    assert (*UNTRAINED_BASELINES, "ngram") == BASELINES
    assert complete_baselines("n") == ["ngram", "none"]
    assert complete_baselines("longer,") == ["longer,shorter", "longer,random", "longer,first", "longer,ngram"]
    assert complete_baselines("longer,n") == ["longer,ngram"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completes_verbs_in_every_shell(shell):
    told = asked(["steelyard", "re"], shell)
    assert "report" in told
    assert "resolve" in told
    assert "score" not in told


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["list", "be"], ["benches"]),
        (["convert", "a", "b", "--to", "nemo"], ["nemo_rl"]),
        (["convert", "a", "--from", "hel"], ["helpsteer2", "helpsteer3"]),
        (["evaluate", "--bench", "rewardbench"], ["rewardbench2=", "rewardbench="]),
        (["evaluate", "--model", "sho"], ["shorter"]),
        (["score", "--model", "model-"], ["model-a/"]),
        (["evaluate", "--baselines", "random,f"], ["random,first"]),
        (["resolve", "--agg"], ["--aggregate"]),
    ],
)
def test_completes_option_values(there, words, expected):
    assert sorted(asked(["steelyard", *words]).split()) == sorted(expected)


def test_completion_imports_no_plugin():
    code = (
        "import atexit, sys; atexit.register(lambda: print(*sys.modules, file=sys.stderr)); sys.argv[0] = 'steelyard';"
        "from steelyard.cli.main import main; main()"
    )
    told = {"_STEELYARD_COMPLETE": "complete_bash", "COMP_WORDS": "steelyard score --model lon", "COMP_CWORD": "3"}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, env=os.environ | told
    )
    assert done.stdout.split() == ["longer"]
    assert not {"torch", "numpy", "pyarrow", "steelyard.plugins.models.baselines"} & set(done.stderr.split())


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_prints_completion_script_of_each_shell(shell):
    script = asked([], _STEELYARD_COMPLETE=f"source_{shell}")
    assert f"_STEELYARD_COMPLETE=complete_{shell}" in script
    assert ("COMP_WORDS" if shell == "bash" else "_TYPER_COMPLETE_ARGS") in script


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash on this machine")
def test_completion_script_works_in_bash(there):
    lines = [
        'source <("$0" --show-completion bash)',
        "COMP_WORDS=(steelyard re) COMP_CWORD=1",
        '_steelyard_completion "$0"',
        'echo "${COMPREPLY[@]}"',
    ]
    environment = os.environ | {"_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    done = subprocess.run(
        ["bash", "-c", "\n".join(lines), str(STEELYARD)], capture_output=True, text=True, check=False, env=environment
    )
    assert done.stdout.split() == ["resolve", "report"], done.stderr


INSTALLED = {
    "bash": ".bash_completions/steelyard.sh",
    "zsh": ".zfunc/_steelyard",
    "fish": ".config/fish/completions/steelyard.fish",
}


@pytest.mark.parametrize("shell", INSTALLED)
def test_installs_completion_in_home_folder(tmp_path, shell):
    environment = os.environ | {"HOME": str(tmp_path), "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    subprocess.run([STEELYARD, "--install-completion", shell], capture_output=True, check=True, env=environment)
    assert "_STEELYARD_COMPLETE" in (tmp_path / INSTALLED[shell]).read_text(encoding="utf-8")
