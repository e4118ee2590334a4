"""Real Chinese rankings, as their authors published them, there and back."""

import gzip
import json
from pathlib import Path

import pytest

from steelyard.io.cases import read_cases
from steelyard.ranking.pairs import pairs_of
from steelyard.stages.convert import Config, convert

DATA = Path(__file__).parents[2].parent / "shared" / "data"
FILE = DATA / "oasst1_zh_rm" / "oaast_rm_zh.json"
MESSAGES = DATA / "oasst1_en_validation" / "en-validation.jsonl"
TRANSCRIPTS = DATA / "hh_rlhf" / "harmless-base" / "test.jsonl.gz"
pytestmark = [
    pytest.mark.field,
    pytest.mark.skipif(
        not (FILE.exists() and MESSAGES.exists() and TRANSCRIPTS.exists()),
        reason="the real data are not beside the project",
    ),
]


def test_every_answer_and_pair_is_read(tmp_path):
    done = convert(FILE, tmp_path / "c.jsonl", Config(language="zh"))
    cases = list(read_cases(tmp_path / "c.jsonl"))
    # The counts stand in the data's own description.
    assert (done.num_cases, sum(len(pairs_of(one)) for one in cases)) == (775, 1809)
    # One answer repeats a sentence with spaces where another answer to its prompt has line breaks.
    assert done.noted == {"repeated responses": 6, "responses that differ from another in form alone": 1}
    rows = json.loads(FILE.read_text(encoding="utf-8"))
    assert [[response.text for response in one.responses] for one in cases] == [row["output"] for row in rows]


def test_transcripts_become_turns(tmp_path):
    (tmp_path / "hh.jsonl").write_bytes(gzip.decompress(TRANSCRIPTS.read_bytes()))
    done = convert(tmp_path / "hh.jsonl", tmp_path / "c.jsonl", Config(rows="apart"))
    with (tmp_path / "hh.jsonl").open(encoding="utf-8") as given:
        rows = [json.loads(line) for line in given]
    assert (done.from_kind, done.num_cases) == ("hh_rlhf", len(rows))
    cases = list(read_cases(tmp_path / "c.jsonl"))
    # All but 5 of the 2,312 pairs part at their last turn, and every transcript ends with the assistant.
    assert sum(all(response.text is not None for response in one.responses) for one in cases) == len(rows) - 5
    assert all(one.prompt.messages[0].role == "user" for one in cases)
    marks = [row["chosen"].count("\n\nHuman:") + row["chosen"].count("\n\nAssistant:") for row in rows]
    turns = [len(one.prompt.messages) + len(one.responses[0].messages or [None]) for one in cases]
    assert turns == marks
    joined = convert(tmp_path / "hh.jsonl", tmp_path / "j.jsonl")
    assert joined.num_rows == len(rows) > joined.num_cases


def test_messages_of_trees_are_cases_but_for_what_is_left_out(tmp_path):
    done = convert(MESSAGES, tmp_path / "c.jsonl")
    with MESSAGES.open(encoding="utf-8") as given:
        rows = [json.loads(line) for line in given]
    cases = list(read_cases(tmp_path / "c.jsonl"))
    num_left_out = sum(number for rule, number in done.noted.items() if rule.startswith("messages left out"))
    assert done.from_kind == "oasst_messages"
    assert len(cases) + sum(len(one.responses) for one in cases) + num_left_out == len(rows) == 2022
