"""Prompt review: a prompt is kept, revised or dropped, and gets its category, difficulty and scenario.

Questions follow from the decision: the revised text, or the reason for dropping; a dropped prompt is not categorised.
Two answers agree on each entry that is equal; a revised text is equal if its words are, so that people settle on one
text before it is exported. Exported: the case with the last turn as revised, the new category, and in ``meta`` under
``prompt_review`` the decision, who made it in which task and stage, and what the prompt was before. Dropped prompts are
not exported.
"""

from collections.abc import Sequence

from msgspec.structs import replace

from steelyard.annotation.answers import Origin, TaskAnswer
from steelyard.annotation.questions import TaskQuestion
from steelyard.annotation.task_kinds import Catalogues, Design, QuestionTasks, TaskRules
from steelyard.annotation.wrong_answers import move_category
from steelyard.core.types import Case, JsonObject

DECISIONS = ("keep", "revise", "drop")
REASONS = ("unclear", "duplicate", "unsafe", "personal data", "wrong language", "no answer possible", "other")
_CATEGORISED = ("category", "difficulty", "scenario")


def _the_prompt(case: Case, rules: TaskRules) -> Design | None:
    return ((),) if case.prompt.messages else None


def _ask(shown: Sequence[str], catalogues: Catalogues) -> tuple[TaskQuestion, ...]:
    revised, dropped = ("decision", "revise"), ("decision", "drop")
    categories = (
        TaskQuestion(name=name, input="choice", choices=catalogues.get(name, ()), exception=dropped)
        for name in _CATEGORISED
    )
    return (
        TaskQuestion(name="decision", input="choice", choices=DECISIONS, keys=("k", "r", "d")),
        TaskQuestion(name="revised_text", input="text", condition=revised),
        TaskQuestion(name="drop_reason", input="choice", choices=REASONS, condition=dropped),
        *categories,
    )


def _revise(case: Case, answer: TaskAnswer, origin: Origin) -> Case | None:
    """Return the case as the answer that stands leaves it; unchanged where nobody could judge it."""
    entries = answer.entries
    if answer.cannot_judge is not None:
        return case
    if entries["decision"] == "drop":
        return None
    prompt = case.prompt
    before: JsonObject = {"category": list(prompt.category)}
    record = {
        "decision": entries["decision"],
        "difficulty": entries["difficulty"],
        "scenario": entries["scenario"],
        "by": origin.judge,
        "task": origin.task,
        "before": before,
        **origin.meta,
    }
    if entries["decision"] == "revise":
        before["text"] = prompt.messages[-1].content
        last = replace(prompt.messages[-1], content=entries["revised_text"])
        prompt = replace(prompt, messages=(*prompt.messages[:-1], last))
    prompt = replace(prompt, category=tuple(entries["category"].split("/")))
    return replace(case, prompt=prompt, meta={**case.meta, "prompt_review": record})


KIND = QuestionTasks(
    name="prompt_review",
    needs="a prompt with a turn or more",
    plan=_the_prompt,
    ask=_ask,
    change=_revise,
    spoil=lambda answer, catalogues, rng: move_category(answer, catalogues.get("category", ()), rng),
)
