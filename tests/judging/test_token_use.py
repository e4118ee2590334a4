import pytest

from steelyard.core.comparison import Reply
from steelyard.core.config import resolve_config
from steelyard.core.errors import ConfigError
from steelyard.judging.token_use import Price, TokenCounts, sum_tokens
from steelyard.stages.judge import Config

ANTHROPIC = Price(input=3.0, output=15.0, cached_input=0.3, cache_write=3.75)


@pytest.mark.parametrize(
    ("tokens", "price", "cost"),
    [
        # 1,000 in and 200 out at 3 and 15 a million.
        (TokenCounts(1000, 200), (3.0, 15.0), 0.006),
        # 400 of the 1,000 come from the cache, and cost the same unless the price says otherwise.
        (TokenCounts(1000, 200, 400), (3.0, 15.0), 0.006),
        # 600 at 2.50, 400 at 1.25, 200 at 10.
        (TokenCounts(1000, 200, 400), Price(input=2.5, output=10.0, cached_input=1.25), 0.004),
        # A block of 21 new, 188,086 written and 50 read tokens, 393 out: 63 + 705,322.5 + 15 + 5,895 millionths.
        (TokenCounts(21 + 188_086 + 50, 393, 50, 188_086), ANTHROPIC, 0.7112955),
    ],
)
def test_bills_by_hand(tokens, price, cost):
    assert tokens.cost(price) == pytest.approx(cost, rel=1e-12)


def test_a_reply_without_counts_is_counted_apart():
    replies = [
        Reply(request="a", text="x", prompt_tokens=10, reply_tokens=2, cached_tokens=4, model="m"),
        Reply(request="b", text="x", model="other"),
    ]
    used = sum_tokens(replies, ANTHROPIC, lambda name: name == "m")
    assert (used.num_replies, used.prompt, used.cached, used.reply, used.uncounted) == (2, 10, 4, 2, 1)
    assert used.cost == pytest.approx((6 * 3.0 + 4 * 0.3 + 2 * 15.0) / 1e6)
    assert used.other_models == {"other": 1}


def test_replies_without_any_counts_have_no_cost():
    assert sum_tokens([Reply(request="a", text="x")], ANTHROPIC, bool).cost is None


def test_prices_are_two_numbers_or_named():
    assert resolve_config(Config, {"price": [3, 15]}, where="judge").price == (3.0, 15.0)
    named = {"input": 3, "output": 15, "cached_input": 0.3}
    assert resolve_config(Config, {"price": named}, where="judge").price == Price(**named)


@pytest.mark.parametrize(
    "price", [{"input": 3}, {"input": -3, "output": 1}, [1], {"input": 3, "output": 1, "in": 2}, "3"]
)
def test_other_prices_are_refused(price):
    with pytest.raises(ConfigError, match="price"):
        resolve_config(Config, {"price": price}, where="judge")
