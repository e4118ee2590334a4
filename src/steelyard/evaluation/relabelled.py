"""Labels that better judges, experts or an adjudication, made again for a random part of a bench."""

import unicodedata
from collections.abc import Collection, Iterable, Sequence
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

import numpy as np

from steelyard.core.errors import EvidenceError, Place
from steelyard.core.numerics import Booleans, Floats, Integers, generator
from steelyard.core.remedies import Advice, Command, Remedy
from steelyard.core.text import conversation_form, number_of
from steelyard.core.types import Case, InputFinding, Message, Response
from steelyard.evaluation.bench_pairs import PairValues
from steelyard.evaluation.columns import BenchColumns
from steelyard.io.cases import read_placed_cases
from steelyard.io.hashing import file_hash
from steelyard.ranking.pairs import PairChoice, pairs_of
from steelyard.statistics.unique_rows import find_codes

_LEVEL = 0.001
"""The level of each test of whether the relabelled prompts are a random sample."""
_FEWEST = 20
"""Relabelled prompts, and other ones, below which no test is made."""
_NUM_DRAWS = 9_999
_UNSEEN = {"Cc", "Cf", "Zs", "Zl", "Zp"}
"""Categories of characters that an id shows as a blank or not at all."""


class RelabelledPairs(NamedTuple):
    """Pairs that better judges looked at, shape (pair,): the position of the case, and of two responses in it.

    ``better`` is the better one where ``is_decided``. ``num_prompts``: the prompts that they looked at;
    ``num_equal`` of them have the rankings, pairs and judgments of the bench.
    """

    case: Integers
    better: Integers
    worse: Integers
    is_decided: Booleans
    num_prompts: int
    num_equal: int


class LabelsOfBench(NamedTuple):
    """Labels by better judges of the pairs of a bench; the arrays have shape (pair,).

    ``num_undecided`` pairs of the bench they left undecided; ``num_unlabelled`` pairs they decided, and the bench does
    not label.
    """

    is_checked: Booleans
    is_wrong: Booleans
    num_undecided: int
    num_unlabelled: int


def read_relabelled(
    path: Path,
    files: Sequence[Path],
    bench: Iterable[Case],
    choice: PairChoice | None,
    kept_prompts: Collection[str] | None = None,
) -> RelabelledPairs:
    """Read the labels of better judges, and find their cases and responses in the bench by id.

    ``files`` are those of the bench, ``choice`` selects its pairs. Of ``kept_prompts`` only, where not all count.
    Raises EvidenceError for a prompt or response that the bench does not have, or has with another text, if no pair of
    it was decided, and for a file of the bench itself.
    """
    is_copy = any(file.stat().st_size == path.stat().st_size and file_hash(file) == file_hash(path) for file in files)
    again = {
        case.key: (place, case)
        for place, case in read_placed_cases(path)
        if kept_prompts is None or case.prompt.id in kept_prompts
    }
    rows: list[tuple[int, int, int, bool]] = []
    missing = dict(again)
    keys: list[tuple[str, str | None]] = []
    num_decided = num_labelled = num_absent = num_equal = num_looked_at = 0
    has_judgments = False
    for position, case in enumerate(bench):
        keys.append(case.key)
        if case.key not in missing:
            num_absent += kept_prompts is None or case.prompt.id in kept_prompts
            continue
        place, other = missing.pop(case.key)
        position_of = _positions(case, other, place)
        names = [response.id for response in other.responses]
        decided = {(position_of[names[pair.better]], position_of[names[pair.worse]]) for pair in pairs_of(other)}
        # A pair that is listed in both directions is not decided.
        decided -= {(worse, better) for better, worse in decided}
        rows += [(position, *pair, True) for pair in sorted(decided)]
        taken = {frozenset(pair) for pair in decided}
        seen = {frozenset((position_of[left], position_of[right])) for left, right in _looked_at(other)}
        rows += [(position, min(pair), max(pair), False) for pair in sorted(seen - taken, key=sorted)]
        if decided or seen:
            is_equal = (case.ranking, case.pairs, case.judgments) == (other.ranking, other.pairs, other.judgments)
            num_looked_at, num_equal = num_looked_at + 1, num_equal + is_equal
            has_judgments |= bool(other.judgments)
        num_decided += len(decided)
        num_labelled += len(taken & {frozenset(pair[:2]) for pair in pairs_of(case, choice)})
    if missing:
        raise _not_in_bench(missing, len(again), keys)
    # Experts may agree with all labels of a part, but the judgments of the bench are its own.
    if is_copy or (num_equal and num_equal == num_looked_at and (has_judgments or not num_absent)):
        part = "a part of the bench" if num_absent else "the bench itself"
        problem = f"the relabelled cases are {part}, and contradict none of its labels"
        if has_judgments:
            problem += ": rankings, judgments and judges are the same"
        raise EvidenceError(problem, where=str(path), do="name the cases that better judges labelled again")
    if not num_decided:
        raise EvidenceError(
            f"none of {number_of(len(again), 'relabelled prompt')} has a pair that the better judges decided",
            where=str(path),
            allowed="cases with a ranking of at least two tiers, or with pairs",
            do=Advice("make rankings from judgments: ", Command("resolve", (str(path),), (Remedy("out", "resolved"),)))
            if any(case.judgments for _, case in again.values())
            else "let better judges order two responses of a prompt",
        )
    if not num_labelled:
        raise EvidenceError(
            f"the bench labels none of {number_of(num_decided, 'pair')} that the better judges decided",
            where=str(path),
            do="let them label pairs that the bench has a label of, too",
        )
    table = np.array(rows, np.int64)
    return RelabelledPairs(table[:, 0], table[:, 1], table[:, 2], table[:, 3] > 0, num_looked_at, num_equal)


