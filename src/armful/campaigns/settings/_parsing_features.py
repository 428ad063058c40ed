"""The table `[features]` of `campaign.toml`: how columns become features."""

from collections.abc import Container
from typing import Any, cast, get_args

from armful.campaigns.settings._checking import COLUMN, FLAG, Check, Section, did_you_mean, text, whole, word
from armful.campaigns.settings._sections import ColumnSettings, FeatureSettings, Kind
from armful.campaigns.settings._toml_text import shown, toml_key, toml_string

FEATURE_KEYS = ("intercept", "interactions", "columns", "leave_out", "ready")
MOST_READY = 10_000
KINDS: tuple[Kind, ...] = get_args(Kind)
OPTIONS: dict[str, tuple[str, ...]] = {
    "number": ("log", "spline"),
    "category": ("at_most",),
    "ordered": ("order",),
    "date": (),
    "text": ("buckets",),
}
COLUMN_KEYS = ("kind", *(option for options in OPTIONS.values() for option in options))
_EXAMPLE = 'like age = { kind = "number" }'


def parse_features(section: Section, *, id: str, reward: str) -> FeatureSettings:
    """Return the settings of the features, among which neither the id nor the reward may be."""
    if "ready" in section:
        return _ready_features(section, id=id, reward=reward)
    table = section.section("columns")
    columns = tuple(column for name in table if (column := _column(table, name)) is not None)
    if not table.table:
        section.add(("columns",), f"is missing: it must be a table with a line for each column, {_EXAMPLE}")
    for name, what in ((id, "id"), (reward, "reward")):
        if name in table:
            table.add((name,), f"must not be a feature, since it is the {what}; take it out")
    return FeatureSettings(
        columns=columns,
        leave_out=_leave_out(section, table.table, "features.columns"),
        interactions=_interactions(section, table),
        intercept=section.get("intercept", FLAG, True),
    )


def _ready_features(section: Section, *, id: str, reward: str) -> FeatureSettings:
    """Return features that are used as they are."""
    ready = section.get("ready", _READY, ())
    for key in ("columns", "interactions", "intercept"):
        if key in section:
            section.add((key,), "is not used with features.ready, which is taken as it is; take one of them out")
    for name, what in ((id, "id"), (reward, "reward")):
        if name in ready:
            section.add(("ready",), f"must not have {toml_string(name)}, since it is the {what}; take it out")
    leave_out = _leave_out(section, ready, "features.ready")
    return FeatureSettings(columns=(), leave_out=leave_out, intercept=False, ready=ready)


def _ready(value: Any) -> tuple[str, ...]:
    if isinstance(value, list):
        names = tuple(COLUMN.convert(name) for name in value)
        if len(set(names)) < len(names):
            raise ValueError("it has a name twice")
    else:
        names = tuple(f"x{i + 1}" for i in range(min(whole(1).convert(value), MOST_READY + 1)))
    if not names:
        raise ValueError
    if len(names) > MOST_READY:
        raise ValueError(f"at most {MOST_READY:,} features can be used")
    return names


_READY: Check[tuple[str, ...]] = Check('a number of features, or a list of their names like ["price", "age"]', _ready)


def _column(table: Section, name: str) -> ColumnSettings | None:
    value = table.table[name]
    if not isinstance(value, dict):
        hint = "; leave_out belongs under [features], above [features.columns]" if name == "leave_out" else ""
        table.add((name,), f'must be a table like {{ kind = "number" }}, got {shown(value)}{hint}')
        return None
    section = table.section(name, COLUMN_KEYS)
    kind = section.need("kind", word(*KINDS), "")
    for option in section:
        if kind and option in COLUMN_KEYS[1:] and option not in OPTIONS[kind]:
            owner = next(other for other, options in OPTIONS.items() if option in options)
            section.add((option,), f'is an option of kind "{owner}", and this column is of kind "{kind}"')
    log, spline = section.get("log", FLAG, False), section.get("spline", whole(2), 0)
    if log and spline:
        section.add(("spline",), "and log exclude each other; take one of them out")
    return ColumnSettings(
        name=name,
        kind=cast(Any, kind),
        log=log,
        spline=spline,
        at_most=section.get("at_most", whole(1), 30),
        order=_order(section) if kind == "ordered" else (),
        buckets=section.get("buckets", whole(1), 32),
    )


def _order(section: Section) -> tuple[str, ...]:
    like = '["low", "middle", "high"]'
    if "order" not in section:
        section.add(("order",), f"is missing: it must be the list of all values from the lowest on, like {like}")
        return ()
    values = section.items("order", Check("a text in quotes, or a whole number", _text_or_whole), like)
    order = tuple(dict.fromkeys(value for _, value in values))
    if len(order) < len(values):
        section.add(("order",), "must not have a value twice")
    if isinstance(section.table["order"], list) and len(section.table["order"]) < 2:
        section.add(("order",), f"must have two values or more, from the lowest on, like {like}")
    return order


def _text_or_whole(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise ValueError
    return str(value)


def _leave_out(section: Section, used: Container[str], where: str) -> tuple[str, ...]:
    names: dict[str, None] = {}
    for i, name in section.items("leave_out", _ANY_COLUMN, '["duration"]'):
        if name in names:
            section.add(("leave_out", i), f"has {toml_string(name)} twice")
        if name in used:
            section.add(("leave_out", i), f"has {toml_string(name)}, which is in {where} too; take one out")
        names[name] = None
    return tuple(names)


def _any_text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError
    return value


_ANY_COLUMN = Check(COLUMN.expected, _any_text)
"""A column that is not used may have an empty name, as the row numbers have that some programs write."""


def _interactions(section: Section, columns: Section) -> tuple[tuple[str, str], ...]:
    pairs: dict[tuple[str, ...], tuple[str, str]] = {}
    for i, pair in section.items(
        "interactions", Check('a pair of columns, like ["job", "age"]', _pair), '[["job", "age"]]'
    ):
        if pair[0] == pair[1]:
            section.add(("interactions", i), f"must be of two different columns, got {toml_string(pair[0])} twice")
        for name in dict.fromkeys(pair):
            if name not in columns:
                hint = did_you_mean(name, columns) or f"add {toml_key(name)} = {{ kind = ... }}, or take the pair out"
                section.add(("interactions", i), f"has {toml_string(name)}, which features.columns does not; {hint}")
        if tuple(sorted(pair)) in pairs:
            section.add(("interactions", i), f"has the pair {toml_string(pair[0])}, {toml_string(pair[1])} twice")
        pairs[tuple(sorted(pair))] = pair
    return tuple(pairs.values())


def _pair(value: Any) -> tuple[str, str]:
    if not isinstance(value, list) or len(value) != 2:
        raise ValueError
    return text().convert(value[0]), text().convert(value[1])
