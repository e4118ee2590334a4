import msgspec
import pytest

from steelyard.core.errors import EvidenceError
from steelyard.core.types import Case, Pair, Rating, Response
from steelyard.plugins.models._cross_fitted import CrossFitted, TrainingEvidence, flat_pairs, normalised
from strategies import case, prompt


class Seen(CrossFitted):
    """Learns which prompts it has seen, and scores every answer by how many they are."""

    def fit_fold(self, cases, evidence):
        return {one.prompt.id for one in cases}

    def rate(self, fitted, cases):
        return [float(len(fitted - {one.prompt.id})) if one.prompt.id not in fitted else -1.0 for one in cases for _ in one.responses]  # fmt: skip # noqa: E501


def ranked(id, text=None):
    return msgspec.structs.replace(case(id, "ab", text=text or f"question {id}"), ranking=(("a",), ("b",)))


def seen(cases, folds=5):
    return Seen("", folds, TrainingEvidence()).fit(cases)


def test_a_prompt_is_scored_by_a_fit_that_lacks_its_fold_and_a_new_one_by_all():
    cases = [ranked(str(number)) for number in range(10)]
    model = seen(cases)
    # ten prompts in five folds: two a fold, so eight are left; -1 would mean that the fit has seen the prompt
    assert [line.scores for line in model.score(cases)] == [{"a": 8.0, "b": 8.0}] * 10
    assert next(iter(model.score([ranked("new")]))).scores == {"a": 10.0, "b": 10.0}


def test_a_prompt_is_the_same_whatever_its_case_width_and_spacing():
    cases = [ranked("1", "Ｈello   World"), *(ranked(str(number)) for number in range(2, 11))]
    (line,) = seen(cases).score([ranked("other", "hello world")])
    assert line.scores["a"] == 8.0
    assert normalised(ranked("x", " A\nb ")) == "a b"


def test_teaching_leaves_the_teacher_as_it_was():
    first = seen([ranked("1"), ranked("2")], folds=2)
    before = list(first.score([ranked("new")]))
    second = first.fit([ranked(str(number)) for number in range(6)])
    assert next(iter(second.score([ranked("new")]))).scores["a"] == 6.0
    assert list(first.score([ranked("new")])) == before
    assert first.training_protocol() == {"train": "given", "pairs": None, "folds": 2}


def test_pairs_stand_by_their_places_in_one_row_of_responses():
    listed = Case(
        prompt=prompt("1"),
        responses=tuple(Response(id=name, text=name) for name in "abc"),
        pairs=(Pair(better="c", worse="a", weight=2.0),),
    )
    assert flat_pairs([ranked("0"), listed], None) == ([0, 4], [1, 2], [1.0, 2.0], [0, 1])


def test_no_ordered_pair_is_the_users_error():
    with pytest.raises(EvidenceError, match="no ordered pair"):
        list(seen([case("1", "ab")]).score([case("2", "ab")]))


def test_ratings_are_no_pairs_and_the_remedies_make_use_of_them():
    stars = tuple(Rating(response=name, rater="x", kind="human", dimension="stars", value=value, range=(1, 5))
                  for name, value in (("a", 5.0), ("b", 1.0)))  # fmt: skip
    rated = msgspec.structs.replace(case("1", "ab"), ratings=stars)
    with pytest.raises(EvidenceError, match="no ordered pair") as refused:
        list(seen([rated]).score([case("2", "ab")]))
    told = str(refused.value)
    assert "convert . judged.jsonl with ratings_to_judgments=true" in told
    assert "model.loss=mean-squared-error" in told
