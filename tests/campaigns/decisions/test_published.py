"""A published model as bytes, and the policy that knows it."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from armful import FileFormatError, RidgeState
from armful.campaigns.decisions import PublishedModel
from armful.campaigns.settings import parse_settings

D = 3
SETTINGS = (
    'name = "autumn"\nid = "id"\nchoose.k = 2\npolicy.cap = 1\noutcomes.reward = "click"\n'
    'features.columns.age.kind = "number"\n'
)


def made(seed=0, n_pending=4, **changes):
    rng = np.random.default_rng(seed)
    state = RidgeState(n_features=D).learn(rng.random((30, D)), rng.random(30))
    model = PublishedModel(
        version=7,
        made_at=datetime(2026, 5, 1, 12, 30, 15, 123456, tzinfo=UTC),
        state=state,
        pending=rng.random((n_pending, D)),
        position_weights=np.array([1.0, 0.5]),
        n_observations=30.0,
        names=("a", "b", "ü"),
        summary='{"decisions": 5}',
    )
    return replace(model, **changes)


@pytest.mark.parametrize("n_pending", [0, 1, 4])
def test_bytes_hold_the_whole_model(n_pending):
    model = made(n_pending=n_pending)
    again = PublishedModel.from_bytes(model.to_bytes(), model.summary)
    assert (again.version, again.made_at, again.names) == (model.version, model.made_at, model.names)
    assert (again.n_observations, again.summary) == (30.0, model.summary)
    assert np.array_equal(again.pending, model.pending)
    assert np.array_equal(again.position_weights, model.position_weights)
    X = np.random.default_rng(1).random((20, D))
    for one, other in zip(again.state.mean_and_width(X), model.state.mean_and_width(X), strict=True):
        assert np.allclose(one, other, rtol=1e-12)
    assert again.state.n == model.state.n


def test_the_policy_knows_what_is_outstanding():
    settings = parse_settings(SETTINGS, Path())
    model = made()
    policy = model.policy(settings, seed=3)
    X = np.random.default_rng(1).random((20, D))
    V = model.state.V + model.pending.T @ model.pending
    assert np.allclose(policy.state.width(X), np.sqrt(np.einsum("nd,de,ne->n", X, np.linalg.inv(V), X)))
    assert np.allclose(policy.state.mean(X), model.state.mean(X))
    assert policy.state.n == model.state.n


def test_another_ridge_in_the_settings_holds():
    settings = parse_settings(SETTINGS + "policy.ridge = 3.0\n", Path())
    model = made()
    policy = model.policy(settings)
    rng = np.random.default_rng(0)
    expected = RidgeState(n_features=D, ridge=3.0).learn(rng.random((30, D)), rng.random(30))
    V = expected.V + model.pending.T @ model.pending
    assert np.allclose(policy.state.V, V)
    assert np.allclose(policy.state.theta, expected.theta)


def test_damaged_bytes_are_refused():
    data = made().to_bytes()
    for cut in (0, 1, 100, len(data) // 2, len(data) - 1):
        with pytest.raises(FileFormatError):
            PublishedModel.from_bytes(data[:cut])
    with pytest.raises(FileFormatError, match="not consistent"):
        PublishedModel.from_bytes(made(names=("a",)).to_bytes())
    with pytest.raises(FileFormatError, match="not consistent"):
        PublishedModel.from_bytes(made(pending=np.full((1, D), np.nan)).to_bytes())
