from steelyard.core.types import Counts, Input, Run
from steelyard.evaluation.tables import word
from steelyard.report.page import COLON
from steelyard.report.run_records import counts_line, protocol, rule_word


def test_counts_stand_in_one_line():
    counts = Counts(num_in=1012, num_used=1010, dropped={"no_pair": 2}, noted={"given": 7})
    line = counts_line("run", counts)
    assert line.startswith(f"run{COLON}1,012 {word('num_in')} · 1,010 {word('used')}")
    assert f"{word('dropped')}{COLON}{word('rule_no_pair', 'no pair')} 2" in line
    assert line.endswith(f"{word('noted')}{COLON}{word('rule_given', 'given')} 7")


def test_the_parts_of_a_rule_keep_their_names():
    assert rule_word("cut responses, zh") == f"{word('rule_cut_responses', 'cut responses')}, zh"
    cut = word("rule_cut_answers", "cut answers")
    assert rule_word("held out: cut answers") == f"{word('rule_held_out', 'held out')}{COLON}{cut}"
    assert rule_word("verdict: cut off") == word("rule_verdict_cut_off", "verdict: cut off")
    assert rule_word("verdict: my reason") == f"{word('rule_verdict', 'verdict')}{COLON}my reason"
    assert rule_word("中文") == word("rule_", "中文")


def test_the_protocol_shows_settings_hashes_and_of_a_path_only_its_end():
    run = Run(
        stage="train",
        config={"model": {"path": "/data/someone/models/rm", "rate": 0.1}, "only": {}, "seed": 3},
        seed=3,
        inputs={"cases": Input(path="/data/private/cases.jsonl", sha256="ab12")},
        outputs={"model.safetensors": "cd34"},
        counts=Counts(num_in=3, num_used=2, dropped={"rule": 1}),
        seconds=1.25,
    )
    shown = protocol("model", run)
    tables = {part.by: part.table.rows for part in shown.tables}
    assert ("model.path", "rm") in tables["settings"]
    assert ("model.rate", "0.1") in tables["settings"]
    assert ("only", "{}") in tables["settings"]
    assert (word("seed"), "3") in tables["settings"]
    assert tables["files"] == (("cases", "cases.jsonl", "ab12"), (word("output"), "model.safetensors", "cd34"))
    assert (f"{word('dropped')}{COLON}{word('rule_rule', 'rule')}", "1") in tables["counts"]
    assert "someone" not in str(shown)


def test_counts_by_language_keep_the_codes_of_languages():
    """An underscore was a space: `arb Arab`."""
    assert rule_word("unscored responses, arb_Arab").endswith(", arb_Arab")
