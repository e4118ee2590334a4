"""Publishing of a trained model on the Hugging Face hub: the repository before training, the files after it.

Only what others need to score is uploaded: weights, tokenizer, manifest, model card, and the hashes of the trained
prompts, by which a bench that contains them is recognised. The run's record has paths of this machine, and stays here.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from steelyard.core.errors import ConfigError, ModelError
from steelyard.io.progress import log

_NAME = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")
_PUBLISHED = ("*.safetensors", "*.json", "*.jinja", "*.model", "*.txt", "README.md", "trained_on.*")
_KEPT_HERE = ("run.json", "started.json", ".*", "*.jsonl", "*.part*")


def create_repository(name: str, *, public: bool) -> None:
    """Create the repository ``owner/name``, private unless ``public``; one that exists stays as it is.

    It is done before a training, which would otherwise find out after hours that nobody is logged in. Raises
    ConfigError for another form of name, ModelError where the hub refuses.
    """
    from huggingface_hub import HfApi

    if not _NAME.fullmatch(name):
        raise ConfigError(f"push_to_hub={name!r}", where="train", allowed="OWNER/NAME, a repository on the hub")
    with _refusals(name):
        HfApi().create_repo(name, private=not public, exist_ok=True)


def publish_model(folder: Path, name: str) -> None:
    """Upload the model of a folder in one commit. Raises ModelError where the hub refuses; the folder is unchanged."""
    from huggingface_hub import HfApi

    log(f"uploading {folder} to {name} on the hub")
    with _refusals(name):
        done = HfApi().upload_folder(
            repo_id=name,
            folder_path=folder,
            allow_patterns=list(_PUBLISHED),
            ignore_patterns=list(_KEPT_HERE),
            commit_message="Reward model trained with Steelyard",
        )
    log(f"uploaded: {done}")


@contextmanager
def _refusals(name: str) -> Iterator[None]:
    """Translate the errors of the hub."""
    from huggingface_hub import constants, errors

    try:
        yield
    except errors.LocalTokenNotFoundError as error:
        raise ModelError("not logged in to the hub", where=name, do="hf auth login, or set HF_TOKEN") from error
    except errors.HfHubHTTPError as error:
        status = error.response.status_code
        is_denied = status in (401, 403, 404)
        do = "check the owner, and that the token may write: hf auth login" if is_denied else "try again later"
        raise ModelError(f"the hub refuses ({status})", where=name, do=f"{do}; a trained model stays") from error
    except Exception as error:  # the client passes on errors of its transport, which it may change
        why = f"{type(error).__name__}: {next(iter(str(error).splitlines()), '')}"
        problem = f"{constants.ENDPOINT} cannot be reached ({why})"
        raise ModelError(problem, where=name, do="try the same again later; a trained model stays") from error
