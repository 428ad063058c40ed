"""Ledgers with made decisions, for tests."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np

from armful import LedgerError
from armful.campaigns.settings import parse_settings
from armful.ledger import Ledger, NewDecision, NewRewards

D = 4
NOON = datetime(2026, 3, 1, 12, 0, 0, 123457, tzinfo=UTC)
TEXT = """
name = "autumn"
id = "id"
choose.k = 3
policy.cap = 1
features.ready = 4
[outcomes]
reward = "click"
window = "30 minutes"
{outcomes}
[learning]
{learning}
[service]
{service}
"""


def made_settings(*, outcomes="", learning="", service="", **replaced):
    text = TEXT.format(outcomes=outcomes, learning=learning, service=service)
    for old, new in replaced.items():
        text = text.replace(f"{old} =", new)
    return parse_settings(text, Path())


def opened(folder, settings, name="ledger.sqlite"):
    Path(folder).mkdir(exist_ok=True)
    return Ledger.open(f"sqlite:///{Path(folder) / name}", settings.name, create=True, settings=settings.text)


def decision(rng, at, *, k=3, unit=None, key=None, shares=None, window=timedelta(minutes=30), ids=None, groups=None):
    """Return a decision with random arms; the mean reward of an arm is its first feature."""
    X = rng.random((k, D)).astype("<f4") / 2
    shares = ["chosen"] * k if shares is None else shares
    ids = rng.choice(50, k, replace=False).tolist() if ids is None else ids
    return NewDecision(
        key=key,
        unit=unit,
        model_version=1,
        chosen_at=at,
        closes_at=at + window,
        n_features=D,
        details="{}",
        rows=[
            (
                f"arm {ids[i]}",
                i,
                shares[i],
                float(X[i, 0]),
                0.1,
                False,
                1.0,
                X[i].tobytes(),
                None if groups is None else json.dumps({"kind": groups[i]}),
            )
            for i in range(k)
        ],
    )


def reward(ledger, number, arm, value, at):
    requests = [NewRewards(rewards=[(number, str(arm), value)], received_at=at, strict=True)]
    (added,) = ledger.add_reward_requests(requests)
    if isinstance(added, LedgerError):
        raise added


def assert_close(one, other):
    """Two states are the same to rounding."""
    assert np.allclose(one.V, other.V, rtol=1e-9, atol=1e-12)
    assert np.allclose(one.b, other.b, rtol=1e-9, atol=1e-12)
    assert np.allclose(one.squared_rewards, other.squared_rewards, rtol=1e-9, atol=1e-12)
    assert np.isclose(one.n, other.n)


def assert_same_gram(rows, X):
    X = np.asarray(X, dtype=np.float64)
    assert np.allclose(rows.T @ rows, X.T @ X, rtol=1e-9, atol=1e-12)
    assert len(rows) <= rows.shape[1]
