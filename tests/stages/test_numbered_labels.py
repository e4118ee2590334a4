"""Labels that are numbers: each refusal proposes the whole scale, and its settings read the table when pasted."""

import json
import re
import shlex

import pytest

from example_folder import invoke
from steelyard.core.errors import RecordError
from steelyard.io.cases import read_cases

COLUMNS = ["--prompt-column", "q", "--first-column", "a", "--second-column", "b", "--label-column", "label"]


def converted(path, labels, settings=""):
    """The verdicts of a table of these labels, or the error."""
    rows = [{"q": f"问{place}", "a": "x", "b": "y", "label": label} for place, label in enumerate(labels)]
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    out = path.with_suffix(".cases.jsonl")
    done = invoke(["convert", str(path), str(out), *COLUMNS, "--force", *shlex.split(settings)])
    return done.exception or [case.judgments[0].verdict for case in read_cases(out)]


def remedies(path, labels):
    """The settings that the refusals propose one after another, each beside the earlier ones, and what is read then."""
    settings, read = "", converted(path, labels)
    while isinstance(read, RecordError):
        (proposed,) = re.findall(r"((?:--set labels\.\S+ ?)+)", str(read))
        assert proposed not in settings
        settings += f" {proposed}"
        read = converted(path, labels, settings)
    return read


@pytest.mark.parametrize(
    ("labels", "verdicts"),
    [
        ([1, 0], ["left", "right"]),
        ([1, 0, 2], ["left", "tie", "right"]),
        (["2", "0", "1"], ["right", "tie", "left"]),
        ([2, 1], ["right", "left"]),
        ([1, 2, 3], ["left", "tie", "right"]),
        ([5, 1, 2, 3, 4], ["right", "left", "left", "tie", "right"]),
        ([-1, 0, 1], ["left", "tie", "right"]),
        ([1, 2, -2, 0, -1], ["right", "right", "left", "tie", "left"]),
        ([0, 4, 2], ["left", "right", "tie"]),
        # Where the first label that is unknown is not the last of the scale.
        ([1, 2, 3, 7, 6, 5, 4], ["left", "left", "left", "right", "right", "right", "tie"]),
        ([1, -1, 3, -3], ["right", "left", "right", "left"]),
    ],
)  # fmt: skip
def test_the_remedies_of_a_scale_read_all_of_it(tmp_path, labels, verdicts):
    assert remedies(tmp_path / "t.jsonl", labels) == verdicts


def test_two_beside_zero_and_one_is_refused_with_the_meaning_of_all_three(tmp_path):
    error = converted(tmp_path / "t.jsonl", [1, 0, 2], "--set labels.1=left --set labels.0=right")
    assert isinstance(error, RecordError)
    assert "t.jsonl:3 at label: unknown label 2" in str(error)
    assert "--set labels.0=tie --set labels.1=left --set labels.2=right" in str(error)


@pytest.mark.parametrize("label", [11, 1.5e9, "2.25"])
def test_a_number_of_no_scale_is_refused_without_one(tmp_path, label):
    error = converted(tmp_path / "t.jsonl", [label])
    assert isinstance(error, RecordError)
    assert "labels.1=" not in str(error)


def test_labels_in_words_are_proposed_together_and_once(tmp_path):
    labels = ["alpha alpha", "alpha", "tie", "omega", "alpha", "omega omega"]
    error = converted(tmp_path / "t.jsonl", labels)
    proposed = shlex.split(str(error).partition("none): ")[2])[1::2]
    assert proposed == [f"labels.{label}=…" for label in ("alpha alpha", "alpha", "omega", "omega omega")]


@pytest.mark.parametrize(
    ("label", "verdict"),
    [("A >>> B", "left"), ("B>>>A", "right"), ("A << B", "right"), ("A = B", "tie"), ("A===B", "tie")],
)
def test_signs_of_comparison_have_any_strength_and_spaces(tmp_path, label, verdict):
    assert converted(tmp_path / "t.jsonl", [label]) == [verdict]
