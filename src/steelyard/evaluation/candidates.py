"""The candidates of best-of-N: a prompt's scored responses, their gold values, and the selection among N of them.

Gold values, higher is better: the mean ``ratings`` of one dimension over raters; by ``tiers`` the share of the other
ranked candidates that a response beats, a tie one half, so that prompts are comparable; by ``judgments`` the mean
credit over its judged pairs, 1 for a win and one half for a tie; or the ``scores`` of a larger model or a judge. Where
only some prompts have gold values, scores or ratings of a judge on all of them are a proxy.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, NamedTuple

import numpy as np
from msgspec.structs import replace

from steelyard.core.errors import ConfigError, EvidenceError, listed
from steelyard.core.numerics import Booleans, Floats, Integers, derived_seed
from steelyard.core.remedies import FILE, Advice, Remedy
from steelyard.core.text import response_text
from steelyard.core.types import Case, Kind, Message, Pair, Response, Scores
from steelyard.ranking.judgment_table import distinct_judgments
from steelyard.responses.plan import later_turns
from steelyard.statistics.bootstrap import Blocks, draw_blocks
from steelyard.statistics.groups import Cell, Label, cell_of, prompt_names, units_of
from steelyard.statistics.intervals import UNBOUNDED, Scale

GoldKind = Literal["ratings", "tiers", "judgments", "scores", "none"]
_CREDIT = {"left": 1.0, "tie": 0.5, "right": 0.0}


class GoldChoice(NamedTuple):
    """The gold values that count: their kind, the dimension of ratings, and the kind of raters or judges.

    ``is_share``: the value of a score is the share of the other candidates that it beats, as that of a ranking is.
    """

    kind: GoldKind
    dimension: str | None = None
    by: Kind | None = None
    is_share: bool = False

    def values(self, case: Case, candidates: Sequence[str], scores: Scores | None = None) -> dict[str, float]:
        """Return the gold values of the candidates that have one, by id."""
        if self.kind == "ratings":
            return self._ratings(case, candidates)
        if self.kind == "tiers":
            members = set(candidates)
            return _shares_beaten([[name for name in names if name in members] for names in case.ranking or ()])
        if self.kind == "judgments":
            return self._credits(case, candidates)
        known = {} if scores is None else scores.scores
        values = {name: value for name in candidates if (value := known.get(name)) is not None}
        if not self.is_share:
            return values
        names_of: defaultdict[float, list[str]] = defaultdict(list)
        for name, value in values.items():
            names_of[value].append(name)
        return _shares_beaten([names_of[value] for value in sorted(names_of, reverse=True)])

    def _ratings(self, case: Case, candidates: Sequence[str]) -> dict[str, float]:
        values: defaultdict[str, list[float]] = defaultdict(list)
        for rating in case.ratings:
            if rating.dimension == self.dimension and self.by in (None, rating.kind):
                values[rating.response].append(rating.value)
        return {name: sum(values[name]) / len(values[name]) for name in candidates if name in values}

    def _credits(self, case: Case, candidates: Sequence[str]) -> dict[str, float]:
        won: defaultdict[str, list[float]] = defaultdict(list)
        members = set(candidates)
        for left, right, credit in self._judged(case):
            if left in members and right in members:
                won[left].append(credit)
                won[right].append(1 - credit)
        return {name: sum(won[name]) / len(won[name]) for name in candidates if name in won}

    def _judged(self, case: Case) -> Iterable[tuple[str, str, float]]:
        for judgment in distinct_judgments(case.judgments):
            if judgment.verdict != "none" and self.by in (None, judgment.kind):
                yield judgment.left, judgment.right, _CREDIT[judgment.verdict]

    def wins(self, case: Case, candidates: Sequence[str], baseline: str, scores: Scores | None) -> dict[str, float]:
        """Return the credit of each candidate against the baseline: 1 for a win, one half for a tie.

        By judgments only pairs that were judged have one; otherwise the two gold values are compared.
        """
        if self.kind == "judgments":
            won: defaultdict[str, list[float]] = defaultdict(list)
            for left, right, credit in self._judged(case):
                if baseline in (left, right) and left != right:
                    other, credit_of_other = (right, 1 - credit) if left == baseline else (left, credit)
                    won[other].append(credit_of_other)
            return {name: sum(won[name]) / len(won[name]) for name in candidates if name in won}
        values = self.values(case, (*candidates, baseline), scores)
        if baseline not in values:
            return {}
        level = values.pop(baseline)
        return {name: (value > level) + 0.5 * (value == level) for name, value in values.items()}


def _shares_beaten(tiers: Sequence[Sequence[str]]) -> dict[str, float]:
    """Return the share of the others that each beats, a tie one half; the best tier is the first."""
    below = num_ranked = sum(map(len, tiers))
    values: dict[str, float] = {}
    for names in tiers:
        below -= len(names)
        for name in names:
            values[name] = (below + 0.5 * (len(names) - 1)) / max(1, num_ranked - 1)
    return values if num_ranked > 1 else {}


def choose_gold(
    cases: Iterable[Case], kind: GoldKind | None, dimension: str | None, by: Kind | None, *, has_scores: bool
) -> GoldChoice:
    """Return the gold values that the settings name, by default the first that the cases have.

    Raises EvidenceError where the cases have none of them, and ConfigError where several dimensions, or several kinds
    of raters or judges, leave a choice.
    """
    dimensions: set[str] = set()
    kinds: dict[str, set[Kind]] = {"ratings": set(), "judgments": set()}
    has_ranking = False
    for case in cases:
        has_ranking = has_ranking or case.ranking is not None
        kinds["judgments"].update(judgment.kind for judgment in case.judgments if judgment.verdict != "none")
        for rating in case.ratings:
            dimensions.add(rating.dimension)
            if dimension in (None, rating.dimension):
                kinds["ratings"].add(rating.kind)
    present: dict[GoldKind, bool] = {
        "scores": has_scores,
        "ratings": bool(kinds["ratings"]),
        "tiers": has_ranking,
        "judgments": bool(kinds["judgments"]),
    }
    if kind is None:
        kind = next((name for name, is_present in present.items() if is_present), None)
    if kind is None or not present.get(kind, True):
        problem = "the cases have no gold values" if kind is None else f"the cases have no gold values of kind {kind}"
        others = [name for name, is_present in present.items() if is_present]
        do = Advice(
            "give ", Remedy("gold_scores", FILE), ", or say ", Remedy("gold", "none"), " to select without a curve"
        )
        raise EvidenceError(problem, allowed=listed(others) or None, do=do)
    if kind == "ratings" and dimension is None:
        if len(dimensions) > 1:
            raise ConfigError(
                "ratings of several dimensions",
                allowed=listed(sorted(dimensions)),
                do=Advice("say which: ", Remedy("dimension")),
            )
        (dimension,) = dimensions
    if kind in kinds and by is None and len(kinds[kind]) > 1:
        do = Advice("say ", Remedy("gold_by", "human"), " for those of people")
        raise ConfigError(f"{kind} by several kinds of judges", allowed=listed(sorted(kinds[kind])), do=do)
    if kind in kinds and by is not None and by not in kinds[kind]:
        raise EvidenceError(f"there are no {kind} of kind {by}", allowed=listed(sorted(kinds[kind])))
    only = next(iter(kinds[kind])) if kind in kinds and by is None else by
    return GoldChoice(kind, dimension if kind == "ratings" else None, only if kind in kinds else None)


class ScoredCandidates(NamedTuple):
    """The scored candidates of one case, in its order, and the baseline's response, which is none of them."""

    case: Case
    scores: dict[str, float]
    baseline: Response | None = None
    num_unscored: int = 0

    @property
    def has_next_turn(self) -> bool:
        """True where the prompt has several turns."""
        return bool(later_turns(self.case.prompt))


