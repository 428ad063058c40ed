"""The top of `campaign.toml` and its smaller tables."""

import re
from datetime import timedelta
from pathlib import Path
from typing import Any, cast
from zoneinfo import ZoneInfo, available_timezones

from armful.campaigns.settings._amounts import DURATION
from armful.campaigns.settings._checking import COLUMN, SHARE, Check, Section, did_you_mean, number, text, whole, word
from armful.campaigns.settings._parsing_choose import BUDGET_KEYS, CHOOSE_KEYS, QUOTA_KEYS, parse_choose
from armful.campaigns.settings._parsing_features import FEATURE_KEYS, parse_features
from armful.campaigns.settings._parsing_policy import parse_policy
from armful.campaigns.settings._parsing_service import SERVICE_KEYS, crossed, parse_service, unservable
from armful.campaigns.settings._sections import HoldoutSettings, LearningSettings, OutcomeSettings, Settings
from armful.campaigns.settings._toml_lines import KeyPath
from armful.campaigns.settings._toml_text import shown

TABLES = ("choose", "policy", "features", "outcomes", "holdout", "learning", "service")
OUTCOME_KEYS = ("reward", "id", "round", "time", "timezone", "window", "missing", "learn", "repeats")
HOLDOUT_KEYS = ("share", "rule", "score", "no_contact")
LEARNING_KEYS = ("discount", "shock")
SECTIONS = {
    "": ("name", "store", "source", "id", "seed", "delimiter", *TABLES),
    "choose": CHOOSE_KEYS,
    "choose.quotas": QUOTA_KEYS,
    "choose.budget": BUDGET_KEYS,
    "features": FEATURE_KEYS,
    "outcomes": OUTCOME_KEYS,
    "holdout": HOLDOUT_KEYS,
    "learning": LEARNING_KEYS,
    "service": SERVICE_KEYS,
}
AT_ONCE = "at once"
WINDOW_CLOSES = "when the window closes"


def parse_root(root: Section, folder: Path | None, content: str) -> Settings:
    """Return the settings of a file; some are stand-ins if there are mistakes."""
    id = root.need("id", COLUMN, "")
    outcomes = _outcomes(root.section("outcomes", OUTCOME_KEYS), id)
    name, store = root.need("name", _NAME, ""), root.get("store", _STORE, "sqlite:///ledger.sqlite")
    choose = parse_choose(root.section("choose", CHOOSE_KEYS), folder)
    columns = root.section("features", FEATURE_KEYS)
    features = parse_features(columns, id=id, reward=outcomes.reward)
    service = None
    if "service" in root:
        service = parse_service(root.section("service", SERVICE_KEYS), k=choose.k, features=features)
        if service.context and "interactions" not in columns:
            features = crossed(features, service.context)
    settings = Settings(
        name=name,
        store=store,
        id=id,
        choose=choose,
        features=features,
        outcomes=outcomes,
        policy=parse_policy(root.section("policy")),
        holdout=_holdout(root.section("holdout", HOLDOUT_KEYS)),
        learning=_learning(root.section("learning", LEARNING_KEYS)),
        folder=folder or Path(),
        text=content,
        source=root.get("source", text("the name of a file, in quotes"), "") or None,
        seed=root.get("seed", whole(0), 0),
        delimiter=root.get("delimiter", _DELIMITER, ","),
        service=service,
    )
    _refuse_unlisted_columns(root, settings)
    for path, sentence in unservable(settings) if service is not None else ():
        root.mistakes.add(path, sentence)
    return settings


def _refuse_unlisted_columns(root: Section, settings: Settings) -> None:
    """Note columns that the choice needs and `features` does not list: they are misspelt, or forgotten there."""
    features = settings.features
    listed = [*(column.name for column in features.columns), *features.leave_out, *features.ready]
    used: list[tuple[KeyPath, str | None]] = [(("holdout", "score"), settings.holdout.score)]
    used += [(("choose", "quotas", i, "column"), quota.column) for i, quota in enumerate(settings.choose.quotas)]
    if settings.choose.budget is not None:
        used.append((("choose", "budget", "column"), settings.choose.budget.column))
    for path, column in used:
        if column and listed and column not in listed:
            hint = did_you_mean(column, listed) or "if it is no feature, put it into features.leave_out"
            root.add(path, f"must be a column that features lists, got {shown(column)}; {hint}")


