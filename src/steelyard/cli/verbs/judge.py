"""Let a language model compare the responses of a case file.

Every pair is shown in both orders; verdicts that disagree are a tie. Replies are stored as they come: an interrupted
run resumes, and sends no request twice. OUT/cases.jsonl has the cases with the verdicts added.

Example: `steelyard judge cases.jsonl --chat openai_compatible --style qwen --out judged
--set chat.base_url=http://localhost:8000/v1 --set chat.model=Qwen2.5-7B-Instruct`

A paid server: `--set chat.secret=OPENAI_API_KEY`, the NAME of the variable that holds the key.

A panel is a TOML file with a [[members]] table for each judge: `--config panel.toml`
"""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from steelyard.cli.output import judge_lines
from steelyard.cli.stage_verb import CASES, SettingOption, StageOption, StageVerb
from steelyard.core.types import Run

if TYPE_CHECKING:
    from steelyard.judging.asking import JudgingSummary


def lines(run: "Run[JudgingSummary]", out: Path) -> Iterator[str]:
    """Yield the verdicts of every judge, and the tokens that it used."""
    yield from judge_lines(run.summary.judges)
    for name, used in run.summary.tokens.items():
        cost = "" if used.cost is None else f", cost {used.cost:.2f}"
        odd = f", impossible numbers in {used.odd_usage:,} replies left out" if used.odd_usage else ""
        yield f"{name}: {used.prompt:,} tokens asked, {used.reply:,} answered{cost}{odd}"
        for model, number in used.other_models.items():
            yield f"{name}: {number:,} of {used.num_replies:,} replies came under the name {model!r}"
    yield str(out / "cases.jsonl")


command = StageVerb(
    "judge",
    (
        CASES,
        StageOption("out", "The folder for cases.jsonl, replies.sqlite and run.json."),
        SettingOption("chat.kind", "--chat", help="The chat that answers: a kind, see `steelyard list chats`."),
        SettingOption("judge.style", config=("steelyard.plugins.judges.tasks", "PairwiseConfig")),
        SettingOption("compare"),
        StageOption("allow_failed", "Finish although requests failed: no verdict, reason failed."),
    ),
    lines,
)
