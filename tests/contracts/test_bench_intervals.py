"""The intervals of benches' headlines against plain loops: items that belong together are drawn together.

Each loop states by hand what is drawn (a unit) and among which others (a stratum), and forms the published value of
each drawing from the drawn rows themselves. Beside it stands what drawing row by row would give: it must differ, so
that a bootstrap that forgets the units fails here.
"""

from collections import defaultdict

import msgspec
import numpy as np
import pytest

from evaluated_cases import select_pairs
from steelyard.core.plugins import build
from steelyard.core.types import Message, Response, Scores
from steelyard.evaluation.bench_pairs import count_pairs, items_of, values_of
from steelyard.evaluation.columns import score_columns
from steelyard.plugins.benches.rewardbench import LANGUAGES, WEIGHT_SETS
from steelyard.plugins.benches.subset_benches import LEVELS
from steelyard.statistics.aggregation import estimate, mean_of_sections
from steelyard.statistics.bootstrap import Items, resample
from steelyard.statistics.groups import Cell, Label, layout_of
from strategies import case

STYLES = ("concise", "detailed", "markdown")


def totals_of(kind, cases, lines, num_resamples):
    """As `evaluate` draws them."""
    bench = build("benches", kind)
    prepared = [bench.normalize(one, "f") for one in cases]
    bench_pairs = select_pairs(prepared, None, "strict", bench.resample_ids)
    own = bench.columns(prepared, lines, unscored_is_right=False)
    values = values_of(bench_pairs.columns, score_columns(lines).score)
    items = items_of(bench_pairs, count_pairs(bench_pairs.columns, values), num_resamples=num_resamples, columns=own)
    return bench, resample(items, seed=0)


def overall(bench, totals):
    """The number over the sections of what is there, which is not the whole bench."""
    return estimate(totals, *bench.breakdown(totals).overall).record()


def bootstrap(units, value, num_resamples, seed=0):
    """Percentiles of ``value`` over drawings of ``units``: {stratum: [rows of a unit, …]}, drawn within strata."""
    rng = np.random.default_rng(seed)
    drawn = []
    for _ in range(num_resamples):
        rows = []
        for own in units.values():
            for place in rng.integers(len(own), size=len(own)):
                rows += own[place]
        drawn.append(value(rows))
    low, high = np.quantile(np.array(drawn, dtype=np.float64), [0.025, 0.975])
    return float(low), float(high)


def by_unit(rows, unit_of, subset_of):
    """The rows of each unit, by the subsets that the unit's rows lie in."""
    members = defaultdict(list)
    for row in rows:
        members[unit_of(row)].append(row)
    strata = defaultdict(list)
    for own in members.values():
        strata[tuple(sorted({subset_of(row) for row in own}))].append(own)
    return strata


def mean_of_subsets(rows):
    """The plain mean over subsets of each one's mean, of rows (subset, unit, right)."""
    of = defaultdict(list)
    for subset, _, right in rows:
        of[subset].append(right)
    return mean(mean(own) for own in of.values())


def check_rows(found, rows, value, num_together, num_apart):
    """As `check`, of rows (subset, unit, right): against the loop over units, and over rows that are each their own."""
    numbered = [(*row, place) for place, row in enumerate(rows)]
    units = by_unit(rows, lambda row: row[1], lambda row: row[0])
    apart = by_unit(numbered, lambda row: row[3], lambda row: row[0])
    check(
        found,
        bootstrap(units, value, num_together),
        bootstrap(apart, lambda own: value([row[:3] for row in own]), num_apart),
    )


def check(found, clustered, apart):
    """The interval is that of the loop over units, and not that of the loop over rows."""
    width = clustered[1] - clustered[0]
    assert found["low"] == pytest.approx(clustered[0], abs=0.1 * width)
    assert found["high"] == pytest.approx(clustered[1], abs=0.1 * width)
    assert apart[1] - apart[0] < 0.8 * width


def mean(values):
    values = list(values)
    return sum(values) / len(values)


def styled(name, domain, ability, rng):
    one = case(name, "abcdef", text=name, subset=domain, ranking=(tuple("abc"), tuple("def")))
    responses = tuple(
        Response(id=letter, text=letter, meta={"style": style})
        for letter, style in zip("abcdef", STYLES * 2, strict=True)
    )
    scores = [*rng.normal(ability, 0.3, 3).tolist(), *rng.normal(0, 0.3, 3).tolist()]
    return msgspec.structs.replace(one, responses=responses), Scores(
        prompt=name, scores=dict(zip("abcdef", scores, strict=True))
    )


