"""The lift in plain words."""

import math

import numpy as np

from armful.campaigns.lift._data import LiftData

FEWEST_REWARDS = 10
"""Below so many rewards that differ from the commonest, intervals are too narrow (docs/lift.md)."""

Interval = tuple[float | None, float | None, float | None]


COUNTED = {
    "booked": "bookings",
    "bought": "purchases",
    "clicked": "clicks",
    "converted": "conversions",
    "downloaded": "downloads",
    "opened": "openings",
    "ordered": "orders",
    "purchased": "purchases",
    "sold": "sales",
    "subscribed": "subscriptions",
    "viewed": "views",
    "visited": "visits",
}
"""What columns count that are named for what somebody did; others may be named for one of these nouns."""

AMOUNTS = {"income", "margin", "profit", "revenue", "spend", "turnover"}
"""Columns that are no counts, and whose name reads as a word."""


def unit_of(reward: str) -> str:
    """Return what stands after a number of rewards, by the name of their column.

    Examples
    --------
    >>> unit_of("visits"), unit_of("click"), unit_of("bought")
    ('visits', 'clicks', 'purchases')
    >>> unit_of("revenue"), unit_of("order_value")
    ('in revenue', "in 'order_value'")
    """
    name = reward.lower()
    if name in COUNTED:
        return COUNTED[name]
    if f"{name}s" in COUNTED.values():
        return f"{name}s"
    if name in AMOUNTS:
        return f"in {name}"
    return reward if reward.isalpha() and name.endswith("s") and not name.endswith("ss") else f"in {reward!r}"


def ended(text: str) -> str:
    """Return a text with a full stop, for where it stands as a sentence by itself.

    Examples
    --------
    >>> ended("+12 % (95 % CI 4 .. 21)"), ended("No lift can be given yet.")
    ('+12 % (95 % CI 4 .. 21).', 'No lift can be given yet.')
    """
    return text if text.endswith(".") else f"{text}."


def in_words(
    *,
    lift: float,
    low: float,
    high: float,
    relative: Interval,
    cost: float,
    level: float,
    unit: str,
    against: str,
    per: str = "contact",
) -> str:
    """Return the sentence of a lift: relative if its interval is known, else per contact, or what `per` says."""
    ratio, ratio_low, ratio_high = relative
    if against == "holdout" and ratio is not None and ratio_low is not None and ratio_high is not None:
        size = _with_interval(100 * ratio, 100 * ratio_low, 100 * ratio_high, level, " %")
    else:
        size = _with_interval(lift, low, high, level, f" {unit} per {per}")
    may_be_chance = low <= 0 <= high
    if may_be_chance:
        size += ", which may be chance"
    if against == "no-contact":
        return f"being contacted changes the outcome of those chosen by {size}"
    if may_be_chance:  # so may be what the holdout cost
        return size
    amount = f"{_short(abs(cost))} {unit}"
    return f"{size}; the holdout {'cost about ' + amount if cost >= 0 else 'brought about ' + amount + ' more'}"


def in_percent(share: float) -> str:
    """Return a share as a percentage: in whole numbers from 10 % on, with two digits that count below.

    Examples
    --------
    >>> in_percent(1.463), in_percent(0.05), in_percent(0.0042)
    ('146 %', '5 %', '0.42 %')
    """
    percent = 100 * share
    return f"{percent:.0f} %" if percent >= 10 else f"{percent:.2g} %"


def impossible(data: LiftData, against: str) -> str:
    """Return why no lift can be estimated."""
    start = "No lift can be given yet" if against == "holdout" else "The effect of a contact cannot be given yet"
    return f"{start}: {_reason(data, _share(against))}."


def _reason(data: LiftData, share: str) -> str:
    if not data.rewards.size:
        return "no round's window has closed"
    if data.treated.all():
        setting = "holdout.share" if share == _share("holdout") else "holdout.no_contact"
        return f"no closed round had people of {share} to compare with; {setting} says how many there are"
    known = np.isfinite(data.rewards)
    shares = {share: known & ~data.treated, "the chosen share": known & data.treated}
    for name, rows in shares.items():
        n_people = np.unique(data.people[rows]).size
        if n_people < 2:
            of = "1 person" if n_people == 1 else f"{n_people} people"
            return f"the outcomes of {of} of {name} are known, and two are needed"
    for name, rows in shares.items():
        values = np.unique(data.rewards[rows])
        if values.size == 1:
            return f"all known rewards of {name} are {values[0]:g}, so chance cannot be judged"
    return f"no round has two known outcomes in the chosen share and two in {share} that differ"


def notes(data: LiftData, against: str) -> tuple[str, ...]:
    """Return what to keep in mind of a lift that could be estimated."""
    rewards = data.rewards[np.isfinite(data.rewards) & ~data.treated]
    values, counts = np.unique(rewards, return_counts=True)
    n_others, commonest = rewards.size - counts.max(), values[counts.argmax()]
    if n_others >= FEWEST_REWARDS:
        return ()
    few = f"Only {rewards.size} rewards of {_share(against)} are known"
    if rewards.size >= FEWEST_REWARDS:
        verb = "differs" if n_others == 1 else "differ"
        few = f"Only {n_others} of the {rewards.size} known rewards of {_share(against)} {verb} from {commonest:g}"
    return (f"{few}: the intervals may be too narrow.",)


def _share(against: str) -> str:
    return "the holdout" if against == "holdout" else "the no-contact share"


def _with_interval(value: float, low: float, high: float, level: float, unit: str) -> str:
    digits = _digits(value, low, high)
    number, low_text, high_text = (_fixed(each, digits) for each in (value, low, high))
    sign = "+" if float(number.replace(",", "")) > 0 else ""
    return f"{sign}{number}{unit} ({100 * level:g} % CI {low_text} .. {high_text})"


def _digits(value: float, low: float, high: float) -> int:
    """Return the digits after the point that show the half width of an interval to two digits, at most."""
    half = (high - low) / 2
    if not 0 < half < math.inf:
        return 1
    return max(0, 1 - math.floor(math.log10(max(half, abs(value) / 100))) - (half >= 1))


def _fixed(value: float, digits: int) -> str:
    text = f"{value:,.{digits}f}"
    return text.lstrip("-") if float(text.replace(",", "")) == 0 else text


def _short(value: float) -> str:
    """Return a number with two digits that count."""
    if value >= 100:
        rounded = round(value, 1 - math.floor(math.log10(value)))
        return f"{rounded:,.0f}"
    return f"{value:.2g}"
