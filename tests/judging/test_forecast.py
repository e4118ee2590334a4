"""Forecasts against runs whose counts are known: a tokenizer as the server, texts of several scripts."""

import random

import pytest
from msgspec.structs import replace

from prefix_cache import rough_tokens
from recorded_runs import MAX_TOKENS, RecordedRun, forecast_member
from steelyard.core.comparison import Reply
from steelyard.core.plugins import build
from steelyard.core.types import Case, Message, Prompt, Response
from steelyard.judging.asking import requests_of
from steelyard.judging.forecast import TokensSoFar, estimated_tokens
from steelyard.judging.panel import PanelJudge
from steelyard.judging.planning import plan_comparisons
from steelyard.judging.token_use import Price

ALPHABETS = {
    "en": "abcdefghijklmnop",
    "zh": "人工智能是计算机科学的一个分支",
    "ru": "абвгдежзиклмнопр",
    "vi": "ăâđêôơưạảãằ",
}


class Named:
    name = "m"

    def protocol(self):
        return {"chat": "none", "model": "m"}


def text(language, rng, length):
    words = ("".join(rng.choices(ALPHABETS[language], k=rng.randint(2, 9))) for _ in range(length))
    return ("" if language == "zh" else " ").join(words)


def cases_of(languages, number=24):
    rng = random.Random(1)
    for place in range(number):
        language = languages[place % len(languages)]
        asked = Prompt(
            id=str(place), language=language, messages=(Message(role="user", content=text(language, rng, 30)),)
        )
        answers = tuple(Response(id=name, text=text(language, rng, rng.randint(20, 120))) for name in "abc")
        yield Case(prompt=asked, responses=answers)


def served(messages):
    """Return the count of a server whose tokens are not those of the table: a Chinese character costs 1.5."""
    pieces = [piece for turn in messages for piece in rough_tokens(turn.content)]
    return round(sum(1.5 if "一" < piece < "龥" else 1 for piece in pieces)) + 20


@pytest.fixture
def member():
    return PanelJudge("m", Named(), build("judges", "pairwise", {}), Price(input=2.0, cached_input=0.5, output=10.0))


