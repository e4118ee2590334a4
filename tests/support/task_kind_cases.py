"""Cases for every kind of tasks, and simulated looks at them, for tests."""

import numpy as np

from steelyard.annotation.simulated_annotators import HUMAN
from steelyard.annotation.simulated_entries import SimulatedLook
from steelyard.annotation.task_kinds import TaskRules, kind_named
from steelyard.core.numerics import generator
from steelyard.core.types import Case, Message, Prompt, Response

TEXTS = (
    "She sells sea shells.",
    "她在海边卖贝壳。",
    "تبيع الأصداف على الشاطئ.",
    "`x < y` and $a^2$",
    "😀 It is green.",
)
RULES = {"triple": TaskRules(kind="ranking")}
"""The rules under which a project has tasks of a kind; by default those of its name."""


def cases_for(name, number=4):
    """Return cases with what tasks of a kind show."""
    num_responses = {"triple": 4, "pairwise": 2, "native_check": 2, "prompt_review": 0}.get(name, 3)
    return [
        Case(
            prompt=Prompt(
                id=f"q{place}",
                language=("en", "zh", "ar")[place % 3],
                messages=(Message(role="user", content=f"Why {TEXTS[place % 5]}"),),
            ),
            responses=tuple(
                Response(id=f"r{each}", text=f"{TEXTS[(place + each) % 5]} {each}", author=f"model {each}")
                for each in range(num_responses)
            ),
            ranking=(("r0",), ("r1",)) if name == "native_check" else None,
        )
        for place in range(number)
    ]


def rules_for(name):
    """Return the settings of a project whose tasks are of a kind."""
    return RULES.get(name) or TaskRules(kind=name)


def look_at(case, shown, *, seed=0, care=1.0):
    """Return how a simulated person sees a task of a case."""
    rng = generator(seed, "look")
    texts = {response.id: response.text for response in case.responses}
    return SimulatedLook(
        texts={response: texts[response] for response in shown},
        perceived=rng.random(len(shown)),
        noise=HUMAN,
        item=(case.prompt.id,),
        care=care,
        rng=np.random.default_rng(seed),
        seed=0,
    )


def simulated(name, catalogues, *, seed=0, place=0):
    """Return a task's responses with their texts, and a simulated answer to it."""
    kind = kind_named(name)
    case = cases_for(name)[place]
    (shown, *_) = kind.design(case, rules_for(name), seed=0)
    look = look_at(case, shown, seed=seed)
    return dict(look.texts), kind.simulate(look, catalogues)
