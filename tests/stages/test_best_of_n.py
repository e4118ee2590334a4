"""The verb `best-of-n` from files: what is chosen, counted, refused, and the round with `sample`."""

import json

import msgspec
import pytest

from steelyard.core.errors import ConfigError, EvidenceError, RecordError
from steelyard.core.types import Case, Judgment, Message, Pair, Prompt, Rating, Response, Scores
from steelyard.io.cases import read_cases, write_cases
from steelyard.io.run_folder import read_run
from steelyard.ranking.pairs import best_response
from steelyard.responses.plan import later_turns
from steelyard.stages.best_of_n import Config, best_of_n
from steelyard.stages.sample import Config as SampleConfig
from steelyard.stages.sample import sample
from steelyard.views.text import result_sentences, result_tables
from strategies import case


def write_scores(path, lines):
    path.write_bytes(b"".join(msgspec.json.encode(line) + b"\n" for line in lines))
    return path


def rated(name, values, **fields):
    """A case whose responses a, b, … have these ratings of quality by a person."""
    ids = "abcdefgh"[: len(values)]
    ratings = tuple(
        Rating(response=each, rater="r", kind="human", dimension="quality", value=value)
        for each, value in zip(ids, values, strict=True)
    )
    return case(name, ids, ratings=ratings, **fields)


def scored(each, values):
    ids = [response.id for response in each.responses]
    return Scores(prompt=each.prompt.id, language=each.prompt.language, scores=dict(zip(ids, values, strict=True)))


def run(folder, pairs, config=None, **files):
    """Select among the responses of cases with their scores."""
    write_cases(folder / "c.jsonl", [each for each, _ in pairs])
    scores = write_scores(folder / "s.jsonl", [scored(*pair) for pair in pairs])
    settings = Config(**{"num_resamples": 50, **(config or {})})
    return best_of_n(folder / "c.jsonl", scores, folder / "out", settings, **files)


def chosen(folder):
    return {each.prompt.id: [response.id for response in each.responses] for each in read_cases(folder / "cases.jsonl")}


THREE = [(rated(f"p{place}", [0.0, 1.0, 2.0]), [1.0, 3.0, 2.0]) for place in range(3)]


def test_the_curve_the_chosen_answers_and_the_pairs_of_three_answers(tmp_path):
    result = run(tmp_path, THREE)
    points = result.summary.curve.points
    # Of {a, b} and {b, c} the score chooses b (1), of {a, c} it chooses c (2); of all three b.
    assert [point.chosen.value for point in points] == pytest.approx([1.0, 4 / 3, 1.0])
    assert [point.oracle.value for point in points] == pytest.approx([1.0, 5 / 3, 2.0])
    assert result.summary.curve.peak.n == 2
    assert chosen(tmp_path / "out") == {f"p{place}": ["b"] for place in range(3)}
    (first, *_) = read_cases(tmp_path / "out" / "pairs.jsonl")
    assert first.pairs == (Pair(better="b", worse="a", weight=1.0, margin=2.0),)
    assert (result.counts.num_in, result.counts.num_used, result.counts.dropped) == (3, 3, {})
    assert not (tmp_path / "out" / "next_turn.jsonl").exists()


def test_tiers_are_the_share_of_the_other_ranked_answers_beaten(tmp_path):
    ranked = case("p", "abcd", ranking=(("a",), ("b", "c"), ("d",)))
    result = run(tmp_path, [(ranked, [4.0, 3.0, 2.0, 1.0])])
    # a beats three of three, b and c beat one and tie one, d none.
    values = [point.chosen.value for point in result.summary.curve.points]
    assert values[0] == pytest.approx(0.5)
    assert values[-1] == pytest.approx(1.0)
    assert result.summary.gold == "tiers"


def test_judgments_are_the_mean_credit_over_judged_pairs(tmp_path):
    judged = case("p", "abc", judgments=["a>b", "a>c", "b=c"])
    result = run(tmp_path, [(judged, [0.0, 1.0, 2.0])], {"gold": "judgments"})
    # c wins none, and ties one of two pairs.
    assert result.summary.curve.points[-1].chosen.value == pytest.approx(0.25)
    assert result.summary.gold_by == "human"


