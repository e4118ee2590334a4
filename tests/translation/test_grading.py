from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from steelyard.core.errors import ConfigError, EvidenceError, RecordError
from steelyard.core.types import Case, Message, Prompt, Rating, Response
from steelyard.plugins.benches.subset_benches import DIRECTIONS, LEVELS, translation_subset
from steelyard.statistics.groups import prompt_names, units_of
from steelyard.translation.grading import GradingConfig, graded_pairs, translation_requests

ALL = GradingConfig(num_pairs="all")


def source(ratings, id="s", *, limits=(1.0, 6.0), texts=None, text="Guten Tag", kind="human", meta=None):
    """Return a source whose translations have these ratings: a list a translation, of raters in order."""
    names = list(ratings)
    return Case(
        prompt=Prompt(id=id, messages=(Message(role="user", content=text),), source="news", meta={"doc": "7"}),
        responses=tuple(Response(id=name, text=(texts or {}).get(name, f"text {name}")) for name in names),
        ratings=tuple(
            Rating(
                response=name,
                rater=f"rater {number}",
                kind=kind,
                dimension="score",
                value=value,
                range=limits,
                meta=meta,
            )
            for name, values in ratings.items()
            for number, value in enumerate(values)
        ),
    )


def pairs_of(cases):
    return {case.prompt.subset.partition("_")[0]: tuple(tier[0] for tier in case.ranking) for case in cases}


# Means 6, 4.5, 4, 3.5 and 1 of a scale from 1 to 6.
FIVE = {"b": [5, 4], "e": [1, 1], "a": [6, 6], "d": [3, 4], "c": [4, 4]}


def test_easy_is_the_best_against_the_worst_and_hard_two_of_the_middle_three():
    cases, counts = graded_pairs([source(FIVE)], "de-en", ALL)
    pairs = pairs_of(cases)
    assert pairs["easy"] == ("a", "e")
    assert pairs["hard"] in {("b", "c"), ("c", "d"), ("b", "d")}
    assert (counts.available, counts.pairs) == ({"easy": 1, "hard": 1}, {"easy": 1, "hard": 1})
    assert (counts.width, counts.is_estimated, counts.num_sources) == (5, False, 1)
    assert counts.dropped == {"easy": {}, "hard": {}}


def test_every_pair_of_the_middle_three_is_drawn_by_some_seed():
    drawn = {
        pairs_of(graded_pairs([source(FIVE)], "de-en", GradingConfig(num_pairs="all", seed=seed))[0])["hard"]
        for seed in range(40)
    }
    assert drawn == {("b", "c"), ("c", "d"), ("b", "d")}


def test_gaps_are_at_least_the_papers_and_a_hard_pair_has_a_largest_gap():
    # EASY: 3.25 - 3 = 0.25 is enough, 0.24 is not.
    assert pairs_of(graded_pairs([source({"a": [3.25], "b": [3]})], "de-en", ALL)[0]) == {"easy": ("a", "b")}
    two = [source({"a": [3.24], "b": [3]}, "t"), source(FIVE)]
    assert graded_pairs(two, "de-en", ALL)[1].dropped["easy"] == {"gap too small": 1}
    # HARD: 0.5 is enough, 0.49 is not; more than 1 is too much.
    for gap, reason in ((0.5, None), (0.49, "gap too small"), (1.0, None), (1.01, "no gap between the limits")):
        hard = source({"a": [6], "b": [4.0], "c": [4.0 - gap], "d": [1]})
        counts = graded_pairs([hard], "de-en", ALL)[1]
        assert counts.dropped["hard"] == ({reason: 1} if reason else {}), gap


