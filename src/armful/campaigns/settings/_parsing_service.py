"""The table `[service]` of `campaign.toml`: how decisions are served."""

from dataclasses import replace
from datetime import timedelta
from typing import Any, Literal

from armful.campaigns.settings._amounts import DURATION, SIZE
from armful.campaigns.settings._checking import COLUMN, SHARE, Check, Section, did_you_mean, dotted, number, whole
from armful.campaigns.settings._sections import FeatureSettings, ServiceSettings, Settings
from armful.campaigns.settings._toml_lines import KeyPath
from armful.campaigns.settings._toml_text import toml_key, toml_string

SERVICE_KEYS = (
    "update_every",
    "explore",
    "draws",
    "context",
    "positions",
    "largest_body",
    "most_arms",
    "rate",
    "timeout",
)
LONGEST_TIMEOUT = timedelta(hours=1)


def parse_service(section: Section, *, k: int, features: FeatureSettings) -> ServiceSettings:
    """Return the settings of the service, of slates of k arms."""
    default = ServiceSettings()
    settings = ServiceSettings(
        update_every=section.get("update_every", DURATION, default.update_every),
        explore=section.get("explore", SHARE, default.explore),
        draws=section.get("draws", whole(1), default.draws),
        context=_context(section, features),
        positions=section.get("positions", _POSITIONS, default.positions),
        largest_body=section.get("largest_body", SIZE, default.largest_body),
        most_arms=section.get("most_arms", whole(1), default.most_arms),
        rate=section.get("rate", number("a number of requests per second, or 0 for no limit", lambda x: x >= 0), 0.0),
        timeout=section.get("timeout", DURATION, default.timeout),
    )
    if settings.timeout > LONGEST_TIMEOUT:
        section.add(("timeout",), "must be at most an hour: it is how long a request may take to arrive")
    if isinstance(settings.positions, tuple) and len(settings.positions) < k:
        section.add(("positions",), f"must have a weight for each of the k = {k} places, got {len(settings.positions)}")
    if settings.positions == "estimate" and section.table.get("explore", 0) == 0:
        section.add(("positions",), 'is "estimate", which needs arms at random places: set explore, like 0.02')
    return settings


def unservable(settings: Settings) -> list[tuple[KeyPath, str]]:
    """Return what is set and makes no sense for single decisions: where, and a sentence that begins with its name.

    Parameters
    ----------
    settings : Settings
        With or without `[service]`.

    Returns
    -------
    list of (tuple of str, str)
    """
    found: list[tuple[KeyPath, str]] = []
    if settings.choose.rest:
        found.append((("choose", "rest"), "must be 0 for a service: arms are shown again and again; take it out"))
    if settings.holdout.no_contact:
        found.append((("holdout", "no_contact"), "must be 0 for a service: every request is answered; take it out"))
    if settings.holdout.rule != "random":
        found.append((("holdout", "rule"), 'must be "random" for a service: its holdout gets random slates'))
    return [(path, f"{dotted(path)} {sentence}") for path, sentence in found]


def crossed(features: FeatureSettings, context: tuple[str, ...]) -> FeatureSettings:
    """Return the features with every other column crossed with every column of the context."""
    arm = [column.name for column in features.columns if column.name not in context]
    return replace(features, interactions=tuple((name, other) for other in context for name in arm))


def _context(section: Section, features: FeatureSettings) -> tuple[str, ...]:
    columns = [column.name for column in features.columns]
    names: dict[str, None] = {}
    for i, name in section.items("context", COLUMN, '["country"]'):
        if features.ready:
            section.add(("context", i), "needs features.columns: ready features are not crossed with anything")
            break
        if name in names:
            section.add(("context", i), f"has {toml_string(name)} twice")
        elif name not in columns:
            hint = did_you_mean(name, columns) or f"add {toml_key(name)} = {{ kind = ... }} there"
            section.add(("context", i), f"has {toml_string(name)}, which features.columns does not; {hint}")
        names[name] = None
    return tuple(names)


def _positions(value: Any) -> tuple[float, ...] | Literal["estimate"]:
    if value == "estimate":
        return "estimate"
    if not isinstance(value, list) or not value:
        raise ValueError
    return tuple(_WEIGHT.convert(weight) for weight in value)


_WEIGHT = number("a weight", lambda x: 0 < x <= 1)
_POSITIONS: Check[tuple[float, ...] | Literal["estimate"] | None] = Check(
    'a list of weights above 0 and up to 1, like [1.0, 0.7, 0.5], or "estimate"', _positions
)
