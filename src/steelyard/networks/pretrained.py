"""Load what transformers and peft load, from folders and from the hub, without running code that comes with a model.

Left unset, ``trust_remote_code`` makes transformers ask on the terminal, and a "y" on standard input is a yes. Every
``from_pretrained`` of this project is therefore called here and nowhere else (a test holds that).
"""

import json
import re
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit
from urllib.request import getproxies

from steelyard.core.errors import ModelError
from steelyard.io.progress import log

Precision = Literal["float32", "bfloat16"]
_ALLOWED = "architectures that transformers has itself, and the families of `steelyard list models`"
_NAME = re.compile(r"[A-Za-z0-9][\w-]*(?:\.[\w-]+)*/[A-Za-z0-9][\w-]*(?:\.[\w-]+)*")
_SECONDS = 3.0
_UNUSED = ["*.gguf", "*.onnx", "*.msgpack", "*.h5", "*.ot", "*.pth", "original/*", "onnx/*"]
"""The same weights for other programs."""


def load_pretrained(loader: Any, path: str | Path, **settings: Any) -> Any:
    """Return ``loader.from_pretrained(path, **settings)`` with code from the folder or the hub switched off.

    Raises ModelError for a folder that cannot be loaded without its own code, or that names compute kernels to be
    downloaded, and for broken files that the loader has no error of its own for; OSError and ValueError are passed on.
    """
    _refuse_kernels(Path(path))
    try:
        return loader.from_pretrained(str(path), trust_remote_code=False, **settings)
    except ValueError as error:
        if "trust_remote_code" not in str(error):
            raise
        found = "needs Python code that comes with it, and such code is never run"
        raise ModelError(found, where=str(path), allowed=_ALLOWED, do="name a model that loads without it") from error
    except (OSError, KeyboardInterrupt, MemoryError):
        raise
    except Exception as error:
        # Broken weights, tokenizers and settings end in errors of every kind: these are all the user's files.
        first = (str(error).splitlines() or [""])[0][:200]
        found = f"cannot be loaded: its files are broken or do not fit together ({type(error).__name__}: {first})"
        raise ModelError(found, where=str(path), do="download the model again, and check its config.json") from error


def _refuse_kernels(folder: Path) -> None:
    """Raise ModelError where ``config.json`` names a kernel of the hub: transformers would download and run it."""
    try:
        config = json.loads((folder / "config.json").read_bytes())
    except (OSError, ValueError, RecursionError):
        return  # absent or broken: the loader says so
    for key, value in _implementations(config):
        if "/" in value:
            found = f"its config.json names code to be downloaded and run ({key}: {value[:80]!r})"
            raise ModelError(found, where=str(folder), do=f"remove {key!r} from its config.json")


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
    """Whether this is ``owner/name`` and no folder or file here."""
    return _NAME.fullmatch(text) is not None and not Path(text).exists()


def hub_folder(name: str) -> Path:
    """The folder with the model's files: fetched where the hub answers, else from the library's own cache.

    Raises ModelError, within seconds, where there is neither, and for what the hub does not give. Code that comes with
    a model is fetched with its files and never run.
    """
    from huggingface_hub import constants, errors, snapshot_download

    can_ask = not constants.HF_HUB_OFFLINE and _answers(constants.ENDPOINT)
    if can_ask:
        log(f"{name} is no folder here: asking {constants.ENDPOINT}")
    try:
        return Path(snapshot_download(name, local_files_only=not can_ask, ignore_patterns=_UNUSED))
    except errors.GatedRepoError as error:
        do = "accept its terms on the hub, and log in: hf auth login"
        raise ModelError("the hub gives it only to those who accept its terms", where=name, do=do) from error
    except errors.RepositoryNotFoundError as error:
        found = "there is no such folder here, and no such model on the hub, or it is private"
        raise ModelError(found, where=name, do="check the spelling; for a private one: hf auth login") from error
    except (OSError, ValueError, errors.HfHubHTTPError) as error:
        why = str(error).splitlines()[0] if can_ask else f"{constants.ENDPOINT} does not answer"
        found = f"there is no such folder here, and it cannot be had from the hub ({why})"
        raise ModelError(found, where=name, do="check the path; or download the model and name its folder") from error


def _answers(endpoint: str) -> bool:
    """Whether something listens there; behind a proxy only the request itself can tell."""
    parts = urlsplit(endpoint)
    if getproxies():
        return True
    found: list[bool] = []

    def ask() -> None:
        try:
            port = parts.port or (443 if parts.scheme == "https" else 80)
            socket.create_connection((str(parts.hostname), port), timeout=_SECONDS).close()
        except OSError:
            return
        found.append(True)

    # A name server that does not answer heeds no time limit: the thread is left behind.
    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    asking.join(_SECONDS)
    return bool(found)