def test_a_prompt_is_a_request_that_both_pairs_of_a_source_share_so_that_they_are_one_unit():
    cases, _ = graded_pairs([source(FIVE), source(FIVE, "t", text="Gute Nacht")], "de-en", ALL)
    assert len(cases) == 4
    assert {case.prompt.id for case in cases} == {"s/easy", "s/hard", "t/easy", "t/hard"}
    units = dict(zip((case.prompt.id for case in cases), units_of([prompt_names(case) for case in cases]), strict=True))
    assert units["s/easy"] == units["s/hard"] != units["t/easy"] == units["t/hard"]
    for case in cases:
        (message,) = case.prompt.messages
        assert ("Guten Tag" in message.content) == (case.prompt.meta["translation_source"] == "s")
        assert "English" in message.content
        assert (case.prompt.language, case.prompt.source, case.prompt.meta["doc"]) == ("en", "news", "7")
        assert case.prompt.meta["answer_language"] == "en"


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_subset_names_are_those_of_the_bench(direction):
    cases, _ = graded_pairs([source(FIVE)], direction.replace("_", "-"), ALL)
    assert [case.prompt.subset for case in cases] == [f"{level}_{direction}" for level in LEVELS]
    assert [translation_subset(case.prompt.subset) for case in cases] == [case.prompt.subset for case in cases]


def test_there_are_31_different_requests_and_braces_of_a_text_stay():
    requests = translation_requests()
    assert len(requests) == len(set(requests)) == 31
    for request in requests:
        assert request.count("{text}") == 1
        assert "{target}" in request
    cases, _ = graded_pairs([source(FIVE, text="{source} {0} 你好 שלום")], "de-en", ALL)
    assert "{source} {0} 你好 שלום" in cases[0].prompt.messages[0].content


def test_the_mean_is_over_raters_and_a_rater_who_rated_twice_counts_once():
    # Of b the first rater gave 2 and 6, the second 6: the mean of 4 and 6 is 5, above the 4.7 of a.
    twice = source({"a": [4.7, 4.7], "b": [2, 6]})
    again = Rating(response="b", rater="rater 0", kind="human", dimension="score", value=6, range=(1.0, 6.0))
    case = Case(prompt=twice.prompt, responses=twice.responses, ratings=(*twice.ratings, again))
    assert pairs_of(graded_pairs([case], "de-en", ALL)[0]) == {"easy": ("b", "a")}


def test_missing_ratings_equal_texts_and_ties_are_counted():
    texts = {"c": "Text  A", "a": "text a"}
    case = source({"a": [5, 5], "b": [5, 5], "c": [1, 1], "d": [3], "e": [2, 2], "f": [2, 2], "g": []}, texts=texts)
    cases, counts = graded_pairs([case], "de-en", ALL)
    assert counts.noted == {
        "sources with several best translations": 1,
        "sources with several worst translations": 1,
        "translations with an equal text, left out": 1,
        "translations with fewer raters than others of the source": 1,
        "translations without a rating, left out": 1,
    }
    better, worse = pairs_of(cases)["easy"]
    assert better in "ab"
    assert worse in "ef"


def test_sources_without_a_pair_have_a_reason():
    sources = [
        source({"a": [3, 3]}, "one"),
        source({"a": [3], "b": [3]}, "equal"),
        source({"a": [6], "b": [4], "c": [1]}, "three"),
        source({"a": [6], "b": [4], "c": [4], "d": [1]}, "equal middle"),
        source(FIVE),
    ]
    counts = graded_pairs(sources, "de-en", ALL)[1]
    assert counts.dropped["easy"] == {"equal mean ratings": 1, "fewer than two rated translations": 1}
    assert counts.dropped["hard"] == {"equal mean ratings": 1, "fewer than four rated translations": 3}
    for level in LEVELS:
        assert counts.available[level] + sum(counts.dropped[level].values()) == counts.num_sources


def test_fewer_pairs_than_wanted_are_an_error_with_the_numbers():
    sources = [source(FIVE, f"s{n}") for n in range(3)] + [source({"a": [6], "b": [1]}, "two")]
    with pytest.raises(EvidenceError, match="de-en has 4 easy and 3 hard pairs, fewer than 100 of each") as caught:
        graded_pairs(sources, "de-en", GradingConfig())
    assert "grading.num_pairs=3" in caught.value.do
    cases, counts = graded_pairs(sources, "de-en", GradingConfig(num_pairs=3))
    assert len(cases) == 6
    assert (counts.pairs, counts.available) == ({"easy": 3, "hard": 3}, {"easy": 4, "hard": 3})


