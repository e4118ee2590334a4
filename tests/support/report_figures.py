"""Checks of the figures of the report: specifications that Altair accepts."""

import json

import altair


def accepted(figure):
    """Return the figure's specification, which Altair must accept and which must be plain JSON."""
    chart = altair.Chart.from_dict(json.loads(json.dumps(figure.spec)), validate=True)
    assert chart.to_dict(validate=True)["layer"]
    assert figure.about.startswith("figure_")
    return figure.spec


def rows(spec):
    """Return the rows that a figure draws, of all its layers."""
    own = spec.get("data", {}).get("values", [])
    return own + [row for layer in spec["layer"] for row in layer.get("data", {}).get("values", [])]