@pytest.mark.parametrize("languages", [["en"], ["zh"], ["ru"], ["vi"], ["en", "zh", "ru", "vi"]])
def test_with_a_tenth_of_the_replies_known_the_rest_is_within_ten_percent(member, languages):
    comparisons = [one for case in cases_of(languages) for one in plan_comparisons(case, "pairs", seed=0)]
    every = [one for each in comparisons for one in requests_of(member, each)]
    rng = random.Random(0)
    tokens = {one.id: (served(one.question.messages), rng.randint(180, 220)) for one in every}
    known = {
        name: Reply(request=name, text="[[A]]", prompt_tokens=prompt, reply_tokens=reply)
        for name, (prompt, reply) in rng.sample(sorted(tokens.items()), len(every) // 10)
    }
    forecast = forecast_member(member, comparisons, known.get)
    rest = [counts for name, counts in tokens.items() if name not in known]
    assert (forecast.num_requests, forecast.num_answered) == (len(rest), len(known))
    assert forecast.prompt_tokens == pytest.approx(sum(prompt for prompt, _ in rest), rel=0.1)
    assert forecast.reply_tokens == pytest.approx(sum(reply for _, reply in rest), rel=0.1)
    assert forecast.cost == pytest.approx(sum(2.0 * prompt + 10.0 * reply for prompt, reply in rest) / 1e6, rel=0.1)
    assert forecast.prompt_from == forecast.reply_from == f"{len(known)} replies"


def test_a_tokenizer_counts_exactly_and_the_rate_gives_hours(member):
    comparisons = [one for case in cases_of(["zh"]) for one in plan_comparisons(case, "pairs", seed=0)]
    every = [one for each in comparisons for one in requests_of(member, each)]
    forecast = forecast_member(member, comparisons, lambda name: None, count_tokens=served, requests_per_second=0.5)
    total = sum(served(one.question.messages) for one in every)
    assert forecast.prompt_tokens == total
    assert forecast.hours == pytest.approx(len(every) / 0.5 / 3600)
    assert (forecast.prompt_from, forecast.reply_from) == ("tokenizer", "their limit")
    # Nothing is known of replies but their limit.
    assert forecast.reply_tokens == 2048 * len(every)
    assert forecast.cost == pytest.approx((2.0 * total + 10.0 * 2048 * len(every)) / 1e6)
    assert forecast.shared_tokens > total / 2
    assert forecast.cached_saving == pytest.approx(forecast.shared_tokens * (2.0 - 0.5) / 1e6)


def test_without_price_or_rate_there_is_neither_money_nor_time(member):
    comparisons = plan_comparisons(next(cases_of(["en"])), "pairs", seed=0)
    forecast = forecast_member(member._replace(price=None), comparisons, lambda name: None)
    assert (forecast.cost, forecast.cached_saving, forecast.hours) == (None, None, None)
    assert (forecast.num_requests, forecast.prompt_from) == (6, "characters")


def test_equal_requests_are_forecast_once(member):
    comparisons = plan_comparisons(next(cases_of(["en"])), "pairs", seed=0)
    forecast = forecast_member(member, [*comparisons, *comparisons], lambda name: None)
    assert (forecast.num_requests, forecast.num_repeated) == (6, 6)
    # A case of the same text under another id has the same requests.
    first = next(cases_of(["en"]))
    twin = replace(first, prompt=replace(first.prompt, id="twin"))
    same = [one for case in (first, twin) for one in plan_comparisons(case, "ratings", seed=0)]
    rater = member._replace(judge=build("judges", "rating", {}))
    forecast, alone = (forecast_member(rater, ones, lambda name: None) for ones in (same, same[:1]))
    assert (forecast.num_requests, forecast.num_repeated) == (3, 3)
    assert (forecast.prompt_tokens, forecast.cost) == (alone.prompt_tokens, alone.cost)


def test_replies_so_far_scale_prompts_and_give_the_length_of_replies():
    so_far = TokensSoFar()
    assert (so_far.scale, so_far.replies(4, limit=40), so_far.reply_from) == (1.0, 40, "their limit")
    for prompt, reply in ((30, 7), (None, 9), (50, None)):
        so_far.add(20.0, Reply(request="r", text="x", prompt_tokens=prompt, reply_tokens=reply))
    # 80 tokens where 40 were expected, and 16 of two replies; of many replies never more than their limit.
    assert (so_far.scale, so_far.replies(4, limit=40), so_far.replies(6, limit=40)) == (2.0, 32, 40)
    assert (so_far.num_prompts, so_far.reply_from) == (2, "2 replies")


@pytest.mark.parametrize("text", ["שלום", "สวัสดี", "γειά", "հայ", "መልስ", "ᏣᎳᎩ", "မြန်မာ", "ខ្មែរ", "\ud800", "😀", ""])
def test_every_script_has_a_rate(text):
    empty = estimated_tokens((Message(role="user", content=""),))
    tokens = estimated_tokens((Message(role="user", content=text),))
    assert empty <= tokens <= empty + 2 * len(text)


@pytest.mark.parametrize("name", ["sampled", "judged"])
def test_a_tokenizer_gives_the_prompts_of_a_recorded_run_and_replies_the_rest(name):
    run = RecordedRun(name)
    nothing, (number, _, reply, cost) = run.forecast(()), run.rest(())
    assert (nothing.num_requests, nothing.reply_tokens) == (number, MAX_TOKENS * number)
    assert reply <= nothing.reply_tokens
    counts = {run.messages[request]: served.prompt_tokens for request, served in run.served.items()}
    known = sorted(run.served)[:50]
    forecast, (number, prompt, reply, cost) = run.forecast(known, count_tokens=counts.__getitem__), run.rest({*known})
    assert (forecast.num_requests, forecast.prompt_tokens) == (number, prompt)
    assert forecast.reply_tokens == pytest.approx(reply, rel=0.1)
    assert forecast.cost == pytest.approx(cost, rel=0.1)


@pytest.mark.parametrize("name", ["sampled", "judged"])
def test_with_fifty_replies_of_a_recorded_run_the_money_of_the_rest_is_within_ten_percent(name):
    run = RecordedRun(name)
    rng = random.Random(5)
    errors = []
    for _ in range(12):
        known = rng.sample(sorted(run.served), 50)
        forecast, (*_, cost) = run.forecast(known), run.rest({*known})
        errors.append(abs(forecast.cost / cost - 1))
    assert sorted(errors)[len(errors) // 2] < 0.06
    assert sum(error <= 0.1 for error in errors) >= 0.75 * len(errors)
