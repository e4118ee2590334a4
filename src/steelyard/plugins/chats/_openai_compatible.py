"""The client half: requests in flight, bounded; what may pass is tried again; what fails is never taken as a reply."""

import os
from collections.abc import Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from itertools import islice
from typing import Any

import httpx2
import msgspec
import openai

from steelyard.core.asking import Question, Reply, Request
from steelyard.core.errors import ConfigError, ModelError
from steelyard.plugins.chats._completion import read_completion
from steelyard.plugins.chats.openai_compatible import Config, described

_ASKED_WRONGLY = (401, 403, 404, 405)
_NO_KEY = "none"  # servers on one's own machine want no key, and the client wants something to send


class OpenAICompatible:
    """A Chat. Requests that fail have ``timeout``, ``unreachable``, ``http_500`` and so on in front of their detail.

    The client tries again after failures that may pass (408, 409, 429, 5xx, lost connections), each time twice as long
    or as long as the server asks for.
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        self.name = config.name or config.model
        self.was_answered = False
        self._key = _key(config.secret)

    def ask(self, requests: Iterable[Request]) -> Iterator[Reply]:
        """One reply a request, as they come. Raises ModelError where no server answers, or it is asked wrongly."""
        waiting, running = iter(requests), set[Future[Reply]]()
        with self._client() as client, ThreadPoolExecutor(self.config.workers) as pool:
            try:
                while True:
                    room = self.config.workers - len(running)
                    running |= {pool.submit(self._asked, client, one) for one in islice(waiting, room)}
                    if not running:
                        return
                    done, running = wait(running, return_when=FIRST_COMPLETED)
                    for future in done:
                        yield future.result()
            finally:
                pool.shutdown(cancel_futures=True)

    def protocol(self) -> dict[str, Any]:
        """The server, the model and the temperature."""
        return described(self.config)

    def _client(self) -> openai.OpenAI:
        # Nothing of the environment decides where prompts are sent: no proxies, no organisation, no address.
        transport = httpx2.Client(trust_env=False, timeout=self.config.timeout_seconds)
        return openai.OpenAI(
            api_key=self._key,
            base_url=self.config.base_url,
            organization="",
            project="",
            timeout=self.config.timeout_seconds,
            max_retries=self.config.num_tries - 1,
            http_client=transport,
        )

    def _asked(self, client: openai.OpenAI, request: Request) -> Reply:
        try:
            response = client.post("/chat/completions", body=self._body(request.question), cast_to=httpx2.Response)
        except openai.APITimeoutError:
            return _failed(request, f"timeout: no answer in {self.config.timeout_seconds:g} s")
        except openai.APIStatusError as error:
            return self._refused(request, error)
        except openai.APIConnectionError as error:
            if not self.was_answered:
                found = f"no server answers ({error.__cause__ or error})"
                raise ModelError(found, where=self.config.base_url, do="start it, or check chat.base_url") from error
            return _failed(request, f"unreachable: {error.__cause__ or error}")
        self.was_answered = True
        return read_completion(request, response.content)

    def _body(self, question: Question) -> dict[str, Any]:
        body: dict[str, Any] = {
            "model": self.config.model,
            "messages": msgspec.to_builtins(question.messages),
            self.config.token_limit: question.max_tokens,
        }
        if self.config.temperature is not None:
            body["temperature"] = self.config.temperature
        if question.alternatives:
            body |= {"logprobs": True, "top_logprobs": question.alternatives}
        return body | self.config.extra

    def _refused(self, request: Request, error: openai.APIStatusError) -> Reply:
        """A status that is no success: what the provider declines is a refusal, all else a failure."""
        said = error.response.text[:300]
        if error.status_code in _ASKED_WRONGLY:
            found = f"the server answers {error.status_code} ({said})"
            do = "check chat.base_url, chat.model and chat.secret"
            raise ModelError(found, where=self.config.base_url, do=do) from error
        if error.code == "content_filter":
            return Reply(request=request.id, failure="refused", detail=f"content filter: {said}")
        self.was_answered = True
        return _failed(request, f"http_{error.status_code}: {said}")


def _failed(request: Request, detail: str) -> Reply:
    return Reply(request=request.id, failure="failed", detail=detail)


def _key(secret: str | None) -> str:
    if secret is None:
        return _NO_KEY
    if not os.environ.get(secret):
        raise ConfigError(f"there is no environment variable {secret!r}", where="chat.secret", do="set it to the key")
    return os.environ[secret]
