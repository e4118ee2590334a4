"""Apertium: rule-based translation on this machine, by a program of its own; the same reply to the same text.

Each request starts the program, which takes some tenths of a second: several run at a time. It knows no marks and
translates what looks like a word, so that all that must stay is protected before (`steelyard.translation.protection`).
"""

import subprocess
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from shutil import which

from steelyard.core.comparison import Reply, Request
from steelyard.core.config import Config as BaseConfig
from steelyard.core.config import Positive
from steelyard.core.errors import ConfigError, ModelError, choices
from steelyard.core.iteration import batched
from steelyard.core.languages import language_key
from steelyard.core.protocols import Chat
from steelyard.core.types import JsonObject


class Config(BaseConfig, frozen=True):
    """``program`` is the command of Apertium; the pairs of languages are those that are installed with it."""

    program: str = "apertium"
    """The command that translates."""
    name: str = "apertium"
    """The name in the translations."""
    workers: Positive = 4
    """The number of texts that are translated at a time."""
    timeout_seconds: float = 120.0
    """The longest time for one text, in seconds."""


def build(config: Config) -> Chat:
    """Return the engine with its pairs. Raises ModelError without the program."""
    return Apertium(config)


class Apertium:
    """A TranslationEngine."""

    def __init__(self, config: Config) -> None:
        self.config, self.name = config, config.name
        if which(config.program) is None:
            do = "install it with its pairs, such as: apt-get install apertium apertium-eng-spa"
            raise ModelError("there is no such program", where=config.program, do=do)
        # The first of several variants of a pair is the plain one: eng-spa before eng-spa_MX.
        try:
            listed = sorted(self._run("-l").split(), key=lambda mode: (len(mode), mode))
            self._version = self._run("-V").strip().splitlines()[:1]
        except (subprocess.SubprocessError, OSError) as error:
            do = "run it with -l, which lists the pairs of languages"
            raise ModelError(f"the program fails ({str(error)[:300]})", where=config.program, do=do) from error
        modes = [(mode, mode.split("-")) for mode in listed if mode.count("-") == 1]
        self._modes = {(language_key(source), language_key(target)): mode for mode, (source, target) in reversed(modes)}

    def check_languages(self, source: str, target: str) -> None:
        """Raise ConfigError for a pair that is not installed."""
        if (language_key(source), language_key(target)) not in self._modes:
            installed = [" to ".join(pair) for pair in self._modes]
            problem = f"no pair from {source} to {target} is installed"
            allowed = choices(f"{source} to {target}", installed) if installed else None
            raise ConfigError(problem, where=self.name, allowed=allowed, do="install the package of the pair")

    def ask(self, requests: Iterable[Request]) -> Iterator[Reply]:
        """Yield a reply for each request, in order."""
        with ThreadPoolExecutor(self.config.workers) as pool:
            for window in batched(requests, self.config.workers):
                yield from pool.map(self._translated, window)

    def protocol(self) -> JsonObject:
        """Return the program with its version."""
        return {"chat": "apertium", "model": " ".join(self._version) or "apertium"}

    def _translated(self, request: Request) -> Reply:
        languages = request.question.languages
        mode = self._modes.get((language_key(languages[0]), language_key(languages[1]))) if languages else None
        if mode is None:
            return Reply(request=request.id, failure="failed", detail="languages: no pair of the request is installed")
        text = request.question.messages[-1].content.replace("\0", "")
        try:
            # Without marks at words that it does not know, which would stay in the text.
            translated = self._run("-u", mode, text=text)
        except (subprocess.SubprocessError, OSError) as error:
            return Reply(request=request.id, failure="failed", detail=f"program: {str(error)[:300]}")
        if text.strip() and not translated.strip():
            # Some pairs end with status 0 and no output where a part of theirs is missing.
            return Reply(request=request.id, failure="failed", detail=f"empty: {mode} wrote nothing")
        return Reply(request=request.id, text=translated)

    def _run(self, *arguments: str, text: str = "") -> str:
        done = subprocess.run(
            [self.config.program, *arguments],
            input=text.encode("utf-8", "replace"),
            capture_output=True,
            check=True,
            timeout=self.config.timeout_seconds,
        )
        return done.stdout.decode("utf-8", "replace")
