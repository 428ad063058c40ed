"""Guesses at how the columns of a customers file become features."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from armful.campaigns.features._fitting import find_code
from armful.campaigns.init import _names as names
from armful.campaigns.init._profiles import ColumnProfile
from armful.campaigns.settings._sections import ColumnSettings
from armful.campaigns.settings._toml_text import toml_string
from armful.checks import FloatArray, IntArray

MOST_CATEGORIES = 100
MOST_CODES = 20
COVERED = 0.5
"""Of more categories than that, the 30 most frequent ones must make up so much of the rows."""
LEAKS = 0.9
"""A column that explains so much of the variance of the reward is asked about."""
BINS = 50
FEW_ROWS = 50
"""With fewer rows nothing is said about what explains what."""
FEW_CHANGES = 0.1
"""A column changes rarely if neighbouring rows differ so much less often than rows in any order would."""
_DATE = re.compile(r"\d{1,4}[/.-]\d{1,2}[/.-]\d{1,4}\b.*")


@dataclass(frozen=True, eq=False, kw_only=True)
class ColumnGuess:
    """How a column is used: by its `settings`, or left out if they are None.

    why: the reason, which completes "it is left out: ..." or describes the values. question: what the user should
    decide, if anything.
    """

    profile: ColumnProfile
    settings: ColumnSettings | None
    why: str
    question: str = ""

    @property
    def name(self) -> str:
        """The name of the column."""
        return self.profile.name


def guess_column(profile: ColumnProfile) -> ColumnGuess:
    """Return how a column should be used, by its values and its name."""
    left_out = _useless(profile) or _unreadable(profile)
    if left_out is not None:
        return left_out
    match profile.looks:
        case "dates":
            return _as(profile, "date")
        case "truths":
            return _as(profile, "category")
        case "numbers":
            return _number(profile)
        case _:
            return _text(profile)


def leaks(profile: ColumnProfile, reward: FloatArray) -> bool:
    """Return whether a column nearly tells the reward of each row, so that it may be known only afterwards.

    Numbers are divided into bins. The share of the variance of the reward that bins or texts explain is adjusted for
    their number.
    """
    known = ~np.isnan(reward)
    groups, y = _groups(profile)[known], reward[known]
    n, n_groups = len(y), len(np.unique(groups))
    total = float(np.sum((y - y.mean()) ** 2)) if n else 0.0
    if n < FEW_ROWS or n <= 2 * n_groups or not total:
        return False
    means = np.bincount(groups, y) / np.maximum(np.bincount(groups), 1)
    unexplained = float(np.sum((y - means[groups]) ** 2)) / total
    return unexplained * (n - 1) / (n - n_groups) < 1 - LEAKS


def changes_rarely(profile: ColumnProfile) -> bool:
    """Return whether neighbouring rows mostly have the same value, though the file is not sorted by it.

    Such a column tells the time at which a row was written, like an interest rate, more than the customer.
    """
    texts = profile.texts
    if profile.n_rows < FEW_ROWS or profile.n_distinct < 3 or profile.n_missing:
        return False
    frequencies = np.array(list(profile.counts.values())) / profile.n_rows
    expected = 1 - float(np.sum(frequencies**2))
    starts = [i for i, (before, after) in enumerate(pairwise(texts), 1) if before != after]
    firsts: Sequence[Any] = [(texts if profile.numbers is None else profile.numbers)[i] for i in [0, *starts]]
    is_sorted = list(firsts) in (sorted(firsts), sorted(firsts, reverse=True))
    return len(starts) < FEW_CHANGES * expected * (profile.n_rows - 1) and not is_sorted


def _left_out(profile: ColumnProfile, why: str, question: str = "") -> ColumnGuess:
    return ColumnGuess(profile=profile, settings=None, why=why, question=question)


def _useless(profile: ColumnProfile) -> ColumnGuess | None:
    """Return the guess for a column without information, or with information that comes too late."""
    if profile.n_distinct == 0 and profile.looks != "other":
        return _left_out(profile, "it is empty")
    if profile.n_distinct == 1 and not profile.n_missing:
        return _left_out(profile, f"it is {toml_string(next(iter(profile.counts))[:40])} in every row")
    if names.known_afterwards(profile.name):
        return _left_out(
            profile,
            "by its name it is known only after a contact",
            f"is {profile.name} known before a contact? By its name it is not, so it is left out; if it is, move it "
            "from leave_out to features.columns",
        )
    return None


def _unreadable(profile: ColumnProfile) -> ColumnGuess | None:
    """Return the guess for a column that the recipe cannot read."""
    if profile.looks == "other":
        return _left_out(profile, f"{profile.type} is no kind of feature")
    if profile.has_decimal_commas:
        return _left_out(
            profile,
            "its numbers are written with a comma",
            f"{profile.name} has numbers written like {next(iter(profile.counts))}, so it is left out; to use it, "
            "write them with a decimal point and without other marks",
        )
    if profile.looks == "texts" and all(_DATE.fullmatch(text.strip()) for text in profile.counts):
        return _left_out(
            profile,
            "its dates are not written like 2026-12-31",
            f"{profile.name} has dates like {next(iter(profile.counts))}, so it is left out; to use it, write them "
            "like 2026-12-31 or 31.12.2026",
        )
    return None


def _as(profile: ColumnProfile, kind: str, *, log: bool = False) -> ColumnGuess:
    settings = ColumnSettings(name=profile.name, kind=kind, log=log)  # type: ignore[arg-type]
    return ColumnGuess(profile=profile, settings=settings, why=_description(profile, log))


def _number(profile: ColumnProfile) -> ColumnGuess:
    is_id = names.id_score(profile.name) > 0
    if profile.are_whole and profile.all_differ and (is_id or _counts_rows(profile)):
        return _left_out(profile, "it has another number in every row, as an id does")
    if profile.are_whole and (is_id or names.is_code(profile.name)):
        if profile.n_distinct <= MOST_CODES or _top_share(profile) >= COVERED:
            return _as(profile, "category")
        return _left_out(profile, f"by its name it holds codes, and there are {profile.n_distinct:,} of them")
    return _as(profile, "number", log=_is_very_skewed(profile.known))


def _text(profile: ColumnProfile) -> ColumnGuess:
    n_known = profile.n_rows - profile.n_missing
    if names.is_personal(profile.name) and profile.n_distinct > MOST_CATEGORIES:
        return _left_out(profile, "it tells who somebody is, not what they are like")
    if profile.n_distinct <= MOST_CATEGORIES and 2 * profile.n_distinct <= max(n_known, 3):
        return _as(profile, "category")
    if _has_repeated_words(profile):
        return _as(profile, "text")
    if _top_share(profile) >= COVERED and 2 * profile.n_distinct <= n_known:
        return _as(profile, "category")
    return _left_out(profile, f"it has {profile.n_distinct:,} different values in {n_known:,} rows")


def _description(profile: ColumnProfile, log: bool) -> str:
    """Return a few words about the values."""
    if profile.looks == "numbers" and profile.n_distinct > 2:
        low, high = profile.known.min(), profile.known.max()
        return f"{low:,.6g} to {high:,.6g}" + ", very skewed" * log
    if profile.n_distinct <= MOST_CATEGORIES:
        first = ", ".join(toml_string(text[:20]) for text in list(profile.counts)[:3])
        return f"{profile.n_distinct} values: {first}{', ...' * (profile.n_distinct > 3)}"
    return f"{profile.n_distinct:,} different values"


def _counts_rows(profile: ColumnProfile) -> bool:
    """Return whether numbers that all differ rise from row to row, as row numbers do."""
    return len(profile.known) > 2 and bool(np.all(np.diff(profile.known) > 0))


def _top_share(profile: ColumnProfile) -> float:
    """Return the share of rows whose value is one of the 30 most frequent ones."""
    kept = ColumnSettings(name=profile.name, kind="category").at_most
    return sum(list(profile.counts.values())[:kept]) / max(profile.n_rows - profile.n_missing, 1)


def _has_repeated_words(profile: ColumnProfile) -> bool:
    """Return whether texts consist of several words, which occur in other texts too."""
    texts = [text for text in profile.texts if text is not None]
    words = [word for text in texts for word in set(re.findall(r"[^\W_]+", text.lower()))]
    spaced = np.mean([" " in text.strip() for text in texts])
    return bool(spaced > 0.3) and len(words) >= 1.5 * len(texts) and len(words) >= 5 * len(set(words))


def _is_very_skewed(known: FloatArray) -> bool:
    """Return whether numbers are never negative and the largest are far above the usual ones; zeros do not count."""
    code = find_code(known) if len(known) else None
    positive = known[(known > 0) & (known != code)]
    if len(positive) < FEW_ROWS or known.min() < 0:
        return False
    median = float(np.median(positive))
    return bool(np.quantile(positive, 0.995) > 20 * median or positive.mean() > 5 * median)


def _groups(profile: ColumnProfile) -> IntArray:
    """Return a group for each row, counted from 0: bins of numbers, or frequent texts; one for missing values."""
    if profile.numbers is not None and profile.n_distinct > BINS:
        edges = np.unique(np.quantile(profile.known, np.linspace(0, 1, BINS + 1)[1:-1]))
        found = np.searchsorted(edges, profile.numbers, side="right")
        return np.where(np.isnan(profile.numbers), len(edges) + 1, found)
    position: dict[str | None, int] = {text: i for i, text in enumerate(list(profile.counts)[:BINS])}
    position[None] = len(position)
    return np.array([position.get(text, len(position)) for text in profile.texts])
