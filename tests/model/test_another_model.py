"""A model written from scratch, with V itself in place of its root: the Protocol is all that policies need."""

import secrets

import numpy as np
import pytest

import armful
from armful import C2UCB, ArmwiseThompson, CappedC2UCB, FileFormatError, TopK, simulate
from armful.environments import Slates
from armful.files import _npz_format as npz_format
from armful.testing import ModelContract, PolicyContract


class NaiveRidge:
    def __init__(self, *, n_features, ridge=1.0, batch=()):
        self.n_features, self.ridge = n_features, ridge
        d, axes = n_features, batch if isinstance(batch, tuple) else (batch,)
        self.moments, self._n, self.parts = np.zeros((*axes, d + 1, d + 1)), np.zeros(axes), frozenset()

    def _new(self, moments, n, parts):
        new = NaiveRidge(n_features=self.n_features, ridge=self.ridge)
        new.moments, new._n, new.parts = moments, np.asarray(n), parts
        return new

    batch = property(lambda self: self._n.shape)
    n = property(lambda self: self._n)
    V = property(lambda self: self.moments[..., :-1, :-1] + self.ridge * np.eye(self.n_features))
    b = property(lambda self: self.moments[..., :-1, -1])
    theta = property(lambda self: np.linalg.solve(self.V, self.b[..., None])[..., 0])
    root = property(lambda self: np.swapaxes(np.linalg.cholesky(self.V), -1, -2))
    inverse_root = property(lambda self: np.linalg.inv(self.root))
    residual = property(lambda self: np.maximum(self.moments[..., -1, -1] - (self.b * self.theta).sum(-1), 0.0))
    squared_norms = property(lambda self: np.trace(self.moments[..., :-1, :-1], axis1=-2, axis2=-1))
    log_det_gain = property(lambda self: np.maximum(np.linalg.slogdet(self.V / self.ridge)[1], 0.0))

    @np.errstate(invalid="ignore")
    def mean_and_width(self, X, *, some_of_many=False):
        width = np.sqrt(((X[..., None] * self.inverse_root[..., None, :, :]).sum(-2) ** 2).sum(-1))
        return self.project(X, self.theta), self._checked(width)

    @np.errstate(invalid="ignore")
    def project(self, X, theta, *, some_of_many=False):
        return self._checked((X * theta[..., None, :]).sum(-1))

    def _checked(self, values):
        if not np.isfinite(values).all():
            raise ValueError("features must be finite")
        return values

    def sample(self, standard_normals):
        return self.theta + (self.inverse_root @ standard_normals[..., None])[..., 0]

    def learn(self, X, rewards, *, weights=None, shock=0.0):
        X, rewards = np.asarray(X, dtype=float), np.asarray(rewards, dtype=float)
        w = np.ones(rewards.shape) if weights is None else np.asarray(weights, dtype=float)
        if (
            X.shape != (*self.batch, *rewards.shape[-1:], self.n_features)
            or not w.shape == rewards.shape == X.shape[:-1]
        ):
            raise ValueError("features, rewards and weights do not fit")
        rows = np.concatenate([X, rewards[..., None]], axis=-1)
        if not (np.isfinite(rows).all() and np.isfinite(w).all() and (w >= 0).all()):
            raise ValueError("features, rewards and weights must be finite")
        moments = self.moments + np.swapaxes(rows, -1, -2) @ (w[..., None] * rows)
        return self._new(moments, self._n + w.sum(-1), self.parts or frozenset([secrets.randbits(60)]))

    def __add__(self, other):
        self.refuse_unlike(other)
        return self._new(self.moments + other.moments, self._n + other._n, self.parts | other.parts)

    def discount(self, factor):
        if not 0 <= factor <= 1:
            raise ValueError("a discount must be from 0 to 1")
        return self._new(factor * self.moments, factor * self._n, self.parts)

    def empty(self):
        return NaiveRidge(n_features=self.n_features, ridge=self.ridge, batch=self.batch)

    def overlaps(self, other):
        return bool(self.parts & other.parts)

    def as_one_source(self):
        return self._new(self.moments, self._n, frozenset([-1]))

    def refuse_unlike(self, other):
        if (self.n_features, self.ridge, self.batch) != (other.n_features, other.ridge, other.batch):
            raise ValueError("the models differ")

    def __getitem__(self, index):
        return self._new(self.moments[index], self._n[index], self.parts)

    def repeat(self, times):
        return self._new(*(np.repeat(array[None], times, axis=0) for array in (self.moments, self._n)), self.parts)

    def folded(self):
        return self

    def save(self, path):
        npz_format.write(path, "naive ridge", {"ridge": self.ridge}, self.to_arrays())

    @classmethod
    def load(cls, path):
        header, arrays = npz_format.read(path, "naive ridge")
        return cls.from_arrays(header["ridge"], arrays, path)

    def to_arrays(self):
        return {"moments": self.moments, "n": self._n, "sources": np.array(sorted(self.parts), dtype=np.int64)}

    @classmethod
    def from_arrays(cls, ridge, arrays, path):
        if not {"moments", "n"} <= set(arrays):
            raise FileFormatError(f"{path} does not hold a model")
        empty = cls(n_features=arrays["moments"].shape[-1] - 1, ridge=ridge)
        return empty._new(arrays["moments"], arrays["n"], frozenset(arrays["sources"].tolist()))


