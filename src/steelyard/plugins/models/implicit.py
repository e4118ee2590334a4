"""The implicit reward of a policy trained by DPO: the log-ratio of an answer's probability under it and its reference.

The published rules are those of ``rewardbench/dpo.py`` of allenai/reward-bench (class ``DPOInference``).

Differs from: it, which finds the prompt by replacing text, so that an answer that quotes it loses the quotation; which
pads in number types where a row's neighbours move its score; and which loads both models in 8 bits.
"""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from steelyard.core.checks import TOO_LONG
from steelyard.core.config import Config as BaseConfig
from steelyard.core.config import Positive
from steelyard.core.errors import ConfigError, ModelError
from steelyard.core.protocols import SelfTest
from steelyard.core.remedies import Advice, Remedy
from steelyard.core.types import Case, JsonObject, OverLength, Scores

if TYPE_CHECKING:
    from steelyard.networks.answer_tokens import AnswerRow
    from steelyard.networks.conversation import EncodedAnswer, Rendering
    from steelyard.networks.settings import Manifest


class Config(BaseConfig, frozen=True):
    """Settings of a policy with its reference."""

    path: str
    """The folder or hub name of the policy."""
    reference: str | None = None
    """The folder or hub name of the model that the policy was trained from."""
    reduction: Literal["sum", "avg", "norm"] | None = None
    """Number from the token log-probabilities: their sum, their mean (avg), or minus their Euclidean norm (norm,
    without a reference only); null is the published choice, sum with a reference and norm without."""
    beta: float = 1.0
    """The factor of the reward, as in the DPO loss; it changes no order."""
    protocol: Literal["template", "rewardbench"] = "template"
    """template: an answer's tokens are its text with the marks that the template puts behind it. rewardbench: one more
    BOS token in front, the EOS token behind, the template's words between prompt and answer counted as answer, and
    over-long text cut, the prompt to its last 128 tokens and then the answer."""
    chat_template: str | None = None
    """plain, or a Jinja file. Default: the model's own."""
    max_length: Positive | None = None
    """The length limit of a conversation in tokens. Default: that of its training, or 2048."""
    over_length: Literal["unscored", "refuse"] | None = None
    """Treatment of longer answers: unscored (counted) or refuse; a cut answer has another probability."""
    dtype: Literal["float32", "bfloat16"] = "float32"
    """The number type of both models."""
    tokens_per_forward: int = 2048
    """With invariant=false, the bound of a forward pass in tokens: each has a row of vocabulary size."""
    invariant: bool = True
    """Let no bit of a score depend on the other answers of a pass: each answer is then a pass by itself."""
    batch_size: int | None = None
    """With invariant=false, the bound of a forward pass in answers. Default: no bound."""


