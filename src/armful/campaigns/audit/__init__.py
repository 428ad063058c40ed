"""The assumptions of a campaign, checked on what came of it."""

from collections.abc import Iterable

from armful.campaigns._records import RoundRecord
from armful.campaigns.audit._data import Evidence, gather
from armful.campaigns.audit._finding import Finding, not_checked
from armful.campaigns.audit._model import check_drift, check_shape
from armful.campaigns.audit._rewards import check_cap, check_delays, check_leakage, check_radius
from armful.campaigns.audit._scores import WithinRounds
from armful.campaigns.audit._shocks import check_shocks
from armful.campaigns.audit._words import CAMPAIGN, Words
from armful.campaigns.settings import Settings
from armful.policies import Policy

__all__ = ["Finding", "audit"]

FALSE_ALARMS = 0.01
"""How often an audit finds something if nothing is wrong, about: the five checks that are tests share it."""

FEWEST_ROWS = 100
"""Known outcomes from which on features are looked at, and four for each feature."""

NONE_CAME = "This is checked once an outcome has come: what is known so far is what `missing` says."


def audit(
    records: Iterable[RoundRecord], policy: Policy, settings: Settings, names: list[str], *, words: Words = CAMPAIGN
) -> list[Finding]:
    """Return what the outcomes of closed rounds say about each assumption.

    If nothing is wrong, about one audit in a hundred finds something all the same.

    Parameters
    ----------
    records : iterable of RoundRecord
        All rounds; they are read twice, so an iterator will not do.
    policy : Policy
        The policy of the campaign.
    settings : Settings
        What the user has set, such as a discount that allows for drift.
    names : list of str
        The names of the features.
    words : Words, optional
        What the findings speak of: rounds and people if not given.

    Returns
    -------
    list of Finding
        One for each of: `cap`, a cap that outcomes contradict; `shocks`, noise that a round has in common; `drift`,
        effects that change over time; `shape`, effects that are no straight lines; `radius`, a bonus that does not fit
        the errors; `delays`, outcomes whose delay depends on their value; `leakage`, a column that explains everything.
        None for what the policy does not have: a cap, or a bonus.

    Raises
    ------
    ValueError
        If `records` is an iterator.
    """
    if iter(records) is records:
        raise ValueError("records are read twice: give a list, not an iterator")
    return findings(gather(records, len(names)), policy, settings, names, words)


def findings(
    evidence: Evidence, policy: Policy, settings: Settings, names: list[str], words: Words = CAMPAIGN
) -> list[Finding]:
    """Return what evidence says about each assumption, see `audit`."""
    each = FALSE_ALARMS / 5
    rows = evidence.rows
    enough = rows.n >= max(FEWEST_ROWS, 4 * len(names))
    few = f"needs {max(FEWEST_ROWS, 4 * len(names))} known outcomes of closed {words.rounds}, and {rows.n} are there"
    model = WithinRounds.fit(rows) if enough else None
    found = [
        check_cap(rows, policy, words, each),
        check_shocks(evidence, settings, words, each),
        not_checked("drift", f"Whether effects change over time {few}.")
        if model is None
        else check_drift(evidence, model, settings, names, words, each),
        not_checked("shape", f"Whether straight lines fit {few}.")
        if model is None
        else check_shape(model, rows, names, words, each),
        check_radius(evidence, policy, words),
        not_checked("delays", f"Whether late outcomes are like early ones {few}.")
        if model is None
        else check_delays(rows, model, settings, words, each),
        check_leakage(rows, names, words),
    ]
    made = [finding for finding in found if finding is not None]
    if evidence.n and not evidence.n_came:
        return [not_checked(finding.name, NONE_CAME) for finding in made]
    return made
