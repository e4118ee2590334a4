"""Raw prompts into a set for annotation: screened, asked about, compared, categorised, balanced, and written."""

from pathlib import Path
from typing import NamedTuple

import msgspec

from steelyard.core.errors import EvidenceError
from steelyard.core.remedies import Advice, Remedy
from steelyard.core.text import number_of
from steelyard.core.types import Case
from steelyard.io.ledger import Ledger
from steelyard.io.prepared_prompts import write_prompts
from steelyard.io.run_folder import Result
from steelyard.judging.prompt_models import Categories, ModelQuestions, PromptModels
from steelyard.judging.prompt_questions import PromptsPreview
from steelyard.judging.prompt_screening import ScreenedFile, screen_file
from steelyard.prompts.classification import Classification, ClassifiedPrompts, classified
from steelyard.prompts.selection import PromptReferences, Selection, SelectionConfig
from steelyard.prompts.taxonomy import Tiers


class PromptRun(NamedTuple):
    """Inputs of `prompts` and its preview: the file, its categories, references and language models.

    ``which`` prompts get a category by a model. Null ``workers`` are as many processes as the file is worth.
    """

    cases: Path
    config: SelectionConfig
    models: PromptModels
    which: ClassifiedPrompts
    categories: Categories
    references: PromptReferences
    workers: int | None

    def preview(self, ledger: Ledger | None) -> PromptsPreview:
        """Return what would stay, with examples of each rule, and forecast the requests to language models."""
        work = self._screen()
        selection = work.added(Selection(self.config, self.references, has_language_model=False), {}, {})
        forecasts = tuple(self._questions(work).forecasts(selection, ledger))
        summary = msgspec.structs.replace(selection.finish(), mapping=work.mapping())
        return PromptsPreview(summary, selection.counts(), selection.examples(), forecasts)

    def write(self, result: Result, ledger: Ledger | None, *, allow_failed: bool) -> None:
        """Select the prompts and write them, with counts and summary. Raises EvidenceError where none stays."""
        work = self._screen()
        questions, config = self._questions(work), self.config
        harm = {} if ledger is None else questions.harm(ledger, allow_failed=allow_failed)
        bound = {} if ledger is None else questions.language_bound(ledger, allow_failed=allow_failed)
        has_model = self.models.harm is not None
        selection = work.added(Selection(config, self.references, has_language_model=has_model), harm, bound)
        categories: dict[int, Tiers] = {}
        classification: Classification | None = None
        if ledger is not None:
            categories, classification = questions.classify(
                selection, ledger, allow_failed=allow_failed, seed=config.seed
            )
        summary = selection.finish()
        result.summary = msgspec.structs.replace(summary, mapping=work.mapping(), classification=classification)
        result.counts = selection.counts()
        if not result.counts.num_used:
            problem = f"none of {number_of(len(work.screened), 'prompt')} stays ({', '.join(result.counts.dropped)})"
            where = str(result.request.inputs["cases"].path)
            raise EvidenceError(
                problem, where=where, do=Advice("see what was found with ", Remedy("dry_run", value=True))
            )
        chat = "" if classification is None else classification.chat

        def finished(place: int, case: Case) -> Case:
            return classified(case, categories[place], chat) if place in categories else case

        num_masked = write_prompts(result, work.prompts(), selection, config, finished)
        if num_masked:
            result.counts = msgspec.structs.replace(result.counts, noted={"responses with masked data": num_masked})

    def _screen(self) -> ScreenedFile:
        return screen_file(self.cases, self.config, self.categories, workers=self.workers)

    def _questions(self, work: ScreenedFile) -> ModelQuestions:
        asks_language = self.config.language_bound != "off"
        return ModelQuestions(work.read, self.models, self.categories, self.which, asks_language)