def test_scores_of_a_larger_model_are_gold(tmp_path):
    gold = write_scores(tmp_path / "gold.jsonl", [scored(each, [5.0, 6.0, 7.0]) for each, _ in THREE])
    result = run(tmp_path, THREE, gold_scores=gold)
    assert (result.summary.gold, result.summary.curve.points[-1].chosen.value) == ("scores", 6.0)


def test_an_author_is_the_baseline_with_an_exact_win_rate(tmp_path):
    with_authors = []
    for each, scores in THREE:
        authors = zip(each.responses, ("policy", "policy", "old"), strict=True)
        responses = tuple(msgspec.structs.replace(response, author=author) for response, author in authors)
        with_authors.append((msgspec.structs.replace(each, responses=responses), scores))
    result = run(tmp_path, with_authors, {"baseline_author": "old"})
    # The baseline has 2; a has 0 and b 1: no win at any N.
    assert [point.win_rate.value for point in result.summary.wins] == [0.0, 0.0]
    assert chosen(tmp_path / "out") == {f"p{place}": ["b", "c"] for place in range(3)}
    assert result.counts.noted["prompts with candidates of one author"] == 3


def test_a_baseline_of_a_file_joins_the_chosen_answer_and_is_no_candidate(tmp_path):
    base = [
        Case(
            prompt=each.prompt,
            responses=(Response(id="base", text="an older answer"),),
            ratings=(Rating(response="base", rater="r", kind="human", dimension="quality", value=1.0),),
        )
        for each, _ in THREE[:2]
    ]
    write_cases(tmp_path / "base.jsonl", base)
    result = run(tmp_path, THREE, baseline=tmp_path / "base.jsonl")
    # Against 1: a loses, b ties, c wins; the score chooses b.
    assert result.summary.wins[-1].win_rate.value == pytest.approx(0.5)
    assert result.summary.num_wins == 2
    assert chosen(tmp_path / "out") == {"p0": ["b", "base"], "p1": ["b", "base"]}
    assert result.counts.dropped == {"no response of the baseline": 1}


def test_a_baseline_among_the_candidates_is_refused(tmp_path):
    twin = Case(prompt=THREE[0][0].prompt, responses=(Response(id="x", text=THREE[0][0].responses[0].text),))
    write_cases(tmp_path / "base.jsonl", [twin])
    with pytest.raises(EvidenceError, match="baseline of prompt 'p0' is among its candidates: 'a'"):
        run(tmp_path, THREE, baseline=tmp_path / "base.jsonl")
    assert not (tmp_path / "out" / "run.json").exists()


def test_candidates_without_score_or_gold_are_counted_and_left_out(tmp_path):
    short = (rated("short", [0.0, 1.0]), [1.0, None])
    # Nine of ten prompts have three candidates, and the largest N is three.
    many = [(rated(f"m{place}", [0.0, 1.0, 2.0]), [1.0, 3.0, 2.0]) for place in range(18)]
    two = (rated("two", [0.0, 1.0]), [1.0, 2.0])
    result = run(tmp_path, [*many, short, two])
    assert result.summary.largest == 3
    assert result.summary.curve.num_prompts == 18
    assert result.counts.noted["candidates without a score"] == 1
    assert result.counts.noted["prompts with fewer candidates than the largest N"] == 1
    assert result.counts.noted["prompts with fewer than two candidates with gold values"] == 1
    assert result.counts.num_used == 20


def test_n_candidates_are_drawn_whatever_their_order(tmp_path):
    first, second = tmp_path / "first", tmp_path / "second"
    turned = []
    for each, scores in THREE:
        turned.append((msgspec.structs.replace(each, responses=each.responses[::-1]), scores[::-1]))
    for folder, pairs in ((first, THREE), (second, turned)):
        folder.mkdir()
        run(folder, pairs, {"n": 2, "seed": 5})
    assert chosen(first / "out") == chosen(second / "out")
    assert all(names in (["b"], ["c"]) for names in chosen(first / "out").values())


