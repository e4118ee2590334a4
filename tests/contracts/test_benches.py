"""The contract of every bench: it places cases, and sums statistics to its headline with intervals."""

import json

import msgspec
import numpy as np
import pytest

from example_benches import example_bench
from steelyard.core.plugins import kinds
from steelyard.core.types import Response, Scores
from steelyard.statistics.bootstrap import Items, resample
from steelyard.statistics.groups import Cell, Label, layout_of, units_of
from strategies import case

KINDS = kinds("benches")
SUBSETS = {
    "cases": None,
    "cheemsbench": "open_prompt",
    "mrewardbench": "hep-go",
    "mrewardbench_translation": "easy_zh_en",
    "rewardbench": "hep-go",
    "rewardbench2": "Focus",
    "rm_bench": "chat",
    "rmb": "BoN_set",
    "subsets": "chat",
}


@pytest.fixture(params=KINDS)
def kind(request):
    return request.param


STYLES = ("concise", "detailed", "markdown")


def given(kind):
    """A case that every bench can hold but for its subset: two tiers of three, a style each."""
    one = case(
        subset=SUBSETS[kind], category=("Helpfulness", "数学"), language="zh", ranking=(tuple("abc"), tuple("def"))
    )
    responses = tuple(
        Response(id=name, text=name, meta={"style": style}) for name, style in zip("abcdef", STYLES * 2, strict=True)
    )
    return msgspec.structs.replace(one, responses=responses)


def items(kind):
    bench = example_bench(kind)
    cases = [
        msgspec.structs.replace(one, prompt=msgspec.structs.replace(one.prompt, id=f"p{index}"))
        for index, one in enumerate([given(kind)] * 20)
    ]
    lines = [
        Scores(prompt=one.prompt.id, scores={name: float(index % 3 - place) for place, name in enumerate("abcdef")})
        for index, one in enumerate(cases)
    ]
    units = units_of([bench.resample_ids(one) for one in cases])
    labels = [
        Label(unit, Cell(one.prompt.category[0], one.prompt.subset, one.prompt.language))
        for unit, one in zip(units, cases, strict=True)
    ]
    base = np.array([[2, index % 3, 1, index % 3 == 2] for index in range(20)])
    own = bench.columns(cases, lines, unscored_is_right=False)
    return Items(layout_of(labels), np.concatenate([base, own], axis=1), 20)


def test_every_bench_is_known_here(kind):
    assert kind in SUBSETS, "say in SUBSETS which subset its cases may have"


def test_placing_keeps_all_but_the_subset(kind):
    bench = example_bench(kind)
    one = given(kind)
    placed = bench.normalize(one, "open.jsonl")
    # A bench may add what it alone knows: the language in which an answer is expected.
    added = dict(placed.prompt.meta or {})
    added.pop("answer_language", None)
    assert msgspec.structs.replace(placed, prompt=msgspec.structs.replace(placed.prompt, meta=added or None)) == one
    assert bench.source_format is None or isinstance(bench.source_format, str)
    assert bench.subset_of("nothing.jsonl") is None


def test_the_summary_is_plain_json_and_the_same_for_the_same_seed(kind):
    bench = example_bench(kind)
    found = bench.summarise(resample(items(kind), seed=3))
    assert json.loads(json.dumps(found)) == found
    assert bench.summarise(resample(items(kind), seed=3)) == found


def test_an_incomplete_bench_has_no_headline(kind):
    bench, totals = example_bench(kind), resample(items(kind), seed=0)
    found, headline = bench.summarise(totals), bench.headline(totals)
    assert "overall" not in found
    if kind == "cases":
        assert found["headline"] == headline.name == "accuracy"
    else:
        assert found["headline"] is None
        assert found["missing"] == headline.missing != {}


def test_parallel_items_are_drawn_together(kind):
    bench, one = example_bench(kind), given(kind)
    texts = ("甲", "乙")
    messages = [(msgspec.structs.replace(one.prompt.messages[0], content=text),) for text in texts]
    parallel = [
        msgspec.structs.replace(one, prompt=msgspec.structs.replace(one.prompt, language=language, messages=own))
        for language, own in zip(("zh", "he"), messages, strict=True)
    ]
    assert len(set(units_of([bench.resample_ids(own) for own in parallel]))) == 1


def test_a_headline_says_what_it_is(kind):
    headline = example_bench(kind).headline(resample(items(kind), seed=0))
    assert headline.name.isidentifier()
    assert headline.about[0].islower()
    assert not headline.about.endswith(".")


def test_an_unscored_answer_is_counted_as_asked(kind):
    bench, one = example_bench(kind), given(kind)
    unscored = Scores(prompt="p", scores=dict.fromkeys("abcdef"), unscored=dict.fromkeys("abcdef", "over length"))
    wrong, right = (bench.columns([one], [unscored], unscored_is_right=is_right) for is_right in (False, True))
    assert wrong.shape == right.shape == (1, wrong.shape[1])
    assert (wrong >= 0).all()
    assert (wrong <= right).all()
