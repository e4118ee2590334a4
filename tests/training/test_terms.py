from steelyard.ranking.pairs import IndexedPair
from steelyard.training.batching import Slot, has_evidence, loss_inputs, pairs_in
from training_examples import example

EXAMPLES = (
    example(2, 2, 2, pairs=[(0, 2, 2.0, 0.5)])._replace(ties=(IndexedPair(0, 1),)),
    example(2, 2, pairs=[(1, 0)]),
)


def test_positions_are_those_among_the_slots():
    slots = (Slot(1, 0), Slot(1, 1), Slot(0, 0), Slot(0, 1), Slot(0, 2))
    terms = loss_inputs(slots, EXAMPLES)
    assert terms.pairs.better.tolist() == [1, 2, 2]
    assert terms.pairs.worse.tolist() == [0, 4, 3]
    assert terms.pairs.weight.tolist() == [1.0, 2.0, 1.0]
    assert terms.pairs.margin.tolist() == [0.0, 0.5, 0.0]
    assert terms.tied.tolist() == [False, False, True]
    assert terms.num_responses == 5
    assert pairs_in(slots, EXAMPLES).better.tolist() == [1, 2]


def test_a_tie_is_evidence_and_no_pair():
    slots = (Slot(0, 0), Slot(0, 1))
    assert has_evidence(slots, EXAMPLES)
    assert pairs_in(slots, EXAMPLES) is None
    assert not has_evidence((Slot(0, 0), Slot(1, 1)), EXAMPLES)
    assert not has_evidence((Slot(0, 0), Slot(0, 1)), (example(2, 2, pairs=[(0, 1, 0.0, 0.0)]),))
