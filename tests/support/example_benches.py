"""Benches of every kind for tests that run on each; a kind whose subsets are settings has an example of them."""

from steelyard.core.plugins import build

SETTINGS = {
    "subsets": {
        "subsets": {"chat": 30, "math": 20, "code": "any"},
        "measures": ["accuracy", "exact_match"],
        "sections": {"Talk": {"chat": 1}, "Work": {"math": 3, "code": 1}},
    }
}


def example_bench(kind):
    """Build the bench of a kind."""
    return build("benches", kind, SETTINGS.get(kind))
