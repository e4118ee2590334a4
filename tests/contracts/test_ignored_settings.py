"""A setting or an option without effect in the mode of a run is refused, in every verb that has modes."""

import pytest
from typer.testing import CliRunner

from steelyard.cli.main import build_app
from steelyard.core.errors import ConfigError
from steelyard.io.cases import write_cases
from strategies import case

PLAN = """[[models]]
chat = { kind = "recorded", path = "r.jsonl", name = "m" }
[rewrite]
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_cases("cases.jsonl", [case("p", "ab"), case("q", "ab", text="另一个")])
    (tmp_path / "r.jsonl").write_text('{"text": "x"}\n')
    (tmp_path / "plan.toml").write_text(PLAN)
    (tmp_path / "table.csv").write_text("model,en,de\nm,0.8,0.7\nn,0.6,0.5\n")
    return tmp_path


@pytest.mark.parametrize(
    ("words", "option", "instead"),
    [
        ("judge cases.jsonl --chat recorded --set chat.path=r.jsonl --rate 2", "--rate", "add --dry-run"),
        ("judge cases.jsonl --chat recorded --set chat.path=r.jsonl --tokenizer t", "--tokenizer", "add --dry-run"),
        ("translate cases.jsonl --check-only --with apertium", "--with", "or --check-only"),
        ("translate cases.jsonl --check-only --max-hours 2", "--max-hours", "or --check-only"),
        ("sample cases.jsonl --plan plan.toml --turns first", "--turns", "[rewrite]"),
        ("sample cases.jsonl --plan plan.toml --refused drop", "--refused", "[rewrite]"),
        ("prompts cases.jsonl --classified all", "--classified", "--classify KEY=VALUE"),
        ("prompts cases.jsonl --allow-failed", "--allow-failed", "--classify KEY=VALUE"),
        ("prompts cases.jsonl --set max_tokens=9", "--set max_tokens", "--classify KEY=VALUE"),
        ("languages --table table.csv --set num_resamples=9", "--set num_resamples", "or --table"),
        ("languages --table table.csv --languages de", "--languages", "or --table"),
        ("leaderboard --table table.csv --set num_resamples=9", "--set num_resamples", "or --table"),
    ],
)
def test_what_has_no_effect_is_refused_with_what_to_leave_out(folder, words, option, instead):
    with pytest.raises(ConfigError, match="has no effect") as caught:
        CliRunner().invoke(build_app(), [*words.split(), "--out", "out"], catch_exceptions=False)
    assert f"{option} has no effect" in str(caught.value)
    assert caught.value.do.startswith(f"leave out {option}, or ")
    assert instead in caught.value.do
    assert not (folder / "out").exists()
