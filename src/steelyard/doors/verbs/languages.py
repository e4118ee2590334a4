"""The verb `languages` on the command line."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer


def command(
    evaluated: Annotated[Path, typer.Argument(help="The --out folder of an evaluation of parallel items.")],
    *,
    out: Annotated[Path, typer.Option(help="The folder for the result, run.json.")],
    setting: Annotated[
        list[str] | None, typer.Option("--set", help="KEY=VALUE: english=CODE (what to compare with), seed=1; repeat.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace what another run left in --out.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the whole record of the run as JSON.")] = False,
) -> None:
    """Break one evaluation down by language: the drop from English, agreement with it, families, scripts, resources.

    Kappa says how far the model prefers the same answers in a language as in English. Translations of one item are
    drawn together for the intervals.

    Example: `steelyard languages evaluated --out languages`
    """
    from steelyard.core.config import parse_settings, resolve_config
    from steelyard.doors.shown import show
    from steelyard.stages.languages import Config, languages

    config = resolve_config(Config, parse_settings(setting or ()), where="languages")
    run = languages(evaluated, out, config, force=force)
    show(run, _lines(run.summary), as_json=as_json)


def _lines(summary: dict[str, Any]) -> Iterator[str]:
    yield f"{summary['model']} on {summary['bench']} by language (95 % intervals, clustered by item)"
    yield f"{'':12} {'accuracy':24} {'drop from ' + summary['english']:26} kappa with {summary['english']}"
    rows = sorted(summary["languages"].items(), key=lambda pair: -(pair[1]["accuracy"]["value"] or 0.0))
    for name, own in rows:
        beside = f" {_number(own['drop'], '+'):26} {_number(own['kappa'])}" if "drop" in own else ""
        yield f"{name:12} {_number(own['accuracy']):24}{beside}".rstrip()
    yield f"mean without {summary['english']}: {_number(summary['mean'])}"
    if "standard_deviation" in summary:
        yield f"standard deviation over languages: {_number(summary['standard_deviation'])}"
    if summary["kappa"] is not None:
        yield f"mean kappa: {_number(summary['kappa'])}"
    for field, groups in summary["kin"].items():
        for name, own in groups.items():
            yield f"  {field.replace('_', ' ')} {name}: {_number(own['mean'])}  {', '.join(own['languages'])}"


def _number(estimate: dict[str, Any], sign: str = "") -> str:
    if estimate["value"] is None:
        return "none"
    if estimate["low"] is None:
        return f"{estimate['value']:{sign}.3f}"
    return f"{estimate['value']:{sign}.3f} [{estimate['low']:{sign}.3f}, {estimate['high']:{sign}.3f}]"
