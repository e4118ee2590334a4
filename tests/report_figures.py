"""What every figure of the report must be: a specification that the library itself accepts."""

import json

import altair


def accepted(figure):
    """The figure's specification, if Altair accepts it and nothing in it is other than plain JSON."""
    chart = altair.Chart.from_dict(json.loads(json.dumps(figure.spec)), validate=True)
    assert chart.to_dict(validate=True)["layer"]
    assert figure.about.startswith("figure_")
    return figure.spec


def rows(spec):
    """The rows that a figure draws, of all its layers."""
    own = spec.get("data", {}).get("values", [])
    return own + [row for layer in spec["layer"] for row in layer.get("data", {}).get("values", [])]
