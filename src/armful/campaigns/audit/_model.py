"""Checks of the model: drift, and whether straight lines fit."""

from collections.abc import Iterator

import numpy as np

from armful.campaigns.audit._data import Evidence, Rows
from armful.campaigns.audit._finding import Finding, Level, fine, not_checked, number, percent, quoted, signed
from armful.campaigns.audit._groups import has_two_values, parts_of
from armful.campaigns.audit._scores import WithinRounds, critical
from armful.campaigns.audit._words import Words
from armful.campaigns.features import CONSTANT
from armful.campaigns.settings import Settings
from armful.checks import FloatArray

FEWEST_IN_A_BIN = 50

LARGE_GAIN = 0.1
"""What one more column would explain, as a fraction of what the model explains, from which on it is a problem."""

PREDICTIONS = ""
"""The name of the predictions among the features."""

COLUMNS_AT_ONCE = 16


def check_drift(
    evidence: Evidence, model: WithinRounds, settings: Settings, names: list[str], words: Words, false_alarms: float
) -> Finding:
    """Return whether the effect of a feature changes from the first to the last round, as a straight line in time."""
    n_rounds = evidence.sizes.size
    if n_rounds < 2:
        return not_checked("drift", f"Whether effects change over time needs two closed {words.periods}.")
    time = model.period - (n_rounds - 1) / 2
    Z = model.X * time[:, None]
    added = [model.test(Z[:, begin : begin + COLUMNS_AT_ONCE]) for begin in range(0, Z.shape[1], COLUMNS_AT_ONCE)]
    z, looks = np.concatenate([each.z for each in added]), sum(each.n_usable for each in added)
    if not looks:
        return not_checked("drift", "Whether effects change over time needs a feature with several values.")
    worst = int(np.abs(z).argmax())
    if abs(z[worst]) <= critical(false_alarms, looks):
        return fine(
            "drift",
            f"The effects of {looks} features are the same in early and late {words.rounds}, as far as chance lets "
            "see.",
        )
    gain = float(np.concatenate([each.gain for each in added])[worst]) / max(model.explained, np.finfo(float).tiny)
    spread = float(np.ptp(evidence.rows.X[:, worst]))
    change = float(np.concatenate([each.coefficient for each in added])[worst]) * spread * (n_rounds - 1)
    n_clear = int((np.abs(z) > critical(false_alarms, looks)).sum())
    what = (
        f"The effect of {quoted(names[worst])} changed by {signed(change)} from the first to the last of {n_rounds} "
        f"closed {words.periods} ({number(abs(float(z[worst])))} standard errors, the most of {looks} features; "
        f"{n_clear} of them clearly changed)."
    )
    discount = settings.learning.discount
    if discount < 1:
        return fine("drift", f"{what} The setting `discount = {number(discount)}` lets old {words.rounds} count less.")
    return Finding(
        name="drift",
        level="problem" if gain >= LARGE_GAIN else "look",
        sentence=what,
        consequence=f"Old {words.rounds} mislead the model about what works now.",
        repair=f"Set `discount = {number(min(max(1 - 2 / n_rounds, 0.5), 0.95))}` under `[learning]`: a "
        f"{words.period} then counts that fraction of the next one.",
    )


def check_shape(model: WithinRounds, rows: Rows, names: list[str], words: Words, false_alarms: float) -> Finding:
    """Return whether straight lines fit: residuals in fifths of each number, and in tenths of the predictions."""
    looks, z, residual, gain, name, part = 0, 0.0, 0.0, 0.0, PREDICTIONS, ""
    for of_feature, parts, bins in _bins(model, rows, names):
        added = model.test(bins)
        looks += added.n_usable
        j = int(np.abs(added.z).argmax())
        if abs(added.z[j]) > abs(z):
            z, gain, name, part = float(added.z[j]), float(added.gain[j]), of_feature, parts[j]
            residual = float(model.residuals @ bins[:, j] / bins[:, j].sum())
    if not looks:
        return not_checked(
            "shape",
            f"Whether straight lines fit needs groups of {FEWEST_IN_A_BIN} {words.people} that differ in a number, or "
            "in their predictions.",
        )
    if abs(z) <= critical(false_alarms, looks):
        return fine(
            "shape",
            f"Straight lines fit: in {looks:,} groups of {words.people} by features and predictions nothing is left "
            "over.",
        )
    share = gain / max(model.explained, np.finfo(float).tiny)
    level: Level = "problem" if share >= LARGE_GAIN else "look"
    of, repair = _misfit(name)
    return Finding(
        name="shape",
        level=level,
        sentence=f"{words.people.capitalize()} in the {part} of {of} earned {signed(residual)} compared with the "
        f"straight line of the model ({number(abs(z))} standard errors, the largest of {looks:,} groups); allowing "
        f"for it would explain {percent(share)} more.",
        consequence=f"The model misjudges some {words.people}, and more outcomes do not change that.",
        repair=repair,
    )


def _misfit(name: str) -> tuple[str, str]:
    """Return what a feature is called in a finding, and what to do where it does not fit."""
    if name == CONSTANT:  # it differs among arms only where it is multiplied by the weights of their places
        repair = "The weights of places, `positions` under `[service]`, do not fit: give others, or let them be "
        return "the weights of their places", f'{repair}estimated by `"estimate"`, which takes exploration.'
    of, column, more = quoted(name), f"the column of {quoted(name)}", "or `log = true`, under `[features.columns]`"
    if name == PREDICTIONS:
        of, column, more = "the predictions", "the numbers under `[features.columns]`", "or add pairs to `interactions`"
    later = "It takes effect in a new campaign: the features of this one are frozen."
    return of, f"Give {column} a `spline = 4`, {more}. {later}"


def _bins(model: WithinRounds, rows: Rows, names: list[str]) -> Iterator[tuple[str, list[str], FloatArray]]:
    """Return for each feature with more than two values its name, the names of its parts, and 0/1 columns of them."""
    numbers = [(name, values, 5) for name, values in zip(names, rows.X.T, strict=True) if not has_two_values(values)]
    for name, values, n in [*numbers, (PREDICTIONS, model.fitted, 10)]:
        parts, part = parts_of(values, n)
        counts = np.bincount(part)
        kept = np.flatnonzero((counts >= FEWEST_IN_A_BIN) & (counts < values.size))
        if kept.size:
            yield name, [parts[i] for i in kept.tolist()], (part[:, None] == kept).astype(np.float64)