def candidates_of(case: Case, line: Scores, baseline_author: str | None, baseline: Case | None) -> ScoredCandidates:
    """Return the candidates of a case. Raises EvidenceError for a baseline that is among them, or of two responses.

    The baseline is the response of an author in the case, or the only one of another case with the same prompt, whose
    ratings are added.
    """
    candidates = case.responses
    response = None
    if baseline_author is not None:
        by_author = [each for each in candidates if each.author == baseline_author]
        response = _single(by_author, case, f"the baseline {baseline_author!r}")
        candidates = tuple(each for each in candidates if each.author != baseline_author)
    elif baseline is not None and (response := _single(baseline.responses, case, "the baseline")) is not None:
        text = response_text(response)
        for each in candidates:
            if each.id == response.id or response_text(each) == text:
                problem = f"the baseline of prompt {case.prompt.id!r} is among its candidates: {each.id!r}"
                raise EvidenceError(problem, do="take it out of the cases, or name another baseline")
        case = replace(case, responses=(*candidates, response), ratings=(*case.ratings, *baseline.ratings))
    known = {each.id: line.scores[each.id] for each in candidates}
    scores = {name: score for name, score in known.items() if score is not None}
    return ScoredCandidates(case, scores, response, len(known) - len(scores))


def _single(responses: Sequence[Response], case: Case, of: str) -> Response | None:
    """Return the only response; null without any. Raises EvidenceError for several."""
    if len(responses) > 1:
        problem = f"prompt {case.prompt.id!r} has {len(responses)} responses of {of}"
        raise EvidenceError(problem, allowed="one response of the baseline a prompt")
    return responses[0] if responses else None


