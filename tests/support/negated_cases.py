"""Cases of one prompt, and what the check of negations finds between two of them."""

from steelyard.core.types import Case, Message, Prompt, Response
from steelyard.translation.bench_lengths import LengthLimits
from steelyard.translation.damage import find_damage

_NO_BENCH = LengthLimits(pairs={})


def case(text, language, *, response="1"):
    message = Message(role="user", content=text)
    return Case(
        prompt=Prompt(id="p", messages=(message,), language=language), responses=(Response(id="a", text=response),)
    )


def negation(source, target):
    found = find_damage(source, target, limits=_NO_BENCH, languages=None)
    return [each for each in found if each.kind == "negation"]
