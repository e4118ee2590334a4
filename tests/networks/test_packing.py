import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from steelyard.core.numerics import generator
from steelyard.networks.packing import (
    few_sizes,
    fill_up,
    num_packed_tokens,
    num_shared_tokens,
    pack,
    pack_groups,
    process_shares,
    round_up_size,
)

rows = st.lists(st.lists(st.integers(1, 3), min_size=1, max_size=8), min_size=1, max_size=5)


def test_the_shared_run_is_what_all_rows_begin_with():
    assert num_shared_tokens([(1, 2, 3, 4), (1, 2, 3, 5), (1, 2, 3, 4, 9)]) == 3
    assert num_shared_tokens([(1, 2), (3,)]) == 0
    # An answer that begins another, or equals it, keeps a token of its own.
    assert num_shared_tokens([(1, 2, 3), (1, 2)]) == 1
    assert num_shared_tokens([(1, 2, 3), (1, 2, 3)]) == 2
    assert num_shared_tokens([(1, 2, 3)]) == 2
    assert num_shared_tokens([(1,)]) == 0


def test_a_pack_by_hand():
    packed = pack([[(1, 2, 3), (1, 2, 4, 5)], [(7,), (8, 9)]])
    assert packed.ids.tolist() == [1, 2, 3, 4, 5, 7, 8, 9]
    assert packed.positions.tolist() == [0, 1, 2, 2, 3, 0, 0, 1]
    assert packed.last.tolist() == [2, 4, 5, 7]
    assert [tuple(branch) for branch in packed.branches] == [(0, 2, (1, 2)), (5, 0, (1, 2))]
    places = [[branch.places(answer).tolist() for answer in (0, 1)] for branch in packed.branches]
    assert places == [[[0, 1, 2], [0, 1, 3, 4]], [[5], [6, 7]]]


@given(st.lists(rows, min_size=1, max_size=4))
def test_every_row_can_be_read_back_and_no_token_stands_twice_without_need(prompts):
    packed = pack(prompts)
    answer = 0
    for branch, own in zip(packed.branches, prompts, strict=True):
        for number, row in enumerate(own):
            places = branch.places(number)
            assert packed.ids[places].tolist() == list(row)
            assert packed.positions[places].tolist() == list(range(len(row)))
            assert packed.last[answer] == places[-1]
            answer += 1
        assert branch.num_tokens == num_packed_tokens(own)
        longer = [row[: branch.num_shared + 1] for row in own]
        assert len({tuple(row) for row in longer}) > 1 or min(map(len, own)) == branch.num_shared + 1
    assert len(packed.ids) == len(packed.positions) == sum(num_packed_tokens(own) for own in prompts)
    assert packed.ids.dtype == np.int64


some_prompts = st.lists(st.lists(st.lists(st.integers(1, 3), min_size=1, max_size=8), max_size=5), max_size=6)


@given(some_prompts, st.integers(1, 30), st.none() | st.integers(1, 4), st.none() | st.integers(1, 20))
def test_packs_keep_the_order_and_the_bounds(prompts, max_tokens, max_rows, wanted):
    groups = pack_groups(prompts, max_tokens=max_tokens, max_rows=max_rows, wanted_tokens=wanted)
    order = [(part.prompt, answer) for group in groups for part in group for answer in part.answers]
    assert order == [(index, answer) for index, rows in enumerate(prompts) for answer in range(len(rows))]
    for group in groups:
        sizes = [num_packed_tokens([prompts[part.prompt][answer] for answer in part.answers]) for part in group]
        num_rows = sum(len(part.answers) for part in group)
        assert sum(sizes) <= max_tokens or num_rows == 1
        assert max_rows is None or num_rows <= max_rows
        assert wanted is None or sum(sizes) <= wanted or len(group) == 1
    parts = [part for group in groups for part in group]
    without = [part for group in pack_groups(prompts, max_tokens=max_tokens, max_rows=max_rows) for part in group]
    for index, own in enumerate(prompts):
        is_cut = [part for part in parts if part.prompt == index] != [one for one in without if one.prompt == index]
        assert not is_cut or (wanted is not None and num_packed_tokens(own) > wanted)


