"""The feature recipe as JSON that people can read."""

import json
from collections.abc import Callable, Sequence
from typing import Any

from armful.campaigns.features._kinds import Part
from armful.campaigns.features._numbers import Date, Number, Ready, Scale
from armful.campaigns.features._texts import Category, Ordered, Text
from armful.campaigns.features._transformers import TransformerFeatures
from armful.errors import FileFormatError

FORMAT = "armful feature recipe"
VERSION = 1
KINDS: dict[str, Callable[..., Part]] = {each.kind: each for each in (Number, Date, Category, Ordered, Text, Ready)}

Pairs = tuple[tuple[str, str], ...]
Parts = tuple[Part, ...]


def recipe_text(parts: Parts, interactions: Pairs, intercept: bool, left_out: Pairs) -> str:
    """Return the content of a recipe as JSON."""
    content = {
        "format": FORMAT,
        "version": VERSION,
        "intercept": intercept,
        "columns": [part.to_dict() for part in parts],
        "interactions": interactions,
        "left_out": left_out,
    }
    return json.dumps(content, indent=2, ensure_ascii=False)


def recipe_content(text: str, trusted: Sequence[str]) -> tuple[Parts, Pairs, bool, Pairs]:
    """Return what `recipe_text` was given; raise FileFormatError if it is something else."""
    try:
        content = json.loads(text)
        if content["format"] != FORMAT:
            raise ValueError
        version = content["version"]
        if version == VERSION:
            parts = tuple(_part(entry, trusted) for entry in content["columns"])
            return parts, _pairs(content["interactions"]), bool(content["intercept"]), _pairs(content["left_out"])
    except FileFormatError:
        raise
    except (ValueError, LookupError, TypeError):
        raise FileFormatError("the feature recipe cannot be read: FeatureRecipe.to_json did not write it") from None
    raise FileFormatError(
        f"the feature recipe has version {version}, this armful reads version {VERSION}: update armful"
    )


def _part(entry: dict[str, Any], trusted: Sequence[str]) -> Part:
    if entry["kind"] == TransformerFeatures.kind:
        return TransformerFeatures.from_dict(entry, trusted)
    return KINDS[entry["kind"]](**{name: _frozen(value) for name, value in entry.items() if name != "kind"})


def _frozen(value: Any) -> Any:
    """Return a value as it was before it was written: tuples became lists, and a scale an object."""
    if isinstance(value, dict):
        return Scale(**{name: _frozen(each) for name, each in value.items()})
    return tuple(value) if isinstance(value, list) else value


def _pairs(entries: list[list[str]]) -> Pairs:
    return tuple((first, second) for first, second in entries)
