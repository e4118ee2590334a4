"""The statistics of Table 1, worked out by hand."""

import msgspec
import pytest
from hypothesis import given

from steelyard.core.errors import EvidenceError
from steelyard.core.text import num_characters
from steelyard.core.types import Message, Pair, Prompt, Response
from steelyard.prompts.description import DescribeSummary, describe_cases
from steelyard.ranking.pairs import pairs_of
from strategies import case, cases


def answers(*texts, authors=(None, None, None)):
    return tuple(Response(id=name, text=text, author=by) for name, text, by in zip("abc", texts, authors, strict=False))


def made(id, texts, authors=(None, None, None), **fields):
    return msgspec.structs.replace(case(id, "", **fields), responses=answers(*texts, authors=authors))


# 人 is one code point of three bytes, 𠮷 one code point of four bytes and of two UTF-16 units.
THREE = made("p", ("人人人人", "𠮷𠮷", "x"), ("m", "n", "m"), text="四个字吗", category=("写作", "诗"), language="zh",
             ranking=(("a",), ("b", "c")))  # fmt: skip
TWO = made("q", ("1234567", "123"), ("n", "n"), text="six ch", language="en", ranking=(("b",), ("a",)))
NONE = made("r", (), text="")


def test_table_1_by_hand():
    overall = describe_cases([THREE, TWO, NONE]).overall
    assert (overall.num_prompts, overall.num_responses, overall.num_comparisons) == (3, 5, 3)
    assert overall.responses_per_prompt == pytest.approx(5 / 3)
    lengths = overall.characters
    assert lengths.prompt == pytest.approx((4 + 6 + 0) / 3)
    assert lengths.response == pytest.approx((4 + 2 + 1 + 7 + 3) / 5)
    # a>b and a>c of the first prompt, b>a of the second; b and c are tied and no comparison.
    assert lengths.chosen == pytest.approx((4 + 4 + 3) / 3)
    assert lengths.rejected == pytest.approx((2 + 1 + 7) / 3)
    assert overall.tokens is None


def test_groups_have_their_own_numbers_and_the_largest_is_first():
    summary = describe_cases([THREE, TWO, NONE])
    assert {name: group.num_prompts for name, group in summary.by_category.items()} == {"uncategorised": 2, "写作": 1}
    assert list(summary.by_category) == ["uncategorised", "写作"]
    assert summary.by_language["zh"].characters.chosen == 4
    assert summary.by_language["unspecified"].characters.chosen is None
    assert summary.by_source == summary.by_subset == {}  # no case has the field


def test_an_author_has_the_prompts_comparisons_and_lengths_of_its_responses():
    by_author = describe_cases([THREE, TWO]).by_author
    m, n = by_author["m"], by_author["n"]
    assert (m.num_prompts, m.num_responses, m.num_comparisons) == (1, 2, 2)
    assert (m.characters.chosen, m.characters.rejected) == (4, 1)
    # a>b of the first prompt counts for both authors; in the second prompt both responses are of n.
    assert (n.num_prompts, n.num_responses, n.num_comparisons) == (2, 3, 2)
    assert (n.characters.chosen, n.characters.rejected) == (3, (2 + 7) / 2)
    assert n.characters.prompt == (4 + 6) / 2


def test_turns_are_added_without_the_breaks_between_them():
    turns = (Message(role="user", content="ab"), Message(role="assistant", content="cde"))
    spoken = Response(id="a", messages=(*turns, Message(role="user", content="f")))
    one = msgspec.structs.replace(case("p", ""), prompt=Prompt(id="p", messages=turns), responses=(spoken,))
    lengths = describe_cases([one], count_tokens=lambda texts: [1] * len(texts), tokenizer="t").overall
    assert (lengths.characters.prompt, lengths.characters.response) == (5, 6)
    assert (lengths.tokens.prompt, lengths.tokens.response) == (2, 3)


def test_tokens_are_those_of_the_function_across_batches():
    many = [made(f"p{n}", ("a b", "c d e"), text="w " * n, ranking=(("a",), ("b",))) for n in range(600)]
    tokens = describe_cases(many, count_tokens=lambda texts: [len(text.split()) for text in texts]).overall.tokens
    assert (tokens.prompt, tokens.chosen, tokens.rejected, tokens.response) == (599 / 2, 2, 3, 2.5)


def test_the_choice_of_pairs_is_that_of_other_consumers():
    listed = msgspec.structs.replace(THREE, pairs=(Pair(better="a", worse="c"),))
    assert describe_cases([listed]).overall.num_comparisons == 1
    assert describe_cases([listed], "tiers").overall.num_comparisons == 2
    with pytest.raises(EvidenceError, match="lists no pairs"):
        describe_cases([THREE], "listed")


def test_judgments_without_a_ranking_are_counted_and_are_no_comparisons():
    judged = case("p", "ab", judgments=["a>b", "a=b", "a?b"])
    summary = describe_cases([judged, TWO])
    assert (summary.num_unranked, summary.overall.num_judgments, summary.overall.num_comparisons) == (1, 2, 1)


def test_no_case_has_no_means():
    summary = describe_cases([])
    assert (summary.overall.num_prompts, summary.overall.responses_per_prompt) == (0, None)
    assert summary.overall.characters.prompt is None


@given(cases())
def test_numbers_agree_with_a_plain_count(one):
    ranked = msgspec.structs.replace(one, ranking=tuple((response.id,) for response in one.responses))
    summary = describe_cases([ranked])
    lengths = [num_characters(response) for response in ranked.responses]
    pairs = pairs_of(ranked)
    assert summary.overall.num_comparisons == len(pairs) == len(lengths) * (len(lengths) - 1) // 2
    assert summary.overall.characters.chosen == pytest.approx(sum(lengths[pair.better] for pair in pairs) / len(pairs))
    assert summary.overall.num_judgments == sum(each.verdict != "none" for each in ranked.judgments)
    encoded = msgspec.json.encode(summary)
    assert msgspec.json.decode(encoded, type=DescribeSummary) == summary
