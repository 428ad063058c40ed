"""The checks that every model passes: learned in parts, merged, discounted, batched, saved."""

import tempfile
from pathlib import Path

import numpy as np
from numpy.random import Generator
from scipy.special import chdtr, chdtrc

from armful.checks import FloatArray
from armful.model.base import Model
from armful.policies import C2UCB
from armful.testing._expectations import FALSE_ALARM, expect_close, expect_refusal

Data = tuple[FloatArray, FloatArray]


class ModelContract:
    """Inherit it in a test file and write `model`: every check of the Protocol `armful.model.Model` then runs.

    Statistical checks fail a correct model with a probability of at most 1e-6 each, whatever the seed.

    Attributes
    ----------
    n_features : int
        The length of the feature vectors of the checks.
    tolerance : float
        How far numbers may differ that are equal but for rounding, relative to the largest of them.

    Examples
    --------
    >>> from armful import RidgeState
    >>> class TestRidgeState(ModelContract):
    ...     def model(self, n_features, batch):
    ...         return RidgeState(n_features=n_features, ridge=0.5, batch=batch)
    >>> TestRidgeState().test_shards_merged_are_everything_learned_at_once()
    """

    n_features = 4
    tolerance = 1e-9

    def model(self, n_features: int, batch: tuple[int, ...]) -> Model:
        """Return a model that has learned nothing.

        Parameters
        ----------
        n_features : int
            The length of a feature vector.
        batch : tuple of int
            The leading axes, `()` for one learner.
        """
        raise NotImplementedError(f"{type(self).__name__} must define model(self, n_features, batch)")

    # -- mean and width ------------------------------------------------------------------------------

    def test_an_empty_model_knows_nothing(self) -> None:
        for batch in ((), (3,)):
            model = self.model(self.n_features, batch)
            assert (model.n_features, model.batch) == (self.n_features, batch), f"{model!r} has another shape"
            for name in ("n", "residual", "squared_norms", "log_det_gain"):
                expect_close(getattr(model, name), np.zeros(batch), f"{name} of a model that has learned nothing")
            self._expect_alike(self._learned(0, batch).empty(), model, "empty() of a model that has learned")

    def test_mean_and_width_are_those_of_theta_and_the_root(self) -> None:
        X = self._data(np.random.default_rng(1), 9)[0]
        for model in (self.model(self.n_features, ()), self._learned(1)):
            mean, width = model.mean_and_width(X)
            expect_close(mean, model.project(X, model.theta), "means, as projected on theta", self.tolerance)
            expect_close(width, np.linalg.norm(X @ model.inverse_root, axis=-1), "widths", self.tolerance)
            expect_close(model.root @ model.inverse_root, np.eye(self.n_features), "R times R^-1", self.tolerance)
            gain = 2 * np.log(np.abs(np.diag(model.root))).sum() - self.n_features * np.log(model.ridge)
            expect_close(model.log_det_gain, max(gain, 0.0), "log_det_gain", self.tolerance)

    def test_equal_rows_get_equal_bits_also_as_some_of_many(self) -> None:
        model = self._learned(2)
        X = np.repeat(self._data(np.random.default_rng(2), 1)[0], 1031, axis=0)
        for some_of_many in (False, True):
            for values in (
                *model.mean_and_width(X, some_of_many=some_of_many),
                model.project(X, 2 * model.theta, some_of_many=some_of_many),
            ):
                assert (values == values[0]).all(), "equal rows get different results"
        few, many = model.mean_and_width(X[:3], some_of_many=True), model.mean_and_width(X)
        assert all(np.array_equal(a, b[:3]) for a, b in zip(few, many, strict=True)), "some of many get other bits"

    def test_learning_never_widens(self) -> None:
        rng = np.random.default_rng(3)
        model, X = self.model(self.n_features, ()), self._data(rng, 9)[0]
        for _ in range(20):
            before, model = model.mean_and_width(X)[1], model.learn(*self._data(rng, 3))
            after = model.mean_and_width(X)[1]
            assert (after <= before * (1 + self.tolerance)).all(), f"widths grew from {before} to {after}"

    def test_samples_have_the_mean_and_width_of_the_model(self) -> None:
        """A correct model fails with a probability of at most 1e-6."""
        rng, draws = np.random.default_rng(4), 4000
        model, (X, _) = self._learned(4), self._data(rng, 5)
        mean, width = model.mean_and_width(X)
        samples = np.array([model.sample(rng.standard_normal(self.n_features)) for _ in range(draws)])
        assert samples.shape == (draws, self.n_features), f"a sample has shape {samples.shape[1:]}"
        errors = (samples @ X.T - mean) / width  # standard normals in each column
        share = FALSE_ALARM / (3 * len(X))  # three tails for each arm
        squares, means = np.sum(errors**2, axis=0), np.mean(errors, axis=0)
        assert (chdtr(draws, squares) >= share).all(), f"samples vary too little: {squares / draws} of the variance"
        assert (chdtrc(draws, squares) >= share).all(), f"samples vary too much: {squares / draws} of the variance"
        assert (chdtrc(1, draws * means**2) >= share).all(), f"samples are {means} widths from the mean, on average"

    def test_samples_are_the_same_however_the_model_was_learned(self) -> None:
        rng = np.random.default_rng(5)
        (X, rewards), z = self._data(rng, 10), rng.standard_normal(self.n_features)
        parts = empty = self.model(self.n_features, ())
        for i in range(10):
            parts, at_once = parts.learn(X[i : i + 1], rewards[i : i + 1]), empty.learn(X[: i + 1], rewards[: i + 1])
            expect_close(parts.sample(z), at_once.sample(z), "the sample of the same normals", self.tolerance)
        expect_close(parts.sample(0 * z), parts.theta, "the sample of zeros", self.tolerance)

    # -- learning ------------------------------------------------------------------------------------

    def test_learning_in_parts_in_any_order_is_learning_at_once(self) -> None:
        rng = np.random.default_rng(6)
        for batch in ((), (2,)):
            empty, (X, rewards) = self.model(self.n_features, batch), self._data(rng, 30, batch)
            for size in (1, 7):
                parts = empty
                for begin in rng.permutation(np.arange(0, 30, size)):
                    part = slice(begin, begin + size)
                    parts = parts.learn(X[..., part, :], rewards[..., part])
                self._expect_alike(parts, empty.learn(X, rewards), f"learned {size} at a time")

    def test_a_weight_counts_as_so_many_observations(self) -> None:
        rng = np.random.default_rng(7)
        empty, (X, rewards), weights = self.model(self.n_features, ()), self._data(rng, 8), rng.integers(0, 4, 8)
        repeated = empty.learn(np.repeat(X, weights, axis=0), np.repeat(rewards, weights))
        self._expect_alike(empty.learn(X, rewards, weights=weights), repeated, "learned with weights")

    def test_shards_merged_are_everything_learned_at_once(self) -> None:
        rng = np.random.default_rng(8)
        for batch in ((), (2,)):
            empty, (X, rewards) = self.model(self.n_features, batch), self._data(rng, 30, batch)
            shards = [empty.learn(X[..., i::3, :], rewards[..., i::3]) for i in range(3)]
            for a, b, c in ((0, 1, 2), (2, 0, 1)):
                for merged in ((shards[a] + shards[b]) + shards[c], shards[a] + (shards[b] + shards[c])):
                    self._expect_alike(merged, empty.learn(X, rewards), f"shards {a}, {b}, {c} merged")
            self._expect_alike(shards[0] + empty, shards[0], "merged with an empty model")

    def test_merging_the_same_observations_twice_is_refused(self) -> None:
        class Own(C2UCB):
            model_class = type(self.model(self.n_features, ()))

        one, other = self._learned(9), self._learned(10)
        policy = Own(n_features=self.n_features, ridge=one.ridge)
        policy.state = one
        expect_refusal("merging a policy's own model", policy.merge, one)
        assert not one.overlaps(other), "models that learned apart are said to overlap"
        policy.merge(other)
        both = policy.state
        self._expect_alike(both, one + other, "merged by a policy")
        for part in (one, other, one.discount(0.5), one.folded()):
            expect_refusal("merging a part again", policy.merge, part)
        assert not one.overlaps(both.as_one_source()), "as_one_source still overlaps with its parts"
        assert policy.state is both, "a refused merge changed the model"

    def test_discounting_is_learning_with_smaller_weights(self) -> None:
        empty, (X, rewards) = self.model(self.n_features, ()), self._data(np.random.default_rng(11), 20)
        model = empty.learn(X, rewards)
        for factor in (1.0, 0.9, 0.25, 0.0):
            expected = empty.learn(X, rewards, weights=np.full(20, factor))
            self._expect_alike(model.discount(factor), expected, f"discounted by {factor}")
        late = model.discount(0.5).discount(0.5).learn(X, rewards)
        self._expect_alike(late, empty.learn(X, rewards, weights=np.full(20, 1.25)), "discounted, then learned again")

    # -- batches -------------------------------------------------------------------------------------

    def test_a_batch_is_its_learners_one_by_one(self) -> None:
        rng = np.random.default_rng(12)
        X, rewards = self._data(rng, 12, (3,))
        batch = self.model(self.n_features, (3,)).learn(X, rewards).discount(0.9)
        z = rng.standard_normal((3, self.n_features))
        mean, width = batch.mean_and_width(X)
        shared = batch.mean_and_width(X[0])[0]
        for i in range(3):
            alone = self.model(self.n_features, ()).learn(X[i], rewards[i]).discount(0.9)
            assert batch[i].batch == (), "one learner of a batch has leading axes"
            self._expect_alike(batch[i], alone, f"learner {i} of a batch")
            for got, expected in zip((mean[i], width[i]), alone.mean_and_width(X[i]), strict=True):
                expect_close(got, expected, f"mean and width by learner {i}", self.tolerance)
            expect_close(shared[i], alone.mean_and_width(X[0])[0], "means of arms that all share", self.tolerance)
            expect_close(batch.sample(z)[i], alone.sample(z[i]), f"a sample of learner {i}", self.tolerance)
            expect_close(batch.project(X, z)[i], X[i] @ z[i], f"projected for learner {i}", self.tolerance)
        repeated = batch[0].repeat(2)
        assert repeated.batch == (2,), f"repeated twice, the leading axes are {repeated.batch}"
        self._expect_alike(repeated[1], batch[0], "a learner that was repeated")

    # -- files ---------------------------------------------------------------------------------------

    def test_what_is_saved_and_loaded_goes_on_to_the_last_bit(self) -> None:
        for batch in ((), (2,)):
            model, kind = self._learned(13, batch), type(self.model(self.n_features, ()))
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "model.npz"
                model.save(path)
                assert [file.name for file in Path(folder).iterdir()] == ["model.npz"], "save leaves other files behind"
                loaded = kind.load(path)
                path.write_bytes(path.read_bytes()[:-20])
                expect_refusal("a damaged file", kind.load, path)
            again, rng = kind.from_arrays(model.ridge, model.to_arrays(), "there"), np.random.default_rng(14)
            assert model.overlaps(loaded), "what a loaded model holds is not known any more"
            for _ in range(5):
                for other in (loaded, again):
                    self._expect_alike(other, model, "loaded", tolerance=0.0)
                data = self._data(rng, 5, batch)
                model, loaded, again = (each.learn(*data) for each in (model, loaded, again))
            for name in model.to_arrays():
                fewer = {key: array for key, array in model.to_arrays().items() if key != name}
                if name != "sources":
                    expect_refusal(f"arrays without {name}", kind.from_arrays, model.ridge, fewer, "there")
            self._expect_alike(model.folded(), model, "folded")

    # -- bad input -----------------------------------------------------------------------------------

    def test_bad_input_is_refused_and_the_model_stays_as_it_was(self) -> None:
        d = self.n_features
        model, (X, rewards) = self._learned(15), self._data(np.random.default_rng(15), 3)
        before = {name: array.copy() for name, array in model.to_arrays().items()}
        for bad in (np.nan, np.inf, -np.inf):
            wrong_X, wrong_rewards = X.copy(), rewards.copy()
            wrong_X[1, 0] = wrong_rewards[2] = bad
            expect_refusal(f"a feature of {bad}", model.learn, wrong_X, rewards)
            expect_refusal(f"a reward of {bad}", model.learn, X, wrong_rewards)
            expect_refusal(f"the mean of a feature of {bad}", model.mean_and_width, wrong_X)
            for weight in (bad, -1.0):
                weights = np.array([1.0, weight, 1.0])
                expect_refusal(f"a weight of {weight}", lambda w: model.learn(X, rewards, weights=w), weights)
        for shape, n_rewards in (((3, d), 2), ((3, d + 1), 3), ((d,), 1), ((2, 3, d), 3)):
            expect_refusal(f"{n_rewards} rewards for {shape}", model.learn, np.ones(shape), np.ones(n_rewards))
        for factor in (-0.1, 1.1, np.nan):
            expect_refusal(f"a discount of {factor}", model.discount, factor)
        for other in (self.model(d + 1, ()), self.model(d, (2,)), type(model)(n_features=d, ridge=2 * model.ridge)):
            expect_refusal(f"merging with {other!r}", model.__add__, other)
            expect_refusal(f"{other!r} as a like one", model.refuse_unlike, other)
        for name, array in model.to_arrays().items():
            assert np.array_equal(array, before[name]), f"a refused call changed {name}"

    # -- internals -----------------------------------------------------------------------------------

    def _data(self, rng: Generator, n: int, batch: tuple[int, ...] = ()) -> Data:
        X = rng.standard_normal((*batch, n, self.n_features))
        return X, X[..., 0] + 0.3 * rng.standard_normal((*batch, n))

    def _learned(self, seed: int, batch: tuple[int, ...] = ()) -> Model:
        return self.model(self.n_features, batch).learn(*self._data(np.random.default_rng(seed), 25, batch))

    def _expect_alike(self, model: Model, expected: Model, what: str, tolerance: float | None = None) -> None:
        tolerance = self.tolerance if tolerance is None else tolerance
        precision, other = (np.swapaxes(each.root, -1, -2) @ each.root for each in (model, expected))
        expect_close(precision, other, f"{what}: R'R", tolerance)
        for name in ("theta", "n", "residual", "squared_norms", "log_det_gain"):
            expect_close(getattr(model, name), getattr(expected, name), f"{what}: {name}", tolerance)