class Implicit:
    """A RewardModel. Unscored: `TOO_LONG`, ``turns`` (an answer of several turns), ``empty``."""

    def __init__(self, config: Config) -> None:
        from steelyard.networks.answer_tokens import AnswerTokens
        from steelyard.networks.devices import best_device
        from steelyard.networks.loading import load_causal, load_tokenizer, local_folder
        from steelyard.networks.published import PolicyPair
        from steelyard.networks.scorer import Limits, Scorer
        from steelyard.networks.settings import read_manifest

        self.config = config
        folder = local_folder(config.path)
        self.tokenizer = load_tokenizer(str(folder))
        manifest = read_manifest(folder)
        self.rendering = _rendering(config, manifest, self.tokenizer)
        self.is_published = config.protocol == "rewardbench"
        self.answers = AnswerTokens(self.tokenizer, self.rendering, with_header=self.is_published)
        policy = load_causal(str(folder), dtype=config.dtype)
        base = config.reference and local_folder(config.reference)
        reference = load_causal(str(base), dtype=config.dtype) if base else None
        trained = manifest.policy.reduction if manifest is not None and manifest.policy else None
        self.reduction = config.reduction or trained or ("norm" if reference is None else "sum")
        _check_manifest(manifest, config, self.reduction)
        if self.is_published and self.tokenizer.eos_token_id is None:
            raise ModelError("its tokenizer has no EOS token", where=config.path, do="leave protocol at 'template'")
        pair = PolicyPair(policy, reference, reduction=self.reduction, beta=config.beta)
        self.network = pair.to(best_device())
        limits = Limits(config.tokens_per_forward, config.batch_size, "left")
        self.scorer = Scorer(self.network, encoder=self, limits=limits, kernel="padded", invariant=config.invariant)

    def score(self, cases: Iterable[Case]) -> Iterator[Scores]:
        """Return one Scores per case, in order."""
        yield from self.scorer.score(cases)

    def protocol(self) -> JsonObject:
        """Return the reference, the rule, β, template, length and number type."""
        from steelyard.networks.settings import protocol_of

        config = self.config
        return protocol_of(self.rendering, dtype=config.dtype, model=Path(config.path).name) | {
            "family": "implicit",
            "reference": Path(config.reference).name if config.reference else None,
            "reduction": self.reduction,
            "beta": config.beta,
            "protocol": config.protocol,
            "over_length": "128" if self.is_published else self.over_length,
        }

    def self_tests(self, cases: Sequence[Case]) -> Iterator[SelfTest]:
        """Test the BOS token, that the end of the template is scored, and that policy and reference differ."""
        from steelyard.networks.self_tests import text_tests

        answers = [self._answer(row) for case in cases for row in self.answers.rows(case)]
        rows = tuple(answer.row for answer in answers if answer.unscored is None)
        if self.is_published:
            problem = "the published rule puts a mark of its own in front and behind"
            yield SelfTest(name="beginning_mark", state="not applicable", remark=problem)
            yield SelfTest(name="last_token", state="not applicable", remark=problem)
        else:
            yield from text_tests(self.tokenizer, self.rendering, [rows], cases[0])
        yield SelfTest(name="trained_head", state="not applicable", remark="a policy's rewards come from no head")
        yield self._reference_test(rows)

    def _reference_test(self, rows: tuple[tuple[int, ...], ...]) -> SelfTest:
        name = "reference"
        if self.network.reference is None or not rows:
            return SelfTest(name=name, state="not applicable", remark="there is no reference")
        largest = max(map(abs, self.scorer.rewards([rows]).tolist()))
        figures = {"largest_reward": largest, "num_answers": len(rows)}
        if largest > 0:
            return SelfTest(name=name, state="passed", figures=figures)
        problem = "policy and reference are the same model: every reward is 0"
        do = "name the model before its DPO training"
        return SelfTest(name=name, state="failed", figures=figures, remark=problem, do=do)

    def lengths(self, case: Case) -> list[int]:
        """Return the number of tokens of each answer with its prompt; 0 for an answer of several turns."""
        return [0 if row is None else len(self._marked(row).ids) for row in self.answers.rows(case)]

    @property
    def max_length(self) -> int:
        """The length limit in tokens."""
        return self.rendering.max_length

    @property
    def over_length(self) -> OverLength:
        """Treatment of longer answers: the published rule cuts the prompt and then the answer."""
        return "right" if self.is_published else self.rendering.over_length

    def encode(self, case: Case) -> list["EncodedAnswer"]:
        """Return one entry per response. Raises EvidenceError for an answer over the limit where that is refused."""
        rows = self.answers.rows(case)
        self._check_length(case, rows)
        return [self._answer(row) for row in rows]

    def check(self, rows: Sequence[tuple[int, ...]]) -> None:
        """Forget the answers of earlier rows; the language models check the rows themselves."""
        self.network.starts = {row: self.network.starts[row] for row in rows}

    def _marked(self, row: "AnswerRow") -> "AnswerRow":
        from steelyard.networks.answer_tokens import with_published_marks

        if not self.is_published:
            return row
        return with_published_marks(row, bos=self.tokenizer.bos_token_id, eos=self.tokenizer.eos_token_id)

    def _check_length(self, case: Case, rows: Sequence["AnswerRow | None"]) -> None:
        from steelyard.networks.conversation import Encoded, check_length

        if not self.is_published:
            ids = [() if row is None else row.ids for row in rows]
            check_length([Encoded(row[: self.max_length], len(row)) for row in ids], self.rendering, case)

    def _answer(self, row: "AnswerRow | None") -> "EncodedAnswer":
        """Return the row as it is scored, or why it is not; the network learns where its answer starts."""
        from steelyard.networks.answer_tokens import cut_as_published
        from steelyard.networks.conversation import EncodedAnswer

        if row is None:
            return EncodedAnswer((), "turns")
        is_long = self.is_published and len(self._marked(row).ids) > self.max_length
        if self.is_published:
            row = cut_as_published(self._marked(row), self.max_length)
        if len(row.ids) > self.max_length:
            return EncodedAnswer((), TOO_LONG, is_long)
        # The first token has no probability.
        start = max(row.start, 1)
        if start >= len(row.ids):
            return EncodedAnswer((), "empty", is_long)
        self.network.starts[row.ids] = start
        return EncodedAnswer(row.ids, None, is_long)


def build(config: Config) -> Implicit:
    """Return the policy, with its reference, loaded.

    Raises ConfigError for settings that contradict each other, ModelError for a folder without a causal language model.
    """
    if config.reference is not None and config.reduction == "norm":
        problem = "reduction='norm' with a reference: a difference of norms is not a ratio of probabilities"
        raise ConfigError(problem, where="model.reduction", allowed="sum, avg")
    if not config.beta > 0:
        raise ConfigError(f"beta={config.beta}", where="model.beta", allowed="above 0")
    return Implicit(config)


def _rendering(config: Config, manifest: "Manifest | None", tokenizer: Any) -> "Rendering":
    """Return how the policy's text becomes tokens: by its manifest, except for the settings that differ."""
    from steelyard.networks.conversation import choose_rendering

    settings = (("max_length", config.max_length), ("over_length", config.over_length))
    changed: JsonObject = {name: value for name, value in settings if value is not None}
    if manifest is not None:
        return msgspec.structs.replace(manifest.rendering, **changed)
    chosen = choose_rendering(tokenizer, config.chat_template, model=config.path, strip=False)
    return msgspec.structs.replace(chosen, **changed)


def _check_manifest(manifest: "Manifest | None", config: Config, reduction: str) -> None:
    """Raise ModelError where a policy that was trained here would be scored by another rule than in training."""
    if manifest is None:
        return
    if manifest.kind != "implicit" or manifest.policy is None:
        raise ModelError(
            "a classifier, which scores by its head", where=config.path, do=Advice("use ", Remedy("model", config.path))
        )
    if config.chat_template is not None:
        problem = "a policy that was trained with its own chat template: another one gives other probabilities"
        raise ModelError(problem, where=config.path, do="leave chat_template out")
    policy = manifest.policy
    if policy.is_reference_free != (config.reference is None):
        base = f"from {manifest.base_model}: name it as reference"
        how = "without a reference" if policy.is_reference_free else base
        raise ModelError(f"a policy that was trained {how}", where=config.path)
    if reduction != policy.reduction or config.protocol != "template":
        problem = f"a policy that was trained on the {policy.reduction} of its answers' log-probabilities"
        protocol = Remedy("model.protocol", "template")
        do = Advice("use ", Remedy("model.reduction", policy.reduction, (protocol,)))
        raise ModelError(problem, where=config.path, do=do)
