"""Checks of the rewards: the cap, the radius, delays that depend on the reward, and columns that know too much."""

import math

import numpy as np

from armful.campaigns.audit._data import Evidence, Rows, pseudo_inverse
from armful.campaigns.audit._finding import Finding, Level, fine, not_checked, number, percent, quoted
from armful.campaigns.audit._groups import ranks_of
from armful.campaigns.audit._scores import WithinRounds, critical
from armful.campaigns.audit._words import Words
from armful.campaigns.settings import Settings
from armful.checks import FloatArray, IntArray
from armful.policies import Policy

N_GROUPS = 10
"""Groups of people by their prediction, whose mean rewards are compared with the cap."""

FEWEST = 50
"""Known outcomes from which on these checks look."""

TOO_SMALL, FAR_TOO_SMALL, TOO_LARGE = 3.0, 10.0, 0.05
"""Errors of the predictions as multiples of the bonus. If the bonus is one standard error, as that of `CombLinUCB` is,
errors exceed three of them by chance about once in a thousand audits, even if all predictions are wrong alike."""

NEGLIGIBLE_ERROR = 0.1
"""As a fraction of the spread of mean rewards: such errors hardly change who is chosen, whatever the radius is."""

MUCH_EXPLORATION = 0.2

EXPLAINS_NEARLY_ALL, EXPLAINS_MUCH = 0.8, 0.5
SEPARATES = 0.98
FEWEST_ALIKE = 30