class TestNaiveRidge(ModelContract):
    def model(self, n_features, batch):
        return NaiveRidge(n_features=n_features, ridge=0.5, batch=batch)


class NaiveC2UCB(C2UCB):
    model_class = NaiveRidge


class NaiveCapped(CappedC2UCB):
    model_class = NaiveRidge


class NaiveThompson(ArmwiseThompson):
    model_class = NaiveRidge


@pytest.mark.parametrize("radius", [0.5, "noise", "pointwise", "logdet", "theory"])
def test_policies_choose_with_another_model_as_with_the_ridge_state(radius, tmp_path):
    rng = np.random.default_rng(0)
    for naive, kind in ((NaiveC2UCB, C2UCB), (NaiveCapped, CappedC2UCB), (NaiveThompson, ArmwiseThompson)):
        options = {"n_features": 3, "ridge": 1.0, "radius": radius, "seed": 1}
        options |= {"cap": 1.0} if kind is CappedC2UCB else {}
        one, other = naive(**options), kind(**options)
        for _ in range(10):
            X, rewards = rng.standard_normal((30, 3)), rng.standard_normal(4)
            choices = [policy.choose(X, TopK(4)) for policy in (one, other)]
            assert np.array_equal(choices[0].indices, choices[1].indices)
            for policy, choice in zip((one, other), choices, strict=True):
                policy.learn(choice, 0.1 * rewards)
            one.save(tmp_path / "policy")
            one = armful.load(tmp_path / "policy")
            assert isinstance(one.state, NaiveRidge)


def test_many_arms_and_simulations_take_another_model():
    rng = np.random.default_rng(2)
    one, other = (kind(n_features=3, ridge=1.0, seed=1) for kind in (NaiveC2UCB, C2UCB))
    table = armful.Table.wrap(rng.standard_normal((20_000, 3)))
    for _ in range(4):
        choices = [policy.choose(table, TopK(9)) for policy in (one, other)]
        assert np.array_equal(choices[0].indices, choices[1].indices)
        for policy, choice in zip((one, other), choices, strict=True):
            policy.learn(choice, choice.features[:, 0])
    environment = Slates(n_features=5)
    regrets = [
        simulate(kind(n_features=5), environment, rounds=5, repetitions=3).regret for kind in (NaiveC2UCB, C2UCB)
    ]
    np.testing.assert_allclose(*regrets, atol=1e-9)


class TestAPolicyOfAnotherModel(PolicyContract):
    def policy(self, n_features, seed):
        return NaiveC2UCB(n_features=n_features, radius=0.5, ridge=1.0, seed=seed)

    test_the_trajectory_inequalities_hold = None  # their features grow without end, and V itself loses the ridge