def test_both_levels_take_the_same_sources_where_all_have_both():
    cases, _ = graded_pairs([source(FIVE, f"s{n}") for n in range(20)], "de-en", GradingConfig(num_pairs=5))
    sources = [
        {case.prompt.meta["translation_source"] for case in cases if case.prompt.id.endswith(level)} for level in LEVELS
    ]
    assert sources[0] == sources[1]
    assert len(sources[0]) == 5


def test_a_scale_without_limits_has_the_middle_of_its_means_as_width():
    # Means 0, -1, …, -20: the 5% and 95% quantiles are -19 and -1.
    case = source({f"r{n}": [-float(n)] for n in range(21)}, limits=None)
    counts = graded_pairs([case], "en-he", ALL)[1]
    assert (counts.width, counts.is_estimated) == (18, True)
    with pytest.raises(EvidenceError, match="no limits"):
        graded_pairs([source({"a": [0], "b": [0]}, limits=None)], "en-he", ALL)


def test_where_lower_is_better_the_lowest_is_the_best():
    cases, _ = graded_pairs([source(FIVE, meta={"better": "lower"})], "de-en", ALL)
    assert pairs_of(cases)["easy"] == ("e", "a")


def test_evidence_is_that_of_the_two_translations():
    cases, _ = graded_pairs([source(FIVE)], "de-en", ALL)
    for case in cases:
        ids = {name for tier in case.ranking for name in tier}
        assert {response.id for response in case.responses} == ids == {rating.response for rating in case.ratings}
        assert len(case.ratings) == 4


def test_the_order_of_the_two_translations_says_nothing():
    cases, _ = graded_pairs([source(FIVE, f"s{n}") for n in range(200)], "de-en", ALL)
    first = sum(case.responses[0].id == case.ranking[0][0] for case in cases)
    # Of 400 fair coins 150 to 250 show heads, but for 6 in ten million times.
    assert 150 <= first <= 250


@pytest.mark.parametrize("direction", ["de", "de-en-zh", "de-de", "xx-en", "", "de2en"])
def test_directions_that_are_none_are_refused(direction):
    with pytest.raises(ConfigError):
        graded_pairs([source(FIVE)], direction, ALL)


def test_translations_with_ratings_of_several_dimensions_are_graded_by_the_one_that_is_named():
    """As the workbench exports them: points, and the errors that were marked."""
    case = source(FIVE)
    errors = tuple(replace(each, dimension="mqm", value=-each.value, range=None) for each in case.ratings)
    both = replace(case, ratings=(*case.ratings, *errors))
    with pytest.raises(EvidenceError, match="several scales") as error:
        graded_pairs([both], "de-en", ALL)
    assert "grading.dimension=score" in str(error.value)
    for name, best, worst in (("score", "a", "e"), ("mqm", "e", "a")):
        cases, _ = graded_pairs([both], "de-en", replace(ALL, dimension=name))
        assert pairs_of(cases)["easy"] == (best, worst)
        assert {rating.dimension for each in cases for rating in each.ratings} == {name}
    with pytest.raises(EvidenceError, match="'fluency'") as error:
        graded_pairs([both], "de-en", replace(ALL, dimension="fluency"))
    assert "mqm, score" in str(error.value)


def test_evidence_that_gives_no_pairs_is_refused():
    with pytest.raises(RecordError, match="stands twice"):
        graded_pairs([source(FIVE), source(FIVE)], "de-en", ALL)
    blank = Case(prompt=Prompt(id="blank", messages=()), responses=source(FIVE).responses)
    with pytest.raises(RecordError, match="no text"):
        graded_pairs([source(FIVE), blank], "de-en", ALL)
    with pytest.raises(EvidenceError, match="several scales"):
        graded_pairs([source(FIVE), source(FIVE, "t", kind="llm")], "de-en", ALL)
    with pytest.raises(EvidenceError, match="no translation has a rating"):
        graded_pairs([source({"a": [], "b": []})], "de-en", ALL)
    with pytest.raises(EvidenceError, match="smaller gaps"):
        graded_pairs([source({"a": [3], "b": [3]})], "de-en", ALL)
    with pytest.raises(EvidenceError, match="no better end"):
        graded_pairs([source(FIVE, meta={"better": "neither"})], "de-en", ALL)
    with pytest.raises(ConfigError, match="hard_limit"):
        graded_pairs([source(FIVE)], "de-en", GradingConfig(hard_gap=0.3))


