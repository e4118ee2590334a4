"""The stage `annotated` of a recipe: the final answers of a project, as cases with judgments and ratings.

Its input is the export, not the database, which changes with every click: the hash of the export is in the record. A
decision that people reopen changes that hash, so that the recipe says that the stage differs.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

from steelyard.annotation.people_runs import DROPPED, AnnotatedSummary, refusals_of, reviewed_prompt
from steelyard.core.config import Config as BaseConfig
from steelyard.core.errors import ConfigError, EvidenceError, WaitingError
from steelyard.core.remedies import Advice, Command, Remedy, joined
from steelyard.core.text import number_of
from steelyard.core.types import Case, Counts, Input, Rating, Run
from steelyard.io.atomic import write_text
from steelyard.io.cases import read_cases, write_cases
from steelyard.io.kept import KeptPrompts, read_kept, write_kept
from steelyard.io.lines import check_readable
from steelyard.io.run_folder import RUN_FILE, Result, run_stage
from steelyard.workbench.pipeline.case_export import Evidence
from steelyard.workbench.pipeline.projects import ENDED
from steelyard.workbench.stages._project_export import ProjectExport, exported_project

_KEPT_FILE = "kept.json"


class Config(BaseConfig, frozen=True):
    """Settings of the export of people's answers to a recipe."""

    evidence: Evidence = "aligned"
    """The answers that stand after alignment and review, or the first answers of both people, too."""
    least_quality: float = 50.0
    """The points, of 100, below which people refuse a translation: its prompt leaves the prompts that stay."""

    def __post_init__(self) -> None:
        if not 0 <= self.least_quality <= 100:
            raise ConfigError(f"{self.least_quality} points", where="least_quality", allowed="0 to 100")


_DEFAULT = Config()


def annotated(
    project: Path, out: Path, config: Config = _DEFAULT, *, kept_prompts: Path | None = None, force: bool = False
) -> Run[AnnotatedSummary]:
    """Export the final answers of a project, which `annotate` names in its ``project.json``.

    Writes ``cases.jsonl``, and into ``paper`` how people annotated. With ``kept_prompts``, the prompts that stay, it
    writes ``kept.json`` without those that people refuse: dropped prompts, items that do not suit their language,
    translations below ``least_quality``. Raises WaitingError while an item is unfinished, EvidenceError where nothing
    is left, FileError for a database that is absent or of a newer version.
    """
    check_readable(project)
    prompts = None if kept_prompts is None else read_kept(kept_prompts)
    is_finished = not force and (out / RUN_FILE).is_file()
    with exported_project(project, config.evidence, has_pages=not is_finished) as export:
        source = Input(path=f"{export.where} {export.project}", sha256=export.sha256)
        inputs = {"project": project, "export": source}

        def write(result: Result) -> None:
            _write(result, export, config, prompts)

        return run_stage(
            out,
            "annotated",
            Run[AnnotatedSummary],
            write,
            config=config,
            inputs=inputs if kept_prompts is None else {**inputs, "kept_prompts": kept_prompts},
            force=force,
        )


def live_hashes(inputs: Mapping[str, Path], config: Config) -> dict[str, str]:
    """Return the hash that the export has now, by which a recipe tells whether people changed a decision."""
    with exported_project(inputs["project"], config.evidence, has_pages=False) as export:
        return {"export": export.sha256}


def _write(result: Result, export: ProjectExport, config: Config, prompts: KeptPrompts | None) -> None:
    if set(export.states) - ENDED:
        # The address of a server is in an environment variable.
        changes = (Remedy("database", export.where),) if export.where.startswith("sqlite") else ()
        raise WaitingError(
            Advice("items of the project are unfinished: ", joined("; ", export.waiting)),
            where=export.where,
            do=Advice("serve it: ", Command("workbench serve", (), changes), ", and run the same command again"),
            num_waiting=sum(number for state, number in export.states.items() if state not in ENDED),
        )
    if not export.file.stat().st_size:
        raise EvidenceError("people dropped every prompt: nothing is left", where=export.project)
    totals: Counter[str] = Counter()
    people: set[str] = set()
    refused: defaultdict[str, list[str]] = defaultdict(list)

    def watched() -> Iterator[Case]:
        for case in read_cases(export.file):
            totals.update(cases=1, judgments=len(case.judgments), ratings=len(case.ratings))
            for evidence in (*case.judgments, *case.ratings):
                if evidence.kind == "human":
                    name = evidence.rater if isinstance(evidence, Rating) else evidence.judge
                    people.update((evidence.meta or {}).get("people") or [name])
            for reason in refusals_of(case, least_quality=config.least_quality):
                refused[reviewed_prompt(case)].append(reason)
            yield case

    write_cases(result.path("cases.jsonl"), watched())
    for prompt in export.dropped:
        refused[prompt].append(DROPPED)
    reasons = {prompt: tuple(dict.fromkeys(each)) for prompt, each in refused.items()}
    num_left = None if prompts is None else _write_kept(result, export, prompts, reasons)
    folder = result.path("paper")
    folder.mkdir(exist_ok=True)
    for name, text in export.pages.items():
        write_text(folder / name, text)
    num_dropped = len(export.dropped)
    result.counts = Counts(
        num_in=totals["cases"] + num_dropped,
        num_used=totals["cases"],
        dropped={DROPPED: num_dropped} if num_dropped else {},
    )
    result.summary = AnnotatedSummary(
        project=export.project,
        kind=export.kind,
        is_simulated=export.is_simulated,
        evidence=config.evidence,
        num_cases=totals["cases"],
        num_judgments=totals["judgments"],
        num_ratings=totals["ratings"],
        num_people=len(people),
        refused=dict(sorted(Counter(reason for each in reasons.values() for reason in each).items())),
        num_prompts_left=num_left,
    )


def _write_kept(
    result: Result, export: ProjectExport, prompts: KeptPrompts, refused: Mapping[str, tuple[str, ...]]
) -> int:
    """Write the prompts that stay, without those that people refuse. Returns their number."""
    left = [prompt for prompt in prompts.prompts if prompt not in refused]
    if not left:
        problem = f"people refuse every prompt of the {number_of(len(prompts.prompts), 'prompt')} that stayed"
        raise EvidenceError(
            problem, where=export.project, do="look at their answers, or lower least_quality of this stage"
        )
    seen = {reviewed_prompt(case) for case in read_cases(export.file)} | set(export.dropped)
    if not seen & {*prompts.prompts, *prompts.left_out}:
        do = "name the kept.json of the translation that people looked at"
        raise EvidenceError("people saw none of the prompts of this file", where=_KEPT_FILE, do=do)
    known = {*prompts.prompts, *prompts.left_out}
    reasons = {
        prompt: (*prompts.left_out.get(prompt, ()), *each) for prompt, each in refused.items() if prompt in known
    }
    write_kept(result.path(_KEPT_FILE), left, {**prompts.left_out, **reasons})
    return len(left)
