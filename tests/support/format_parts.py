"""A case with one part added, and the extraction of that part, for the contract of formats."""

from msgspec.structs import replace

from steelyard.core.types import Judgment, Message, Pair, Rating, Response
from steelyard.ranking.pairs import pairs_of

_PROMPT = {"language": "vi", "category": ("x", "y"), "source": "s", "subset": "t", "reference": "r"}
_OF_TWO = ("rankings", "ties", "more than two responses", "listed pairs", "weights", "margins", "judgments", "judges",
           "judgment details")  # fmt: skip
_OF_A_PROMPT = (*_PROMPT, "system turns", "earlier turns", "prompt meta", "prompt ids", "case meta")
_EARLIER = (Message(role="user", content="שלום"), Message(role="assistant", content="أهلا"))


def with_part(one, part):
    """Add the part to the case; null if the case cannot have it (no pair to list, or a fixed shape)."""
    if not one.responses and part not in _OF_A_PROMPT:
        one = replace(
            one, responses=(Response(id="first", text="a first answer"), Response(id="second", text="又一个"))
        )
    if len(one.responses) == 1 and part in _OF_TWO:
        one = replace(one, responses=(*one.responses, Response(id="second", text="a second answer")))
    prompt = one.prompt
    first, second = (one.responses * 2)[:2] or (Response(id="none", text=""),) * 2
    judgment = Judgment(left=first.id, right=second.id, verdict="right", judge="unknown", kind="human")
    rating = Rating(response=first.id, rater="unknown", kind="human", dimension="overall", value=3.0, range=(1, 5))
    pair = Pair(better=second.id, worse=first.id)
    if part in _PROMPT:
        return replace(one, prompt=replace(prompt, **{part: _PROMPT[part]}))
    third = Response(id="third", text="a third answer")
    two = replace(one, responses=(first, second), ranking=None, pairs=None, judgments=(), ratings=())
    changes = {
        "system turns": lambda: _turns(one, (Message(role="system", content="Be brief."), *_unsaid(prompt))),
        "earlier turns": lambda: _turns(one, (*_EARLIER, prompt.messages[-1])),
        "prompt meta": lambda: replace(one, prompt=replace(prompt, meta={"own_note": {"z": [1, None]}})),
        "prompt ids": lambda: replace(one, prompt=replace(prompt, id="an id")),
        "responses": lambda: one,
        "response ids": lambda: one,
        "authors": lambda: _responses(one, author="the author"),
        "answers of several turns": lambda: _responses(
            one, text=None, messages=(*_EARLIER[::-1], Message(role="assistant", content="end"))
        ),
        "response meta": lambda: _responses(one, meta={"own_note": 1}),
        "rankings": lambda: replace(two, ranking=((second.id,), (first.id,))),
        "ties": lambda: _ranked(one, third, ((first.id,), (second.id, "third"))),
        # Of a case without a ranking, the answers alone: a format of ratings carries them unranked.
        "more than two responses": lambda: _ranked(
            one, third, (("third",), (first.id,), (second.id,)) if one.ranking else None
        ),
        "listed pairs": lambda: replace(two, pairs=(pair,)),
        "weights": lambda: replace(two, pairs=(replace(pair, weight=0.5),)),
        "margins": lambda: replace(two, pairs=(replace(pair, margin=2.5),)),
        "judgments": lambda: replace(one, judgments=(judgment,)),
        "judges": lambda: replace(one, judgments=(replace(judgment, judge="Ann", kind="llm"),)),
        "judgment details": lambda: replace(one, judgments=(replace(judgment, id="j1", task="t1", reason="因为"),)),
        "ratings": lambda: replace(one, ratings=(rating,)),
        "raters": lambda: replace(one, ratings=(replace(rating, rater="Ann", kind="llm"),)),
        "rating details": lambda: replace(one, ratings=(replace(rating, id="r1", spans=((0, 1, "a", None),)),)),
        "case meta": lambda: replace(one, meta={"own_note": 1}),
    }
    return changes[part]()


def seen_of(part, cases):
    """Extract the part from the cases, independent of generated ids."""
    return [_seen(part, one) for one in cases if one.responses or part in _OF_A_PROMPT]


def _seen(part, one):
    prompt = one.prompt
    by_id = {response.id: said(response) for response in one.responses}
    if part in _PROMPT:
        return getattr(prompt, part)
    views = {
        "system turns": lambda: prompt.messages,
        "earlier turns": lambda: prompt.messages,
        "prompt meta": lambda: prompt.meta,
        "prompt ids": lambda: prompt.id,
        "responses": lambda: sorted(by_id.values()),
        "response ids": lambda: sorted(by_id),
        "authors": lambda: sorted((said(response), response.author or "") for response in one.responses),
        "answers of several turns": lambda: sorted(by_id.values()),
        "response meta": lambda: [response.meta for response in one.responses],
        "rankings": lambda: _ordered(one, by_id),
        "ties": lambda: (_ordered(one, by_id), [sorted(by_id[name] for name in tier) for tier in one.ranking or ()]),
        "more than two responses": lambda: sorted(by_id.values()),
        "listed pairs": lambda: _ordered(one, by_id),
        "weights": lambda: [pair.weight for pair in one.pairs or ()],
        "margins": lambda: [pair.margin for pair in one.pairs or ()],
        "judgments": lambda: sorted(_verdict(j, by_id) for j in one.judgments),
        "judges": lambda: [(j.judge, j.kind) for j in one.judgments],
        "judgment details": lambda: [(j.id, j.task, j.reason) for j in one.judgments],
        "ratings": lambda: [(by_id[r.response], r.dimension, r.value) for r in one.ratings],
        "raters": lambda: [(r.rater, r.kind) for r in one.ratings],
        "rating details": lambda: [(r.id, r.spans) for r in one.ratings],
        "case meta": lambda: one.meta.get("own_note"),
    }
    return views[part]()


def said(response):
    """Return the response's content, as one text or as turns."""
    return response.text or "\n".join(f"{turn.role}: {turn.content}" for turn in response.messages)


def _ordered(one, by_id):
    ids = [response.id for response in one.responses]
    return sorted({(by_id[ids[pair.better]], by_id[ids[pair.worse]]) for pair in pairs_of(one)})


def _unsaid(prompt):
    return tuple(turn for turn in prompt.messages if turn.role != "system")


def _turns(one, messages):
    return replace(one, prompt=replace(one.prompt, messages=messages))


def _responses(one, **changes):
    first, *others = one.responses
    return replace(one, responses=(replace(first, **changes), *others))


def _ranked(one, third, ranking):
    return replace(one, responses=(*one.responses[:2], third), ranking=ranking, pairs=None, judgments=(), ratings=())


def _verdict(judgment, by_id):
    """Return the two texts and the better one, independent of sides, which rankings do not store."""
    sides = {"left": by_id[judgment.left], "right": by_id[judgment.right]}
    return (*sorted(sides.values()), sides.get(judgment.verdict, judgment.verdict))