def check_cap(rows: Rows, policy: Policy, words: Words, false_alarms: float) -> Finding | None:
    """Return whether a group of people by their prediction has a mean reward above the cap; None without a cap."""
    cap = getattr(policy, "cap", None)
    if cap is None:
        return None
    if rows.n < FEWEST:
        return not_checked("cap", f"Whether the cap holds needs {FEWEST} known outcomes, and {rows.n} are there.")
    groups = np.array_split(np.argsort(rows.predicted, kind="stable"), min(N_GROUPS, rows.n // FEWEST))
    spread = float(rows.rewards.std())
    excess = [_excess(rows, group, cap, spread) for group in groups]
    highest = max(float(rows.rewards[group].mean()) for group in groups)
    if max(excess) <= critical(2 * false_alarms, len(groups)):
        return fine(
            "cap",
            f"No mean reward is above the cap of {number(cap)}: the highest of {len(groups)} groups of {words.people} "
            f"by prediction is {number(highest)}.",
        )
    return Finding(
        name="cap",
        level="problem",
        sentence=f"The cap says that no mean reward is above {number(cap)}, and the best of {len(groups)} groups of "
        f"{words.people} by prediction has {number(highest)} ({number(max(excess))} standard errors above it).",
        consequence=f"{words.people.capitalize()} worth more than the cap are scored alike, so the best of them are "
        "not preferred.",
        repair=f"Set `cap = {number(_rounded_up(1.5 * highest))}` under `[policy]`, or what no mean reward can exceed.",
    )


def _excess(rows: Rows, group: IntArray, cap: float, spread: float) -> float:
    """Return by how many standard errors the mean reward of a group is above the cap; a person counts once."""
    above = rows.rewards[group] - cap
    _, person = np.unique(rows.person[group], return_inverse=True)
    squares = float((np.bincount(person, weights=above - above.mean()) ** 2).sum())
    error = max(math.sqrt(squares) / group.size, spread / math.sqrt(group.size), rows.rounding)
    return 0.0 if error == 0 and above.mean() <= 0 else float(above.mean()) / max(error, np.finfo(float).tiny)


def _rounded_up(value: float) -> float:
    """Return the next number of one digit."""
    scale = 10.0 ** math.floor(math.log10(value))
    return math.ceil(value / scale) * scale


def check_radius(evidence: Evidence, policy: Policy, words: Words) -> Finding | None:
    """Return whether the bonus fits the errors of the predictions, known in hindsight; None of a policy without one."""
    rows = evidence.rows
    some = rows.chosen & rows.learned & (rows.bonus > 0)
    if policy.is_thompson or not hasattr(policy, "radius"):
        return None
    if some.sum() < FEWEST or evidence.n < 2 * len(evidence.moment):
        return not_checked(
            "radius",
            f"Whether enough is tried out needs {FEWEST} known outcomes of {words.people} chosen after the model had "
            f"learned, and {int(some.sum())} are there.",
        )
    X, bonus = rows.X[some], math.sqrt(float((rows.bonus[some] ** 2).mean()))
    in_hindsight = ((X @ evidence.theta - rows.predicted[some]) ** 2).mean()
    doubt = evidence.variance * float(((X @ pseudo_inverse(evidence.gram)) * X).sum(axis=1).mean())
    error, largest_error = math.sqrt(in_hindsight), math.sqrt(in_hindsight + 9 * doubt)
    spread = float((rows.X @ evidence.theta).std())
    what = (
        f"In hindsight the predictions were off by {number(error)} (root mean square); the bonus for what is not known "
        f"was {number(bonus)}"
    )
    if error > max(TOO_SMALL * bonus, NEGLIGIBLE_ERROR * spread, rows.rounding):
        return Finding(
            name="radius",
            level="problem" if error > FAR_TOO_SMALL * bonus else "look",
            sentence=f"{what}, {number(error / bonus)} times too little to make up for that.",
            consequence="The policy is too sure of its first impressions, and may never find out which "
            f"{words.people} it misjudged.",
            repair='Set `radius = "pointwise"` and `noise = "auto"` under `[policy]`; '
            f"a radius given as a number should be {number(error / bonus)} times as large.",
        )
    if largest_error < TOO_LARGE * bonus and evidence.exploring >= MUCH_EXPLORATION:
        return Finding(
            name="radius",
            level="look",
            sentence=f"{what}, {number(bonus / largest_error)} times as much as was needed; in the last closed "
            f"{words.period} {percent(evidence.exploring)} of the chosen were exploration.",
            consequence=f"The policy tries more {words.people} out than it has to, and earns less.",
            repair='Set `radius = "noise"` under `[policy]`, or a smaller `norm`, from which the radius is made.',
        )
    return fine("radius", f"{what}. That fits.")


def check_delays(rows: Rows, model: WithinRounds, settings: Settings, words: Words, false_alarms: float) -> Finding:
    """Return whether outcomes that come late differ from early ones of the same round and the same kind of people."""
    ranks = np.empty(rows.n)
    for period in np.unique(rows.period):
        inside = rows.period == period
        ranks[inside] = ranks_of(rows.delay[inside]) / inside.sum()
    added = model.test(ranks[:, None])
    if added.n_usable == 0:
        return fine(
            "delays", f"All outcomes of a {words.period} came equally soon, so none was learned before the others."
        )
    z, early = float(added.z[0]), ranks <= 0.5
    difference = float(model.residuals[early].mean() - model.residuals[~early].mean())
    if abs(z) <= critical(false_alarms, 1):
        return fine("delays", "Outcomes that came late are like those that came early, as far as chance lets see.")
    better = "higher" if z < 0 else "lower"
    what = (
        f"The half of the outcomes of a {words.period} that came first is {better} than the other, by "
        f"{number(abs(difference))} on average ({number(abs(z))} standard errors)."
    )
    outcomes = settings.outcomes
    if outcomes.learn_at_once:
        return Finding(
            name="delays",
            level="problem",
            sentence=what,
            consequence=f"Until a window closes, the model has seen mostly the {better} outcomes of a "
            f"{words.period}, and expects too {'much' if z < 0 else 'little'}.",
            repair='Set `learn = "when the window closes"` under `[outcomes]`.',
        )
    if outcomes.missing is None:
        return Finding(
            name="delays",
            level="look",
            sentence=what,
            consequence="Outcomes that never come count as unknown; if they are like the late ones, the model misses "
            "them.",
            repair="Under `[outcomes]` make `window` longer, or set `missing` to what no outcome means.",
        )
    return fine(
        "delays", f"{what} {words.rounds.capitalize()} are learned when their window closes, so this does no harm."
    )


def check_leakage(rows: Rows, names: list[str], words: Words) -> Finding:
    """Return whether a single feature explains nearly all of the rewards, as only something known afterwards does."""
    if rows.n < FEWEST or np.ptp(rows.rewards) <= rows.rounding:
        return not_checked("leakage", f"Whether a column knows too much needs {FEWEST} known outcomes that differ.")
    explained = np.array([_explained(rows.X[:, j], rows.rewards) for j in range(rows.X.shape[1])])
    best = int(explained.argmax())
    for j in np.flatnonzero(np.ptp(rows.X, axis=0) > 0).tolist():
        told = _told(rows.X[:, j], rows.rewards, words)
        if told:
            return _leak(names[j], "problem", f"{quoted(names[j])} {told}.", words)
    sentence = f"{quoted(names[best])} alone explains {percent(float(explained[best]))} of the variance of the rewards"
    if explained[best] >= EXPLAINS_MUCH:
        level: Level = "problem" if explained[best] >= EXPLAINS_NEARLY_ALL else "look"
        return _leak(names[best], level, f"{sentence}.", words)
    return fine("leakage", f"No column explains everything: {sentence}, the most of {len(names)} features.")


def _leak(name: str, level: Level, sentence: str, words: Words) -> Finding:
    return Finding(
        name="leakage",
        level=level,
        sentence=sentence,
        consequence=f"A column that is known only after the {words.contact} makes the model look perfect, and useless.",
        repair=f"If the column of {quoted(name)} is filled in after the {words.contact}, name it in `leave_out` under "
        "`[features]`, in a new campaign.",
    )


def _explained(values: FloatArray, rewards: FloatArray) -> float:
    """Return which fraction of the variance a feature explains, as a straight line or as a step function of tenths."""
    if np.ptp(values) == 0:
        return 0.0
    line = float(np.corrcoef(values, rewards)[0, 1]) ** 2
    bins = np.searchsorted(np.unique(np.quantile(values, np.linspace(0.1, 0.9, 9))), values, side="left")
    counts = np.maximum(np.bincount(bins), 1)
    means = np.bincount(bins, weights=rewards) / counts
    return max(line, float(means[bins].var() / rewards.var()))


def _told(values: FloatArray, rewards: FloatArray, words: Words) -> str:
    """Return in which way a feature tells the rewards outright, or nothing."""
    low, high = float(rewards.min()), float(rewards.max())
    top = values == values.max()
    if top.sum() >= FEWEST_ALIKE and (rewards[top] == high).all() and (rewards[~top] == high).mean() < 0.5:
        return f"tells the reward: all {int(top.sum()):,} {words.people} with its highest value earned {number(high)}"
    won = rewards == high
    if min(won.sum(), (~won).sum()) < FEWEST_ALIKE or not (won | (rewards == low)).all():
        return ""
    ranks = ranks_of(values)
    n_won, n_lost = int(won.sum()), int((~won).sum())
    area = (float(ranks[won].sum()) - n_won * (n_won + 1) / 2) / (n_won * n_lost)
    area = max(area, 1 - area)
    if area < SEPARATES:
        return ""
    return f"tells rewards of {number(high)} from rewards of {number(low)} in {percent(area)} of pairs"
