"""The plain text of a response or a prompt, for baselines that read characters."""

from collections.abc import Iterable

from steelyard.core.types import Case, Message, Response


def response_text(response: Response) -> str:
    """The answer's text; of an answer with several turns, all turns."""
    if response.text is not None:
        return response.text
    return _joined(response.messages or ())


def prompt_text(case: Case) -> str:
    """The whole conversation that was to be answered."""
    return _joined(case.prompt.messages)


def _joined(messages: Iterable[Message]) -> str:
    return "\n".join(message.content for message in messages)
