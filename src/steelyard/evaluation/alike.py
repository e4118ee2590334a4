"""Protocols of evaluations in one table: the facts that must be equal, and the differences where they are not."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Literal, NamedTuple, get_args

import msgspec

from steelyard.core.errors import EvidenceError
from steelyard.core.types import Run
from steelyard.evaluation.evaluations import ASKED
from steelyard.evaluation.summary import EvaluationSummary

Differing = Literal["self_test", "dtype", "max_length", "over_length", "template"]
"""Settings that a person may let differ: they affect scores, but not the questions."""

_OF_A_FAMILY = ("dtype", "max_length", "over_length")
_OF_A_MODEL = {"template_hash": "template", "special_tokens": "template", "strip": "template"}


class Fact(NamedTuple):
    """A setting that must be equal among the runs ``of`` one benchmark, family or model."""

    name: str
    of: str


_OF_THE_BENCH = (Fact("bench_kind", "bench"), Fact("bench", "bench"))


def facts_of(run: Run[EvaluationSummary]) -> dict[Fact, Any]:
    """Return the facts that must be equal among the runs of a benchmark, a family of models, or a model."""
    bench = {f"bench file {number}": sha256 for number, sha256 in enumerate(bench_hashes(run), 1)}
    settings = {key: run.config.get(key) for key in ASKED} | {"number of bench files": len(bench)} | bench
    facts = {Fact(key, "bench"): value for key, value in settings.items()}
    facts[Fact("self_test", "bench")] = "off" if run.summary.self_test_state == "off" else "on"
    protocol = run.summary.protocol or {}
    family = protocol.get("family") or run.config.get("model_kind")
    facts |= {Fact(key, f"family {family}"): protocol[key] for key in _OF_A_FAMILY if key in protocol}
    model = run.summary.model
    return facts | {Fact(key, f"model {model}"): protocol[key] for key in _OF_A_MODEL if key in protocol}


def bench_hashes(run: Run) -> list[str]:
    """Return the hashes of the benchmark's files, sorted."""
    return sorted(file.sha256 for role, file in run.inputs.items() if role.split(".")[0] == "bench")


def check_alike(
    runs: Mapping[str, Run[EvaluationSummary]], allowed: Sequence[Differing], *, apart: Collection[str] = ()
) -> dict[str, dict[str, list[str]]]:
    """Return the facts that differ with permission: their values, and the runs with each.

    Of the runs ``apart``, which the table lists separately, only the benchmark must be the same. Raises EvidenceError
    for any other difference.
    """
    by_fact: dict[Fact, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for name, run in runs.items():
        for fact, value in facts_of(run).items():
            if name in apart and fact not in _OF_THE_BENCH:
                continue
            by_fact[fact][msgspec.json.encode(value).decode()].append(name)
    differing = {fact: dict(values) for fact, values in by_fact.items() if len(values) > 1}
    refused = {
        fact: values for fact, values in differing.items() if _OF_A_MODEL.get(fact.name, fact.name) not in allowed
    }
    if not refused:
        return {_titled(fact): values for fact, values in differing.items()}
    differences = "; ".join(f"{_titled(fact)}: {_listed(values)}" for fact, values in refused.items())
    can_be = [_OF_A_MODEL.get(fact.name, fact.name) for fact in refused]
    names = [name for name in dict.fromkeys(can_be) if name in get_args(Differing)]
    hint = f"; or let it differ by name: --set 'allow_differing={msgspec.json.encode(names).decode()}'" if names else ""
    raise EvidenceError(
        f"these evaluations do not belong into one table: {differences}",
        do=f"evaluate them alike, or make a table of each{hint}",
    )


def _titled(fact: Fact) -> str:
    return fact.name if fact.of == "bench" else f"{fact.name} ({fact.of})"


def _listed(values: Mapping[str, Sequence[str]]) -> str:
    return ", ".join(f"{_short(value)} in {', '.join(names)}" for value, names in values.items())


def _short(value: str) -> str:
    is_hash = len(value) == 66
    return f"{value[1:13]}…" if is_hash else value
