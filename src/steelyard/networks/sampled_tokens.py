"""Sample the tokens of replies so that each text depends on its prompt and its seed alone, in every batch.

Noise: each step of a row adds Gumbel noise from the row's own seed to the logits, and takes the largest (equal to
sampling from their softmax). Arithmetic: a batch moves the last digits of the logits. Where these could decide, that is
where the choice is not the same for every error within `ERROR_OF_DTYPE`, the row's logits are computed again alone.
"""

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

import numpy as np

from steelyard.core.numerics import Floats

ERROR_OF_DTYPE = {"float32": 1e-3, "bfloat16": 0.25}
"""A bound on the difference of a logit between a row in a batch, with a cache, and the row alone, by number type.

In float32 it is 18 times the largest difference that was measured; that of bfloat16 follows from its 8 bits and was not
measured.
"""
_FIRST_CANDIDATES = 64


class SamplingRule(NamedTuple):
    """The temperature, and the share ``top_p`` of probability of the likeliest tokens that are sampled from."""

    temperature: float
    top_p: float = 1.0


class SampledRow(NamedTuple):
    """A row to continue: the token ids of its prompt, and the seed of its noise."""

    ids: list[int]
    seed: int


def choose_token(logits: Floats, noise: Floats, rule: SamplingRule, error: float = 0.0) -> int | None:
    """Return the token of the largest noisy logit among the likeliest tokens; null where errors could change it.

    Each logit may be off by ``error``. A token is among the likeliest ones if those above it have less probability than
    ``top_p`` together.
    """
    scaled = logits.astype(np.float64) / rule.temperature
    noisy = scaled + noise
    shares = np.exp(scaled - scaled.max())
    shares /= shares.sum()
    slack = 2 * error / rule.temperature
    number = min(_FIRST_CANDIDATES, len(noisy))
    while True:
        highest = np.argpartition(-noisy, number - 1)[:number]
        chosen: int | None = None
        for token in highest[np.argsort(-noisy[highest], kind="stable")].tolist():
            if chosen is not None and noisy[token] < noisy[chosen] - slack:
                return chosen
            is_likely = _is_likely(token, scaled, shares, top_p=rule.top_p, slack=slack)
            if is_likely is False:
                continue
            if is_likely is None or (chosen is not None and slack):
                return None
            if chosen is None and not slack:
                return token
            chosen = token
        if number == len(noisy):
            return chosen
        number = len(noisy)


def sample_tokens(
    model: Any, rows: Sequence[SampledRow], rule: SamplingRule, *, longest: int, ends: Collection[int], error: float
) -> list[list[int]]:
    """Return the tokens after each row, up to its first end or to ``longest`` tokens; rows share their forward passes.

    ``model`` is a causal language model of the transformers library.
    """
    import torch

    generators = [np.random.default_rng(row.seed) for row in rows]
    written: list[list[int]] = [[] for _ in rows]
    running = list(range(len(rows)))
    width = max(len(row.ids) for row in rows)
    ids = torch.tensor([[0] * (width - len(row.ids)) + row.ids for row in rows], device=model.device)
    attended = torch.tensor([[0] * (width - len(row.ids)) + [1] * len(row.ids) for row in rows], device=model.device)
    cache: Any = None
    with torch.inference_mode():
        while running:
            positions = (attended.cumsum(1) - 1).clamp(min=0)[:, -ids.shape[1] :]
            result = model(
                input_ids=ids,
                attention_mask=attended,
                position_ids=positions,
                past_key_values=cache,
                use_cache=True,
                logits_to_keep=1,
            )
            cache = result.past_key_values
            for place, number in enumerate(running):
                logits = _as_numbers(result.logits[place, -1])
                noise = generators[number].gumbel(size=len(logits))
                token = choose_token(logits, noise, rule, error)
                if token is None:
                    # Without padding or cache the logits are exact.
                    row = torch.tensor([rows[number].ids + written[number]], device=model.device)
                    alone = model(input_ids=row, use_cache=False, logits_to_keep=1).logits[0, -1]
                    token = choose_token(_as_numbers(alone), noise, rule)
                assert token is not None, "without an error some token is the largest"
                written[number].append(token)
            going = [
                place
                for place, number in enumerate(running)
                if len(written[number]) < longest and written[number][-1] not in ends
            ]
            if len(going) < len(running) and going:
                chosen = torch.tensor(going, device=model.device)
                cache.batch_select_indices(chosen)
                attended = attended[chosen]
            running = [running[place] for place in going]
            if running:
                ids = torch.tensor([[written[number][-1]] for number in running], device=model.device)
                attended = torch.cat([attended, attended.new_ones(len(running), 1)], dim=1)
    return written


def _is_likely(token: int, scaled: Floats, shares: Floats, *, top_p: float, slack: float) -> bool | None:
    """Return whether a token is among the likeliest ones; null where an error within the slack decides."""
    if top_p >= 1:
        return True
    # Errors also move the shares: each by a factor between exp(-slack) and exp(slack).
    surely_above = float(shares[scaled > scaled[token] + slack].sum()) * np.exp(-slack)
    perhaps_above = (float(shares[scaled > scaled[token] - slack].sum()) - bool(slack) * shares[token]) * np.exp(slack)
    if perhaps_above < top_p:
        return True
    return False if surely_above >= top_p else None


def _as_numbers(logits: Any) -> Floats:
    return logits.float().cpu().numpy().astype(np.float64)
