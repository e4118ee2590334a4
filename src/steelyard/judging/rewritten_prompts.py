"""New prompts from the replies to `RewriteTask`: each is checked, and becomes a case without responses.

A reply is refused if it declines, has marks of a chat template or of the request, is a near-duplicate of its parent, of
another prompt of the file or of an earlier new one, or overlaps with a benchmark. It is counted under the first rule
that it breaks.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from steelyard.core.checks import content_id
from steelyard.core.text import response_text
from steelyard.core.types import Case, Message, Prompt, Response
from steelyard.curation.splits import root_text
from steelyard.judging.sampling import SampleResult
from steelyard.prompts.near_duplicates import ReferenceTexts, fingerprint, jaccard, shingles
from steelyard.prompts.private_data import find_private_data, mask_private_data
from steelyard.prompts.screening import ScreeningRow
from steelyard.prompts.taxonomy import read_data
from steelyard.responses.faults import template_leftovers
from steelyard.responses.phrases import AnswerPhrases, CleaningTable
from steelyard.responses.rewriting import RewritePlan, RewriteTask
from steelyard.responses.subject import Subject

REWRITTEN = "rewritten"
"""The key in a prompt's meta of what it was made from: the parent, its source, the model and the way."""
_MARK_CHARACTERS = frozenset("=")
_EXCERPT = 160


class NewPrompts:
    """Makes prompts of replies and counts the others in ``dropped``; ``rows`` has a line for each prompt refused."""

    def __init__(self, parents: Iterable[Case], plan: RewritePlan, benches: Mapping[str, ReferenceTexts]) -> None:
        last_turns = [case.prompt.messages[-1].content for case in parents]
        self._known = ReferenceTexts(last_turns, plan.near_duplicates)
        self._num_parents = len(last_turns)
        self._plan, self._benches = plan, benches
        self._phrases = AnswerPhrases(msgspec.convert(read_data("cleaning.toml"), CleaningTable))
        self.num_replies = self.num_prompts = 0
        self.dropped: Counter[str] = Counter()
        self.ways: Counter[str] = Counter()
        self.rows: list[ScreeningRow] = []

    def add(self, task: RewriteTask, responses: Sequence[Response], results: Sequence[SampleResult]) -> Iterator[Case]:
        """Yield the new prompts of one request: of its responses, one for each text."""
        self.num_replies += len(results)
        for result in results:
            if not result.num_characters:
                self.dropped[f"samples {result.outcome}"] += 1
            elif result.is_repeated:
                self.dropped["identical to another response"] += 1
        for response in responses:
            case = _new_case(task, response)
            row = next(self._broken_rules(case, task), None)
            if row is not None:
                self.dropped[row.rule] += 1
                self.rows.append(row)
                continue
            self._known.add(fingerprint(case.prompt.messages[-1].content))
            self.num_prompts += 1
            self.ways[task.way] += 1
            yield case

    def _broken_rules(self, case: Case, task: RewriteTask) -> Iterator[ScreeningRow]:
        """Yield the rules that a new prompt breaks, in order."""
        prompt = case.prompt
        text, before = prompt.messages[-1].content, task.parent.prompt.messages[-1].content
        new, former = (
            Subject(Response(id="", text=each), prompt="", language=prompt.language, task="text")
            for each in (text, before)
        )
        if not text:
            yield _row(prompt, "samples empty")
        if number := template_leftovers(new):
            yield _row(prompt, "template_leftover", number, 0)
        # The request ends with its mark, a line that the prompt itself does not have.
        mark = task.request.prompt.messages[-1].content.rsplit("\n", 1)[-1]
        if number := text.split().count(mark):
            yield _row(prompt, "echo_of_request", number, 0)
        # A prompt may quote words that decline: they count where the one that it was made from has none.
        if (number := self._phrases.refusals(new)) and not self._phrases.refusals(former):
            yield _row(prompt, "refusal", number, 0)
        compared, limit = fingerprint(text), self._plan.near_duplicates
        similarity = jaccard(compared.shingles, shingles(before))
        if similarity >= limit:
            yield _row(prompt, "near_duplicate_of_parent", similarity, limit)
        if (nearest := self._known.nearest(compared)) is not None:
            place, similarity = nearest
            rule = "near_duplicate" if place < self._num_parents else "near_duplicate_of_new_prompt"
            yield _row(prompt, rule, similarity, limit)
        root = fingerprint(root_text(case))
        for name, bench in self._benches.items():
            if (nearest := bench.nearest(root)) is not None:
                yield _row(prompt, f"overlap: {name}", nearest[1], self._plan.overlap)


def _new_case(task: RewriteTask, response: Response) -> Case:
    """Return the text of a response as the last turn of a new prompt."""
    parent = task.parent.prompt
    text = _without_marks(response_text(response))
    origin = {"parent": parent.id, "parent_source": parent.source, "model": response.author, "way": task.way}
    prompt = Prompt(
        id=content_id({**origin, "text": text}),
        messages=(*parent.messages[:-1], Message(role="user", content=text)),
        language=parent.language,
        category=parent.category,
        source=f"rewritten by {response.author}",
        meta={REWRITTEN: origin},
    )
    return Case(prompt=prompt, responses=())


def _without_marks(text: str) -> str:
    """Return the text without blank lines and repeated marks of the request around it."""
    lines = text.strip().split("\n")
    start, end = 0, len(lines)
    while start < end and {*lines[start].strip()} <= _MARK_CHARACTERS:
        start += 1
    while start < end and {*lines[end - 1].strip()} <= _MARK_CHARACTERS:
        end -= 1
    return "\n".join(lines[start:end]).strip()


def _row(prompt: Prompt, rule: str, figure: float | None = None, limit: float | None = None) -> ScreeningRow:
    text = prompt.messages[-1].content
    masked = " ".join(mask_private_data(text, find_private_data(text)).split())
    return ScreeningRow(
        prompt=prompt.id,
        language=prompt.language,
        rule=rule,
        action="drop",
        figure=None if figure is None else round(figure, 4),
        limit=limit,
        excerpt=masked if len(masked) <= _EXCERPT else f"{masked[: _EXCERPT - 1]}…",
    )
