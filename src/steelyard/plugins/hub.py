"""Models by their name on the Hugging Face hub: where their files lie once fetched, or a quick word that none answers.

The library itself tries for most of a minute before it says that there is no network.
"""

import re
import socket
import threading
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import getproxies

from steelyard.core.errors import ModelError
from steelyard.files.talk import say

_NAME = re.compile(r"[A-Za-z0-9][\w-]*(?:\.[\w-]+)*/[A-Za-z0-9][\w-]*(?:\.[\w-]+)*")
_SECONDS = 3.0
_UNUSED = ["*.gguf", "*.onnx", "*.msgpack", "*.h5", "*.ot", "*.pth", "original/*", "onnx/*"]
"""The same weights for other programs."""


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
        say(f"{name} is no folder here: asking {constants.ENDPOINT}")
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
