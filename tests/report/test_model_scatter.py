"""The names of models in the figure of a correlation: none covers another name or a point."""

import random

import pytest

from steelyard.report.correlation_figures import PlacedModel, model_scatter

WIDTH, HEIGHT = 700, 340  # pixels of the range of the values on a wide page, with margins left out
LETTER, ABOVE, BELOW, RADIUS = 5.5, 12, 2, 4


@pytest.mark.parametrize("number", [5, 23, 40, 200])
def test_a_name_covers_no_point_and_no_other_name(number):
    draw = random.Random(number)
    models = [
        PlacedModel(f"Organisation/Reward-{place}B", None, draw.random(), draw.random()) for place in range(number)
    ]
    rows = model_scatter("about", models, bench="bench", outcome="outcome").spec["data"]["values"]
    low, high = ([end(row[axis] for row in rows) for axis in ("bench", "outcome")] for end in (min, max))
    at = [
        ((row["bench"] - low[0]) / (high[0] - low[0]) * WIDTH, (row["outcome"] - low[1]) / (high[1] - low[1]) * HEIGHT)
        for row in rows
    ]
    boxes = []
    for row, (x, y) in zip(rows, at, strict=True):
        size = LETTER * len(row["model"])
        if row["label"]:
            left = x + 6 if row["label"] == "right" else x - 6 - size
            boxes.append((left, left + size, y + BELOW, y + ABOVE, (x, y)))
    assert boxes, "some names are shown"
    for left, right, bottom, top, own in boxes:
        covered = [
            (x, y) for x, y in at if (x, y) != own and left < x < right and bottom - RADIUS / 2 < y < top + RADIUS / 2
        ]
        assert covered == []
        others = [box for box in boxes if box[4] != own and left < box[1] and box[0] < right]
        assert [box for box in others if bottom < box[3] and box[2] < top] == []
