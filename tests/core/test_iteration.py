"""Batches of a stream: all items in order, the last batch shorter, and no item read early."""

from hypothesis import given
from hypothesis import strategies as st

from steelyard.core.iteration import batched


@given(st.lists(st.integers()), st.integers(1, 5))
def test_batches_hold_every_item_once_and_only_the_last_is_shorter(items, size):
    batches = list(batched(items, size))
    assert [item for batch in batches for item in batch] == items
    assert all(len(batch) == size for batch in batches[:-1])
    assert all(batches)


def test_items_are_read_when_their_batch_is_due():
    source = iter(range(10))
    assert next(batched(source, 3)) == [0, 1, 2]
    assert next(source) == 3
