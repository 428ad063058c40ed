"""The model that decides in this process, and swapping it for a newer one."""

import copy
import secrets
from dataclasses import dataclass, replace
from datetime import datetime

import numpy as np
from numpy.random import SeedSequence

from armful.campaigns.decisions.published import PublishedModel
from armful.campaigns.settings import Settings
from armful.ledger import Ledger
from armful.policies import Policy
from armful.policies._frozen import FrozenUCB
from armful.policies._locks import Locks


@dataclass(frozen=True, eq=False)
class Snapshot:
    """A model that is ready to decide.

    Attributes
    ----------
    policy : Policy
        With all that was learned and all that is outstanding; it is not changed any more.
    frozen : FrozenUCB or None
        The same policy for quick choices of the best k, if it is one that can be.
    version : int
        0 before anything was published.
    made_at : datetime or None
        When it was published.
    """

    policy: Policy
    frozen: FrozenUCB | None = None
    version: int = 0
    made_at: datetime | None = None


class ModelHolder:
    """The newest model of a campaign. Each process has random numbers of its own.

    Parameters
    ----------
    ledger : Ledger
        Where models are published.
    settings : Settings
        Of the campaign.
    n_features : int
        The length of a feature vector.

    Attributes
    ----------
    current : Snapshot
        Replaced as a whole by `refresh`: whoever decides reads it once.
    rng : Generator
        For exploration and for the holdout.
    """

    def __init__(self, ledger: Ledger, settings: Settings, n_features: int) -> None:
        self._ledger, self._settings, self._n_features = ledger, settings, n_features
        seeds = SeedSequence([settings.seed, secrets.randbits(128)]).spawn(2)
        self._policy_rng, self.rng = (np.random.default_rng(seed) for seed in seeds)
        self.current = self._snapshot(settings.policy.make(n_features, self._policy_rng))
        self.refresh()

    def refresh(self) -> bool:
        """Take the newest model, and return whether it is another one; for a thread, since it reads and factorises."""
        if self._ledger.model_version() == self.current.version:
            return False
        newest = self._ledger.newest_model()
        if newest is None:
            return False
        info, state, _ = newest
        model = PublishedModel.from_bytes(state)
        self.current = self._snapshot(model.policy(self._settings, self._policy_rng), info.version, info.made_at)
        return True

    def for_a_thread(self) -> Snapshot:
        """Return the model with a policy that other threads do not wait for: a choice holds the locks of its policy."""
        model = self.current  # once: another thread may replace it
        policy = copy.copy(model.policy)
        policy._thread_locks, policy.rng = Locks(), self._policy_rng.spawn(1)[0]
        return replace(model, policy=policy)

    def _snapshot(self, policy: Policy, version: int = 0, made_at: datetime | None = None) -> Snapshot:
        """Return a policy with its factors computed, so that no request waits for them."""
        policy.state.mean_and_width(np.zeros((1, self._n_features)))
        return Snapshot(policy, FrozenUCB.of(policy), version, made_at)
