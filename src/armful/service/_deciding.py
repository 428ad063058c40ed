"""Deciding: from candidates to a set with probabilities, as it is stored and as it is answered."""

import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Literal

import msgspec
import numpy as np
from msgspec import Struct

from armful.campaigns.holdout import uniforms
from armful.campaigns.settings import ServiceSettings, Settings
from armful.constraints import TopK
from armful.ledger import NewDecision
from armful.policies.inclusion import Inclusion, choose_with_inclusion
from armful.service._candidates import Candidates
from armful.service._messages import ChosenArm, DecisionRequest, RunnerUp
from armful.service._snapshot import ModelHolder, Snapshot

Share = Literal["chosen", "holdout"]
_encode = msgspec.json.Encoder().encode
_encode_in_order = msgspec.msgpack.Encoder(order="deterministic").encode

FLOAT32 = np.dtype("<f4")
"""As the ledger keeps features."""
MOST_SECONDS = 0.25
"""For the draws behind probabilities, where each is an integer program."""


class Details(Struct, omit_defaults=True):
    """What is stored with a decision besides its arms: all that tells why."""

    share: Share
    n_candidates: int
    constraint: Mapping[str, Any]
    cap: float | list[float] | None = None
    runner_up: RunnerUp | None = None
    draws: int = 0
    fingerprint: str | None = None
    notes: tuple[str, ...] = ()


@dataclass(slots=True)
class Prepared:
    """A decision that is not stored yet, and what will be answered once it is."""

    decision: NewDecision
    chosen: list[ChosenArm]
    share: Share
    notes: Sequence[str]


class Decider:
    """Choose sets by the newest model.

    Parameters
    ----------
    settings : Settings
        Of the campaign.
    limits : ServiceSettings
        Has the exploration share.
    models : ModelHolder
        Has the random numbers.
    now : callable
        Returns the current time, with a time zone.
    """

    def __init__(
        self, settings: Settings, limits: ServiceSettings, models: ModelHolder, now: Callable[[], datetime]
    ) -> None:
        self._name, self._rng, self._now = settings.name, models.rng, now
        self._holdout, self._window = settings.holdout.share, settings.outcomes.window
        self._explore, self._draws = limits.explore, limits.draws

    def decide(
        self, candidates: Candidates, model: Snapshot, *, key: str | None, unit: str | None, fingerprint: str | None
    ) -> Prepared:
        """Return a decision, not stored yet.

        Parameters
        ----------
        candidates : Candidates
            What may be chosen.
        model : Snapshot
            The newest model.
        key : str or None
            The caller's own name for the decision.
        unit : str or None
            Who the decision is for: the holdout is a share of the units.
        fingerprint : str or None
            Of the request, to notice another one with the same key.

        Raises
        ------
        ValueError
            If no allowed set exists (`InfeasibleError`).
        """
        share: Share = "holdout" if self._in_holdout(unit) else "chosen"
        explore = 1.0 if share == "holdout" else self._explore
        picked = self._picked(candidates, model, explore)
        chosen, rows = _described(picked, candidates, share)
        details = Details(
            share,
            len(candidates.ids),
            candidates.described,
            _cap_of(picked),
            _runner_up(picked, candidates.ids),
            picked.draws,
            fingerprint,
            candidates.notes,
        )
        now = self._now()
        decision = NewDecision(
            key=key,
            unit=unit,
            model_version=model.version,
            chosen_at=now,
            closes_at=now + self._window,
            n_features=candidates.X.shape[1],
            details=_encode(details).decode(),
            rows=rows,
        )
        return Prepared(decision, chosen, share, candidates.notes)

    def _picked(self, candidates: Candidates, model: Snapshot, explore: float) -> Inclusion:
        """Return the set, the best arm first: by the quick way, if it is open."""
        X, constraint = candidates.X, candidates.constraint
        if model.frozen is not None and type(constraint) is TopK:
            picked = model.frozen.choose(X, constraint, explore=explore, rng=self._rng)
            if picked is not None:
                return picked
        picked = choose_with_inclusion(
            model.policy, X, constraint, explore=explore, draws=self._draws, seconds=MOST_SECONDS, rng=self._rng
        )
        return picked if type(constraint) is TopK else _best_first(picked, self._rng)

    def _in_holdout(self, unit: str | None) -> bool:
        if not self._holdout:
            return False
        u = self._rng.random() if unit is None else float(uniforms([unit], self._name)[0])
        return u < self._holdout