def _not_in_bench(
    missing: dict[tuple[str, str | None], tuple[Place, Case]], total: int, keys: Sequence[tuple[str, str | None]]
) -> EvidenceError:
    """Return the error for prompts that the bench does not have among the ``keys`` of its cases.

    The prompt that is named is one that the bench has under another spelling or language, if there is one.
    """
    spelled = {_skeleton(key[0]): key for key in reversed(keys)}
    entries = [(place, case, spelled.get(_skeleton(case.prompt.id))) for place, case in missing.values()]
    place, case, known = next((entry for entry in entries if entry[2] is not None), entries[0])
    return EvidenceError(
        f"{len(missing)} of {number_of(total, 'relabelled prompt')} are not in the bench, "
        f"{'the first' if place == entries[0][0] else 'one of them'}: {_in_words(case.key)}",
        where=place,
        allowed=None if known is None else f"the bench has {_in_words(known)}",
        do="relabel prompts of this bench under their own ids and languages",
    )


def _in_words(key: tuple[str, str | None]) -> str:
    return f"prompt {key[0]!r}, {'without a language' if key[1] is None else f'language {key[1]!r}'}"


def _skeleton(name: str) -> str:
    """Return an id without what is changed by mistake, such as leading zeros, or digits of another script."""
    visible = (each for each in unicodedata.normalize("NFKC", name) if unicodedata.category(each) not in _UNSEEN)
    return "".join(str(unicodedata.digit(each, each)) for each in visible).casefold().lstrip("0")


def _positions(case: Case, other: Case, place: Place) -> dict[str, int]:
    """Return the position in the bench's case of each relabelled response. Raises EvidenceError for other texts."""
    name = f"prompt {case.prompt.id!r}"
    if conversation_form(case.prompt.messages) != conversation_form(other.prompt.messages):
        raise EvidenceError(
            f"{name} has another text than in the bench", where=place, do="relabel the prompts of this bench"
        )
    position_of: dict[str, int] = {}
    by_id = {response.id: at for at, response in enumerate(case.responses)}
    for response in other.responses:
        position = by_id.get(response.id)
        if position is None or _text_of(response) != _text_of(case.responses[position]):
            problem = "is not in the bench" if position is None else "has another text than in the bench"
            raise EvidenceError(
                f"response {response.id!r} of {name} {problem}",
                where=place,
                allowed=", ".join(by_id),
                do="relabel the responses of this bench under their own ids",
            )
        position_of[response.id] = position
    return position_of


def _text_of(response: Response) -> str:
    turns = response.messages or (Message(role="assistant", content=response.text or ""),)
    return conversation_form(turns)


def _looked_at(case: Case) -> Iterable[tuple[str, str]]:
    """Yield the pairs that may be left undecided: those that were judged, of one tier, or listed; else all of them."""
    if case.judgments:
        return [(each.left, each.right) for each in case.judgments if each.left != each.right]
    if case.pairs is not None:
        return [(pair.better, pair.worse) for pair in case.pairs]
    if case.ranking is not None:
        return [pair for tier in case.ranking for pair in combinations(tier, 2)]
    return combinations([response.id for response in case.responses], 2)


