"""What every environment must do to be simulated."""

import numpy as np

from armful.environments import Environment, Round
from armful.policies import C2UCB
from armful.simulation.loop import run_alone, simulate
from armful.simulation.trajectories import ENVIRONMENT, generator


class EnvironmentContract:
    """The checks that every environment passes: inherit it in a test file and write `environment`.

    Attributes
    ----------
    n_rounds : int
        How many rounds are simulated in each check.

    Examples
    --------
    >>> from armful.environments import Routes
    >>> class TestMyEnvironment(EnvironmentContract):
    ...     def environment(self):
    ...         return Routes(side=3)
    """

    n_rounds = 12

    def environment(self) -> Environment:
        """Return a new environment to check."""
        raise NotImplementedError(f"{type(self).__name__} must define environment(self)")

    def test_it_shows_as_many_rounds_as_asked_for(self) -> None:
        assert len(self._rounds()) == self.n_rounds

    def test_features_constraint_and_means_fit_together(self) -> None:
        d = self.environment().n_features
        for shown in self._rounds():
            assert shown.features.ndim == 2
            assert shown.features.shape[1] == d
            assert shown.mean.shape == (len(shown.features),)
            assert np.isfinite(shown.features).all()
            assert np.isfinite(shown.mean).all()
            best = shown.constraint.best(shown.mean)
            assert shown.constraint.violation(best.indices) == 0.0
            assert best.indices.size <= shown.constraint.k

    def test_mean_rewards_are_linear_in_the_features(self) -> None:
        """One theta explains the means of all rounds of a repetition."""
        rounds = self._rounds()
        X = np.concatenate([shown.features for shown in rounds])
        mean = np.concatenate([shown.mean for shown in rounds])
        scale = np.abs(X).max(axis=0)
        scale[scale == 0] = 1.0  # a feature may be all zeros; the scales of features may differ by large powers of two
        theta = np.linalg.lstsq(X / scale, mean, rcond=None)[0]
        np.testing.assert_allclose((X / scale) @ theta, mean, atol=1e-8 * max(1.0, float(np.abs(mean).max())))

    def test_the_same_random_numbers_give_the_same_rounds(self) -> None:
        for one, other in zip(self._rounds(), self._rounds(), strict=True):
            np.testing.assert_array_equal(one.features, other.features)
            np.testing.assert_array_equal(one.mean, other.mean)

    def test_rewards_have_the_stated_mean(self) -> None:
        """The mean of 4,000 draws lies within 7 standard errors; false alarm: 10^-11 for each arm, for any seed."""
        shown = self._rounds()[0]
        rng = np.random.default_rng(0)
        draws = np.array([shown.rewards(rng) for _ in range(4000)])
        if shown.noise == "bernoulli":
            assert set(np.unique(draws)) <= {0.0, 1.0}
            spread = np.sqrt(shown.mean * (1 - shown.mean))
        else:
            spread = np.full(shown.mean.shape, float(shown.noise))
        assert (np.abs(draws.mean(axis=0) - shown.mean) <= 7 * spread / np.sqrt(4000) + 1e-12).all()

    def test_a_policy_never_does_better_than_the_best_set(self) -> None:
        if any(shown.objective is not None for shown in self._rounds()):
            return  # regret is then measured against ratio times the best value, and can be negative
        result = simulate(self._policy(), self.environment(), rounds=self.n_rounds, repetitions=3, seed=1)
        assert (result.regret >= -1e-9).all()

    def test_repetitions_together_equal_repetitions_alone(self) -> None:
        together = simulate(self._policy(), self.environment(), rounds=self.n_rounds, repetitions=3, seed=2)
        for i in range(3):
            alone = run_alone(self._policy(), self.environment(), self.n_rounds, 2, i)
            np.testing.assert_allclose(together.rewards[i], alone.rewards[0], rtol=1e-9, atol=1e-9)
            np.testing.assert_array_equal(together.pulled[i], alone.pulled[0])

    def _policy(self) -> C2UCB:
        return C2UCB(n_features=self.environment().n_features, ridge=1.0, radius=1.0)

    def _rounds(self) -> list[Round]:
        return list(self.environment().rounds(self.n_rounds, generator(0, 0, ENVIRONMENT)))