def fingerprint_of(request: DecisionRequest) -> str:
    """Return what tells one request from another: a mistake goes unnoticed once in four thousand million.

    How it was written as JSON does not matter, nor where its key was.
    """
    content = _encode_in_order(msgspec.structs.replace(request, key=None))
    return f"{len(content):x}-{zlib.crc32(content):08x}"


def _best_first(picked: Inclusion, rng: np.random.Generator) -> Inclusion:
    """Return the set as a slate: constraints give theirs by index. Arms drawn at random keep their random places."""
    places = np.flatnonzero(~picked.explored)
    ranked = np.lexsort((rng.random(places.size), -picked.scores.value[places]))
    order = np.arange(len(picked))
    order[places] = places[ranked]
    return replace(
        picked,
        indices=picked.indices[order],
        probabilities=picked.probabilities[order],
        explored=picked.explored[order],
    )


def _described(picked: Inclusion, candidates: Candidates, share: Share) -> tuple[list[ChosenArm], list[Any]]:
    """Return the chosen arms as they are answered, and as they are stored."""
    indices, scores = picked.indices, picked.all_scores
    k, places = indices.size, indices.tolist()
    ids = [candidates.ids[i] for i in places]
    numbers = (
        scores.mean[indices].tolist(),
        scores.bonus[indices].tolist(),
        scores.capped[indices].tolist(),
        [None if p != p else p for p in picked.probabilities.tolist()],  # noqa: PLR0124 - only NaN differs from itself
    )
    turns = ["holdout"] * k
    if share != "holdout":
        turns = ["explored" if explored else "chosen" for explored in picked.explored.tolist()]
    data, width = candidates.X.take(indices, axis=0).astype(FLOAT32, copy=False).tobytes(), 4 * candidates.X.shape[1]
    features = [data[begin : begin + width] for begin in range(0, len(data), width)]
    groups: list[str | None] = [None] * k
    if candidates.groups:
        quotas = candidates.groups.items()
        groups = [_encode({name: labels[i] for name, labels in quotas}).decode() for i in places]
    chosen = list(map(ChosenArm, ids, range(1, k + 1), *numbers))
    return chosen, list(zip(ids, range(k), turns, *numbers, features, groups, strict=True))


def _cap_of(picked: Inclusion) -> float | list[float] | None:
    """Return the cap, of each arm of the slate if they differ; None without one."""
    cap = picked.all_scores.cap
    if isinstance(cap, float):
        return cap if cap < np.inf else None
    caps = np.broadcast_to(cap, picked.all_scores.value.shape)[picked.indices]
    return [min(value, np.finfo(np.float64).max) for value in caps.tolist()]


def _runner_up(picked: Inclusion, ids: Sequence[str]) -> RunnerUp | None:
    """Return the arm with the best score that is not in the set."""
    scores = picked.all_scores
    if picked.indices.size == len(ids):
        return None
    values = scores.value.copy()
    values[picked.indices] = -np.inf
    i = int(values.argmax())
    # At a cap `value` is moved towards the estimate, to break ties; what is told is the cap, as for the chosen arms.
    score = scores.value[i]
    if scores.capped[i]:
        score = scores.cap if isinstance(scores.cap, float) else np.broadcast_to(scores.cap, values.shape)[i]
    return RunnerUp(ids[i], float(scores.mean[i]), float(scores.bonus[i]), float(score))
