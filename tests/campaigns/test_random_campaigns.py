"""Random campaigns against a model in plain dictionaries: after every step the state is the literal sum."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta

import numpy as np
import pyarrow as pa
import pytest

from tests.campaigns.small import Clock, customers, make, opened

ACTIONS = ["choose", "learn", "learn", "learn", "wait", "forget", "reopen"]
WINDOW = timedelta(days=14)
VARIANTS = {
    "as usual": {},
    "discounted": {"learning": "discount = 0.7"},
    "unknown": {"outcomes": "missing = 'unknown'"},
    "at once": {"outcomes": "missing = 0.5\nlearn = 'at once'", "learning": "discount = 0.9"},
}


@dataclass
class Round:
    chosen_at: datetime
    people: dict[str, str]
    """The share of each."""
    rewards: dict[str, float] = field(default_factory=dict)

    def is_closed(self, now):
        return self.chosen_at + WINDOW <= now


@dataclass
class Known:
    """What should be known: the rounds, and the settings."""

    rounds: dict[int, Round] = field(default_factory=dict)
    missing: float | None = 0.0
    at_once: bool = False
    discount: float = 1.0

    def learn(self, rows, numbers, now):
        """Learn (id, reward) rows; numbers: the round of each, None for the last within whose window it is."""
        seen = {"new": set(), "repeated": set(), "corrected": set(), "never_chosen": 0, "outside_window": 0}
        before = {number: dict(round.rewards) for number, round in self.rounds.items()}
        for (id, reward), number in zip(rows, numbers, strict=True):
            if number is None:
                on = [n for n, round in self.rounds.items() if id in round.people]
                may = [n for n in on if self.rounds[n].chosen_at <= now <= self.rounds[n].chosen_at + WINDOW]
                may = may or [n for n in on if before[n].get(id) == reward]  # the same came in time
            else:
                on = may = [number] if id in self.rounds[number].people else []
            if not may:
                seen["outside_window" if on else "never_chosen"] += 1
                continue
            key, known = (may[-1], id), self.rounds[may[-1]].rewards
            if key in seen["new"] | seen["repeated"] | seen["corrected"]:
                continue  # the same again in one file
            seen["new" if id not in known else "repeated" if known[id] == reward else "corrected"].add(key)
            known[id] = reward
        return {name: each if isinstance(each, int) else len(each) for name, each in seen.items()}

    def forget(self, id):
        for round in self.rounds.values():
            round.people.pop(id, None)
            round.rewards.pop(id, None)

    def state(self, features, now):
        """Return V, b and the number of outcomes, discounted, by the formula."""
        d = next(iter(features.values())).size
        V, b, n = np.eye(d), np.zeros(d), 0.0
        for number, round in self.rounds.items():
            weight = self.discount ** (max(self.rounds) - number)
            for id, share in round.people.items():
                reward = round.rewards.get(id, self.missing if round.is_closed(now) else None)
                if share == "no-contact" or reward is None or not (self.at_once or round.is_closed(now)):
                    continue
                x = features[id].astype(np.float64)
                V, b, n = V + weight * np.outer(x, x), b + weight * reward * x, n + weight
        return V, b, n


def random_file(rng, known, ids):
    """Return rows of outcomes: of people on lists, strangers, some twice, in any order; and the round of each."""
    number = int(rng.integers(1, len(known.rounds) + 1))
    people = list({**known.rounds[number].people, **dict.fromkeys(rng.choice(ids, 5).tolist()), "a stranger": ""})
    picked = rng.choice(people, int(rng.integers(1, len(people) + 1)), replace=False).tolist()
    rows = [(id, float(rng.integers(3))) for id in picked]
    rows += [rows[i] for i in rng.integers(len(rows), size=4).tolist()]
    rng.shuffle(rows)
    return rows, [number if rng.random() < 0.6 else None] * len(rows)


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("seed", range(3))
def test_after_every_step_the_state_is_the_literal_sum(tmp_path, variant, seed):
    rng, clock, table, known = np.random.default_rng([seed, 7]), Clock(), customers(), Known()
    settings = VARIANTS[variant] | {"holdout": "no_contact = 0.1", "choose": "rest = 1"}
    known.discount = {"discounted": 0.7, "at once": 0.9}.get(variant, 1.0)
    known.missing = {"unknown": None, "at once": 0.5}.get(variant, 0.0)
    known.at_once = variant == "at once"
    folder = make(tmp_path / "a", **settings)
    campaign, ids = opened(folder, clock), table["id"].to_pylist()
    for step in range(25):
        action = "choose" if step == 0 else rng.choice(ACTIONS)
        if action == "choose":
            number = campaign.choose(table).number
            arms = campaign.ledger.chosen(number)
            known.rounds[number] = Round(clock(), dict(zip(arms.ids.tolist(), arms.shares.tolist(), strict=True)))
            features = dict(zip(ids, campaign.recipe.transform(table.to_batches()[0]), strict=True))
        elif action == "learn":
            rows, numbers = random_file(rng, known, ids)
            file = pa.table({"id": [id for id, _ in rows], "bought": [reward for _, reward in rows], "week": numbers})
            expected = known.learn(rows, numbers, clock())
            learned = campaign.learn(file, round="week" if numbers[0] is not None else None)
            assert {name: getattr(learned, name) for name in expected} == expected
        elif action == "wait":
            clock.pass_days(float(rng.integers(1, 10)))
        elif action == "forget":
            person = str(rng.choice(ids))
            assert campaign.forget([person]).n_people == any(person in each.people for each in known.rounds.values())
            known.forget(person)
        else:
            campaign.close()
            campaign = opened(folder, clock)
        V, b, n = known.state(features, clock())
        state = campaign.policy().state
        assert state.n == pytest.approx(n, rel=1e-12)
        np.testing.assert_allclose(state.V, V, rtol=1e-10, atol=1e-10)
        np.testing.assert_allclose(state.b, b, rtol=1e-10, atol=1e-10)
        outstanding = sum(
            share != "no-contact" and id not in round.rewards
            for round in known.rounds.values()
            if not round.is_closed(clock())
            for id, share in round.people.items()
        )
        assert campaign.status().outstanding == outstanding
    campaign.close()
