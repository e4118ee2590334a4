"""The check of meanings, with an encoder by hand: texts are sums of the meanings of their words, and some noise."""

import numpy as np
import pytest

from steelyard.core.types import Case, Message, Prompt, Response
from steelyard.translation.meaning import MeaningCheck

WORDS = tuple(f"something{n:02d}" for n in range(40))


def encode(texts):
    """Each word is a direction of its own, the same in both languages; ``fog`` texts all mean the same."""
    rows = []
    for text in texts:
        row = np.full(64, 0.4)
        for word in text.split():
            if not word.endswith("fog"):
                row[WORDS.index(word.removeprefix("de-"))] += 2.0
        row += np.random.default_rng(list(text.encode())).normal(0, 0.05, 64)
        rows.append(row / np.linalg.norm(row))
    return np.array(rows)


def case(number, prompt, *responses, language="en"):
    message = Message(role="user", content=prompt)
    return Case(
        prompt=Prompt(id=str(number), messages=(message,), language=language),
        responses=tuple(Response(id=f"r{place}", text=text) for place, text in enumerate(responses)),
    )


def pairs():
    sources = [case(n, WORDS[n], WORDS[-n - 1], WORDS[n - 7]) for n in range(30)]
    targets = [case(n, f"de-{WORDS[n]}", f"de-{WORDS[-n - 1]}", f"de-{WORDS[n - 7]}", language="de") for n in range(30)]
    return sources, targets


def findings(sources, targets):
    check = MeaningCheck(encode, sources)
    both = list(zip(sources, targets, strict=True))
    for start in range(0, len(both), 7):
        check.add(both[start : start + 7])
    return [
        (number, each.kind, each.place, each.after)
        for number, pair in enumerate(both)
        for each in check.findings(number, *pair)
    ]


def test_translations_have_no_finding():
    assert findings(*pairs()) == []


def test_the_translation_of_another_text_is_found_in_its_place():
    sources, targets = pairs()
    targets[3] = case(3, "de-something20", "de-something36", "de-something36", language="de")
    found = findings(sources, targets)
    assert (3, "meaning", "prompt", "de-something20") in found
    assert {number for number, *_ in found} == {3}
    assert {kind for _, kind, *_ in found} == {"meaning"}


def test_responses_that_changed_places_are_one_finding():
    sources, targets = pairs()
    changed = targets[5].responses
    targets[5] = case(5, "de-something05", changed[1].text, changed[0].text, language="de")
    assert findings(sources, targets) == [(5, "swapped_responses", "responses", "response r0, response r1")]


def test_a_language_that_the_encoder_cannot_read_has_no_findings():
    sources, _ = pairs()
    targets = [case(n, f"a{n}fog b-fog", f"c{n}fog d-fog", f"e{n}fog f-fog", language="xx") for n in range(30)]
    assert findings(sources, targets) == []


@pytest.mark.parametrize("number", [1, 6])
def test_few_items_have_no_findings(number):
    sources, targets = pairs()
    targets[0] = case(0, "de-something20", "de-something36", "de-something36", language="de")
    assert findings(sources[:number], targets[:number]) == []
