"""A trained reward model: a decoder with a scalar head, scored by the protocol it was trained with."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import msgspec

from steelyard.core.config import Config as BaseConfig
from steelyard.core.config import Positive
from steelyard.core.errors import ModelError
from steelyard.core.protocols import SelfTest
from steelyard.core.remedies import Advice, Command, Placeholder, Remedy
from steelyard.core.types import Case, JsonObject, OverLength, Scores
from steelyard.io.progress import log
from steelyard.io.run_folder import STARTED_FILE

if TYPE_CHECKING:
    from steelyard.networks.conversation import Rendering
    from steelyard.networks.pretrained import Precision
    from steelyard.networks.settings import Manifest

_TRAINED_SETTINGS = ("strip", "max_length", "over_length")


class Config(BaseConfig, frozen=True):
    """Settings of a trained reward model. What is null comes from the model's own manifest.

    A setting that differs from the manifest is reported and recorded: its scores belong to another protocol than the
    one that the model was trained with.
    """

    path: str
    """The model's folder or hub name."""
    chat_template: str | None = None
    """plain, or a Jinja file. Default: the model's own."""
    strip: bool | None = None
    """Remove white space at the very end; without a manifest it stays."""
    max_length: Positive | None = None
    """The length limit in tokens. Default: the model's own."""
    over_length: OverLength | None = None
    """Answers over the limit: unscored, cut on the left or right, or refuse to run. Default: the model's own."""
    dtype: Literal["float32", "bfloat16"] | None = None
    """The number type of the decoder; the head is always in float32."""
    tokens_per_forward: int | None = None
    """The bound of a forward pass in tokens; it changes no score. Default: 8,192, on a GPU up to 32,768."""
    invariant: bool = True
    """Let no bit of a score depend on the other answers of a pass; without it passes are free to round."""
    kernel: Literal["packed", "padded"] | None = None
    """packed computes a prompt once for all its answers, padded one row per answer. Default: packed where exact."""
    batch_size: int | None = None
    """The bound of a forward pass in answers. Default: no bound."""
    padding: Literal["left", "right"] = "right"
    """The side on which padded rows are filled; it changes no score but by rounding."""


class Classifier:
    """A RewardModel. An answer over the length limit is unscored as `TOO_LONG`, unless the protocol cuts it."""

    def __init__(self, config: Config) -> None:
        from steelyard.networks.conversation import ConversationEncoder
        from steelyard.networks.devices import best_device
        from steelyard.networks.loading import load_network, load_tokenizer
        from steelyard.networks.scorer import Limits, Scorer

        self.config = config
        manifest = _check_folder(config)
        self.is_trained_here = manifest is not None
        self.ratings = None if manifest is None else manifest.ratings
        self.tokenizer = load_tokenizer(config.path)
        self.rendering = _rendering(config, manifest, self.tokenizer)
        self.dtype: Precision = config.dtype or (manifest.dtype if manifest else "float32")
        self.differing = {} if manifest is None else _differing(self.rendering, self.dtype, manifest)
        if self.differing:
            parts = [f"{name} {values['trained']}, now {values['used']}" for name, values in self.differing.items()]
            log(
                f"{Path(config.path).name} was trained with another protocol: {'; '.join(parts)}. "
                "The run records it; such scores are not those of the model's own protocol"
            )
        network, is_trained = load_network(config.path, dtype=self.dtype)
        if not is_trained:
            names = ", ".join(network.unread_weights[:3])
            training = Command("train", (Placeholder("CASES"),), (Remedy("model", config.path),))
            kinds = (
                "name the kind of model that reads this head (",
                Command("list", ("models",)),
                "), or train a new one: ",
            )
            raise ModelError(
                f"has no trained reward head named 'score', and {names} would not be read: its scores would be random"
                if names
                else "has no trained reward head: its scores would be random",
                where=config.path,
                do=Advice(*(kinds if names else ("train it first: ",)), training),
            )
        self.network = network.to(best_device()).eval()
        self.scorer = Scorer(
            self.network,
            encoder=ConversationEncoder(self.tokenizer, self.rendering, self.network, where=config.path),
            limits=Limits(config.tokens_per_forward, config.batch_size, config.padding),
            kernel=config.kernel,
            invariant=config.invariant,
        )

    def score(self, cases: Iterable[Case]) -> Iterator[Scores]:
        """Return one Scores per case, in order."""
        yield from self.scorer.score(cases)

    def protocol(self) -> JsonObject:
        """Return template, special tokens, strip, length, number type and kernel."""
        from steelyard.networks.settings import protocol_of

        protocol = protocol_of(self.rendering, dtype=self.dtype, model=Path(self.config.path).name)
        differing = {"differs_from_training": self.differing} if self.differing else {}
        ratings = {} if self.ratings is None else {"ratings": msgspec.to_builtins(self.ratings)}
        return protocol | self.scorer.protocol() | differing | ratings

    def self_tests(self, cases: Sequence[Case]) -> Iterator[SelfTest]:
        """Test the BOS token, the last token, the head, both sides of padding, packing, and equal bits in any pass."""
        from steelyard.networks.self_tests import invariance_test, packing_test, padding_test, text_tests, trained_head

        encoder = self.scorer.encoder
        assert encoder is not None, "made with one"
        encoded = [encoder.encode(case) for case in cases]
        prompts = [tuple(answer.row for answer in answers if not answer.is_over_length) for answers in encoded]
        encoder.check([row for rows in prompts for row in rows])
        yield from text_tests(self.tokenizer, self.rendering, prompts, cases[0])
        # A model that was trained here has a manifest: its head cannot be a fresh draw.
        drawn = None if self.is_trained_here else self.network.classifier.config.to_dict().get("initializer_range")
        yield trained_head([self.network.head.weight], fresh_deviation=drawn)
        yield padding_test(self.scorer, prompts, dtype=self.dtype)
        yield packing_test(self.scorer, prompts, dtype=self.dtype)
        yield invariance_test(self.scorer, prompts)

    def lengths(self, case: Case) -> list[int]:
        """Return the number of tokens of each answer with its prompt."""
        from steelyard.networks.conversation import encode

        return [encode(self.tokenizer, self.rendering, case, response).length for response in case.responses]

    @property
    def max_length(self) -> int:
        """The length limit in tokens."""
        return self.rendering.max_length

    @property
    def over_length(self) -> OverLength:
        """Treatment of longer answers."""
        return self.rendering.over_length


