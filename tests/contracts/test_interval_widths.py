"""No interval anywhere claims certainty: every one has a width, or is absent with the reason, at all right or wrong."""

import msgspec
import numpy as np
import pytest

from each_value import each
from evaluated_cases import select_pairs
from evaluation_summaries import resampled_bench
from example_benches import example_bench
from steelyard.core.plugins import build, kinds
from steelyard.core.types import Response, Scores
from steelyard.evaluation.bench_pairs import count_pairs, items_of, values_of
from steelyard.evaluation.columns import score_columns
from steelyard.evaluation.measure import measures
from steelyard.statistics.aggregation import estimate, means
from steelyard.statistics.bootstrap import resample
from steelyard.statistics.pair_counts import statistics_table
from steelyard.statistics.significance import HeadlineBootstrap, compare
from strategies import case

STYLES = ("concise", "detailed", "markdown")
CATEGORIES = ("Helpfulness", "Harmlessness")
SUBSETS = {
    "cases": (None,),
    "cheemsbench": ("open_prompt", "human_instruction"),
    "mrewardbench": ("alpacaeval-easy", "llmbar-natural", "donotanswer", "hep-go"),
    "mrewardbench_translation": tuple(
        f"{level}_{direction}" for level in ("easy", "hard") for direction in ("de_en", "en_de", "zh_en", "en_zh")
    ),
    "rewardbench": ("alpacaeval-easy", "llmbar-natural", "donotanswer", "hep-go"),
    "rewardbench2": ("Factuality", "Precise IF", "Math", "Safety", "Focus", "Ties"),
    "rm_bench": ("chat", "math", "code", "safety-refuse", "safety-response"),
    "rmb": ("Pairwise_set", "BoN_set"),
    "subsets": ("chat", "math", "code"),
}
LANGUAGES = {"mrewardbench": ("zho_Hans", "deu_Latn")}


def cases_of(kind, num_each):
    """Prompts of every subset, category and language of a bench, with three right answers and three wrong ones."""
    made = []
    for subset in SUBSETS[kind]:
        for category in CATEGORIES:
            for number in range(num_each):
                for language in LANGUAGES.get(kind, ("zh",)):
                    name = f"{subset}/{category}/{number}"
                    if subset == "Ties":
                        name = f"Ties/{'ref' if category == 'Helpfulness' else 'tied'}:{number}"
                    tiers = (tuple("abc"), tuple("def"))
                    one = case(name, "abcdef", text=name, subset=subset, category=(category,), language=language)
                    responses = tuple(
                        Response(id=letter, text=letter * (2 + place), meta={"style": style})
                        for place, (letter, style) in enumerate(zip("abcdef", STYLES * 2, strict=True))
                    )
                    made.append(msgspec.structs.replace(one, responses=responses, ranking=tiers))
    return made


def scored(cases, sign):
    """Every right answer above every wrong one, or below, with other margins from prompt to prompt."""
    return [
        Scores(
            prompt=one.prompt.id,
            scores={letter: sign * float(letter in "abc") * (1 + row % 7) for letter in "abcdef"},
        )
        for row, one in enumerate(cases)
    ]


def answered(bench_pairs, lines):
    """Count the outcomes of the pairs."""
    return count_pairs(bench_pairs.columns, values_of(bench_pairs.columns, score_columns(lines).score))


def records(tree, path=()):
    """Every value with an interval in a summary."""
    if isinstance(tree, dict) and "low" in tree and "value" in tree:
        yield path, tree
    elif isinstance(tree, dict):
        for name, inner in tree.items():
            yield from records(inner, (*path, name))
    elif isinstance(tree, list):
        for place, inner in enumerate(tree):
            yield from records(inner, (*path, place))


def check(tree):
    found = list(records(tree))
    for path, own in found:
        if own["low"] is None:
            assert own["high"] is None, path
            assert own["value"] is None or own.get("why"), path
        else:
            assert own["low"] <= own["value"] + 1e-9, path
            assert own["value"] <= own["high"] + 1e-9, path
            assert own["high"] - own["low"] > 1e-3, path
    return found


@each("kind", kinds("benches"))
@each("sign", [1.0, -1.0])
@each("num_each", [1, 4])
def test_every_interval_of_every_bench_has_a_width(kind, sign, num_each):
    bench = example_bench(kind)
    cases = [bench.normalize(one, "f") for one in cases_of(kind, num_each)]
    lines = scored(cases, sign)
    bench_pairs = select_pairs(cases, None, "strict", bench.resample_ids)
    own = bench.columns(cases, lines, unscored_is_right=False)
    totals = resample(items_of(bench_pairs, answered(bench_pairs, lines), num_resamples=100, columns=own), seed=0)
    # Of a part of a published bench there is no headline; its arithmetic on the part stands for it.
    headline = bench.headline(totals) if kind == "cases" else bench.breakdown(totals).overall
    whole = estimate(totals, headline.formula, headline.n).record()
    assert check({"means": means(totals), "bench": bench.summarise(totals), "headline": whole})


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("num_each", [2, 40])
def test_every_interval_of_every_measure_has_a_width(sign, num_each):
    cases = cases_of("cases", num_each)
    lines = scored(cases, sign)
    resampled = resampled_bench(cases, lines, num_resamples=100)
    measured = {name: measure.estimate(resampled) for name, measure in measures().items()}
    assert len(check(msgspec.to_builtins(measured))) > 50
    if num_each == 40:
        assert measured["kendall_tau"].macro.value == sign


def test_a_model_beside_itself_and_beside_its_opposite_has_a_width():
    cases = cases_of("cases", 10)
    bench_pairs = select_pairs(cases, None, "strict")
    tables = [
        statistics_table(answered(bench_pairs, scored(cases, sign)), np.ones(len(cases), np.bool_))
        for sign in (1.0, -1.0)
    ]
    for first, second in ((0, 0), (0, 1), (1, 0)):
        found = compare(bench_pairs.layout, tables[first], tables[second], num_resamples=100, seed=0)
        check({"accuracy": found.accuracy.record(), "exact_match": found.exact_match.record()})
        assert (found.p_accuracy < 0.001) == (first != second)
    headline = build("benches", "cases").headline(
        resample(items_of(bench_pairs, answered(bench_pairs, scored(cases, 1.0)), num_resamples=1), seed=0)
    )
    drawn = HeadlineBootstrap(bench_pairs.layout, headline.formula, 100, 0).draw(tables)
    check(drawn.minus(0, 1, 20).estimate.record())
    assert drawn.minus(0, 1, 20).estimate.value == 1.0