def test_a_prompt_is_cut_to_the_wanted_size_where_that_works_few_tokens_out_again():
    # 10 shared and 8 answers of 45: 370 tokens. Parts of 190 hold 4 answers: the 10 stand twice, 2.7 % of all.
    rows = [[*range(10), *[100 + answer] * 45] for answer in range(8)]
    groups = pack_groups([rows], max_tokens=1000, wanted_tokens=190)
    assert [part.answers for group in groups for part in group] == [(0, 1, 2, 3), (4, 5, 6, 7)]
    # Parts of 60 would hold an answer each: the 10 stand eight times, 19 % of all, and the prompt stays whole.
    (whole,) = pack_groups([rows], max_tokens=1000, wanted_tokens=60)
    assert whole[0].answers == tuple(range(8))


def test_a_prompt_that_fits_is_whole_however_small_the_wanted_pack():
    prompts = [[(1, 2, 3), (1, 2, 4)], [(5,), (6,)], [(7,), (8,)]]
    groups = pack_groups(prompts, max_tokens=8, wanted_tokens=3)
    assert [[(part.prompt, part.answers) for part in group] for group in groups] == [
        [(0, (0, 1))],
        [(1, (0, 1))],
        [(2, (0, 1))],
    ]


def test_sizes_are_few_and_not_much_larger():
    assert [round_up_size(size) for size in (1, 4, 5, 15, 16, 17, 33, 61, 1000, 1024, 1025)] == [
        4, 4, 8, 16, 16, 20, 40, 64, 1024, 1024, 1280,
    ]  # fmt: skip
    assert all(size <= round_up_size(size) <= 1.25 * size for size in range(16, 5000))
    assert len({round_up_size(size) for size in range(1024, 4097)}) == 9


def test_filler_stands_behind_all_answers_and_in_no_branch():
    packed = pack([[(1, 2, 3), (1, 2, 4, 5)], [(7,)]])
    assert few_sizes(packed) == (8, 4)
    filled = fill_up(packed, 8, 4)
    assert filled.ids.tolist() == [1, 2, 3, 4, 5, 7, 0, 0]
    assert filled.positions.tolist() == [0, 1, 2, 2, 3, 0, 0, 0]
    assert filled.last.tolist() == [*packed.last.tolist(), 0]
    assert filled.branches == packed.branches


def test_the_number_of_answers_becomes_a_power_of_two():
    packs = [pack([[(1, 2 + answer) for answer in range(number)]]) for number in (1, 2, 3, 5, 8, 33)]
    sizes = [few_sizes(one)[1] for one in packs]
    assert sizes == [1, 2, 4, 8, 8, 64]


sizes = st.lists(st.integers(1, 5000), max_size=60)


def totals_of(given_sizes, parts):
    return [sum(given_sizes[position] for position in part) for part in parts]


@given(sizes, st.integers(1, 9))
def test_every_prompt_goes_to_exactly_one_process_and_the_same_one_each_time(given_sizes, number):
    parts = process_shares(given_sizes, number)
    assert len(parts) == number
    assert sorted(position for part in parts for position in part) == list(range(len(given_sizes)))
    assert all(list(part) == sorted(part) for part in parts)
    assert parts == process_shares(list(given_sizes), number)


@given(sizes.filter(bool), st.integers(1, 9))
def test_the_fullest_is_over_the_mean_by_less_than_the_largest_prompt(given_sizes, number):
    totals = totals_of(given_sizes, process_shares(given_sizes, number))
    assert max(totals) - sum(given_sizes) / number < max(given_sizes)


@given(st.integers(1, 16), st.integers(0, 1000))
def test_small_prompts_leave_less_than_two_percent_of_imbalance(number, seed):
    """Each prompt is at most a fiftieth of a process's share."""
    random = generator(seed, "sizes")
    given_sizes = random.integers(1, 100, 120 * number).tolist()
    share = sum(given_sizes) / number
    assert max(given_sizes) <= share / 50
    assert max(totals_of(given_sizes, process_shares(given_sizes, number))) <= 1.02 * share


def test_exchanges_find_the_even_division_that_the_largest_first_misses():
    # The largest first gives 8 + 5 + 4 = 17 and 7 + 6 = 13; 8 + 7 = 15 = 6 + 5 + 4 is even.
    assert totals_of([8, 7, 6, 5, 4], process_shares([8, 7, 6, 5, 4], 2)) == [15, 15]


def test_fewer_prompts_than_processes_leave_some_without():
    assert process_shares([5, 9], 3) == ((1,), (0,), ())
    assert process_shares([], 2) == ((), ())
