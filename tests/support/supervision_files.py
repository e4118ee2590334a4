"""Case files for supervision: people's and an LLM's judgments on the same pairs, with a known supervisor."""

import json

import numpy as np

from steelyard.core.types import Case, Response
from steelyard.io.cases import write_cases
from strategies import judgment, prompt

SIGN = {True: ">", False: "<"}


def judged(name, *, llm=("a>b",), human=(), texts=("aaaa", "bb", "c"), language="zh"):
    """Return a case whose responses have these lengths, their scores by the model `longer`; samples of the LLM vote."""
    return Case(
        prompt=prompt(name, f"问题 {name}?", language=language),
        responses=tuple(Response(id=letter, text=text) for letter, text in zip("abc", texts, strict=False)),
        judgments=(
            *(judgment(short, judge=f"person {place}") for place, short in enumerate(human)),
            *(judgment(short, judge="gpt", kind="llm", id=str(place)) for place, short in enumerate(llm)),
        ),
    )


def write(path, cases):
    write_cases(path, cases)
    return path


def read_lines(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def noisy(number, *, seed=0, name="h", language="zh"):
    """Return one pair per prompt: in 60 of 100 an answer is 20 longer and better, in 40 it is 2 longer by chance.

    The LLM's verdict is right in 95 of 100 of the former and in half of the latter.
    """
    random = np.random.default_rng(seed)
    found = []
    for index in range(number):
        is_clear = bool(random.random() < 0.6)
        a_is_better = True if is_clear else bool(random.random() < 0.5)
        is_right = bool(random.random() < (0.95 if is_clear else 0.5))
        texts = ("好" * (24 if is_clear else 6), "坏" * 4)
        found.append(
            judged(
                f"{name}{index}",
                llm=(f"a{SIGN[a_is_better == is_right]}b",),
                human=(f"a{SIGN[a_is_better]}b",),
                texts=texts,
                language=language,
            )
        )
    return found
