"""Measure how often intervals of the lift contain it, for the table in docs/lift.md.

python -m tests.campaigns.lift_table 4000
"""

import sys
from dataclasses import replace
from functools import partial

import numpy as np

from armful import CappedC2UCB, TopK
from armful.campaigns.lift import LiftData, estimate_lift, lift_path
from tests.campaigns.made_lift import MadeCampaign, stratified_interval

KINDS = {
    "people come back often": MadeCampaign(),
    "people come back seldom": MadeCampaign(people=5000),
    "a small holdout: 22 contacts a round": MadeCampaign(people=600, contacts=150, holdout=0.15),
    "sales, one in ten": MadeCampaign(sales=True, holdout=0.2),
    "most of the reward is predicted": MadeCampaign(people=5000, effect=1.0, own=0.3),
    "house rule by a score": MadeCampaign(rule="score"),
    "house rule by a score that tells nearly all": MadeCampaign(rule="score", effect=1.0, own=0.1, noise=0.3),
}


class LearnedCampaign:
    """Rewards linear in features, learned by `CappedC2UCB` from the outcomes of both shares."""

    def __init__(self, rounds, people=2000, contacts=400, holdout=0.1, d=6):
        self.rounds, self.people, self.d = rounds, people, d
        self.held = np.arange(people) >= people * (1 - holdout)
        self.picks = round(contacts * (1 - holdout)), round(contacts * holdout)

    def features(self, rng, n):
        return np.concatenate([np.ones((n, 1)), rng.standard_normal((n, self.d - 1))], axis=1) / np.sqrt(self.d)

    def draw(self, rng):
        """One campaign, and its lift: what each round's state gains in a population of 20,000 others, on average."""
        theta = np.concatenate([[1.0], 0.3 * rng.standard_normal(self.d - 1)])
        X, others = self.features(rng, self.people), self.features(rng, 20_000)
        own, policy = rng.standard_normal(self.people), CappedC2UCB(n_features=self.d, cap=3.0, ridge=1.0, seed=rng)
        ours, theirs = np.flatnonzero(~self.held), np.flatnonzero(self.held)
        people, rewards, lifts, controls, variances = [], [], [], [], []
        for _ in range(self.rounds):
            choice = policy.choose(X[ours], TopK(self.picks[0]))
            chosen = ours[choice.indices[np.argsort(-choice.scores)]]
            drawn = rng.permutation(theirs)[: self.picks[1]]
            n = round(self.picks[0] / ours.size * 20_000)
            best = np.argpartition(policy.scores(others, self.picks[0]), -n)[-n:]
            lifts.append((others[best] @ theta).mean() - theta[0] / np.sqrt(self.d))
            who, pool = np.concatenate([chosen, drawn]), policy.state.mean(X[theirs])
            controls.append(np.where(self.held[who], policy.state.mean(X[who]) - pool.mean(), 0.0))
            variances.append(np.where(self.held[who], pool.var() / pool.size, 0.0))
            earned = X[who] @ theta + own[who] + rng.standard_normal() + 0.7 * rng.standard_normal(who.size)
            policy.learn(X[who], earned)
            people.append(who)
            rewards.append(earned)
        people = np.concatenate(people)
        rank = np.concatenate([np.arange(1, self.picks[0] + 1) / self.picks[0], np.full(self.picks[1], np.nan)])
        data = LiftData(
            rounds=np.repeat(np.arange(self.rounds), sum(self.picks)),
            people=people,
            treated=~self.held[people],
            rewards=np.concatenate(rewards),
            controls=np.concatenate(controls),
            control_variances=np.concatenate(variances),
            ranks=np.tile(rank, self.rounds),
        )
        return data, np.cumsum(lifts) / np.arange(1, self.rounds + 1)


def draw_made(campaign, rng):
    return campaign.draw(rng), campaign.lift_so_far


def measure(draw, repetitions):
    """The fraction of campaigns whose lift is covered by each interval, and how much narrower the adjusted one is."""
    covered, ratio = np.zeros(5), []
    for _ in range(repetitions):
        data, truth = draw()
        path = lift_path(data)
        last, plain = path[-1], estimate_lift(replace(data, controls=None, control_variances=None))
        low, high = stratified_interval(data)
        looks = [(lift, truth[lift.n_rounds - 1]) for lift in path]
        covered += [
            last.low <= truth[-1] <= last.high,
            plain.low <= truth[-1] <= plain.high,
            low <= truth[-1] <= high,
            all(lift.low <= now <= lift.high for lift, now in looks),
            all(lift.anytime_low <= now <= lift.anytime_high for lift, now in looks),
        ]
        ratio.append((last.high - last.low) / (plain.high - plain.low))
    return 100 * covered / repetitions, float(np.mean(ratio))


def main(repetitions):
    rng = np.random.default_rng(2026)
    print("| campaign | rounds | adjusted | not adjusted | width | by round alone | every look | every look, anytime |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for name, kind in {**KINDS, "`CappedC2UCB` learns from both shares": None}.items():
        for rounds in (4, 8, 20):
            if kind is None:
                draw, n = LearnedCampaign(rounds).draw, repetitions // 4
            else:
                draw, n = partial(draw_made, kind.with_(rounds=rounds)), repetitions
            (adjusted, plain, alone, looks, anytime), width = measure(partial(draw, rng), n)
            first = f"| {name} | {rounds} | {adjusted:.1f} | {plain:.1f} | {width:.2f} "
            print(f"{first}| {alone:.1f} | {looks:.1f} | {anytime:.1f} |", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]))