def _outcomes(section: Section, id: str) -> OutcomeSettings:
    columns = {
        "reward": section.need("reward", COLUMN, ""),
        "id": section.get("id", COLUMN, id),
        "round": section.get("round", COLUMN, ""),
        "time": section.get("time", COLUMN, ""),
    }
    seen: dict[str, str] = {}
    for key, column in columns.items():
        if column and column in seen:
            at = key if key in section else seen[column]
            section.add(
                (at,), f"must be another column than {seen[column] if at == key else key}, got {shown(column)} twice"
            )
        seen.setdefault(column, key)
    return OutcomeSettings(
        reward=columns["reward"],
        id=columns["id"],
        round=columns["round"] or None,
        time=columns["time"] or None,
        timezone=section.get("timezone", _TIMEZONE, "UTC"),
        window=section.get("window", DURATION, timedelta(days=14)),
        missing=section.get("missing", _MISSING, 0.0),
        learn_at_once=section.get("learn", word(WINDOW_CLOSES, AT_ONCE), WINDOW_CLOSES) == AT_ONCE,
        repeats=cast(Any, section.get("repeats", word("refuse", "last", "sum", "max"), "refuse")),
    )


def _holdout(section: Section) -> HoldoutSettings:
    share, no_contact = section.get("share", SHARE, 0.05), section.get("no_contact", SHARE, 0.0)
    rule, score = section.get("rule", word("random", "score"), "random"), section.get("score", COLUMN, "")
    if share + no_contact >= 1:
        section.add(("no_contact",), f"and share must add up to less than 1, got {no_contact:g} and {share:g}")
    if rule == "score" and "score" not in section:
        section.add(("rule",), 'is "score", which needs the column: score = "..."')
    if rule == "random" and score:
        section.add(("score",), 'is only used with rule = "score"; set the rule, or leave the score out')
    return HoldoutSettings(share=share, rule=cast(Any, rule), score=score or None, no_contact=no_contact)


def _learning(section: Section) -> LearningSettings:
    return LearningSettings(
        discount=section.get("discount", number("a number above 0 and up to 1", lambda x: 0 < x <= 1), 1.0),
        shock=section.get("shock", number("a number that is 0 or larger", lambda x: x >= 0), 0.0),
    )


def _name(value: Any) -> str:
    if not isinstance(value, str) or not value.strip() or not value.isprintable() or len(value) > 200:
        raise ValueError
    return value


def _store(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError
    kind = value.partition(":")[0]
    if kind == "postgres":
        raise ValueError("write postgresql:// instead of postgres://")
    if kind == "sqlite" and not re.match("sqlite:///.", value):
        raise ValueError("a SQLite store is a file, after three slashes")
    if kind not in ("sqlite", "postgresql") and not value.startswith("postgresql+psycopg:"):
        raise ValueError
    if kind != "sqlite" and "://" not in value:
        raise ValueError
    return value


def _delimiter(value: Any) -> str:
    if not isinstance(value, str) or len(value) != 1 or value in '"\r\n' or not value.isascii():
        raise ValueError
    return value


def _missing(value: Any) -> float | None:
    return None if value == "unknown" else _FINITE.convert(value)


def _timezone(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError
    if value != "UTC":
        try:
            ZoneInfo(value)
        except (LookupError, ValueError, OSError):
            raise ValueError(did_you_mean(value, available_timezones())) from None
    return value


_FINITE = number("a number")
_NAME = Check("a name in quotes, of at most 200 characters on one line", _name)
_STORE = Check('a URL like "sqlite:///ledger.sqlite" or "postgresql://user@host/database"', _store)
_DELIMITER = Check('one character, like "," or ";"', _delimiter)
_MISSING: Check[float | None] = Check('a number or "unknown"', _missing)
_TIMEZONE = Check('a time zone like "UTC" or "Europe/Lisbon"', _timezone)
