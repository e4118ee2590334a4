"""Whether evaluations may stand in one table: what must be equal, and exactly what differs where it is not."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Literal, NamedTuple, get_args

import msgspec

from steelyard.core.errors import EvidenceError
from steelyard.core.types import Run
from steelyard.evaluation.evaluations import ASKED
from steelyard.evaluation.summary import EvaluationSummary

Differing = Literal["self_test", "dtype", "max_length", "over_length", "template"]
"""What a person may let differ: it decides scores, but not what was asked of the models."""

_OF_A_FAMILY = ("dtype", "max_length", "over_length")
_OF_A_MODEL = {"template_hash": "template", "special_tokens": "template", "strip": "template"}


class Fact(NamedTuple):
    """Something that must be equal among the runs ``of`` one bench, family or model."""

    name: str
    of: str


_OF_THE_BENCH = (Fact("bench_kind", "bench"), Fact("bench", "bench"))


def facts_of(run: Run[EvaluationSummary]) -> dict[Fact, Any]:
    """What of a run must be equal in the runs of its bench, its family of models, and its model."""
    bench = {f"bench file {number}": one for number, one in enumerate(bench_hashes(run), 1)}
    asked = {key: run.config.get(key) for key in ASKED} | {"number of bench files": len(bench)} | bench
    found = {Fact(key, "bench"): value for key, value in asked.items()}
    found[Fact("self_test", "bench")] = "off" if run.summary.self_test_state == "off" else "on"
    protocol = run.summary.protocol or {}
    family = protocol.get("family") or run.config.get("model_kind")
    found |= {Fact(key, f"family {family}"): protocol[key] for key in _OF_A_FAMILY if key in protocol}
    model = run.summary.model
    return found | {Fact(key, f"model {model}"): protocol[key] for key in _OF_A_MODEL if key in protocol}


def bench_hashes(run: Run) -> list[str]:
    """The hashes of the bench's files, sorted."""
    return sorted(one.sha256 for role, one in run.inputs.items() if role.split(".")[0] == "bench")


def check_alike(
    runs: Mapping[str, Run[EvaluationSummary]], allowed: Sequence[Differing], *, apart: Collection[str] = ()
) -> dict[str, dict[str, list[str]]]:
    """What differs by leave: for each fact its values, and the runs of each. Raises EvidenceError for anything else.

    Of the runs ``apart``, which are listed beside the table and not in it, the bench alone must be the same.
    """
    by_fact: dict[Fact, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for name, run in runs.items():
        own = {fact: value for fact, value in facts_of(run).items() if name not in apart or fact in _OF_THE_BENCH}
        for fact, value in own.items():
            by_fact[fact][msgspec.json.encode(value).decode()].append(name)
    differing = {fact: dict(values) for fact, values in by_fact.items() if len(values) > 1}
    refused = {
        fact: values for fact, values in differing.items() if _OF_A_MODEL.get(fact.name, fact.name) not in allowed
    }
    if not refused:
        return {_titled(fact): values for fact, values in differing.items()}
    told = "; ".join(f"{_titled(fact)}: {_told(values)}" for fact, values in refused.items())
    can_be = [_OF_A_MODEL.get(fact.name, fact.name) for fact in refused]
    named = [name for name in dict.fromkeys(can_be) if name in get_args(Differing)]
    hint = f"; or let it differ by name: --set 'allow_differing={msgspec.json.encode(named).decode()}'" if named else ""
    raise EvidenceError(
        f"these evaluations do not belong into one table: {told}",
        do=f"evaluate them alike, or make a table of each{hint}",
    )


def _titled(fact: Fact) -> str:
    return fact.name if fact.of == "bench" else f"{fact.name} ({fact.of})"


def _told(values: Mapping[str, Sequence[str]]) -> str:
    return ", ".join(f"{_short(value)} in {', '.join(names)}" for value, names in values.items())


def _short(value: str) -> str:
    is_hash = len(value) == 66
    return f"{value[1:13]}…" if is_hash else value
