"""Guesses at the roles of columns: which one is the id, which one the reward, and which one is worth a quota."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from armful.campaigns.init import _names as names
from armful.campaigns.init._guessing import ColumnGuess, guess_column, leaks
from armful.campaigns.init._profiles import ColumnProfile, FileProfile, first_repeat
from armful.campaigns.settings._checking import nearest
from armful.checks import FloatArray

MOST_GROUPS = 12
SMALLEST_GROUP = 0.01
ONE = {"1", "yes", "true", "y", "t", "success", "converted", "bought"}
"""How yes is written in a column of two values."""


@dataclass(frozen=True, kw_only=True)
class RewardGuess:
    """The reward column with its cap. why: the reason for the cap. in_file: whether the customers file has it."""

    name: str
    cap: float
    why: str
    in_file: bool


def check_id(source: Any, profile: FileProfile, id: str, delimiter: str) -> None:
    """Raise ValueError if a column cannot tell the customers of a file apart."""
    named(source, profile, id)
    repeated = first_repeat(source, id, delimiter)
    if repeated is not None:
        what = "is empty in a row" if repeated == "" else f"has {repeated!r} in several rows"
        raise ValueError(f"column {id!r} of {source} cannot be the id: it {what}, and every customer needs one id")


def named(source: Any, profile: FileProfile, name: str) -> ColumnProfile:
    """Return the column of this name; raise ValueError if the file has none."""
    columns = {column.name: column for column in profile.columns}
    if name not in columns:
        meant = nearest(name, columns)
        hint = f"it has {', '.join(list(columns)[:12])}" if meant is None else f"did you mean {meant!r}?"
        raise ValueError(f"{source} has no column {name!r}; {hint}")
    return columns[name]


def guess_id(source: Any, profile: FileProfile, delimiter: str) -> str:
    """Return the column with the name of an id whose values differ in the whole file; raise ValueError if none does."""
    named = [
        column for column in profile.columns if names.id_score(column.name) and column.looks in ("numbers", "texts")
    ]
    for column in sorted(named, key=lambda column: -names.id_score(column.name)):
        whole = column.numbers is None or column.are_whole
        if column.all_differ and whole and first_repeat(source, column.name, delimiter) is None:
            return column.name
    others = [repr(column.name) for column in profile.columns if column.all_differ and column.name][:5]
    found = f"; the values of {', '.join(others)} differ in all rows looked at" if others else ""
    almost = [column.name for column in named if names.id_score(column.name) > 1]
    repeated = f" ({almost[0]!r} is not it: some of its values are missing or repeated)" if almost else ""
    raise ValueError(
        f"{source} has no column that is evidently the id of a customer{repeated}, and a campaign needs one, since "
        f"outcomes come back by it: name it by --id, or add one, with another value in every row{found}"
    )


def guess_reward(profile: FileProfile, id: str, given: str | None) -> RewardGuess:
    """Return the reward column with a cap; what is known of it depends on whether the customers file has it."""
    columns = {column.name: column for column in profile.columns if column.name != id}
    ranks = {name: names.reward_rank(name) for name, column in columns.items() if _can_be_reward(column)}
    ranked = sorted((rank, name) for name, rank in ranks.items() if rank is not None)
    name = given or (ranked[0][1] if ranked else _free_name(columns))
    known = reward_numbers(columns[name]) if name in columns else np.array([])
    known = known[~np.isnan(known)]
    if not len(known):
        why = "right for yes or no, 1 or 0; for amounts, a number that no mean reward exceeds"
        return RewardGuess(name=name, cap=1.0, why=why, in_file=name in columns)
    if set(np.unique(known)) <= {0.0, 1.0}:
        return RewardGuess(name=name, cap=1.0, why=f"{name} is yes or no", in_file=True)
    high = float(np.quantile(known, 0.999))
    why = f"99.9 % of {name} are at most {high:,.6g}; check it: no mean reward may exceed it"
    return RewardGuess(name=name, cap=round_above(high), why=why, in_file=True)


def reward_numbers(column: ColumnProfile) -> FloatArray:
    """Return the rewards of the sample, NaN where there is none; of two words, the one that means yes is 1."""
    if column.numbers is not None:
        return column.numbers
    words = sorted(column.counts)
    if len(words) > 2:
        return np.full(column.n_rows, np.nan)
    yes = next((word for word in words if word.strip().lower() in ONE), words[-1] if words else "")
    return np.array([np.nan if text is None else float(text == yes) for text in column.texts])


def guess_columns(profile: FileProfile, id: str, reward: RewardGuess) -> list[ColumnGuess]:
    """Return the guesses for all columns but the id; those that tell the reward are left out."""
    columns = {column.name: column for column in profile.columns if column.name != id}
    target = reward_numbers(columns[reward.name]) if reward.in_file else None
    guesses = []
    for column in columns.values():
        guess = guess_column(column)
        if column.name == reward.name:
            guess = ColumnGuess(profile=column, settings=None, why="it is the reward")
        elif guess.settings is not None and target is not None and leaks(column, target):
            question = (
                f"is {column.name} known before a contact? It nearly tells {reward.name}, so it is left out; if it is, "
                "move it from leave_out to features.columns"
            )
            guess = replace(guess, settings=None, why=f"it nearly tells {reward.name}", question=question)
        guesses.append(guess)
    return guesses


def guess_quota(columns: Sequence[ColumnGuess]) -> ColumnProfile | None:
    """Return the column whose groups are most likely worth a quota: few groups, none of them tiny, a usual name."""
    found = [
        guess.profile
        for guess in columns
        if guess.settings is not None
        and guess.settings.kind == "category"
        and 2 < guess.profile.n_distinct <= MOST_GROUPS
        and min(guess.profile.counts.values()) >= SMALLEST_GROUP * guess.profile.n_rows
    ]
    return min(found, key=lambda profile: names.group_rank(profile.name), default=None)


def guess_k(n_rows: int) -> int:
    """Return how many contacts a round has: a tenth of the customers, rounded, and at most 1,000.

    Examples
    --------
    >>> guess_k(3), guess_k(280), guess_k(200_000)
    (1, 20, 1000)
    """
    tenth = n_rows // 10
    return 1000 if tenth >= 1000 else max(1, tenth - tenth % 10 if tenth >= 20 else tenth)


def round_above(number: float) -> float:
    """Return 1, 2 or 5 times a power of ten that is at least the number; 0 for 0 and less.

    Examples
    --------
    >>> round_above(137.5), round_above(0.03), round_above(5), round_above(-2)
    (200.0, 0.05, 5.0, 0.0)
    """
    if number <= 0:
        return 0.0
    exponent = math.floor(math.log10(number))
    candidates = [float(f"{digit}e{power}") for power in (exponent, exponent + 1) for digit in (1, 2, 5)]
    return next(each for each in candidates if each >= number)


def _can_be_reward(column: ColumnProfile) -> bool:
    return column.numbers is not None or (column.looks in ("texts", "truths") and column.n_distinct == 2)


def _free_name(columns: Sequence[str] | dict[str, Any]) -> str:
    return next(name for name in ("reward", "outcome", "armful_reward") if name not in columns)
