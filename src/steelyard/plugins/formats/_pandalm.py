"""PandaLM's names, and writing a case of two responses as a row of its test set."""

from collections import Counter
from collections.abc import Collection
from typing import Any

from msgspec.structs import replace

from steelyard.core.types import Case, Judgment, Verdict
from steelyard.plugins.formats._fields import form_of, with_meta
from steelyard.plugins.formats._pairwise import answer_text, conversation_of
from steelyard.plugins.formats._parts import UNKNOWN, count_lost
from steelyard.plugins.formats._sides import OTHER_SHAPE

KIND = "pandalm"
SIDES = ("response1", "response2")
ANNOTATORS = tuple(f"annotator{number}" for number in range(1, 10))
MODELS = {"gpt": "gpt-3.5-turbo", "pandalm": "pandalm-7b"}
"""The language models of the published verdicts, by the beginning of their keys."""
KEYS = (
    "idx", "cmp_key", "instruction", "input", *SIDES, *ANNOTATORS,
    *(f"{prefix}_{name}" for prefix in MODELS for name in ("result", "reason", "reference")),
)  # fmt: skip
VERDICTS: dict[str, Verdict] = {"1": "left", "2": "right", "0": "tie", "tie": "tie", "garbage": "none"}
_VOTES: dict[Verdict, int] = {"left": 1, "right": 2, "tie": 0}
_BETWEEN = "_"


def authors_of(key: str) -> tuple[str | None, str | None]:
    """The two models of a ``cmp_key``; null where it is not two names with one underline between."""
    first, between, second = key.partition(_BETWEEN)
    return (first, second) if between and first and second and _BETWEEN not in second else (None, None)


def pandalm_row(case: Case, lost: Counter[str], carries: Collection[str]) -> dict[str, Any] | None:
    """The case as a row; null for a case that is not of two responses, which is counted."""
    form, prompt = form_of(case, KIND), case.prompt
    count_lost(_without_own_judges(case), lost, carries)
    if len(case.responses) != len(SIDES):
        lost[OTHER_SHAPE] += 1
        return None
    question, extra = conversation_of(prompt.messages, lost).question, form.get("input", "")
    if extra and f"\n{question}".endswith(f"\n{extra}"):
        question = question[: -len(extra)].removesuffix("\n")
    else:
        extra = ""
    texts = [answer_text(response, lost) for response in case.responses]
    words = {"True": True, "False": False}
    given, key = form.get("idx"), _compared(case, form, lost)
    row = {
        "idx": given if str(given) == prompt.id else prompt.id,
        **({} if key is None else {"cmp_key": key}),
        "instruction": question,
        "input": extra,
        **{
            side: words.get(text, text) if side in form.get("words", ()) else text
            for side, text in zip(SIDES, texts, strict=True)
        },
        **_evidence(case, lost),
    }
    row = {name: value for name, value in row.items() if name not in form.get("absent", ()) or name == "cmp_key"}
    nulls = {name: None for name in form.get("null", ()) if name == "idx" or name not in row}
    return with_meta(row | nulls, case, KEYS, lost)


def _compared(case: Case, form: dict[str, Any], lost: Counter[str]) -> Any:
    authors = [response.author for response in case.responses]
    if not any(authors):
        return form.get("cmp_key")
    key = _BETWEEN.join(author or UNKNOWN for author in authors)
    if list(authors_of(key)) != authors:
        lost["authors that a pair of names cannot say"] += 1
    return key


def _evidence(case: Case, lost: Counter[str]) -> dict[str, Any]:
    """Votes under their own columns, other people's under free ones; verdicts of the two known models."""
    row: dict[str, Any] = {}
    first = case.responses[0].id
    prefixes = {judge: prefix for prefix, judge in MODELS.items()}
    people = [judgment for judgment in case.judgments if judgment.kind == "human"]
    # Those whose column is known take it before the others look for a free one.
    for judgment in sorted(people, key=lambda one: one.judge not in ANNOTATORS):
        names = [judgment.judge, *ANNOTATORS] if judgment.judge in ANNOTATORS else ANNOTATORS
        free = next((name for name in names if name not in row), None)
        vote = _VOTES.get(_from(first, judgment))
        if vote is None or free is None:
            lost["votes without a verdict or a column"] += 1
        else:
            row[free] = vote
    for judgment in case.judgments:
        prefix = prefixes.get(judgment.judge)
        if judgment.kind == "human":
            continue
        if prefix is None or f"{prefix}_result" in row:
            lost["judgments of other judges"] += 1
        else:
            row |= _verdict(prefix, judgment, first)
    return row


def _from(first: str, judgment: Judgment) -> Verdict:
    """The verdict as seen from the first response."""
    if judgment.left == first:
        return judgment.verdict
    turned: dict[Verdict, Verdict] = {"left": "right", "right": "left"}
    return turned.get(judgment.verdict, judgment.verdict)


def _verdict(prefix: str, judgment: Judgment, first: str) -> dict[str, Any]:
    meta, verdict = judgment.meta or {}, _from(first, judgment)
    said = meta.get("result")
    fresh: Any = "garbage" if verdict == "none" else _VOTES[verdict]
    if prefix == "gpt" and verdict != "none":
        fresh = "Tie" if verdict == "tie" else str(fresh)
    reason = meta.get("reason") if verdict == "none" else judgment.reason
    values = {
        "result": said if VERDICTS.get(str(said).lower()) == verdict else fresh,
        "reason": reason,
        "reference": meta.get("reference"),
    }
    return {f"{prefix}_{name}": value for name, value in values.items() if value is not None}


def _without_own_judges(case: Case) -> Case:
    """The case without what the columns say of its judges: what is left of judges is lost."""
    kept = {*((name, "human") for name in ANNOTATORS), *((name, "llm") for name in MODELS.values())}
    judgments = tuple(
        replace(one, judge=UNKNOWN, kind="human", reason=None) if (one.judge, one.kind) in kept else one
        for one in case.judgments
    )
    return replace(case, judgments=judgments)
