"""Requests to language models to write new prompts from others: the second source of prompts (CHEEMS, appendix A).

Each prompt is rewritten in some of the named ways, drawn by the seed and the prompt's key. The requests are those of
``data/prompt_rewriting.toml``, in Chinese for Chinese prompts and in English for all others.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import NamedTuple

import msgspec

from steelyard.core.config import Config, Positive
from steelyard.core.errors import ConfigError, choices, repeated
from steelyard.core.languages import language_part
from steelyard.core.numerics import derived_seed
from steelyard.core.types import Case, Message, Prompt, Record
from steelyard.prompts.taxonomy import read_data

_SHORTEST_MARK = 5
_MARK = "="


class RewritePlan(Config, frozen=True):
    """Settings for models of a plan that write new prompts from those of the case file, instead of answering them."""

    ways: tuple[str, ...] = ()
    """The ways: rephrase, constrain, deepen, situate, vary. Default: all."""
    ways_per_prompt: Positive = 1
    """The number of ways for a prompt, drawn by the seed. Each model of a prompt writes one for each way."""
    near_duplicates: float = 0.8
    """The similarity from which a new prompt is a near-duplicate of a prompt of the file, or of an earlier new one."""
    overlap: float = 0.8
    """The similarity from which its first turn overlaps with that of a benchmark prompt."""
    against: tuple[str, ...] = ()
    """Files of benchmarks whose prompts no new prompt may overlap with."""

    def check(self, where: str) -> None:
        """Raise ConfigError for an unknown way, more ways than there are, or a similarity out of range."""
        known = _wording("en").ways
        if unknown := [way for way in self.ways if way not in known]:
            problem = f"there is no way {unknown[0]!r} to rewrite a prompt"
            raise ConfigError(problem, where=where, allowed=choices(unknown[0], known))
        if len({*self.ways}) < len(self.ways):
            raise ConfigError(f"the way {repeated(self.ways)!r} is listed twice", where=where)
        number = len(self.ways or known)
        if self.ways_per_prompt > number:
            problem = f"ways_per_prompt is {self.ways_per_prompt}, and there are {number} ways"
            raise ConfigError(problem, where=where, allowed=f"1 to {number}")
        for name, value in (("near_duplicates", self.near_duplicates), ("overlap", self.overlap)):
            if not 0 < value <= 1:
                raise ConfigError(f"{name} is {value}", where=where, allowed="above 0 and at most 1")


class RewriteWording(Record, frozen=True, kw_only=True):
    """The request of one language: its frame, the earlier turns in it, and the sentence of each way."""

    frame: str
    context: str
    ways: dict[str, str]


class RewriteTask(NamedTuple):
    """A prompt to rewrite in one way: its case, and the request as a case of its own, which models answer."""

    way: str
    parent: Case
    request: Case


@cache
def _wording(language: str) -> RewriteWording:
    return msgspec.convert(read_data("prompt_rewriting.toml")[language], RewriteWording)


def rewrite_requests(cases: Iterable[Case], plan: RewritePlan, *, seed: int) -> Iterator[RewriteTask]:
    """Yield the requests of each case in the order of its ways. Each case ends with a turn of the user."""
    for case in cases:
        prompt = case.prompt
        ways = plan.ways or tuple(_wording("en").ways)
        rank = {way: derived_seed(seed, "rewritten", prompt.id, prompt.language or "", way) for way in ways}
        drawn = {*sorted(ways, key=rank.__getitem__)[: plan.ways_per_prompt]}
        for way in (way for way in ways if way in drawn):
            message = Message(role="user", content=_request_text(prompt, way))
            # Models are drawn and seeded by the key: each way has its own.
            request = Prompt(
                id=f"{prompt.id} {way}", messages=(message,), language=prompt.language, category=prompt.category
            )
            yield RewriteTask(way, case, Case(prompt=request, responses=()))


def _request_text(prompt: Prompt, way: str) -> str:
    wording = _wording("zh" if language_part(prompt.language) == "zh" else "en")
    *earlier, last = prompt.messages
    before = "\n\n".join(f"{turn.role}: {turn.content}" for turn in earlier)
    longest = max((len(run) for run in re.findall(f"{_MARK}+", f"{before}\n{last.content}")), default=0)
    mark = _MARK * max(_SHORTEST_MARK, longest + 1)
    context = wording.context.format(mark=mark, text=before) if before else ""
    values: Mapping[str, str] = {"way": wording.ways[way], "context": context, "text": last.content, "mark": mark}
    return wording.frame.format_map(values).strip()
