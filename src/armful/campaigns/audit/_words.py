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
    person, people : str
        What is chosen, the first one with its article.
    contact : str
        After what outcomes come.
    """

    rounds: str
    period: str
    periods: str
    person: str
    people: str
    contact: str


CAMPAIGN = Words(
    rounds="rounds", period="round", periods="rounds", person="a person", people="people", contact="contact"
)
