"""From a request to its candidates: who they are, their features, and which sets of them are allowed."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from armful.campaigns import Campaign
from armful.campaigns.settings import ServiceSettings
from armful.constraints import Constraint
from armful.policies import EpsilonGreedy, Policy
from armful.service._example import example_decision
from armful.service._id_files import IdFiles
from armful.service._messages import ArmsRequest, ConstraintRequest, DecisionRequest, decision_decoder
from armful.service._preparing import frozen_recipe
from armful.service._quota_requests import QuotaRequest
from armful.service.constraints import Constraints
from armful.service.encoding import NO_GROUP, Encoder
from armful.service.registry import Candidates as Found
from armful.service.registry import Registry

MOST_AT_ONCE = 2000
"""Candidates up to which a set is chosen without leaving the loop."""
MOST_DRAWN_AT_ONCE = 20_000
"""The same for a policy that draws scores: candidates times draws."""


@dataclass(slots=True)
class Candidates:
    """What may be chosen in one request.

    Attributes
    ----------
    ids : sequence of str, shape (n,)
        All different.
    X : ndarray of float32, shape (n, d)
    constraint : Constraint
        Which sets of them are allowed.
    described : mapping
        The constraint as it is stored with the decision.
    groups : mapping of str to sequence of str, shape (n,)
        The group of each candidate, for each quota.
    notes : tuple of str
        What the caller should know, such as that fewer than k of them may be chosen.
    """

    ids: Sequence[str]
    X: NDArray[np.float32]
    constraint: Constraint
    described: Mapping[str, Any]
    groups: Mapping[str, Sequence[str]]
    notes: tuple[str, ...] = ()


class CandidateReader:
    """Reads the candidates of requests, and keeps the registered arms.

    Parameters
    ----------
    campaign : Campaign
        Its recipe is frozen if that has not been done yet.
    limits : ServiceSettings
        Has the largest number of candidates.

    Attributes
    ----------
    usual_requests : Decoder
        Of the requests that the campaign usually gets; others may be errors for it.
    """

    def __init__(self, campaign: Campaign, limits: ServiceSettings) -> None:
        settings = campaign.settings
        self._encoder = Encoder.of(settings, frozen_recipe(campaign))
        self._choose, self._most = settings.choose, limits.most_arms
        self._registry = Registry(campaign.ledger, self._encoder, most=limits.most_arms)
        self._settings, self._files = settings, IdFiles(settings)
        self._constraints = self._constraints_now()
        self._plain = self._described(ConstraintRequest())
        self.usual_requests = decision_decoder(len(self._encoder.names) if self._encoder.is_ready else None)
        self._most_at_once = _most_at_once(settings.policy.make(self.n_features), limits.draws)

    @property
    def n_features(self) -> int:
        """The length of a feature vector."""
        return self._encoder.n_features

    @property
    def n_registered(self) -> int:
        """How many arms are registered."""
        return self._registry.n_registered

    @property
    def unusable(self) -> str | None:
        """A sentence on registered arms that cannot be used; None without any."""
        return self._registry.unusable

    def example(self) -> dict[str, Any]:
        """Return the body of a request that can be answered, to show."""
        return example_decision(self._settings, self._encoder.recipe)

    def is_quick(self, request: DecisionRequest) -> bool:
        """Return whether a set for a request is found in about a millisecond: few candidates, and k alone bounds it."""
        asked = request.constraint
        quotas = self._choose.quotas if asked is None or asked.quotas is None else asked.quotas
        n = self.n_registered if request.candidates is None else len(request.candidates)
        return n <= self._most_at_once and not quotas and self._choose.budget is None

    def refresh(self) -> bool:
        """Read which registered arms have changed, and return whether any has; for a thread."""
        return self._registry.refresh()

    def refresh_files(self) -> bool:
        """Read the campaign's files of ids if they have changed, and return whether they have; for one thread alone."""
        are_new = self._files.refresh()
        if are_new:
            self._constraints = self._constraints_now()
        return are_new

    def _constraints_now(self) -> Constraints:
        return Constraints(self._settings, exclude=self._files.exclude, require=self._files.require)

    def contents(self, request: ArmsRequest) -> list[tuple[str, bytes | None]]:
        """Return what the ledger is to keep; raise ValueError if an arm cannot be used."""
        _refuse_nul([arm.id for arm in request.arms])
        return self._registry.contents(request.arms, request.withdraw)

    def read(self, request: DecisionRequest) -> Candidates:
        """Return the candidates of a request.

        Raises
        ------
        ValueError
            If one cannot be used, there are too many, or no set of them is allowed (`InfeasibleError`).
        """
        wanted, asked = request.candidates, request.constraint
        if wanted is not None and len(wanted) > self._most:
            raise ValueError(
                f"a request may have at most {self._most:,} candidates (service.most_arms), got {len(wanted):,}"
            )
        found = self._registry.candidates(wanted, request.context)
        _refuse_nul(found.ids)
        groups = _Groups(found)
        allowed = self._constraints.build(found.ids, groups.of, found.costs, asked)
        ids, X, rows, known = found.ids, found.X, allowed.rows, groups.known
        if rows is not None:
            ids, X = [ids[i] for i in rows.tolist()], X[rows]
            known = {name: [labels[i] for i in rows.tolist()] for name, labels in known.items()}
        notes = (*allowed.notes, *_without_group(known)) if known else allowed.notes
        return Candidates(ids, X, allowed.constraint, self._described(asked), known, notes)

    def _described(self, asked: ConstraintRequest | None) -> Mapping[str, Any]:
        """Return the constraint as it is stored: without ids, which may be those of people."""
        if asked is None:
            return self._plain
        k = asked.k or self._choose.k
        described: dict[str, Any] = {"k": k}
        if asked.quotas is not None:
            described["quotas"] = _as_json(asked.quotas)
        elif self._choose.quotas:
            described["quotas"] = _as_json([quota.as_requested(k) for quota in self._choose.quotas])
        if asked.exclude:
            described["n_excluded"] = len(asked.exclude)
        if asked.require:
            described["n_required"] = len(asked.require)
        return described


class _Groups:
    """The groups of candidates by column, each column read once."""

    def __init__(self, found: Found) -> None:
        self._found = found
        self.known: dict[str, list[str]] = {}

    def of(self, column: str) -> list[str]:
        labels = self.known.get(column)
        if labels is None:
            labels = self.known[column] = self._found.groups(column)
        return labels


def _without_group(groups: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """Yield a sentence for each quota in whose column some candidates have no value: they are a group of their own."""
    for column, labels in groups.items():
        missing = labels.count(NO_GROUP)
        if missing:
            where = f"{missing} of {len(labels)} candidates"
            yield f"{column!r} is missing in {where}: for quotas they are the group {NO_GROUP!r}"


def _as_json(quotas: Sequence[QuotaRequest]) -> list[dict[str, Any]]:
    return [
        {"column": quota.column, "at_least": quota.at_least, "at_most": quota.at_most, "nested": quota.nested}
        for quota in quotas
    ]


def _most_at_once(policy: Policy, draws: int) -> int:
    """Return up to how many candidates a set and its probabilities are found in about a millisecond."""
    if not policy.randomised or isinstance(policy, EpsilonGreedy):  # whose probabilities need no draws
        return MOST_AT_ONCE
    return min(MOST_AT_ONCE, MOST_DRAWN_AT_ONCE // draws)


def _refuse_nul(ids: Sequence[str]) -> None:
    if "\0" in "".join(ids):
        raise ValueError("an id must not hold the character NUL")
