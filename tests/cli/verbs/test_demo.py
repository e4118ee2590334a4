import json
import re
import shlex

import pytest
from typer.testing import CliRunner

from steelyard.cli.main import build_app
from steelyard.cli.verbs.demo import llm_gain, next_lines, verdict_on
from steelyard.statistics.intervals import Estimate

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
    assert lines[0].startswith("SIMULATED")
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
    assert f"{summary['by_kind']['accuracy']['value']:.1%}" in text.splitlines()[0]
    assert f"{summary['human']['conflicts']['overall']['ratio']:.1%} of the verdicts conflict" in text
    kept = summary["supervised"]["num_strict_kept"], summary["supervised"]["num_strict"]
    assert "keeps {:,} of {:,} strict judgments".format(*kept) in text


def test_verbose_adds_every_baseline_and_kind(shown):
    out, text = shown
    more = call("--out", out, "--verbose").stdout
    assert set(text.splitlines()) <= set(more.splitlines())
    assert "code_switched (unseen)" in more
    assert all(f"model minus {name} " in more for name in ("longer", "shorter", "random", "first", "ngram"))


@pytest.mark.parametrize(
    ("low", "high", "shown"),
    [
        (0.02, 0.1, "+6.0 points [2.0, 10.0]"),
        (-0.02, 0.1, "+6.0 points [-2.0, 10.0], which may be chance"),
        (None, None, "+6.0 points, which may be chance"),
    ],
)
def test_a_difference_whose_interval_holds_zero_may_be_chance(low, high, shown):
    assert verdict_on(Estimate(0.06, low, high, 10)) == shown


class Comparison:
    """As `ComparisonSummary`, of two models."""

    def __init__(self, first, estimate):
        self.comparisons = (type("Pair", (), {"first": first, "accuracy": estimate}),)


def test_gain_of_the_final_model_has_its_sign_whichever_is_better():
    assert llm_gain(Comparison("model", Estimate(0.1, 0.0, 0.3, 5))) == Estimate(0.1, 0.0, 0.3, 5)
    assert llm_gain(Comparison("human_model", Estimate(0.1, 0.0, 0.3, 5))) == Estimate(-0.1, -0.3, 0.0, 5)


def test_next_lines_name_the_page_and_the_commands(tmp_path):
    lines = list(next_lines(tmp_path / "a.html", {"steelyard list": "one", "steelyard doctor": "two"}))
    assert lines == [
        f"Open       {tmp_path}/a.html",
        "Try next   steelyard list  # one",
        "           steelyard doctor  # two",
    ]
