"""Every form of a file of scores in docs/formats.md is read, and every error in it is raised."""

import re

import pytest

import example_folder
from steelyard.core.errors import EvidenceError, RecordError
from steelyard.io.cases import write_cases
from steelyard.stages.evaluate import Config, evaluate
from strategies import case

PAGE = (example_folder.ROOT / "docs" / "formats.md").read_text(encoding="utf-8")
(SECTION,) = re.findall(r"^## Scores made elsewhere\n(.*?)^## ", PAGE, flags=re.DOTALL | re.MULTILINE)
FORMS = dict(re.findall(r"^\*\*(.+?)\*\*.*?^```\n(.*?)^```$", SECTION, flags=re.DOTALL | re.MULTILINE))
FIRST = FORMS["Every case with its language"].splitlines()
ERRORS = re.findall(r"^\| `(\{.+?\})` \| (.+) \|$", SECTION, flags=re.MULTILINE)
CASES = [
    case(name, "ab", language=language, text=f"{name} {language}", ranking=(("a",), ("b",)))
    for name, language in (("q1", "zh"), ("q1", "en"), ("q2", "en"))
]


def evaluated(folder, text):
    write_cases(folder / "cases.jsonl", CASES)
    (folder / "mine.jsonl").write_text(text, encoding="utf-8")
    config = Config(num_resamples=10, baselines=())
    return evaluate([folder / "cases.jsonl"], folder / "out", config, scores=folder / "mine.jsonl").summary


def test_the_page_has_every_form():
    assert len(FORMS) == 4
    assert len(ERRORS) == 14


@pytest.mark.parametrize("form", FORMS)
def test_each_form_is_read(tmp_path, form):
    # a is better and has the greater score in two of the three: q1 in English is wrong, or q1 in Chinese has no score.
    summary = evaluated(tmp_path, FORMS[form])
    unscored = form.startswith("A response that is too long")
    assert summary.model == "mine"
    assert summary.accuracy_micro.value == pytest.approx((1 if unscored else 2) / 3)
    assert (summary.unscored is not None) == unscored
    assert summary.coverage.num_cut == form.startswith("A truncated")


def test_another_reason_than_length_needs_permission(tmp_path):
    text = FORMS["A response that is too long for the model"]
    for other in (text.replace('"too long"', '"lost"'), text.replace(', "unscored": {"b": "too long"}', "")):
        with pytest.raises(EvidenceError, match="use allow_unscored=true"):
            evaluated(tmp_path, other)


@pytest.mark.parametrize(("line", "error"), ERRORS)
def test_each_error_is_placed(tmp_path, line, error):
    with pytest.raises(RecordError, match=re.escape(error.strip("` "))) as caught:
        evaluated(tmp_path, "\n".join([*FIRST[:2], line]))
    assert str(caught.value).startswith(f"{tmp_path / 'mine.jsonl'}:3: ")


def test_a_missing_line_is_named(tmp_path):
    (error,) = re.findall(r"^\| a missing line \| `(.+)` \|$", SECTION, flags=re.MULTILINE)
    with pytest.raises(RecordError, match=error):
        evaluated(tmp_path, "\n".join(FIRST[:2]))
