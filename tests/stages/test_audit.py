import json

import msgspec
import pytest

from steelyard.core.errors import ConfigError, FileError, RecordError
from steelyard.core.types import Pair
from steelyard.io.cases import write_cases
from steelyard.stages.audit import Config, audit
from strategies import case


def labelled(number, flipped=()):
    """Return cases in which a good answer ("清楚的回答 …") is labelled better than a bad one, but for those flipped."""
    cases = []
    for at in range(number):
        one = case(id=f"p{at}", responses="ab", text=f"问题 {at} {chr(0x4E00 + 37 * at)}{chr(0x5E00 + 91 * at)}")
        texts = ("清楚的回答，给出了步骤和例子。", "不知道，随便看看吧，无所谓。")
        responses = tuple(
            msgspec.structs.replace(response, text=f"{text}{at}")
            for response, text in zip(one.responses, texts, strict=True)
        )
        pair = Pair(better="b", worse="a") if at in flipped else Pair(better="a", worse="b")
        cases.append(msgspec.structs.replace(one, responses=responses, pairs=(pair,)))
    return cases


@pytest.fixture
def file(tmp_path):
    write_cases(tmp_path / "c.jsonl", labelled(60, flipped=(7, 30, 41)))
    return tmp_path / "c.jsonl"


def listed(out):
    return [json.loads(line) for line in (out / "disputed.jsonl").read_text(encoding="utf-8").splitlines()]


def test_flipped_labels_are_the_disputed_ones(file, tmp_path):
    run = audit(file, tmp_path / "out")
    assert {row["prompt"] for row in listed(tmp_path / "out")} == {"p7", "p30", "p41"}
    disputed = run.summary.disputed
    assert (disputed.model, disputed.num_pairs, disputed.num_disputed) == ("ngram", 60, 3)
    assert disputed.accuracy.value == pytest.approx(57 / 60)
    assert disputed.num_suspects == 3
    assert audit(file, tmp_path / "out") == run


def test_scores_of_a_model_take_the_place_of_the_n_grams(file, tmp_path):
    lines = [{"prompt": f"p{at}", "scores": {"a": 1.0 if at != 5 else -1.0, "b": 0.0}} for at in range(60)]
    (tmp_path / "s.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    run = audit(file, tmp_path / "out", scores=tmp_path / "s.jsonl")
    assert run.summary.disputed.model == "s.jsonl"
    assert {row["prompt"] for row in listed(tmp_path / "out")} == {"p5", "p7", "p30", "p41"}
    (tmp_path / "s.jsonl").write_text(json.dumps(lines[0]), encoding="utf-8")
    with pytest.raises(RecordError, match="no line for prompt id"):
        audit(file, tmp_path / "other", scores=tmp_path / "s.jsonl")
    assert not (tmp_path / "other").exists()


def test_scores_of_other_cases_are_refused_where_the_labels_are_too_few_to_use_them(tmp_path):
    write_cases(tmp_path / "c.jsonl", labelled(14))
    line = {"prompt": "another", "scores": {"a": 1.0, "b": 0.0}}
    (tmp_path / "s.jsonl").write_text(json.dumps(line), encoding="utf-8")
    with pytest.raises(RecordError, match="unknown prompt id 'another'"):
        audit(tmp_path / "c.jsonl", tmp_path / "out", scores=tmp_path / "s.jsonl")
    assert not (tmp_path / "out").exists()


def test_the_most_conflicting_prompt_is_first_with_its_cycle(tmp_path):
    circle = case(id="circle", responses="abc", judgments=["a>b", "b>c", "c>a"])
    half = case(id="half", responses="abcd", judgments=["a>b", "b>a", "c>d", "a>c"])
    calm = case(id="calm", responses="ab", judgments=["a>b"])
    write_cases(tmp_path / "c.jsonl", [calm, half, circle])
    summary = audit(tmp_path / "c.jsonl", tmp_path / "out").summary
    assert [(row.prompt, row.num_conflicting, row.num_judgments, row.shown) for row in summary.conflicted] == [
        ("circle", 3, 3, "A > B > C > A"),
        ("half", 2, 4, "A > B > A"),
    ]
    assert summary.num_conflicted == 2
    assert summary.disputed is None
    assert "20 are needed" in summary.why_not_disputed
    assert listed(tmp_path / "out") == []


@pytest.mark.parametrize(
    ("name", "value"), [("confidence", 0.5), ("confidence", 1.0), ("near_duplicates", 0.0), ("folds", 1)]
)
def test_settings_that_make_no_sense_are_refused(file, tmp_path, name, value):
    with pytest.raises(ConfigError, match=name):
        audit(file, tmp_path / "out", Config(**{name: value}))
    assert not (tmp_path / "out").exists()


def test_an_empty_file_and_answers_without_text(tmp_path):
    (tmp_path / "empty.jsonl").write_text("\n\n")
    with pytest.raises(FileError, match="blank lines"):
        audit(tmp_path / "empty.jsonl", tmp_path / "out")
    blank = [
        msgspec.structs.replace(
            one, responses=tuple(msgspec.structs.replace(response, text="") for response in one.responses)
        )
        for one in labelled(30)
    ]
    write_cases(tmp_path / "blank.jsonl", blank)
    summary = audit(tmp_path / "blank.jsonl", tmp_path / "blank").summary
    assert summary.disputed is None
    assert summary.why_not_disputed
    assert summary.lengths.num_empty == 60
    assert summary.duplicates.num_equal_and_ordered == 30
