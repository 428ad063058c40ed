"""A campaign: choose a round, learn its outcomes, see where it stands."""

import os
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np

from armful import __version__
from armful.campaigns._opening import open_store
from armful.campaigns._results import Forgotten, Learned, Round
from armful.campaigns._view import CampaignView, Clock
from armful.campaigns.decisions import DecisionFold, update_model
from armful.campaigns.decisions.summary import published_interval
from armful.campaigns.rounds import _outcomes as outcomes_file
from armful.campaigns.rounds._choosing import choose_round
from armful.campaigns.rounds._customers import fit_recipe
from armful.campaigns.rounds._eligible import customers_of_round
from armful.campaigns.rounds._lists import (
    list_bytes,
    list_path,
    listed_rounds,
    publish,
    refuse_folder,
    refuse_target,
    remove_from_list,
)
from armful.campaigns.rounds._standing import customer_notes, frozen_notes, learning_notes, recipe_notes
from armful.campaigns.rounds._workspace import is_in_use, remove_abandoned, workspace
from armful.campaigns.settings import Settings
from armful.errors import LedgerError
from armful.ledger import RoundInfo


class Campaign(CampaignView):
    r"""A campaign in a folder, or in a store: rounds that are chosen, outcomes that come later, a model that learns.

    Everything durable is in the ledger. The model is a fold over it, so a campaign can be opened, killed and opened
    again at any time, and several programs may use one.

    Parameters
    ----------
    settings : Settings
        From `campaign.toml`.
    ledger : Ledger
        Opened for the campaign of that name.
    folder : Path or None
        Where lists and reports are written; None for the current folder.
    now : callable, optional
        Returns the current time, with a time zone.

    Examples
    --------
    >>> import tempfile
    >>> import pyarrow as pa
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "campaign.toml").write_text(
    ...     'name = "autumn"\nid = "id"\nchoose.k = 2\nholdout.share = 0\npolicy.cap = 1\n'
    ...     'outcomes.reward = "bought"\nfeatures.columns.age.kind = "number"'
    ... )
    >>> with Campaign.open(folder) as campaign:
    ...     chosen = campaign.choose(pa.table({"id": ["ann", "bob", "cy"], "age": [30, 50, 70]}))
    ...     learned = campaign.learn(pa.table({"id": campaign.ledger.chosen_ids(1), "bought": [1, 0]}))
    >>> chosen.n_chosen, learned.new, learned.outstanding
    (2, 2, 0)
    """

    @classmethod
    def open(
        cls,
        where: str | os.PathLike[str],
        *,
        name: str | None = None,
        now: Clock | None = None,
        settings: Settings | None = None,
    ) -> Self:
        """Open a campaign.

        Parameters
        ----------
        where : path or str
            A folder with `campaign.toml`, or the URL of a store. From a URL the settings are those of the last round.
        name : str, optional
            With a URL of several campaigns: which one. That of a folder, if given, must be the name in its settings.
        now : callable, optional
            Returns the current time, with a time zone; for catching up on past rounds and for tests.
        settings : Settings, optional
            What was read from `campaign.toml` before; then the file is not read again.

        Returns
        -------
        Campaign

        Raises
        ------
        SettingsError
            If `campaign.toml` has mistakes; all are listed.
        LedgerError
            If the store cannot be opened.
        """
        settings, ledger, folder = open_store(where, name, settings)
        return cls(settings, ledger, folder, now)

    def close(self) -> None:
        """Close the store."""
        self.ledger.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        what = "decisions" if self.is_served else "rounds"
        return f"Campaign({self.settings.name!r}, {self.ledger.last_number()} {what})"

    def choose(
        self,
        source: Any,
        *,
        key: str | None = None,
        out: str | os.PathLike[str] | None = None,
        dry_run: bool = False,
        progress: bool = False,
        transformer: Any = None,
    ) -> Round:
        """Choose the next round from a file of customers, and write its list.

        A round is there as a whole or not at all. If a command was stopped after its round was recorded and before
        its list was written, the next call without a key returns that round.

        Parameters
        ----------
        source : path, list of paths, DataFrame or Arrow table
            The customers, as they are now.
        key : str, optional
            A name for the round: choosing again with the same key returns the same round.
        out : path, optional
            A further file for the list.
        dry_run : bool
            Choose, but record nothing, and write the list to `out` only.
        progress : bool
            Whether to draw progress bars on standard error.
        transformer : scikit-learn transformer, optional
            In the first round: makes the features instead of the settings' columns.

        Returns
        -------
        Round

        Raises
        ------
        ValueError
            If the file cannot be used, or no allowed set exists (`InfeasibleError`). Nothing is changed then.
        LedgerError
            If the round cannot be recorded, or another program chose one meanwhile. Nothing is changed then.
        """
        if key == "":
            raise ValueError("key must be a name for the round, got an empty text; leave it out to choose a new round")
        if out is not None:
            refuse_target(Path(out))
        folder = None if dry_run else self.folder or Path(self.settings.name)
        if folder is not None:
            refuse_folder(folder)
        known = self._round_to_return(key, dry_run)
        if known is not None:
            arms = self.ledger.chosen(known.number)
            return publish(known, arms, folder, out, list_bytes(arms), repeated=True)
        last = self.ledger.last_round()
        number = 1 if last is None else last.number + 1
        recipe = self.recipe or fit_recipe(source, self.settings, transformer, progress=progress)
        policy = self.settings.policy.make(recipe.n_features, np.random.default_rng([self.settings.seed, number, 1]))
        now = self.now()
        folded = self._folded(policy, now)
        pending = self._pending(recipe.n_features, now)
        with workspace(self.folder) as work:
            customers = customers_of_round(
                source,
                self.settings,
                recipe,
                folded.state.theta,
                self.ledger,
                number,
                work / "customers.features",
                progress=progress,
            )
            picked = choose_round(customers, self.settings, policy, folded.state, pending, number)
            notes = recipe_notes(recipe) if number == 1 else frozen_notes(recipe, self.settings)
            notes += customer_notes(customers, self.settings)
            details = {**picked.details, "source": _name_of(source), "version": __version__}
            chosen_at = self.now()
            values: dict[str, Any] = {"number": number, "key": key, "chosen_at": chosen_at, "details": details}
            values["closes_at"] = chosen_at + self.settings.outcomes.window
            with ThreadPoolExecutor(1) as pool:  # the list is made while the round is recorded
                written = pool.submit(list_bytes, picked.arms)
                if dry_run:
                    info = RoundInfo(id=0, **values)
                    notes.append("nothing was recorded")
                else:
                    values |= {"settings": self.settings.text, "recipe": recipe.to_json()}
                    info = self.ledger.add_round(**values, chosen=picked.arms)
            return publish(info, picked.arms, folder, out, written.result(), notes=notes)

    def learn(
        self,
        outcomes: Any,
        *,
        id: str | None = None,
        reward: str | None = None,
        round: str | None = None,
        time: str | None = None,
        progress: bool = False,
    ) -> Learned:
        """Record outcomes: late, partial, repeated and corrected ones. The same file again changes nothing.

        Parameters
        ----------
        outcomes : path, DataFrame or Arrow table
            One row for each outcome.
        id, reward, round, time : str, optional
            The columns, if they are not those of the settings.
        progress : bool
            Whether to draw a progress bar on standard error.

        Returns
        -------
        Learned

        Raises
        ------
        ValueError
            If the file cannot be used; the message names the row. Nothing is changed then.
        """
        self._frozen_recipe()
        usual = self.settings.outcomes
        columns = replace(
            usual, id=id or usual.id, reward=reward or usual.reward, round=round or usual.round, time=time or usual.time
        )
        rows = outcomes_file.read_outcomes(outcomes, columns, self.settings.delimiter, progress=progress)
        now = self.now()
        matched = outcomes_file.match(rows, self.ledger, columns, now)
        counts = self.ledger.add_rewards(matched.rounds, matched.ids, matched.rewards, now)
        folded = self._folded(self.settings.policy.make(self._frozen_recipe().n_features, self.settings.seed), now)
        return Learned(
            n_rows=rows.n_rows,
            matched=matched.ids.size,
            new=counts.new,
            repeated=counts.repeated,
            corrected=counts.corrected,
            never_chosen=matched.never_chosen,
            outside_window=matched.outside_window,
            duplicates=matched.duplicates,
            empty=rows.empty,
            outstanding=self._outstanding(now),
            rounds_learned=folded.rounds,
            notes=learning_notes(self.settings),
        )

    def forget(self, ids: str | Iterable[str]) -> Forgotten:
        """Erase people: from the ledger, from the lists of rounds, and from the model.

        Parameters
        ----------
        ids : str or iterable of str
            The person, or several.

        Returns
        -------
        Forgotten
        """
        wanted = np.array(sorted({ids} if isinstance(ids, str) else {str(id) for id in ids}), dtype=np.str_)
        numbers = listed_rounds(self.folder) if self.is_served else [info.number for info in self.ledger.rounds()]
        rounds = [number for number in numbers if np.isin(wanted, self.ledger.chosen_ids(number)).any()]
        if self.folder is not None:
            remove_abandoned(self.folder)
            for number in rounds:  # before the ledger, which knows these rounds if this is stopped and run again
                remove_from_list(list_path(self.folder, number), self.ledger.chosen(number), wanted)
        newest = self.ledger.newest_model(state=False)
        every = None if newest is None else published_interval(newest[2])
        n_people = self.ledger.forget(wanted)
        if self.is_served and n_people:
            decisions = DecisionFold.of(self.ledger, self.settings)
            update_model(decisions, self.now(), update_every=every)  # the one before is gone
        elif self.recipe is not None:
            self.policy()  # makes the snapshots of these rounds anew
        elsewhere = "your own files still hold them: customers, outcomes, copies of lists, reports and backups"
        return Forgotten(n_people=n_people, rounds=rounds, notes=[elsewhere] if n_people else [])

    def _round_to_return(self, key: str | None, dry_run: bool) -> RoundInfo | None:
        """Return the round of this key, or the last one if its list was never written; None to choose a new one."""
        if key is not None:
            known = self.ledger.round_by_key(key)
            if known is not None and _is_of_service(known):
                raise ValueError(f"the key {key!r} is that of decision {known.number} of the service: give another key")
            return known
        last = self.ledger.last_round()
        if dry_run or last is None or _is_of_service(last) or self.folder is None:
            return None
        in_use = is_in_use(self.folder)  # asked first: a command writes its list while it is at work
        if list_path(self.folder, last.number).exists():
            return None
        if in_use:
            raise LedgerError(f"round {last.number} is being chosen by another command: wait until it has ended")
        return last


def _is_of_service(info: RoundInfo) -> bool:
    """Return whether it is a single decision, which has no list."""
    return info.model_version is not None


def _name_of(source: Any) -> str:
    return str(source) if isinstance(source, str | os.PathLike) else type(source).__name__
