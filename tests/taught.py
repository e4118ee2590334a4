"""Prompts that a tiny model learns in a few steps."""

from steelyard.core.types import Response
from strategies import case


def taught(number, *, right, start=0):
    """Prompts whose better answer says so, or whose labels are turned round."""
    ranking = (("a",), ("b",)) if right else (("b",), ("a",))
    found = []
    for index in range(start, start + number):
        one = case(f"p{index}", "ab", ranking=ranking, text=f"What is {index}?")
        texts = {"a": "yes " * 6, "b": "no " * 6}
        found.append(type(one)(
            prompt=one.prompt, ranking=ranking, responses=tuple(Response(id=name, text=texts[name]) for name in "ab")
        ))  # fmt: skip
    return found