def labels_of_bench(columns: BenchColumns, again: RelabelledPairs) -> LabelsOfBench:
    """Compare the labels of a bench with those of better judges."""
    first, second = (side - columns.start[columns.prompt] for side in (columns.better, columns.worse))
    width = int(max(part.max(initial=0) for part in (first, second, again.better, again.worse))) + 1

    def key(case: Integers, left: Integers, right: Integers) -> Integers:
        return (case * width + np.minimum(left, right)) * width + np.maximum(left, right)

    codes = key(again.case, again.better, again.worse)
    order = np.argsort(codes)
    wanted = key(columns.prompt, first, second)
    place, is_looked_at = find_codes(codes[order], wanted)
    row = order[place]
    is_checked = is_looked_at & again.is_decided[row]
    return LabelsOfBench(
        is_checked,
        is_checked & (again.better[row] != first),
        int((is_looked_at & ~is_checked).sum()),
        int((again.is_decided & ~np.isin(codes, wanted)).sum()),
    )


def sample_findings(columns: BenchColumns, values: PairValues, again: RelabelledPairs) -> tuple[InputFinding, ...]:
    """Return in what the relabelled prompts differ from the others, where a random sample hardly would.

    These are the mix of categories, that of languages, and within categories the model's share of right pairs. Each
    is compared with that of random samples of the prompts. Labels that all equal those of the bench are a finding, too:
    a part of the bench has them.
    """
    findings: list[InputFinding] = []
    if again.num_equal == again.num_prompts >= _FEWEST:
        findings.append(InputFinding(check="relabelled_equal", count=again.num_equal, total=again.num_prompts))
    prompts = np.flatnonzero(columns.included)
    is_again = np.isin(prompts, again.case)
    number = int(is_again.sum())
    if min(number, len(prompts) - number) < _FEWEST:
        return tuple(findings)
    cells = [columns.cells[at] for at in prompts.tolist()]
    categories = [cell.category or "" for cell in cells]
    for check, names in (
        ("relabelled_categories", categories),
        ("relabelled_languages", [cell.language or "" for cell in cells]),
    ):
        groups, group = np.unique(names, return_inverse=True)
        sizes = np.bincount(group)
        chosen = np.bincount(group[is_again], minlength=len(groups))
        drawn = generator(0, check).multivariate_hypergeometric(sizes, number, _NUM_DRAWS, method="marginals")
        expected = sizes * (number / len(prompts))
        distance, distances = (((counts - expected) ** 2 / sizes).sum(axis=-1) for counts in (chosen, drawn))
        p_value = (1 + (distances >= distance - 1e-9).sum()) / (1 + _NUM_DRAWS)
        if p_value < _LEVEL:
            most = int(np.abs(chosen - expected).argmax())
            shares = chosen[most] / number, (sizes - chosen)[most] / (len(prompts) - number)
            details = {"group": str(groups[most]) or "\N{EN DASH}"} | _shares(*shares)
            findings.append(InputFinding(check=check, count=number, total=len(prompts), details=details))
    pairs = np.bincount(columns.prompt, minlength=len(columns.start))[prompts]
    right = np.bincount(columns.prompt[values.better > values.worse], minlength=len(columns.start))[prompts]
    share = right / np.maximum(pairs, 1)
    if _p_of_difference(share, is_again, np.unique(categories, return_inverse=True)[1]) < _LEVEL:
        details = _shares(
            right[is_again].sum() / pairs[is_again].sum(), right[~is_again].sum() / pairs[~is_again].sum()
        )
        check = "relabelled_accuracy"
        findings.append(InputFinding(check=check, count=number, total=len(prompts), details=details))
    return tuple(findings)


def _shares(again: float, rest: float) -> dict[str, str]:
    return {"again": f"{again:.1%}", "rest": f"{rest:.1%}"}


def _p_of_difference(values: Floats, is_chosen: Booleans, group: Integers) -> float:
    """Return the two-sided p-value of the sum over the chosen, if they were a random sample of each group."""
    random = generator(0, "relabelled accuracy")
    excess, drawn = 0.0, np.zeros(_NUM_DRAWS)
    for at in range(int(group.max()) + 1):
        is_in = group == at
        levels, level = np.unique(values[is_in].round(3), return_inverse=True)
        sizes, number = np.bincount(level), int(is_chosen[is_in].sum())
        expected = number * float(levels @ sizes) / len(level)
        excess += float(levels[level][is_chosen[is_in]].sum()) - expected
        drawn += random.multivariate_hypergeometric(sizes, number, _NUM_DRAWS, method="marginals") @ levels - expected
    return (1 + int((np.abs(drawn) >= abs(excess) - 1e-9).sum())) / (1 + _NUM_DRAWS)
