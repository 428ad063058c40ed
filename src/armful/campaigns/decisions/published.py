"""`PublishedModel`: what the updater publishes and workers choose with."""

from dataclasses import dataclass
from datetime import datetime
from typing import Self

import numpy as np

from armful.campaigns.decisions._packing import pack, unpack
from armful.campaigns.settings import Settings
from armful.checks import FloatArray
from armful.errors import FileFormatError
from armful.ledger import Ledger
from armful.model import RidgeState
from armful.model._pending import with_pending
from armful.policies import Policy
from armful.randomness import Seed

KIND = "published model"


@dataclass(frozen=True, eq=False, kw_only=True)
class PublishedModel:
    """A model as it is published: everything that choosing needs, and nothing of any single decision.

    Attributes
    ----------
    version : int
        1 for the first model of a campaign, one more for each that follows.
    made_at : datetime
    state : RidgeState
        What has been learned.
    pending : ndarray of shape (m, n_features)
        Rows with the Gram matrix of all arms whose reward is outstanding; they count for the widths.
    position_weights : ndarray of shape (n_places,)
        How likely each place of a slate is looked at, relative to the first; empty where all count the same.
    n_observations : float
        The rewards in the model.
    names : tuple of str
        The names of the features.
    summary : str
        What a dashboard shows of the campaign, as JSON; empty if it was not read with the model.
    """

    version: int
    made_at: datetime
    state: RidgeState
    pending: FloatArray
    position_weights: FloatArray
    n_observations: float
    names: tuple[str, ...]
    summary: str = ""

    def policy(self, settings: Settings, seed: Seed = None) -> Policy:
        """Return a policy of the campaign that knows this model, outstanding arms included.

        Parameters
        ----------
        settings : Settings
            Which policy, with which options.
        seed : int, SeedSequence or Generator, optional
            For its random numbers.

        Notes
        -----
        If the settings now have another ridge than the model was made with, theirs holds: the sums are without it.
        """
        policy = settings.policy.make(self.state.n_features, seed)
        learned = self.state
        if policy.ridge != learned.ridge:
            empty = RidgeState(n_features=learned.n_features, ridge=policy.ridge)
            learned = empty._with_root(learned._sum.root, np.asarray(learned.n), learned._sources)
        policy.state = with_pending(learned, self.pending)
        return policy

    def to_bytes(self) -> bytes:
        """Return the model without its summary, for `models` of the ledger; `from_bytes` reads it."""
        header = {
            "version": self.version,
            "made_at": self.made_at.isoformat(),
            "ridge": self.state.ridge,
            "n_observations": self.n_observations,
            "names": list(self.names),
        }
        arrays = {"pending": self.pending, "position_weights": self.position_weights}
        return pack(KIND, header, {**arrays, **{f"state_{k}": v for k, v in self.state.folded().to_arrays().items()}})

    @classmethod
    def from_bytes(cls, data: bytes, summary: str = "") -> Self:
        """Return the model that `to_bytes` wrote.

        Raises
        ------
        FileFormatError
            If the bytes do not hold one, or are damaged.
        """
        header, arrays = unpack(KIND, data)
        parts = {name.removeprefix("state_"): array for name, array in arrays.items() if name.startswith("state_")}
        state = RidgeState.from_arrays(header.get("ridge"), parts, "the model")
        try:
            model = cls(
                version=int(header["version"]),
                made_at=datetime.fromisoformat(header["made_at"]),
                state=state,
                pending=arrays["pending"],
                position_weights=arrays["position_weights"],
                n_observations=float(header["n_observations"]),
                names=tuple(header["names"]),
                summary=summary,
            )
        except (KeyError, TypeError, ValueError):
            raise FileFormatError("a published model is damaged") from None
        d = state.n_features
        fits = model.pending.ndim == 2 and model.pending.shape[1] == d == len(model.names)
        if not fits or not np.isfinite(model.pending).all() or model.position_weights.ndim != 1:
            raise FileFormatError("a published model is not consistent")
        return model

    @classmethod
    def newest(cls, ledger: Ledger) -> Self | None:
        """Return the newest model of a campaign with its summary; None if there is none.

        There is none before the first, and after somebody was erased until the next one.
        """
        found = ledger.newest_model()
        return None if found is None else cls.from_bytes(found[1], found[2])
