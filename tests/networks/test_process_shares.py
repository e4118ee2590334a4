from hypothesis import given
from hypothesis import strategies as st

from steelyard.core.seeds import generator
from steelyard.networks.packing import process_shares

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
