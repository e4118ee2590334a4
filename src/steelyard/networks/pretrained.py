"""Load with transformers and peft, from folders and the hub, without running code that comes with a model.

Left unset, ``trust_remote_code`` makes transformers ask on the terminal, and accept a "y" on standard input. Every
``from_pretrained`` of this project is therefore called here alone, as a test checks.
"""

import gc
import json
import re
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit
from urllib.request import getproxies

from steelyard.core.errors import EXTRAS, MissingPartError, ModelError
from steelyard.core.plugins import kinds
from steelyard.io.lines import refuse_pointer
from steelyard.io.progress import log

Precision = Literal["float32", "bfloat16"]
_ALLOWED = "architectures that transformers has itself, and the families of `steelyard list models`"
_NAME_PART = r"[A-Za-z0-9][\w-]*(?:\.[\w-]+)*"
_NAME = re.compile(f"{_NAME_PART}/{_NAME_PART}")
_SECONDS = 3.0
_UNUSED = ["*.gguf", "*.onnx", "*.msgpack", "*.h5", "*.ot", "*.pth", "original/*", "onnx/*"]
"""The same weights for other programs."""
_TOKENIZER_NAME = re.compile(f"(?:{_NAME_PART}/)?{_NAME_PART}")
"""With an owner, or as the oldest models without one: gpt2."""
_TOKENIZER_FILES = ["*.json", "*.txt", "*.model", "*.jinja", "*.tiktoken", "*.vocab", "*.spm"]

_MISSING_LIBRARY = re.compile(r"requires the ([\w-]+) library")
"""The form in which transformers names a package that a model or a tokenizer needs."""


