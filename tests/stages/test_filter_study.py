import math

import msgspec
import pytest

from steelyard.core.errors import ConfigError, EvidenceError, OutputError
from steelyard.curation.filter_study import FilterStudySummary
from steelyard.stages.filter_study import Config, check_settings, filter_study
from supervision_files import judged, noisy, read_lines, write

FAST = {"judge": "gpt"}


def study(tmp_path, cases, *, out="out", model="ngram", **settings):
    path = write(tmp_path / "cases.jsonl", cases)
    return filter_study(path, tmp_path / out, Config(**FAST | settings), model=model)


def test_the_study_says_what_each_filter_keeps(tmp_path):
    run = study(tmp_path, noisy(80))
    summary = run.summary
    rows = {row.filter: row for row in summary.precision.filters}
    lines = read_lines(tmp_path / "out" / "verdicts.jsonl")
    assert len(lines) == rows["all"].precision.n == 80
    # counted again from the file, one line a verdict
    kept = [line for line in lines if line["margin"] > 0]
    assert rows["agrees"].num_kept == len(kept)
    assert math.isclose(rows["agrees"].precision.value, sum(line["is_right"] for line in kept) / len(kept))
    assert math.isclose(rows["all"].precision.value, sum(line["is_right"] for line in lines) / 80)
    assert (
        msgspec.json.decode((tmp_path / "out" / "filter_study.json").read_bytes(), type=FilterStudySummary) == summary
    )
    assert (tmp_path / "out" / "filter_study.svg").read_text(encoding="utf-8").startswith("<svg")
    assert (run.counts.num_in, run.counts.num_used) == (80, 80)
    assert filter_study(tmp_path / "cases.jsonl", tmp_path / "out", Config(**FAST)) == run


def test_a_verdict_that_people_do_not_judge_is_counted_and_not_measured(tmp_path):
    cases = [*noisy(40), judged("silent"), judged("tied", human=("a>b", "a<b"))]
    run = study(tmp_path, cases)
    assert (run.counts.num_in, run.counts.num_used, sum(run.counts.dropped.values())) == (42, 40, 2)


def test_without_any_key_there_is_no_precision(tmp_path):
    cases = [judged(str(number), human=("a>b",), llm=("b>c",)) for number in range(20)]
    run = study(tmp_path, cases)
    assert run.summary.precision is None
    assert read_lines(tmp_path / "out" / "verdicts.jsonl") == []


def test_mistakes_are_named_and_leave_nothing(tmp_path):
    cases = noisy(40)
    for changes, said, kind in (
        ({"judge": "gtp"}, "did you mean 'gpt'", ConfigError),
        ({"model": "longer"}, "learns from no training cases", ConfigError),
        ({"judge": ""}, "judge=NAME", ConfigError),
    ):
        with pytest.raises(kind, match=said):
            study(tmp_path, cases, **changes)
        assert not (tmp_path / "out").exists()
    with pytest.raises(EvidenceError, match="people prefer no answer"):
        study(tmp_path, [judged("1")])
    # equal answers: the supervisor's margin is 0 for every verdict, so none agrees
    with pytest.raises(EvidenceError, match="coverage of zero"):
        study(tmp_path, [judged(str(number), human=("a>b",), texts=("同", "同")) for number in range(20)])
    study(tmp_path, cases)
    with pytest.raises(OutputError, match="seed 0 there"):
        study(tmp_path, cases, seed=2)


def test_what_cannot_be_done_is_named():
    check_settings(Config(judge="gpt"))
    for settings, said in (
        ({"judge": ""}, "judge=NAME"),
        ({"quantiles": (1.0,)}, "quantiles"),
        ({"max_pairs": 0}, "max_pairs"),
    ):
        with pytest.raises(ConfigError, match=said):
            check_settings(Config(**{"judge": "gpt"} | settings))
