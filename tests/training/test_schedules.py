import math

import pytest

from steelyard.training.gradient_accumulation import learning_rate_factor


def factors(num_steps, **settings):
    return [learning_rate_factor(step, num_steps, **settings) for step in range(num_steps)]


def test_warm_up_then_half_a_cosine_by_hand():
    # Ten steps, two of warm-up: 1/2, 1, then (1 + cos(pi * k / 8)) / 2 for k = 0 to 7.
    expected = [0.5, 1.0] + [(1 + math.cos(math.pi * k / 8)) / 2 for k in range(8)]
    assert factors(10, warm_up=0.2, schedule="cosine") == pytest.approx(expected)


def test_a_constant_schedule_stays_at_its_peak():
    assert factors(4, warm_up=0.5, schedule="constant") == [0.5, 1.0, 1.0, 1.0]
    assert factors(3, warm_up=0.0, schedule="constant") == [1.0, 1.0, 1.0]


def test_a_linear_schedule_falls_in_equal_parts():
    assert factors(6, warm_up=0.3, schedule="linear") == pytest.approx([0.5, 1.0, 1.0, 0.75, 0.5, 0.25])


@pytest.mark.parametrize("num_steps", [1, 2, 7, 100])
@pytest.mark.parametrize("warm_up", [0.0, 0.1, 1.0])
@pytest.mark.parametrize("schedule", ["cosine", "linear"])
def test_every_step_moves(num_steps, warm_up, schedule):
    assert all(0 < factor <= 1 for factor in factors(num_steps, warm_up=warm_up, schedule=schedule))
