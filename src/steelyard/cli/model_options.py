"""The options of every verb that scores: how its model reads text, under the names that training has for them."""

from collections.abc import Mapping
from typing import Annotated, Any

import typer

OverLengthOption = Annotated[
    str | None,
    typer.Option(help="Answers over the model's limit: unscored (default: counted), left or right (cut), or refuse."),
]
MaxLengthOption = Annotated[int | None, typer.Option(help="The limit in tokens. Default: the model's own.")]
ChatTemplateOption = Annotated[
    str | None, typer.Option(help="For models without one: plain, or a Jinja file. Default: the model's own.")
]


def with_model_options(settings: Mapping[str, Any], **options: Any) -> dict[str, Any]:
    """The settings with each option that is not null among those of the model. Raises ConfigError for no table."""
    from steelyard.core.errors import ConfigError

    given = {name: value for name, value in options.items() if value is not None}
    own = settings.get("model", {})
    if not isinstance(own, dict):
        raise ConfigError(f"model is {own!r}", where="--set", do="write --set model.KEY=VALUE; the model is --model M")
    return {**settings, "model": {**own, **given}} if given else dict(settings)