@given(
    values=st.lists(st.integers(10, 60), min_size=1, max_size=9),
    least=st.sampled_from([0.0, 0.02, 0.1]),
    seed=st.integers(0, 5),
)
def test_a_hard_pair_is_one_of_those_that_a_plain_search_finds(values, least, seed):
    means = {f"r{n}": value / 10 for n, value in enumerate(values)}
    config = GradingConfig(num_pairs="all", easy_gap=0, hard_gap=least, hard_limit=0.2, seed=seed)
    other = source(FIVE, "other")
    cases, _ = graded_pairs([source({name: [mean] for name, mean in means.items()}), other], "de-en", config)
    own = pairs_of(case for case in cases if case.prompt.meta["translation_source"] == "s")
    if len(set(values)) < 2:
        assert own == {}
        return
    best, worst = own["easy"]
    assert (means[best], means[worst]) == (max(means.values()), min(means.values()))
    middle = sorted(means.values(), reverse=True)[1:-1]
    gaps = {round(high - low, 6) for high, low in combinations(middle, 2) if high > low}
    wanted = {gap for gap in gaps if round(5 * least, 6) <= gap <= 1}
    assert ("hard" in own) == bool(wanted)
    if wanted:
        better, worse = own["hard"]
        assert round(means[better] - means[worse], 6) in wanted
        assert not {better, worse} & {best, worst}


def with_field(name, value, **fields):
    one = source(FIVE, name, **fields)
    return replace(one, prompt=replace(one.prompt, meta={"lp": value, "doc": "it-is"}))


def test_two_directions_in_a_file_are_refused_by_the_field_that_names_them():
    mixed = [with_field("s", "de-en"), with_field("t", "en→de"), with_field("u", "deu_Latn-eng_Latn")]
    with pytest.raises(EvidenceError, match="1 of 3 sources are of en-de by the field 'lp', not of de-en"):
        graded_pairs(mixed, "de-en", ALL)
    # A field with other texts beside it is no field of directions.
    other = replace(mixed[1], prompt=replace(mixed[1].prompt, meta={"lp": "a note", "doc": "doc 7"}))
    assert graded_pairs([source(FIVE, "v"), other], "de-en", ALL)[1].num_sources == 2


@pytest.mark.parametrize(("direction", "what"), [("en-zh", "translations"), ("zh-en", "sources")])
def test_texts_in_another_script_than_the_direction_says_are_refused(direction, what):
    english = "The house near the river is old and has a red roof"
    texts = {name: f"{english} {name}" for name in FIVE}
    with pytest.raises(EvidenceError, match=f"1 of 1 {what} are not in the script of their language"):
        graded_pairs([source(FIVE, text=english, texts=texts)], direction, ALL)


def test_ratings_of_another_scale_are_refused_and_a_single_one_is_not():
    percent = {name: [value * 15 for value in values] for name, values in FIVE.items()}
    with pytest.raises(EvidenceError, match="are outside their scale"):
        graded_pairs([source(percent)], "de-en", ALL)
    sources = [source(FIVE), source({**FIVE, "a": [6, 7]}, "t")]
    assert graded_pairs(sources, "de-en", ALL)[1].num_sources == 2


def test_too_few_pairs_say_why_and_rows_that_are_not_together_what_to_do():
    lone = [source({"a": [value]}, f"s{value}") for value in (1, 2, 3)]
    with pytest.raises(EvidenceError, match="easy: fewer than two rated translations 3") as refused:
        graded_pairs(lone, "de-en", GradingConfig())
    assert "sort the file by source" in str(refused.value)
