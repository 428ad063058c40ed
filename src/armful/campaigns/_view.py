"""What can be read of a campaign: its model, where it stands, its report."""

import os
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from armful.campaigns._believed import coefficients
from armful.campaigns._records import RoundRecord
from armful.campaigns._results import Status
from armful.campaigns.decisions._audit import as_record
from armful.campaigns.decisions._series import totals_of
from armful.campaigns.decisions.fold import DecisionFold, frozen_recipe
from armful.campaigns.decisions.status import decision_status, undecided_status
from armful.campaigns.decisions.summary import policy_of
from armful.campaigns.features import FeatureRecipe
from armful.campaigns.planning._records import PlanResult
from armful.campaigns.planning._sample import plan_campaign
from armful.campaigns.rounds._fold import Folded, fold, outstanding_outcomes, pending_features, read_round
from armful.campaigns.rounds._standing import round_status, status_notes
from armful.campaigns.settings import Settings
from armful.ledger import Ledger
from armful.policies import Policy

Clock = Callable[[], datetime]


class CampaignView:
    """The part of `Campaign` that changes nothing but caches; its parameters are those of `Campaign`."""

    def __init__(self, settings: Settings, ledger: Ledger, folder: Path | None, now: Clock | None = None) -> None:
        self.settings, self.ledger, self.folder = settings, ledger, folder
        self._clock: Clock = now or (lambda: datetime.now(UTC))

    def now(self) -> datetime:
        """Return the current time, by the clock that the campaign was opened with."""
        moment = self._clock()
        if moment.tzinfo is None:
            raise ValueError(f"now must return a time with a time zone, got {moment}; datetime.now(UTC) has one")
        return moment

    @cached_property
    def _recipe(self) -> FeatureRecipe | None:
        return None if self.ledger.recipe is None else FeatureRecipe.from_json(self.ledger.recipe)

    @property
    def recipe(self) -> FeatureRecipe | None:
        """How columns become features, frozen at the first round; None before."""
        if self._recipe is None:
            del self._recipe  # another program may have chosen the first round meanwhile
        return self._recipe

    @property
    def is_served(self) -> bool:
        """Whether single decisions of it are served: it has a table `[service]`, or there are decisions."""
        return self.settings.service is not None or self.ledger.has_decisions()

    def policy(self, *, seed: int | None = None) -> Policy:
        """Return the policy with all that has been learned.

        Raises
        ------
        ValueError
            If no round has been chosen yet.
        """
        if self.is_served:
            return policy_of(self._decisions(self.now()), seed)
        recipe = self._frozen_recipe()
        policy = self.settings.policy.make(recipe.n_features, self.settings.seed if seed is None else seed)
        policy.state = self._folded(policy, self.now()).state
        return policy

    def status(self) -> Status:
        """Return where the campaign stands: its rounds, what is outstanding, what the model believes.

        Returns
        -------
        Status
            A `ServiceStatus` if single decisions of the campaign are served.
        """
        recipe = frozen_recipe(self.ledger, self.settings) if self.is_served else self.recipe
        if recipe is None:
            if self.is_served:
                return undecided_status(self.settings)
            notes = ["no round has been chosen yet"]
            return Status(
                name=self.settings.name, rounds=[], n_observations=0.0, outstanding=0, coefficients=[], notes=notes
            )
        if self.is_served:
            now = self.now()
            return decision_status(self._decisions(now), now)
        rounds = [round_status(record) for record in self.records()]
        policy = self.policy()
        return Status(
            name=self.settings.name,
            rounds=rounds,
            n_observations=float(policy.state.n),
            outstanding=sum(each.outstanding for each in rounds),
            coefficients=coefficients(policy, recipe.names),
            notes=status_notes(rounds),
        )

    def plan(
        self,
        *,
        rounds: int = 8,
        every: timedelta = timedelta(days=7),
        base_rate: float | None = None,
        progress: bool = False,
    ) -> PlanResult:
        """Simulate the campaign on its own customers: what it can learn and show before it is launched.

        Parameters
        ----------
        rounds : int, default 8
            How many rounds are planned.
        every : timedelta
            The time from one round to the next, a week if not given.
        base_rate : float, optional
            The mean reward of a contact chosen at random; a tenth of the cap if not given.
        progress : bool
            Whether to draw progress bars on standard error.

        Returns
        -------
        PlanResult

        Raises
        ------
        ValueError
            If single decisions of the campaign are served: it has no rounds to simulate.
        """
        if self.settings.service is not None:
            raise ValueError(
                f"{self.settings.name!r} decides on request ([service] in campaign.toml), and plan simulates rounds of "
                "a file: serve it, and its status and its dashboard say what it learns and shows"
            )
        return plan_campaign(
            self.settings, self.recipe, rounds=rounds, every=every, base_rate=base_rate, progress=progress
        )

    def records(self) -> Iterator[RoundRecord]:
        """Yield each round with its people and their outcomes so far.

        Of a campaign that is served, the closed decisions in each 512 are one record, whose people are units.
        """
        now = self.now()
        if self.is_served:
            if not self._has_decisions:
                return
            decisions = self._decisions(now)
            yield from (as_record(decisions, index, now) for index in decisions.segments.indices())
            return
        for info in self.ledger.rounds():
            yield read_round(self.ledger, self.settings, info, now)

    def report(self, path: str | os.PathLike[str] | None = None) -> Path:
        """Write the report, one HTML file that needs nothing else, and return its path.

        Parameters
        ----------
        path : path, optional
            By default `report.html` in the campaign's folder.

        Raises
        ------
        ValueError
            If nothing has been chosen yet, or if the campaign is served: then the dashboard shows what a report would.
        """
        from armful.campaigns.report import write_campaign_report  # noqa: PLC0415 - plotly is slow to import

        if self.is_served:
            raise ValueError(
                f"campaign {self.settings.name!r} is served, and its dashboard shows what a report would: "
                f"armful dashboard {self.folder or self.settings.name}"
            )
        self._frozen_recipe()
        target = (self.folder or Path()) / "report.html" if path is None else Path(path)
        write_campaign_report(self, target)
        return target

    def _frozen_recipe(self) -> FeatureRecipe:
        recipe = self.recipe
        if recipe is None:
            raise ValueError(f"campaign {self.settings.name!r} has no round yet: choose one first")
        return recipe

    def _decisions(self, now: datetime) -> DecisionFold:
        """Return the decisions that were served, up to date."""
        decisions = DecisionFold.of(self.ledger, self.settings)
        decisions.update(now)
        return decisions

    @property
    def _has_decisions(self) -> bool:
        """Whether single decisions are folded: not before the features are frozen, by serving or by a first round."""
        return self.is_served and frozen_recipe(self.ledger, self.settings) is not None

    def _folded(self, policy: Policy, now: datetime) -> Folded:
        if self._has_decisions:
            return Folded(state=self._decisions(now).state, rounds=[])
        # The policies that settings can name all learn a RidgeState.
        return fold(self.ledger, self.settings, policy.state.empty(), now)  # type: ignore[arg-type]

    def _pending(self, n_features: int, now: datetime) -> NDArray[np.floating[Any]]:
        """Return rows with the Gram matrix of those whose outcome is outstanding, `(m, n_features)`."""
        if self._has_decisions:
            return self._decisions(now).pending
        return pending_features(self.ledger, self.settings, n_features, now)

    def _outstanding(self, now: datetime) -> int:
        """Return how many outcomes of open rounds have not come."""
        if self.is_served:
            return int(totals_of(self._decisions(now).in_order())["outstanding"])
        return outstanding_outcomes(self.ledger, now)
