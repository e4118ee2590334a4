"""Refusals in the words of a page: what people read who do not know the program, in each language of the pages."""

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType

from steelyard.core.errors import ConfigError, Place

_NO_VALUES: Mapping[str, str] = MappingProxyType({})


class RefusedError(ConfigError):
    """A request that people send by mistake. ``words``: the key of its sentence on pages, after ``refused``.

    ``values`` fill the places of that sentence. Programs and terminals get the problem itself.
    """

    def __init__(
        self,
        problem: str,
        *,
        words: str = "",
        values: Mapping[str, str] = _NO_VALUES,
        where: Place | str | None = None,
        allowed: str | None = None,
        do: str | None = None,
    ) -> None:
        super().__init__(problem, where=where, allowed=allowed, do=do)
        self.words, self.values = words, values

    def _maker(self) -> "Callable[..., RefusedError]":
        return partial(type(self), words=self.words, values=self.values)
