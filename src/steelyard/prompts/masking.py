"""Masking of private data in all texts of a case: its prompt, reference, responses, reasons and what formats keep.

What is dropped or counted depends on the prompt alone. A kind that is to be masked is masked wherever the case
has it, so that an answer does not repeat what its prompt no longer says. Names (ids, authors, judges) stay as they are.
"""

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from steelyard.core.types import Case, Message, Rating, Response
from steelyard.prompts.private_data import PrivateDatum, find_private_data, mask_private_data
from steelyard.prompts.screening import ScreenedPrompt, ScreeningConfig, private_action


def masked_case(case: Case, screened: ScreenedPrompt, config: ScreeningConfig) -> Case:
    """Return the case with its prompt's language filled in, and with the data masked that are to be.

    Spans of ratings move with the text of their response.
    """
    original = case.prompt
    messages = tuple(
        replace(message, content=mask_private_data(message.content, _to_mask(data, config)))
        for message, data in zip(original.messages, screened.private, strict=True)
    )
    prompt = replace(
        original,
        messages=messages,
        language=screened.language,
        reference=masked_values(original.reference, config),
        meta=masked_values(original.meta, config),
    )
    if "mask" not in config.private_data.values():
        return replace(case, prompt=prompt)
    data = {response.id: _data_to_mask(response, config) for response in case.responses}
    return replace(
        case,
        prompt=prompt,
        responses=tuple(_masked_response(response, config) for response in case.responses),
        judgments=tuple(
            replace(judgment, reason=masked_values(judgment.reason, config), meta=masked_values(judgment.meta, config))
            for judgment in case.judgments
        ),
        ratings=tuple(_masked_rating(rating, data.get(rating.response, []), config) for rating in case.ratings),
        meta=masked_values(case.meta, config),
    )


def num_changed(before: Case, after: Case) -> int:
    """Count the responses in whose text something was masked."""
    pairs = zip(before.responses, after.responses, strict=True)
    return sum((first.text, first.messages) != (second.text, second.messages) for first, second in pairs)


def masked_values(value: Any, config: ScreeningConfig) -> Any:
    """Return a text, or JSON with texts in it, with the data masked that are to be."""
    if "mask" not in config.private_data.values():
        return value
    if isinstance(value, str):
        return mask_private_data(value, _to_mask(find_private_data(value), config))
    if isinstance(value, dict):
        return {key: masked_values(part, config) for key, part in value.items()}
    return [masked_values(part, config) for part in value] if isinstance(value, list) else value


def _masked_response(response: Response, config: ScreeningConfig) -> Response:
    messages: tuple[Message, ...] | None = None
    if response.messages is not None:
        messages = tuple(replace(turn, content=masked_values(turn.content, config)) for turn in response.messages)
    return replace(
        response,
        text=masked_values(response.text, config),
        messages=messages,
        meta=masked_values(response.meta, config),
    )


def _masked_rating(rating: Rating, data: Sequence[PrivateDatum], config: ScreeningConfig) -> Rating:
    spans = None
    if rating.spans is not None:
        spans = tuple(
            (_moved(start, data, is_end=False), _moved(end, data, is_end=True), label, masked_values(reason, config))
            for start, end, label, reason in rating.spans
        )
    return replace(rating, spans=spans, meta=masked_values(rating.meta, config))


def _data_to_mask(response: Response, config: ScreeningConfig) -> list[PrivateDatum]:
    """Return the data to mask by their places in `core.text.response_text`, which spans count in."""
    turns = [response.text] if response.text is not None else [turn.content for turn in response.messages or ()]
    data: list[PrivateDatum] = []
    start = 0
    for turn in turns:
        of_turn = _to_mask(find_private_data(turn), config)
        data += (datum._replace(start=datum.start + start, end=datum.end + start) for datum in of_turn)
        start += len(turn) + len("\n")
    return data


def _moved(place: int, data: Sequence[PrivateDatum], *, is_end: bool) -> int:
    """Return where a place of a text is once the data are masked; inside of one it becomes the mask's start or end."""
    shift = 0
    for datum in data:
        mask = len(datum.kind) + len("[]")
        if place >= datum.end:
            shift += mask - (datum.end - datum.start)
        elif place > datum.start:
            return datum.start + shift + (mask if is_end else 0)
    return place + shift


def _to_mask(data: Sequence[PrivateDatum], config: ScreeningConfig) -> list[PrivateDatum]:
    return [datum for datum in data if private_action(datum, config.private_data) == "mask"]