class ChosenResponses(NamedTuple):
    """The responses with the highest and the lowest score among the candidates drawn, and the number drawn."""

    best: Response
    worst: Response
    margin: float
    num_drawn: int


def select(candidates: ScoredCandidates, n: int | None, seed: int) -> ChosenResponses | None:
    """Select among ``n`` candidates drawn at random, or among all; null with fewer than ``n``, or without any.

    Draws and ties depend on the seed, the prompt's key and the ids of the responses, not on their order.
    """
    if not candidates.scores or (n is not None and n > len(candidates.scores)):
        return None
    key = candidates.case.prompt.id, candidates.case.prompt.language or ""
    rank = {name: derived_seed(seed, "best of n", *key, name) for name in candidates.scores}
    drawn = sorted(candidates.scores, key=rank.__getitem__)[:n]
    best = max(drawn, key=lambda name: (candidates.scores[name], -rank[name]))
    worst = min(drawn, key=lambda name: (candidates.scores[name], -rank[name]))
    response = {each.id: each for each in candidates.case.responses}
    margin = candidates.scores[best] - candidates.scores[worst]
    return ChosenResponses(response[best], response[worst], margin, len(drawn))


def with_responses_only(case: Case, responses: Sequence[Response]) -> Case:
    """Return the case with these responses, and with the evidence that concerns no other one."""
    names = {response.id for response in responses}
    tiers = (tuple(name for name in tier if name in names) for tier in case.ranking or ())
    ranking = tuple(filter(None, tiers))
    return replace(
        case,
        responses=tuple(responses),
        judgments=tuple(each for each in case.judgments if each.left in names and each.right in names),
        ratings=tuple(each for each in case.ratings if each.response in names),
        ranking=ranking or None,
        pairs=None,
    )


def training_pair(case: Case, selection: ChosenResponses) -> Case:
    """Return the case of the best and the worst response, whose pair has the difference of their scores as margin."""
    pair = Pair(better=selection.best.id, worse=selection.worst.id, weight=1.0, margin=selection.margin)
    return replace(with_responses_only(case, (selection.best, selection.worst)), pairs=(pair,))


def next_turn(case: Case, chosen: Response) -> Case | None:
    """Return the prompt of the next turn: the conversation with the chosen answer and the user's next message.

    Of an answer of several turns the first one is chosen. Null for a prompt without a later turn.
    """
    later = later_turns(case.prompt)
    if not later:
        return None
    answer = (
        chosen.text
        if chosen.messages is None
        else next((message.content for message in chosen.messages if message.role == "assistant"), "")
    )
    messages = (
        *case.prompt.messages,
        Message(role="assistant", content=answer or ""),
        Message(role="user", content=later[0]),
    )
    source = {"prompt": case.prompt.id, "response": chosen.id}
    meta = {**(case.prompt.meta or {}), "turns": list(later), "best_of_n": source}
    number = sum(message.role == "user" for message in messages)
    name = f"{case.prompt.id.removesuffix(f'~turn{number - 1}')}~turn{number}"
    return Case(prompt=replace(case.prompt, id=name, messages=messages, reference=None, meta=meta), responses=())


