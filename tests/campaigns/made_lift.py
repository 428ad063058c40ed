"""Made campaigns with a known lift, to see how often intervals contain it.

The same people come back, rounds share shocks, and the policy gets better, so the lift grows. A person's score z is
standard normal; a contact of person i in round t brings `1 + shock_t + effect z_i + own_i + noise`, or a sale with a
probability of that kind. The chosen share contacts those with the best guess of z, which gets better from round to
round; the holdout contacts people at random.
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtri
from scipy.stats import norm

from armful.campaigns.lift import LiftData


@dataclass(frozen=True, kw_only=True)
class MadeCampaign:
    rounds: int = 8
    people: int = 2000
    contacts: int = 400
    holdout: float = 0.1
    shock: float = 0.5
    effect: float = 0.3  # of the score
    own: float = 1.0  # standard deviation of what a person has beyond the score
    noise: float = 0.7
    sales: bool = False  # rewards 0 or 1, about one in ten
    rule: str = "random"  # or "score": the holdout contacts those with the best score

    def with_(self, **changes):
        return replace(self, **changes)

    @property
    def guess(self):
        """The correlation of the policy's guess with the score in each round, (rounds,)."""
        return np.linspace(0.0, 0.9, self.rounds)

    @property
    def sizes(self):
        held = round(self.holdout * self.people)
        return self.people - held, held

    @property
    def picked(self):
        held = round(self.holdout * self.contacts)
        return self.contacts - held, held

    @property
    def lift_so_far(self):
        """The expected mean over the rounds so far of the difference between the shares, (rounds,)."""
        guess = np.cumsum(self.guess) / np.arange(1, self.rounds + 1)
        usual = _mean_of_best(self.picked[1], self.sizes[1]) if self.rule == "score" else 0.0
        return self._scale * self.effect * (guess * _mean_of_best(self.picked[0], self.sizes[0]) - usual)

    @property
    def lift(self):
        return self.lift_so_far[-1]

    @property
    def _scale(self):
        return 0.03 if self.sales else 1.0

    def draw(self, rng):
        """One campaign, with the mean of the holdout's pool as control."""
        held = np.arange(self.people) >= self.sizes[0]
        z, own = rng.standard_normal(self.people), self.own * rng.standard_normal(self.people)
        who = []
        for quality in self.guess:
            guess = quality * z + np.sqrt(1 - quality**2) * rng.standard_normal(self.people)
            usual = z if self.rule == "score" else rng.random(self.people)
            order = np.where(held, usual, guess)
            chosen = _best(order[: self.sizes[0]], self.picked[0])
            drawn = self.sizes[0] + _best(order[self.sizes[0] :], self.picked[1])
            who.append(np.concatenate([chosen, drawn]))
        people, rounds = np.concatenate(who), np.repeat(np.arange(self.rounds), self.contacts)
        shock = self.shock * rng.standard_normal(self.rounds)
        level = shock[rounds] + self.effect * z[people] + own[people]
        if self.sales:
            rewards = (rng.random(people.size) < np.clip(0.1 + self._scale * level, 0, 1)).astype(float)
        else:
            rewards = 1 + level + self.noise * rng.standard_normal(people.size)
        pool, drawn = z[held], held[people] & (self.rule == "random")
        ranks = np.tile(np.concatenate([np.arange(1, size + 1) / size for size in self.picked]), self.rounds)
        return LiftData(
            rounds=rounds,
            people=people,
            treated=~held[people],
            rewards=rewards,
            controls=np.where(drawn, z[people] - pool.mean(), 0.0),
            control_variances=np.where(drawn, pool.var() / pool.size, 0.0),
            ranks=np.where(drawn, np.nan, ranks),
        )


def _best(scores, k):
    """The indices of the k largest, the largest first."""
    best = np.argpartition(scores, -k)[-k:]
    return best[np.argsort(-scores[best])]


def _mean_of_best(k, n):
    """The expected mean of the k largest of n standard normal numbers (Blom's approximation)."""
    return float(ndtri((np.arange(n - k + 1, n + 1) - 0.375) / (n + 0.25)).mean())


def stratified_interval(data, level=0.95):
    """The usual interval that takes contacts, not people, as independent."""
    differences, variances = [], []
    for each in np.unique(data.rounds):
        ours, theirs = (data.rewards[(data.rounds == each) & (data.treated == share)] for share in (True, False))
        differences.append(ours.mean() - theirs.mean())
        variances.append(ours.var(ddof=1) / ours.size + theirs.var(ddof=1) / theirs.size)
    half = norm.ppf((1 + level) / 2) * np.sqrt(np.sum(variances)) / len(variances)
    return np.mean(differences) - half, np.mean(differences) + half
