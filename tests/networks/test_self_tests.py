import pytest
import torch

import tiny
from steelyard.networks.conversation import Rendering, encode
from steelyard.networks.self_tests import (
    ReadRow,
    beginning_mark,
    last_token,
    same_by,
    template_end,
    trained_head,
)
from strategies import case

NO_END = "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}{% endfor %}"


def rows_of(tokenizer, rendering, asked):
    found = [encode(tokenizer, rendering, asked, one).ids for one in asked.responses]
    return [ReadRow(ids, len(ids) - 1) for ids in found]


def test_one_beginning_mark_and_no_other_number():
    tokenizer = tiny.tokenizer()
    bos = tokenizer.bos_token_id
    one, two, none = (ReadRow((*[bos] * number, 50, 51), number + 1) for number in (1, 2, 0))
    assert beginning_mark(tokenizer, [one, one]).state == "passed"
    doubled = beginning_mark(tokenizer, [one, two])
    assert (doubled.state, doubled.figures["num_at_start"]) == ("failed", [1, 2])
    assert beginning_mark(tokenizer, [one, none]).state == "failed"
    assert beginning_mark(tokenizer, [none]).state == "not applicable"
    assert beginning_mark(tiny.tokenizer(bos_token=None), [one]).state == "not applicable"


def test_a_mark_that_the_tokenizer_would_add_and_the_template_leaves_out_is_missing():
    from tiny_families import adding_bos

    tokenizer = adding_bos(tiny.tokenizer())
    assert beginning_mark(tokenizer, [ReadRow((50, 51), 1)]).state == "failed"


def test_the_end_of_the_template_is_what_two_unlike_answers_share():
    tokenizer = tiny.tokenizer()
    end = template_end(tokenizer, Rendering(template=tiny.CHATML), case("p", "a"))
    assert tokenizer.convert_ids_to_tokens(list(end)) == ["<|im_end|>"]
    unstripped = template_end(tokenizer, Rendering(template=tiny.CHATML, strip=False), case("p", "a"))
    assert tokenizer.decode(list(unstripped)) == "<|im_end|>\n"
    assert template_end(tokenizer, Rendering(template=NO_END), case("p", "a")) == ()


def test_the_head_reads_the_end_of_the_template():
    tokenizer, rendering, asked = tiny.tokenizer(), Rendering(template=tiny.CHATML), case("p", "ab", text="שלום 你好")
    rows = rows_of(tokenizer, rendering, asked)
    end = template_end(tokenizer, rendering, asked)
    passed = last_token(tokenizer, rows, end)
    assert (passed.state, passed.figures["read"], passed.remark) == ("passed", ["<|im_end|>"], None)
    cut = [ReadRow(row.ids[:-1], row.place - 1) for row in rows]
    failed = last_token(tokenizer, cut, end)
    assert failed.state == "failed"
    assert "<|im_end|>" in failed.remark
    elsewhere = [ReadRow(row.ids, row.place - 1) for row in rows]
    assert last_token(tokenizer, elsewhere, end).state == "not applicable"


def test_a_template_that_writes_nothing_behind_an_answer_is_doubtful():
    tokenizer, rendering, asked = tiny.tokenizer(), Rendering(template=NO_END), case("p", "ab")
    found = last_token(tokenizer, rows_of(tokenizer, rendering, asked), template_end(tokenizer, rendering, asked))
    assert found.is_doubtful
    assert found.figures["num_different"] == 2  # "answer a" and "answer b"


@pytest.mark.parametrize("weights", [torch.zeros(64), torch.full((64,), 0.5)])
def test_a_head_of_equal_weights_was_never_trained(weights):
    found = trained_head([weights], fresh_deviation=0.02)
    assert found.state == "failed"
    assert "never trained" in found.remark


@pytest.mark.parametrize("odd", [float("nan"), float("inf")])
def test_a_head_that_is_not_finite_fails(odd):
    found = trained_head([torch.tensor([[1.0, odd, 2.0]])], fresh_deviation=None)
    assert (found.state, "1 of the head's 3 weights" in found.remark) == ("failed", True)


def test_a_head_that_looks_drawn_is_doubtful_and_no_more():
    draws = torch.Generator().manual_seed(0)
    drawn = 0.02 * torch.randn(4096, generator=draws)
    assert trained_head([drawn], fresh_deviation=0.02).is_doubtful
    for other in (drawn * 1.2, drawn + 0.01, drawn.sign() * 0.02 + 1e-4 * drawn):
        assert trained_head([other], fresh_deviation=0.02).remark is None
    assert trained_head([drawn], fresh_deviation=None).remark is None
    assert trained_head([drawn[:100]], fresh_deviation=0.02).remark is None  # so few prove nothing


def test_two_ways_of_computing_are_held_against_rounding():
    same = same_by("packing", [1.0, 2.0], [1.0005, 2.0], dtype="float32", ways="packs and rows")
    assert (same.state, same.figures["num_answers"]) == ("passed", 2)
    other = same_by("packing", [1.0, 2.0], [1.1, 2.0], dtype="float32", ways="packs and rows")
    assert other.state == "failed"
    assert other.remark.startswith("packs and rows differ by 0.1")
    assert same_by("packing", [1.0, 2.0], [1.05, 2.0], dtype="bfloat16", ways="packs and rows").state == "passed"
