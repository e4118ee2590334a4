import json
import re
import shlex

import pytest
from typer.testing import CliRunner

from steelyard.cli.main import build_app
from steelyard.cli.verbs.demo import next_lines
from steelyard.io.run_folder import read_run
from steelyard.views.text import result_sentences

TINY = [
    "simulated.num_prompts=48",
    "simulated.llm_share=0.5",
    "simulated.test_share=0.34",
    "backbone.hidden_size=32",
    "backbone.num_layers=1",
    "backbone.vocabulary=400",
    "human_model.epochs=1",
    "model.epochs=1",
    "evaluated.num_resamples=20",
    "by_kind.num_resamples=20",
    "human_by_kind.num_resamples=20",
    "compared.num_resamples=20",
]


def call(*words):
    settings = [word for assignment in TINY for word in ("--set", assignment)]
    return CliRunner().invoke(build_app(), ["demo", *map(str, words), *settings])


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    """A folder whose name needs quotes, and what the demo into it prints."""
    out = tmp_path_factory.mktemp("demo") / "my demo"
    result = call("--out", out)
    assert result.exit_code == 0, result.output
    return out, result.stdout


def test_output_leads_with_what_happened_and_is_short(shown):
    out, text = shown
    lines = text.strip().splitlines()
    assert lines[0].startswith("Simulated data.")
    assert len(lines) <= 12
    assert any(line.split(maxsplit=1) == ["Open", str(out / "report" / "report.html")] for line in lines)


def test_commands_that_it_names_run_when_pasted(shown):
    commands = re.findall(r"^(?:Try next)?\s+(steelyard .*?)  # ", shown[1], flags=re.MULTILINE)
    assert len(commands) == 3
    for command in commands:
        result = CliRunner().invoke(build_app(), shlex.split(command)[1:])
        assert result.exit_code == 0, (command, result.output)


def test_figures_are_those_of_the_runs(shown):
    out, text = shown
    record = json.loads(call("--out", out, "--json").stdout)
    assert record["simulated"] is True
    summary = record["summary"]
    trained = summary["model"]
    assert trained["num_steps"] == -(-trained["num_prompts"] // 4), (
        "one epoch, as set, of the demo's four prompts a step"
    )
    assert f"{summary['by_kind']['accuracy']['value']:.1%} of pairs" in text.splitlines()[1]
    assert f"{summary['human']['conflicts']['overall']['ratio']:.1%} of judgments contradict others" in text
    kept = summary["supervised"]["num_strict_kept"], summary["supervised"]["num_strict"]
    assert "keeps {:,} of {:,} strict judgments".format(*kept) in text


def test_its_sentences_are_those_of_each_stage(shown):
    out, text = shown
    for stage in ("simulated", "human", "supervised", "debiased", "compared", "evaluated"):
        assert next(result_sentences(read_run(out / stage), out / stage)) in text


def test_verbose_adds_every_baseline_and_kind(shown):
    out, text = shown
    more = call("--out", out, "--verbose").stdout
    assert set(text.splitlines()) <= set(more.splitlines())
    assert "code_switched (unseen)" in more
    names = ("longer answer wins", "shorter answer wins", "random", "first answer wins", "character n-grams")
    assert all(name in " ".join(more.split()) for name in names)


def test_next_lines_name_the_page_and_the_commands(tmp_path):
    lines = list(next_lines(tmp_path / "a.html", {"steelyard list": "one", "steelyard doctor": "two"}))
    assert lines == [
        f"Open       {tmp_path}/a.html",
        "Try next   steelyard list  # one",
        "           steelyard doctor  # two",
    ]