def test_fewer_candidates_than_n_are_dropped_and_none_left_is_refused(tmp_path):
    result = run(tmp_path, [*THREE, (rated("two", [0.0, 1.0]), [1.0, 2.0])], {"n": 3})
    assert result.counts.dropped == {"fewer candidates than n": 1}
    (tmp_path / "none").mkdir()
    with pytest.raises(EvidenceError, match=r"n is 9, and no prompt has so many.*\n  allowed: up to 3"):
        run(tmp_path / "none", THREE, {"n": 9})
    assert not (tmp_path / "none" / "out" / "cases.jsonl").exists()


def test_the_author_of_the_baseline_is_one_of_the_file(tmp_path):
    with pytest.raises(ConfigError, match=r"no response is of the author 'old'"):
        run(tmp_path, THREE, {"baseline_author": "old"})


def test_the_chosen_answers_are_those_to_imitate(tmp_path):
    run(tmp_path, THREE)
    assert [best_response(each).id for each in read_cases(tmp_path / "out" / "cases.jsonl")] == ["b", "b", "b"]


@pytest.mark.parametrize(
    ("pairs", "config", "error", "match"),
    [
        ([(case("p", "ab"), [1.0, 2.0])], {}, EvidenceError, "no gold values"),
        ([(case("p", "ab"), [1.0, 2.0])], {"gold": "tiers"}, EvidenceError, "no gold values of kind tiers"),
        ([(rated("p", [1.0, 2.0]), [None, None])], {}, EvidenceError, "no candidate has a score"),
        ([(rated("p", [1.0, 2.0]), [3.0, 3.0])], {}, EvidenceError, "equal scores"),
        ([(rated("p", [1.0, 2.0]), [3.0, None])], {}, EvidenceError, "no prompt has two scored candidates"),
        (THREE, {"largest": 4}, EvidenceError, "largest is 4"),
        (THREE, {"gold": "scores"}, ConfigError, "gold=scores"),
        (THREE, {"dimension": "tone"}, EvidenceError, "no gold values"),
        (THREE, {"gold_by": "llm"}, EvidenceError, "no ratings of kind llm"),
        (THREE, {"overlap": 0.0}, ConfigError, "overlap is 0"),
    ],
)
def test_what_leaves_nothing_is_refused(tmp_path, pairs, config, error, match):
    with pytest.raises(error, match=match):
        run(tmp_path, pairs, config)
    assert not (tmp_path / "out" / "cases.jsonl").exists()


def test_ratings_of_people_and_of_a_judge_are_never_mixed(tmp_path):
    both = rated("p", [1.0, 2.0])
    judge = tuple(msgspec.structs.replace(rating, kind="llm", rater="gpt") for rating in both.ratings)
    mixed = msgspec.structs.replace(both, ratings=(*both.ratings, *judge))
    with pytest.raises(ConfigError, match="several kinds of judges"):
        run(tmp_path, [(mixed, [1.0, 2.0])])


def half_rated():
    """Thirty prompts, the ratings of people on ten of them, a judge's ratings on all, and the judge's scores."""
    pairs, judged = [], []
    for place in range(30):
        values = [(place * 7 + rank * rank * 3) % 5 + 1.0 for rank in range(3)]
        each = rated(f"p{place}", values)
        by_judge = tuple(
            msgspec.structs.replace(rating, kind="llm", rater="judge", value=2 * rating.value + (place + at) % 2)
            for at, rating in enumerate(each.ratings)
        )
        people = each.ratings if place % 3 == 0 else ()
        scores = [value + (place * 5 + at * 3) % 4 for at, value in enumerate(values)]
        pairs.append((msgspec.structs.replace(each, ratings=(*people, *by_judge)), scores))
        judged.append(scored(each, [rating.value for rating in by_judge]))
    return pairs, judged