@contextmanager
def collection_paused() -> Iterator[None]:
    """Pause the garbage collector, for imports and vocabularies: they make a million objects that all stay.

    Their number would start it again and again, for a fifth of the time of imports and half of that of a tokenizer.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def load_pretrained(loader: Any, path: str | Path, **settings: Any) -> Any:
    """Return ``loader.from_pretrained(path, **settings)`` with code from the folder or the hub switched off.

    Raises ModelError for a folder that cannot be loaded without its own code, or that names compute kernels to be
    downloaded, and for broken files that the loader has no error of its own for; MissingPartError for a package that it
    needs; OSError and ValueError are passed on.
    """
    _refuse_kernels(Path(path))
    _refuse_pointers(Path(path))
    try:
        with collection_paused():
            return loader.from_pretrained(str(path), trust_remote_code=False, **settings)
    except ValueError as error:
        if "trust_remote_code" not in str(error):
            raise
        problem = "needs Python code that comes with it, and such code is never run"
        raise ModelError(problem, where=str(path), allowed=_ALLOWED, do="name a model that loads without it") from error
    except (OSError, KeyboardInterrupt, MemoryError):
        raise
    except ImportError as error:
        match = _MISSING_LIBRARY.search(str(error))
        if match is None and not isinstance(error, ModuleNotFoundError):
            problem = f"needs a package that cannot be imported ({error})"
            raise MissingPartError(problem, where=str(path), do="install versions that fit together") from error
        package = (error.name or "") if match is None else match[1].lower()
        extra = EXTRAS.get(package)
        raise MissingPartError(
            f"needs the package {package}, which is not installed" if package else f"needs a package: {error}",
            where=str(path),
            do=f"pip install 'steelyard[{extra}]'" if extra else f"pip install {package}".strip(),
        ) from error
    except Exception as error:
        # Broken weights, tokenizers and settings end in errors of every kind: these are all the user's files.
        first = (str(error).splitlines() or [""])[0][:200]
        problem = f"cannot be loaded: its files are broken or do not fit together ({type(error).__name__}: {first})"
        raise ModelError(problem, where=str(path), do="download the model again, and check its config.json") from error


def _refuse_kernels(folder: Path) -> None:
    """Raise ModelError where ``config.json`` names a kernel of the hub: transformers would download and run it."""
    try:
        config = json.loads((folder / "config.json").read_bytes())
    except (OSError, ValueError, RecursionError):
        return  # absent or broken: the loader says so
    for key, value in _implementations(config):
        if "/" in value:
            problem = f"its config.json names code to be downloaded and run ({key}: {value[:80]!r})"
            raise ModelError(problem, where=str(folder), do=f"remove {key!r} from its config.json")


def _refuse_pointers(folder: Path) -> None:
    """Raise FileError for a file of git-LFS that was not fetched: a clone without LFS has pointers for weights."""
    for pattern in ("*.safetensors", "*.bin", "*.model", "*.json"):
        for file in folder.glob(pattern):
            if file.is_file():
                refuse_pointer(file)


def _implementations(config: Any) -> Iterator[tuple[str, str]]:
    """Yield every setting that chooses an implementation, from the configuration and the parts inside it."""
    if not isinstance(config, dict):
        return
    for key, value in config.items():
        if key.endswith("_implementation"):
            for name in value.values() if isinstance(value, dict) else (value,):
                if isinstance(name, str):
                    yield key, name
        else:
            yield from _implementations(value)


def is_hub_name(text: str) -> bool:
    """Return whether a text is ``owner/name`` and not a local folder or file."""
    return _NAME.fullmatch(text) is not None and not Path(text).exists()


def tokenizer_folder(text: str) -> str:
    """Return the folder of a tokenizer: a local one, or that of a name on the hub without its weights.

    Raises ModelError where there is neither, as `hub_folder`.
    """
    path = Path(text).expanduser()
    if path.is_dir():
        return str(path)
    if path.exists() or not _TOKENIZER_NAME.fullmatch(text):
        raise ModelError("there is no such model folder", where=text, do="check the path")
    return str(hub_folder(text, only=_TOKENIZER_FILES))


def hub_folder(name: str, *, only: list[str] | None = None) -> Path:
    """Return the folder with the model's files: downloaded where the hub answers, else from the library's cache.

    ``only``: patterns of the files that are needed.

    Raises ModelError, within seconds, where neither has it, and for a model that the hub does not serve. Code that
    comes with a model is downloaded with its files and never run.
    """
    from huggingface_hub import constants, errors, snapshot_download

    if name in kinds("models"):
        do = "name a decoder, a folder or a name on the hub; this kind is for evaluate and score"
        raise ModelError("this is a kind of model of its own, not one to load", where=name, do=do)
    can_ask = not constants.HF_HUB_OFFLINE and _answers(constants.ENDPOINT)
    if can_ask:
        log(f"{name} is not a local folder: looking it up at {constants.ENDPOINT}")
    try:
        return Path(snapshot_download(name, local_files_only=not can_ask, allow_patterns=only, ignore_patterns=_UNUSED))
    except errors.GatedRepoError as error:
        do = "accept its terms on the hub, and log in: hf auth login"
        raise ModelError("the hub requires that its terms are accepted", where=name, do=do) from error
    except errors.RepositoryNotFoundError as error:
        problem = "no such local folder, and no such model on the hub, or it is private"
        raise ModelError(problem, where=name, do="check the spelling; for a private one: hf auth login") from error
    except (OSError, ValueError) as error:  # a refusal of the hub is an OSError
        why = str(error).splitlines()[0] if can_ask else f"{constants.ENDPOINT} does not answer"
        problem = f"no such local folder, and it cannot be downloaded from the hub ({why})"
        raise ModelError(problem, where=name, do="check the path; or download the model and name its folder") from error


def _answers(endpoint: str) -> bool:
    """Return whether an endpoint accepts connections; behind a proxy, true without a check."""
    parts = urlsplit(endpoint)
    if getproxies():
        return True
    is_open = threading.Event()

    def connect() -> None:
        try:
            port = parts.port or (443 if parts.scheme == "https" else 80)
            socket.create_connection((str(parts.hostname), port), timeout=_SECONDS).close()
        except OSError:
            return
        is_open.set()

    # Name resolution has no time limit: a thread that hangs in it is abandoned.
    thread = threading.Thread(target=connect, daemon=True)
    thread.start()
    thread.join(_SECONDS)
    return is_open.is_set()
