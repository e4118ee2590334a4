"""Hypothesis strategies for cases, and short builders for tests that write their data by hand."""

import msgspec
from hypothesis import strategies as st

from steelyard.core.types import Case, Judgment, Message, Prompt, Response

VERDICTS = ("left", "right", "tie", "none")
texts = st.text(alphabet=st.characters(codec="utf-8"), max_size=40)
names = st.text(alphabet="abcdefgh中文ابג", min_size=1, max_size=6)


def prompt(id="p", text="What is it?", **fields):
    return Prompt(id=id, messages=(Message(role="user", content=text),), **fields)


def case(id="p", responses="abcde", judgments=(), **fields):
    """Return a case whose response ids are single letters; a judgment is ``"a>b"``, ``"a=b"`` or ``"a?b"`` (none)."""
    prompt_fields = {
        name: fields.pop(name) for name in ("language", "category", "subset", "source", "text") if name in fields
    }
    # Prompts of one text would be one prompt to whatever draws or compares them.
    text = {} if id == "p" else {"text": f"What is {id}?"}
    return Case(
        prompt=prompt(id, **(text | prompt_fields)),
        responses=tuple(Response(id=name, text=f"answer {name}") for name in responses),
        judgments=tuple(judgment(short) if isinstance(short, str) else short for short in judgments),
        **fields,
    )


def judgment(short, judge="j", kind="human", **fields):
    verdict = {">": "left", "<": "right", "=": "tie", "?": "none"}[short[1]]
    return Judgment(left=short[0], right=short[2], verdict=verdict, judge=judge, kind=kind, **fields)


@st.composite
def cases(draw, min_responses=2, max_responses=12, min_judgments=0, max_judgments=40, id="p", repeats=True):
    """Draw a case with random judgments, with ties, nones and contradictions, and with repeats of judgments or not."""
    ids = [f"r{index}" for index in range(draw(st.integers(min_responses, max_responses)))]
    two = st.lists(st.sampled_from(ids), min_size=2, max_size=2, unique=True)
    one = st.builds(
        lambda pair, verdict, judge, kind: Judgment(
            left=pair[0], right=pair[1], verdict=verdict, judge=judge, kind=kind
        ),
        two,
        st.sampled_from(VERDICTS),
        st.sampled_from(["ann", "bob"]),
        st.sampled_from(["human", "llm"]),
    )
    unique_by = None if repeats else _content
    judgments = st.lists(one, min_size=min_judgments, max_size=max_judgments, unique_by=unique_by)
    return Case(
        prompt=prompt(id),
        responses=tuple(Response(id=name, text=draw(texts)) for name in ids),
        judgments=tuple(draw(judgments)),
    )


def _content(one):
    better = {"left": one.left, "right": one.right}.get(one.verdict, one.verdict)
    return one.judge, one.kind, frozenset((one.left, one.right)), better


@st.composite
def with_repeats(draw, **limits):
    """Draw a case, and it with some of its judgments once more at the end, in some left and right exchanged."""
    one = draw(cases(repeats=False, **limits))
    turned = {"left": "right", "right": "left", "tie": "tie", "none": "none"}
    again = [
        msgspec.structs.replace(own, left=own.right, right=own.left, verdict=turned[own.verdict])
        if draw(st.booleans())
        else own
        for own in draw(st.lists(st.sampled_from(one.judgments), max_size=5) if one.judgments else st.just([]))
    ]
    return one, msgspec.structs.replace(one, judgments=(*one.judgments, *again))
