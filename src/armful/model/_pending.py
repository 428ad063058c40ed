"""Arms whose rewards are outstanding."""

from numpy.typing import ArrayLike

from armful.model.ridge import RidgeState


def with_pending(state: RidgeState, X: ArrayLike) -> RidgeState:
    """Return the state with the widths it will have once the rewards of `X` `(m, n_features)` are learned.

    The estimate and the noise stay as they are: each arm is learned with the reward that the state predicts for it, and
    is not counted in `n`. So a choice made while rewards are outstanding does not ask the same again.

    References
    ----------
    Desautels et al. 2014, "Parallelizing Exploration-Exploitation Tradeoffs in Gaussian Process Bandit Optimization",
    GP-BUCB.
    """
    learned = state.learn(X, state.mean(X))
    return learned._with(learned._sum, learned._factor, state._n, learned._sources)