def test_ratings_of_people_on_some_prompts_are_corrected_by_a_judge_on_all(tmp_path):
    pairs, judged = half_rated()
    for name in ("by_ratings", "by_scores"):
        (tmp_path / name).mkdir()
    human = {"gold": "ratings", "gold_by": "human"}
    by_ratings = run(tmp_path / "by_ratings", pairs, {**human, "proxy_by": "llm"})
    gold_scores = write_scores(tmp_path / "judge.jsonl", judged)
    by_scores = run(tmp_path / "by_scores", pairs, human, gold_scores=gold_scores)
    # The judge's ratings are the same numbers as its scores.
    assert by_ratings.summary.curve == by_scores.summary.curve
    assert (by_ratings.summary.proxy_by, by_scores.summary.proxy_by) == ("llm", "scores")
    curve = by_scores.summary.curve
    assert (curve.num_prompts, curve.proxy.num_prompts) == (10, 30)
    assert curve.proxy.weight > 0
    rated_values = [rating.value for each, _ in pairs for rating in each.ratings if rating.kind == "human"]
    assert curve.points[0].gold_only.value == pytest.approx(sum(rated_values) / 30)
    assert by_scores.counts.noted["candidates without a gold value"] == 60


@pytest.mark.parametrize("is_mixed", [True, False])
def test_the_sentences_state_the_gold_values_and_the_categories_without_any(tmp_path, is_mixed):
    pairs, judged = half_rated()
    placed = []
    for place, (each, scores) in enumerate(pairs):
        category = ("sums",) if (place // 3 % 2 if is_mixed else place % 3) else ("poems",)
        prompt = msgspec.structs.replace(each.prompt, category=category)
        placed.append((msgspec.structs.replace(each, prompt=prompt), scores))
    gold_scores = write_scores(tmp_path / "judge.jsonl", judged)
    run(tmp_path, placed, {"gold": "ratings", "gold_by": "human"}, gold_scores=gold_scores)
    record = read_run(tmp_path / "out")
    english, chinese = (" ".join(result_sentences(record, tmp_path / "out", language)) for language in ("en", "zh"))
    assert "10 of these 30 prompts have gold values" in english
    assert "if the 10 are a random sample of the 30" in english
    assert ("No prompt of sums has gold values" in english) != is_mixed
    assert "30 个提示词中有 10 个带黄金标准值" in chinese
    assert ("sums 中没有带黄金标准值的提示词" in chinese) != is_mixed
    (numbers,) = result_tables(record, tmp_path / "out")
    assert "by gold alone" in numbers.heads


def test_a_proxy_of_scores_is_compared_with_tiers_by_the_share_of_others_beaten(tmp_path):
    pairs = []
    for place in range(12):
        ranking = (("a",), ("b",), ("c",)) if place < 4 else None
        pairs.append((case(f"p{place}", "abc", ranking=ranking), [3.0, 2.0 + place % 2, 1.0]))
    judged = [scored(each, [10.0 ** (place % 3), 0.5, 0.4 + place % 2]) for place, (each, _) in enumerate(pairs)]
    gold_scores = write_scores(tmp_path / "judge.jsonl", judged)
    result = run(tmp_path, pairs, {"gold": "tiers"}, gold_scores=gold_scores)
    # Every random response beats half of the others, by tiers and by scores of any size.
    assert result.summary.curve.points[0].chosen.value == pytest.approx(0.5)
    assert result.summary.curve.num_prompts == 4


def test_candidates_without_a_value_of_the_proxy_are_counted_and_left_out(tmp_path):
    pairs, judged = half_rated()
    judged[1] = msgspec.structs.replace(judged[1], scores={"a": 1.0, "b": None, "c": None})
    judged[2] = msgspec.structs.replace(judged[2], scores={"a": 1.0, "b": 2.0, "c": None})
    gold_scores = write_scores(tmp_path / "judge.jsonl", judged)
    result = run(tmp_path, pairs, {"gold": "ratings", "gold_by": "human"}, gold_scores=gold_scores)
    assert result.counts.noted["candidates without a value of the proxy"] == 3
    assert result.counts.noted["prompts with fewer than two candidates with values of the proxy"] == 1
    assert result.counts.noted["prompts with fewer candidates than the largest N"] == 1
    assert result.summary.curve.proxy.num_prompts == 28


@pytest.mark.parametrize(
    ("num_rated", "config", "error", "match"),
    [
        (0, {"gold": "ratings", "gold_by": "human"}, EvidenceError, "no ratings of kind human"),
        (1, {"gold": "ratings", "gold_by": "human"}, EvidenceError, "1 prompt has gold values of 3 candidates"),
        (9, {"gold": "none"}, ConfigError, "gold=none with gold_scores"),
        (9, {"gold": "ratings", "gold_by": "human", "proxy_by": "llm"}, ConfigError, "are two proxies"),
    ],
)
def test_a_proxy_with_too_few_gold_values_is_refused(tmp_path, num_rated, config, error, match):
    pairs, judged = half_rated()
    few = []
    for place, (each, scores) in enumerate(pairs):
        kept = tuple(rating for rating in each.ratings if rating.kind == "llm" or place < 3 * num_rated)
        few.append((msgspec.structs.replace(each, ratings=kept), scores))
    gold_scores = write_scores(tmp_path / "judge.jsonl", judged)
    with pytest.raises(error, match=match):
        run(tmp_path, few, config, gold_scores=gold_scores)
    assert not (tmp_path / "out" / "run.json").exists()


@pytest.mark.parametrize(
    ("config", "match"),
    [
        ({"proxy_by": "llm"}, "without gold values of the same kind"),
        ({"proxy_by": "llm", "gold": "tiers"}, "without gold values of the same kind"),
        ({"proxy_by": "llm", "gold": "ratings"}, "another kind of raters"),
        ({"proxy_by": "llm", "gold": "ratings", "gold_by": "llm"}, "another kind of raters"),
    ],
)
def test_a_proxy_of_raters_needs_gold_values_of_other_raters(tmp_path, config, match):
    with pytest.raises(ConfigError, match=match):
        run(tmp_path, half_rated()[0], config)


def test_a_proxy_that_copies_the_gold_values_is_refused(tmp_path):
    pairs, _ = half_rated()
    values = [scored(each, [each.ratings[at].value for at in range(3)]) for each, _ in pairs]
    gold_scores = write_scores(tmp_path / "judge.jsonl", values)
    with pytest.raises(EvidenceError, match="is a copy of them"):
        run(tmp_path, pairs, {"gold": "ratings", "gold_by": "human"}, gold_scores=gold_scores)
    assert not (tmp_path / "out" / "cases.jsonl").exists()


def test_scores_of_other_texts_are_refused(tmp_path):
    write_cases(tmp_path / "c.jsonl", [each for each, _ in THREE])
    lines = [scored(*pair) for pair in THREE]
    other = msgspec.structs.replace(lines[0], hashes=dict.fromkeys("abc", "0" * 16))
    scores = write_scores(tmp_path / "s.jsonl", [other, *lines[1:]])
    with pytest.raises(RecordError):
        best_of_n(tmp_path / "c.jsonl", scores, tmp_path / "out")


def asked(pairs, text="What weighs a beam scale, and who made the first one of bronze?"):
    prompt = Prompt(id="q", messages=(Message(role="user", content=text),))
    each, scores = pairs[0]
    return [(msgspec.structs.replace(each, prompt=prompt), scores), *pairs[1:]]


@pytest.mark.parametrize(("role", "noted"), [("against", "a bench"), ("train_cases", "the training data")])
def test_prompts_of_the_bench_or_the_training_are_refused_or_counted(tmp_path, role, noted):
    bench = [asked(THREE)[0][0]]
    write_cases(tmp_path / "bench.jsonl", bench)
    files = {role: [tmp_path / "bench.jsonl"]}
    with pytest.raises(EvidenceError, match=r"1 prompt is in .*bench\.jsonl: q") as error:
        run(tmp_path, asked(THREE), **files)
    assert "out=prepared" in str(error.value), "the command that leaves them out cannot be run without an output"
    result = run(tmp_path, asked(THREE), {"allow_overlap": True}, **files)
    assert result.counts.noted[f"prompts of {noted}"] == 1


def sampled(folder, cases, texts, turns="first"):
    """Let a recorded model answer the cases, and return them with its answers."""
    replies = "".join(json.dumps({"text": text}) + "\n" for text in texts)
    (folder / "replies.jsonl").write_text(replies, encoding="utf-8")
    chat = {"kind": "recorded", "path": str(folder / "replies.jsonl")}
    plan = {"models": [{"name": "policy", "chat": chat}]}
    (folder / "plan.json").write_text(json.dumps(plan), encoding="utf-8")
    out = folder / f"sampled-{len(list(folder.iterdir()))}"
    sample(cases, folder / "plan.json", out, SampleConfig(turns=turns))
    return list(read_cases(out / "cases.jsonl"))


def test_turns_are_sampled_and_chosen_one_by_one(tmp_path):
    meta = {"turns": ["Write a poem.", "Now shorter.", "Now in Chinese."]}
    prompt = Prompt(id="p", messages=(Message(role="user", content="Write a poem."),), meta=meta)
    write_cases(tmp_path / "prompts.jsonl", [Case(prompt=prompt, responses=())])
    (first,) = sampled(tmp_path, tmp_path / "prompts.jsonl", ["A long poem."])
    assert [response.text for response in first.responses] == ["A long poem."]
    assert first.prompt == prompt
    other = Response(id="other", text="A poem.")
    both = msgspec.structs.replace(first, responses=(*first.responses, other))
    result = run(tmp_path, [(both, [2.0, 1.0])], {"gold": "none"})
    assert result.summary.num_next_turns == 1
    (second,) = read_cases(tmp_path / "out" / "next_turn.jsonl")
    conversation = ["Write a poem.", "A long poem.", "Now shorter."]
    assert [message.content for message in second.prompt.messages] == conversation
    assert (second.prompt.id, later_turns(second.prompt)) == ("p~turn2", ("Now in Chinese.",))
    (second,) = sampled(tmp_path, tmp_path / "out" / "next_turn.jsonl", ["Short."])
    (tmp_path / "second").mkdir()
    run(tmp_path / "second", [(second, [1.0])], {"gold": "none"})
    (third,) = read_cases(tmp_path / "second" / "out" / "next_turn.jsonl")
    assert [message.content for message in third.prompt.messages] == [*conversation, "Short.", "Now in Chinese."]
    (third,) = sampled(tmp_path, tmp_path / "second" / "out" / "next_turn.jsonl", ["短。"])
    assert (third.prompt.id, third.responses[0].text) == ("p~turn3", "短。")
    (tmp_path / "third").mkdir()
    run(tmp_path / "third", [(third, [1.0])], {"gold": "none"})
    assert not (tmp_path / "third" / "out" / "next_turn.jsonl").exists()


def test_of_an_answer_of_all_turns_the_first_one_is_chosen(tmp_path):
    meta = {"turns": ["Write a poem.", "Now shorter."]}
    prompt = Prompt(id="p", messages=(Message(role="user", content="Write a poem."),), meta=meta)
    write_cases(tmp_path / "prompts.jsonl", [Case(prompt=prompt, responses=())])
    (answered,) = sampled(tmp_path, tmp_path / "prompts.jsonl", ["A poem."], turns="all")
    assert answered.responses[0].messages is not None
    run(tmp_path, [(answered, [1.0])], {"gold": "none"})
    (second,) = read_cases(tmp_path / "out" / "next_turn.jsonl")
    assert [message.content for message in second.prompt.messages] == ["Write a poem.", "A poem.", "Now shorter."]


def test_evidence_of_other_answers_does_not_stay(tmp_path):
    judged = Judgment(left="a", right="b", verdict="left", judge="j", kind="human")
    each = msgspec.structs.replace(rated("p", [0.0, 1.0, 2.0]), judgments=(judged,))
    run(tmp_path, [(each, [1.0, 3.0, 2.0])], {"gold": "ratings"})
    (kept,) = read_cases(tmp_path / "out" / "cases.jsonl")
    assert [rating.response for rating in kept.ratings] == ["b"]
    assert kept.judgments == ()


def test_gold_scores_of_another_case_behind_the_others_are_refused(tmp_path):
    lines = [
        scored(each, [1.0, 2.0, 3.0]) for each in (*(each for each, _ in THREE), rated("another", [0.0, 1.0, 2.0]))
    ]
    gold = write_scores(tmp_path / "gold.jsonl", lines)
    with pytest.raises(RecordError, match=r"gold\.jsonl:4: unknown prompt id 'another'"):
        run(tmp_path, THREE, gold_scores=gold)
    assert not (tmp_path / "out").exists()