def test_the_nine_pairs_of_a_prompt_of_rm_bench_are_drawn_together():
    rng = np.random.default_rng(3)
    domains = ("chat", "math", "code", "safety-refuse", "safety-response")
    made = [styled(f"{domain}{index}", domain, rng.normal(0.2, 1), rng) for domain in domains for index in range(24)]
    cases, lines = zip(*made, strict=True)
    bench, totals = totals_of("rm_bench", cases, lines, 2000)
    rows = [
        (one.prompt.subset, one.prompt.id, float(line.scores[good] > line.scores[bad]))
        for one, line in made
        for good in "abc"
        for bad in "def"
    ]

    def value(drawn):
        of = defaultdict(list)
        for subset, _, right in drawn:
            of[subset.partition("-")[0]].append(right)
        return mean(mean(of[domain]) for domain in ("chat", "math", "code", "safety"))

    found = overall(bench, totals)
    assert found["value"] == pytest.approx(value(rows))
    check_rows(found, rows, value, 1000, 300)


def test_the_pairs_of_one_conversation_of_rmb_are_drawn_together():
    rng = np.random.default_rng(4)
    cases, lines, rows = [], [], []
    for goal in ("Helpfulness", "Harmlessness"):
        for number in range(20):
            chance = rng.beta(0.6, 0.4)  # what a model makes of a conversation's pairs goes together
            for place in range(7):
                subset, letters = ("BoN_set", "abc") if place == 6 else ("Pairwise_set", "ab")
                is_right, name = bool(rng.random() < chance), f"{subset}/{goal}{number}.{place}"
                tiers = (("a",), tuple(letters[1:]))
                cases.append(
                    case(name, letters, text=f"{goal} {number}?", subset=subset, category=(goal,), ranking=tiers)
                )
                scores = {letter: float(letter == "a") if is_right else 0.0 for letter in letters}
                lines.append(Scores(prompt=name, scores=scores))
                rows.append(((goal, subset), (goal, number), float(is_right)))

    bench, totals = totals_of("rmb", cases, lines, 2000)
    found = overall(bench, totals)
    assert found["value"] == pytest.approx(mean_of_subsets(rows))
    check_rows(found, rows, mean_of_subsets, 1500, 400)


def test_easy_and_hard_answers_to_one_request_of_the_translation_task_are_drawn_together():
    rng = np.random.default_rng(5)
    cases, lines, rows = [], [], []
    for direction in ("de_en", "en_de", "zh_en", "en_zh"):
        for number in range(30):
            is_right = bool(rng.random() < 0.6)
            for level in ("easy", "hard"):
                name = f"{level}_{direction}/{number}"
                one = case(
                    name, "ab", text=f"{direction} {number}", subset=f"{level}_{direction}", ranking=(("a",), ("b",))
                )
                cases.append(one)
                lines.append(Scores(prompt=name, scores={"a": float(is_right), "b": 0.5}))
                rows.append((f"{level}_{direction}", (direction, number), float(is_right)))

    bench, totals = totals_of("mrewardbench_translation", cases, lines, 2000)
    check_rows(overall(bench, totals), rows, mean_of_subsets, 1500, 400)
    # Both levels of a request are right or both wrong: whatever is drawn, there is no gap between them.
    sections = bench.breakdown(totals).sections
    easy, hard = (mean_of_sections({name: own for name, own in sections.items() if level in name}) for level in LEVELS)
    assert (easy(totals.resampled) == hard(totals.resampled)).all()


