"""From the candidates of a request to features and a constraint."""

from itertools import chain

import numpy as np

from armful.campaigns import Campaign
from armful.campaigns.settings import ServiceSettings
from armful.constraints import TopK
from armful.service._deciding import Candidates
from armful.service._messages import ArmsRequest, Candidate, DecisionRequest


class CandidateReader:
    """Reads candidates: stand-in for ready features only."""

    def __init__(self, campaign: Campaign, limits: ServiceSettings) -> None:
        self.settings, self._limits = campaign.settings, limits
        self.n_features = len(campaign.settings.features.ready)
        self._constraint = TopK(campaign.settings.choose.k)

        self.n_registered = 0

    def refresh(self) -> None:
        """Nothing yet."""

    def contents(self, request: ArmsRequest) -> list[tuple[str, bytes | None]]:
        """Nothing yet."""
        raise ValueError(f"arms cannot be registered yet, got {len(request.arms)}")

    def read(self, request: DecisionRequest) -> Candidates:
        ids: list[str] = []
        rows: list[list[float]] = []
        for candidate in request.candidates or []:
            if not isinstance(candidate, Candidate) or candidate.features is None:
                raise ValueError("only ready features yet")
            ids.append(candidate.id)
            rows.append(candidate.features)
        X = np.fromiter(chain.from_iterable(rows), np.float64, len(rows) * self.n_features)
        k = self._constraint.k
        if request.constraint is not None and request.constraint.k is not None:
            k = request.constraint.k
        return Candidates(ids, X.astype(np.float32).reshape(-1, self.n_features), TopK(k), {"k": k})
