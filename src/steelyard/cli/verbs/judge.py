"""The verb `judge` on the command line."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from steelyard.judging.asking import JudgingSummary


def command(
    cases: Annotated[Path, typer.Argument(help="The case file.")],
    *,
    out: Annotated[Path, typer.Option(help="The folder for cases.jsonl, replies.sqlite and run.json.")],
    chat: Annotated[str | None, typer.Option(help="Who is asked: a kind, see `steelyard list chats`.")] = None,
    style: Annotated[str | None, typer.Option(help="How its family is asked: plain, gpt, qwen, gemma …")] = None,
    compare: Annotated[str | None, typer.Option(help="pairs, triples, best or ratings.")] = None,
    setting: Annotated[
        list[str] | None,
        typer.Option("--set", help="chat.KEY=VALUE, judge.KEY=VALUE, write=replies, price=[2.5,10] …; repeat."),
    ] = None,
    config_file: Annotated[Path | None, typer.Option("--config", help="Settings as TOML, for panels.")] = None,
    allow_failed: Annotated[
        bool, typer.Option("--allow-failed", help="Finish although requests failed: no verdict, reason failed.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace what another run left in --out.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the whole record of the run as JSON.")] = False,
) -> None:
    """Let a language model compare the responses of a case file.

    Every pair is asked in both orders: verdicts that disagree are a tie. Replies are kept as they come; a run that was
    stopped goes on where it was, and nothing is asked twice. OUT/cases.jsonl has the verdicts beside what was there.

    Example: `steelyard judge cases.jsonl --chat openai_compatible --style qwen --out judged
    --set chat.base_url=http://localhost:8000/v1 --set chat.model=Qwen2.5-7B-Instruct`

    A paid server: `--set chat.secret=OPENAI_API_KEY`, the NAME of the variable that holds the key.

    A panel is a TOML file with a [[members]] table for each judge: `--config panel.toml`
    """
    from steelyard.cli.shown import show
    from steelyard.core.config import parse_settings, resolve_config
    from steelyard.io.settings import read_toml
    from steelyard.stages.judge import Config, judge

    settings: dict[str, Any] = {}
    if config_file is not None:
        settings = read_toml(config_file)
    for key, value in parse_settings(setting or ()).items():
        both = isinstance(value, dict) and isinstance(settings.get(key), dict)
        settings[key] = settings[key] | value if both else value
    for key, inner, value in (("chat", "kind", chat), ("judge", "style", style)):
        if value is not None:
            settings[key] = {**settings.get(key, {}), inner: value}
    if compare is not None:
        settings["compare"] = compare
    config = resolve_config(Config, settings, where="judge")
    run = judge(cases, out, config, allow_failed=allow_failed, force=force)
    show(run, [*_lines(run.summary), f"{out / 'cases.jsonl'}"], as_json=as_json)


def _lines(summary: "JudgingSummary") -> Iterator[str]:
    """The verdicts of every judge, and the tokens used."""
    from steelyard.cli.judged import judge_lines

    yield from judge_lines(summary.judges)
    for name, used in summary.tokens.items():
        cost = "" if used.cost is None else f", cost {used.cost:.2f}"
        odd = f", impossible numbers in {used.odd_usage:,} replies left out" if used.odd_usage else ""
        yield f"{name}: {used.prompt:,} tokens asked, {used.reply:,} answered{cost}{odd}"
        for model, number in used.other_models.items():
            yield f"{name}: {number:,} of {used.num_replies:,} replies came under the name {model!r}"