def test_the_translations_of_a_prompt_of_m_rewardbench_are_drawn_together():
    rng = np.random.default_rng(6)
    subsets = WEIGHT_SETS["mrewardbench"]
    # Of each subset a table (prompt, language); the languages of a prompt are right together, but for one in ten.
    right = {
        own.name: np.where(
            rng.random((own.num_prompts, 23)) < 0.1, rng.random((own.num_prompts, 23)), rng.random((own.num_prompts, 1))
        )
        < 0.6
        for own in subsets
    }
    labels = [
        Label(f"{own.name}/{number}", Cell("uncategorised", own.name, language))
        for own in subsets
        for number in range(own.num_prompts)
        for language in LANGUAGES
    ]
    flat = np.concatenate([right[own.name].reshape(-1) for own in subsets]).astype(np.int64)
    ones = np.ones_like(flat)
    items = Items(layout_of(labels), np.stack([ones, flat, ones, flat], axis=1), 600)
    found = build("benches", "mrewardbench").summarise(resample(items, seed=0))["overall"]

    def value(tables):
        sections = defaultdict(list)
        for own in subsets:
            sections[own.section].append((own.weight, tables[own.name].mean(axis=0)))
        means = [
            sum(weight * share for weight, share in parts) / sum(weight for weight, _ in parts)
            for parts in sections.values()
        ]
        *others, one, other = np.mean(means, axis=0)  # the last two languages are both Chinese
        return float(np.mean([*others, (one + other) / 2]))

    def drawn(*, together):
        found = {}
        for name, own in right.items():
            if together:
                found[name] = own[rng.integers(len(own), size=len(own))].astype(np.float64)
            else:
                found[name] = np.take_along_axis(own, rng.integers(len(own), size=own.shape), axis=0).astype(np.float64)
        return value(found)

    assert found["value"] == pytest.approx(value(right))
    clustered, apart = (
        np.quantile([drawn(together=together) for _ in range(600)], [0.025, 0.975]) for together in (True, False)
    )
    check(found, clustered, apart)


def test_the_two_prompts_of_a_tie_of_rewardbench_2_are_drawn_together():
    rng = np.random.default_rng(7)
    cases, lines, rows = [], [], []
    for number in range(51):
        ability = rng.normal(0.5, 1)
        sides = {}
        for kind, num_right, num_wrong in (("ref", 1, 3), ("tied", 3, 2)):
            good = [float(one) for one in rng.normal(ability, 0.3, num_right)]
            bad = [float(one) for one in rng.normal(0, 0.3, num_wrong)]
            letters = "abcdef"[: num_right + num_wrong]
            name, tiers = f"Ties/{kind}:{number}", (tuple(letters[:num_right]), tuple(letters[num_right:]))
            cases.append(case(name, letters, text=name, subset="Ties", ranking=tiers))
            lines.append(Scores(prompt=name, scores=dict(zip(letters, [*good, *bad], strict=True))))
            sides[kind] = (max(good) - min(good), min(good) - max(bad))
        rows.append((sides["ref"], sides["tied"]))

    def value(drawn):
        return mean(
            0.3 * (tied[1] > 0)
            + 0.3 * (ref[1] > 0)
            + 0.2 * (tied[1] > tied[0])
            + 0.2 * (min(ref[1], tied[1]) > tied[0])
            + 0.01 * np.tanh(min(ref[1], tied[1]) / tied[0] - 1)
            for ref, tied in drawn
        )

    bench, totals = totals_of("rewardbench2", cases, lines, 3000)
    found = bench.summarise(totals)["sections"]["Ties"]
    assert found["value"] == pytest.approx(value(rows), abs=1e-8)
    low, high = bootstrap({"Ties": [[row] for row in rows]}, value, 1500)
    assert found["low"] == pytest.approx(low, abs=0.1 * (high - low))
    assert found["high"] == pytest.approx(high, abs=0.1 * (high - low))
    assert [stratum.num_units for stratum in select_pairs(cases, None, "strict", bench.resample_ids).layout.strata] == [
        51
    ]


def test_rows_of_one_question_in_several_subsets_of_rewardbench_are_one_unit():
    bench = build("benches", "rewardbench")
    subsets = ("mt-bench-easy", "mt-bench-med", "mt-bench-hard")
    cases = [
        case(f"{subset}/{number}", "ab", text=f"Question {number}", subset=subset, ranking=(("a",), ("b",)))
        for subset in subsets
        for number in range(4)
    ]
    found = select_pairs(cases, None, "strict", bench.resample_ids)
    assert [stratum.num_units for stratum in found.layout.strata] == [4]
    other = Message(role="user", content="Question 9")
    changed = msgspec.structs.replace(cases[0], prompt=msgspec.structs.replace(cases[0].prompt, messages=(other,)))
    # Question 0 stands in two subsets now, and question 9 in the third, which the three that stand in all go with.
    again = select_pairs([changed, *cases[1:]], None, "strict", bench.resample_ids)
    assert sorted(stratum.num_units for stratum in again.layout.strata) == [1, 4]