def build(config: Config) -> Classifier:
    """Return the model, loaded. Raises ModelError for an untrained head or a missing template."""
    return Classifier(config)


class ModelReading(NamedTuple):
    """Protocol by which a model reads text: its tokenizer and rendering, and its protocol as a run records it."""

    tokenizer: Any
    rendering: "Rendering"
    protocol: JsonObject


def reading_of(config: Config) -> ModelReading:
    """Return how a model's text becomes tokens, without loading its weights."""
    from steelyard.networks.loading import load_tokenizer
    from steelyard.networks.settings import protocol_of, read_manifest

    tokenizer, manifest = load_tokenizer(config.path), read_manifest(Path(config.path))
    rendering = _rendering(config, manifest, tokenizer)
    dtype = config.dtype or (manifest.dtype if manifest else "float32")
    return ModelReading(tokenizer, rendering, protocol_of(rendering, dtype=dtype, model=Path(config.path).name))


def _check_folder(config: Config) -> "Manifest | None":
    """Return the manifest, if there is one. Raises ModelError for an unfinished training and for a policy."""
    from steelyard.networks.settings import read_manifest

    if (Path(config.path) / STARTED_FILE).is_file():
        raise ModelError("its training did not finish", where=config.path, do="run the same train command again")
    manifest = read_manifest(Path(config.path))
    if manifest is not None and manifest.kind == "implicit":
        path = Remedy("model.path", config.path)
        do = Advice("score it with its reference model: ", Remedy("model", "implicit", (path,)))
        raise ModelError("a policy, whose reward is implicit", where=config.path, do=do)
    return manifest


def _rendering(config: Config, manifest: "Manifest | None", tokenizer: Any) -> "Rendering":
    """Return how the model's text becomes tokens: by its manifest, except for the settings that differ."""
    from steelyard.networks.conversation import choose_rendering

    settings = (("strip", config.strip), ("max_length", config.max_length), ("over_length", config.over_length))
    changed: JsonObject = {name: value for name, value in settings if value is not None}
    if manifest is not None and config.chat_template is None:
        return msgspec.structs.replace(manifest.rendering, **changed)
    # Published heads are trained at the template's very last token, white space included.
    chosen = choose_rendering(tokenizer, config.chat_template, model=config.path, strip=False)
    if manifest is not None:
        parts = {"template": chosen.template, "special_tokens": chosen.special_tokens}
        chosen = msgspec.structs.replace(manifest.rendering, **parts)
    return msgspec.structs.replace(chosen, **changed)


def _differing(rendering: "Rendering", dtype: str, manifest: "Manifest") -> dict[str, JsonObject]:
    """Return by setting the value of training and the one in use, where the two differ."""
    trained = manifest.rendering
    pairs = {
        **{name: (getattr(trained, name), getattr(rendering, name)) for name in _TRAINED_SETTINGS},
        "chat_template": (manifest.template_hash, rendering.template_hash),
        "dtype": (manifest.dtype, dtype),
    }
    return {name: {"trained": before, "used": now} for name, (before, now) in pairs.items() if before != now}