class CandidateColumns(NamedTuple):
    """The candidates as arrays of shape (response,), and the labels of the prompts they belong to.

    ``gold`` and ``win``, the credit against the baseline, are NaN where there is none; ``proxy`` and ``proxy_win`` are
    the same by the proxy. Without a proxy all have a gold value, with one all have a value of the proxy.
    """

    labels: tuple[Label, ...]
    prompt: Integers
    score: Floats
    gold: Floats
    win: Floats
    proxy: Floats
    proxy_win: Floats

    @property
    def sizes(self) -> Integers:
        """The number of candidates of each prompt; shape (prompt,)."""
        return np.bincount(self.prompt, minlength=len(self.labels))

    @property
    def gold_sizes(self) -> Integers:
        """The number of candidates with a gold value of each prompt; shape (prompt,)."""
        return np.bincount(self.prompt[~np.isnan(self.gold)], minlength=len(self.labels))

    def blocks(self, chosen: Booleans, *, num_resamples: int, seed: int) -> Blocks:
        """Draw resamples of the chosen prompts; shape (prompt,)."""
        labels = [label for label, is_chosen in zip(self.labels, chosen.tolist(), strict=True) if is_chosen]
        return draw_blocks(labels, num_resamples=num_resamples, seed=seed)


class ColumnCollector:
    """Collect the candidates of cases as they come; prompts with fewer than two of them are counted, and left out."""

    def __init__(self, gold: GoldChoice, proxy: GoldChoice | None = None) -> None:
        self._gold, self._proxy = gold, proxy
        self._names: list[tuple[str, ...]] = []
        self._cells: list[Cell] = []
        self._rows: list[tuple[float, ...]] = []
        self.num_without_gold = self.num_without_proxy = self.num_unusable = 0

    def add(self, candidates: ScoredCandidates, line: Scores | None) -> None:
        """Add one case, with the line of the gold scores or of the proxy's."""
        case, names = candidates.case, tuple(candidates.scores)
        baseline = candidates.baseline
        by_choice: list[Mapping[str, float]] = []
        for choice in filter(None, (self._gold, self._proxy)):
            by_choice.append(choice.values(case, names, line))
            by_choice.append({} if baseline is None else choice.wins(case, names, baseline.id, line))
        if self._proxy is None:
            by_choice *= 2
        gold, _, proxy, _ = by_choice
        self.num_without_gold += len(names) - len(gold)
        self.num_without_proxy += len(names) - len(proxy)
        if len(proxy) < 2:
            self.num_unusable += 1
            return
        place = len(self._cells)
        self._rows += [
            (place, candidates.scores[name], *(values.get(name, np.nan) for values in by_choice)) for name in proxy
        ]
        self._names.append(prompt_names(case))
        self._cells.append(cell_of(case))

    def columns(self) -> CandidateColumns:
        """Return the arrays of all cases."""
        labels = tuple(Label(unit, cell) for unit, cell in zip(units_of(self._names), self._cells, strict=True))
        prompt, *values = np.array(self._rows, np.float64).reshape(-1, 6).T
        return CandidateColumns(labels, prompt.astype(np.int64), *values)


def gold_scale(choice: GoldChoice, gold: Floats) -> Scale:
    """Return the bounds of the gold values: of ratings their range.

    Of shares of pairs won there are none: their mean over a prompt's responses is one half by construction, so that
    a random choice has no variance, which the interval of a share would add.
    """
    known = gold[~np.isnan(gold)]
    if choice.kind == "ratings" and np.ptp(known) > 0:
        return Scale(float(known.min()), float(known.max()))
    return UNBOUNDED._replace(unit=float(np.ptp(known)) if known.size else None)
