"""Prompts that a tiny model learns in a few steps."""

from msgspec.structs import replace

from steelyard.core.types import Response
from strategies import case

RESPONSES = (Response(id="a", text="yes " * 6), Response(id="b", text="no " * 6))


def toy_prompts(number, *, right, start=0):
    """Return prompts whose better answer says yes, or with ``right=False`` the same with their labels swapped."""
    ranking = (("a",), ("b",)) if right else (("b",), ("a",))
    numbers = range(start, start + number)
    cases = [case(f"p{index}", "ab", ranking=ranking, text=f"What is {index}?") for index in numbers]
    return [replace(toy, responses=RESPONSES) for toy in cases]
