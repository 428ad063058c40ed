"""The words in which an audit speaks: of rounds and people, or of decisions and arms."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Words:
    """What the things are called that an audit speaks of.

    Attributes
    ----------
    rounds : str
        What is chosen and learned, one after the other, in the plural.
    period, periods : str
        What stands for a round in the checks: outcomes of one are compared with each other.
    times : str
        What may be good or bad for everybody.
    person, people : str
        What is chosen, the first one with its article.
    contact : str
        After what outcomes come.
    outcomes : str
        What outcomes are called in a title.
    set_shock : str
        What to do where the outcomes of a period move together, with `{shock}` for the value of the setting.
    """

    rounds: str
    period: str
    periods: str
    times: str
    person: str
    people: str
    contact: str
    outcomes: str
    set_shock: str


CAMPAIGN = Words(
    rounds="rounds",
    period="round",
    periods="rounds",
    times="rounds",
    person="a person",
    people="people",
    contact="contact",
    outcomes="outcomes",
    set_shock="Set `shock = {shock}` under `[learning]`.",
)

_TITLES = {
    "cap": "The cap",
    "shocks": "Good and bad {times}",
    "drift": "Effects that change",
    "shape": "Straight lines",
    "radius": "How much is tried out",
    "delays": "Late {outcomes}",
    "leakage": "Columns that know too much",
    "silence": "No {outcomes}",
}


def title(name: str, words: Words) -> str:
    """Return the title of a finding by its name.

    Examples
    --------
    >>> title("shocks", CAMPAIGN), title("delays", CAMPAIGN)
    ('Good and bad rounds', 'Late outcomes')
    """
    if name not in _TITLES:
        return name
    return _TITLES[name].format(times=words.times, outcomes=words.outcomes)
