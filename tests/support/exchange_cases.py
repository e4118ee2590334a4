"""Cases whose tasks went to other annotation tools, and what two people answered there; their exports are recorded.

Every tool's export in ``golden/exchange`` has these answers: the first task is a pair, the others are triples.
Potato's states were written by Potato 2.12.1: its server ran on the exported folders and was answered over HTTP. What a
browser would have reported about time, 41.5 s for each task, was sent to it.
"""

from pathlib import Path

from steelyard.annotation.answers import BucketComparison, TaskAnswer
from steelyard.core.types import Case, Message, Prompt, Response

EXPORTS = Path(__file__).parents[1] / "golden" / "exchange"
ADA = "11111111-1111-4111-8111-111111111111"
BOB = "22222222-2222-4222-8222-222222222222"
TEXT = "I am ChatGPT, made by OpenAI. \N{GRINNING FACE} Answer {place} to {number}.\n\n```py\nprint('<b>')\n```"


def exchanged_cases():
    """Four cases, the first with two responses, whose ids and texts name a model."""
    return [
        Case(
            prompt=Prompt(
                id=f"q{number}",
                messages=(Message(role="user", content=f"Question {number}? 你好"),),
                language="zh" if number % 2 else "en",
                category=("math & logic",),
            ),
            responses=tuple(
                Response(id=f"gpt-{place}-{number}", text=TEXT.format(place=place, number=number), author="gpt")
                for place in range(3 if number else 2)
            ),
        )
        for number in range(4)
    ]


def given_answers(*, has_marks=True):
    """What is stored of the answers, by the letters of a task: by task number, Ada's and Bob's; null for none.

    Bob's last answer gives the highest score to the response that it ranks last.
    """
    marks = ((0, 12, "factual error", None), (TEXT.index("Answer"), TEXT.index("Answer") + 6, "other", None))
    tied = {
        "scores": {"A": 4, "B": 4, "C": 2},
        "comparisons": (BucketComparison(first="A", second="B", choice="same"),),
        "ranking": (("A", "B"), ("C",)),
    }
    marked = TaskAnswer(**tied, spans={"A": marks} if has_marks else {}, remark="纽约 & <b>")
    without_c = TaskAnswer(
        scores={"A": 4, "B": 4}, comparisons=tied["comparisons"], ranking=(("A", "B"),), discarded={"C": "garbled"}
    )
    second = TaskAnswer(ranking=(("B",), ("A",)))
    unable = TaskAnswer(cannot_judge="outside my field", remark="not mine")
    return {1: (second, second), 2: (marked, without_c), 3: (TaskAnswer(**tied), unable), 4: (TaskAnswer(**tied), None)}
