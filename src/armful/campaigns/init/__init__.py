"""The beginning of a campaign: a look at the customers, and a first `campaign.toml`."""

import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from armful import checks
from armful.campaigns._results import Result
from armful.campaigns.init._delimiter import guess_delimiter, is_csv
from armful.campaigns.init._guessing import ColumnGuess, changes_rarely, guess_column, leaks
from armful.campaigns.init._profiles import FileProfile, profile_file
from armful.campaigns.init._roles import (
    RewardGuess,
    check_id,
    guess_id,
    guess_k,
    guess_quota,
    guess_reward,
    reward_numbers,
)
from armful.campaigns.init._template import Guess, campaign_toml
from armful.campaigns.settings import FILE_NAME, parse_settings
from armful.errors import with_message
from armful.files._atomic_file import write_bytes

MOST_NAMES = 8
"""Columns that one line names."""


@dataclass(frozen=True, kw_only=True)
class InitResult(Result):
    """A new campaign.

    Attributes
    ----------
    path : Path
        The settings that were written.
    explanations : list of str
        What was guessed and why, a line each.
    questions : list of str
        What the user should decide, a line each.
    """

    path: Path
    explanations: list[str]
    questions: list[str]


def init_campaign(
    folder: Path | str,
    source: Path | str,
    *,
    id: str | None = None,
    reward: str | None = None,
    k: int | None = None,
    delimiter: str | None = None,
    name: str | None = None,
) -> InitResult:
    r"""Look at a file of customers and write the settings of a campaign with comments.

    Parameters
    ----------
    folder : Path or str
        The folder of the campaign, which is made if it is not there. A `campaign.toml` in it is never overwritten.
    source : Path or str
        The customers: a CSV or Parquet file, or a folder of Parquet files.
    id : str, optional
        The column that tells customers apart; guessed if it is not given.
    reward : str, optional
        The column of the outcomes file with the reward; guessed if it is not given.
    k : int, optional
        How many contacts a round has; if it is not given, a tenth of the customers and at most 1,000.
    delimiter : str, optional
        What separates the columns of a CSV file; guessed if it is not given.
    name : str, optional
        The name of the campaign; by default that of the folder.

    Returns
    -------
    InitResult

    Raises
    ------
    FileExistsError
        If there is a `campaign.toml`.
    ValueError
        If no column can be the id, or an option is wrong.
    FileFormatError
        If the file of customers cannot be read.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     source = Path(folder, "customers.csv")
    ...     rows = [f"{i},{20 + i % 50},{'north' if i % 3 else 'south'}" for i in range(200)]
    ...     _ = source.write_text("\n".join(["customer_id,age,region", *rows]))
    ...     result = init_campaign(Path(folder, "autumn"), source)
    ...     print("\n".join(result.explanations))
    200 rows with 3 columns
    id: customer_id, which differs in every row
    numbers: age
    categories: region
    k = 20 contacts in a round: a tenth of the customers, at most 1,000
    cap = 1: right for yes or no, 1 or 0; for amounts, a number that no mean reward exceeds
    """
    folder, source = Path(folder), Path(source)
    path = folder / FILE_NAME
    if os.path.lexists(path):
        raise FileExistsError(f"{path} is there already, and it is not overwritten: edit it, or give another folder")
    if os.path.lexists(folder) and not folder.is_dir():
        raise FileExistsError(f"{folder} is a file, and a campaign needs a folder: give another name")
    if k is not None:
        checks.count("k", k)
    delimiter = delimiter or (guess_delimiter(source) if is_csv(source) else ",")
    profile = profile_file(source, delimiter)
    if id is None:
        id = guess_id(source, profile, delimiter)
    else:
        check_id(source, profile, id, delimiter)
    if reward == id:
        raise ValueError(f"the reward must be another column than the id, got {id!r} for both")
    rewards = guess_reward(profile, id, reward)
    columns = _columns(profile, id, rewards)
    guess = Guess(
        name=name or _name_of(folder),
        source=_relative(source, folder),
        delimiter=delimiter,
        n_rows=profile.n_rows,
        id=id,
        k=k or guess_k(profile.n_rows),
        reward=rewards,
        columns=columns,
        quota=guess_quota(columns),
    )
    if all(column.settings is None for column in columns):
        raise ValueError(f"{source} has no column that can be a feature: {_listed(columns, with_reasons=True)}")
    text = campaign_toml(guess)
    parse_settings(text, folder, where=str(path))  # what is written is valid
    _write(folder, path, text)
    return InitResult(path=path, explanations=_explanations(guess, k), questions=_questions(guess, reward))


def _columns(profile: FileProfile, id: str, reward: RewardGuess) -> list[ColumnGuess]:
    """Return the guesses for all columns but the id; those that tell the reward are left out."""
    columns = {column.name: column for column in profile.columns if column.name != id}
    target = reward_numbers(columns[reward.name]) if reward.in_file else None
    guesses = []
    for column in columns.values():
        guess = guess_column(column)
        if column.name == reward.name:
            guess = ColumnGuess(profile=column, settings=None, why="it is the reward")
        elif guess.settings is not None and target is not None and leaks(column, target):
            question = (
                f"is {column.name} known before a contact? It nearly tells {reward.name}, so it is left out; if it is, "
                "move it from leave_out to features.columns"
            )
            guess = replace(guess, settings=None, why=f"it nearly tells {reward.name}", question=question)
        guesses.append(guess)
    return guesses


def _explanations(guess: Guess, k: int | None) -> list[str]:
    used = [column for column in guess.columns if column.settings is not None]
    lines = [
        f"{guess.n_rows:,} rows with {len(guess.columns) + 1} columns" + _separated(guess.delimiter),
        f"id: {guess.id}, which differs in every row",
    ]
    words = {"number": "numbers", "category": "categories", "date": "dates", "text": "texts, by their words"}
    for kind, word in words.items():
        of_kind = [column for column in used if column.settings and column.settings.kind == kind]
        plain = [column for column in of_kind if column.settings and not column.settings.log]
        logs = [column for column in of_kind if column.settings and column.settings.log]
        lines += [f"{word}: {_listed(plain)}"] if plain else []
        lines += [f"{word} by their logarithm, since they are very skewed: {_listed(logs)}"] if logs else []
    left_out = [column for column in guess.columns if column.settings is None]
    lines += [f"left out: {_listed(left_out, with_reasons=True)}"] if left_out else []
    lines += [] if k else [f"k = {guess.k:,} contacts in a round: a tenth of the customers, at most 1,000"]
    lines.append(f"cap = {guess.reward.cap:g}: {guess.reward.why}")
    return lines


def _questions(guess: Guess, reward: str | None) -> list[str]:
    questions = [column.question for column in guess.columns if column.question]
    if guess.reward.in_file and reward is None:
        questions.append(f"is {guess.reward.name} the outcome that counts? If not, change outcomes.reward")
    elif reward is None:
        questions.append(
            f"what is the column of your outcomes called? {guess.reward.name!r} is written as outcomes.reward, with a "
            "cap for yes or no"
        )
    in_file = next((column.profile for column in guess.columns if column.name == guess.reward.name), None)
    if in_file is not None and in_file.looks == "texts":
        words = " or ".join(list(in_file.counts)[:2])
        questions.append(f"are outcomes numbers? Here {in_file.name} is {words}; write 1 or 0 instead")
    rare = [column for column in guess.columns if column.settings is not None and changes_rarely(column.profile)]
    if rare:
        questions.append(
            f"do these tell the time more than the customer: {_listed(rare)}? They hardly change from row to row; if "
            "so, move them to leave_out"
        )
    return questions


def _separated(delimiter: str) -> str:
    return "" if delimiter == "," else f" separated by {'tabs' if delimiter == chr(9) else repr(delimiter)}"


def _listed(columns: Sequence[ColumnGuess], *, with_reasons: bool = False) -> str:
    shown = [f"{column.name} ({column.why})" if with_reasons else column.name for column in columns[:MOST_NAMES]]
    more = len(columns) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")


def _name_of(folder: Path) -> str:
    name = Path(os.path.abspath(folder)).name
    return name if name.strip() and name.isprintable() and len(name) <= 200 else "campaign"


def _relative(source: Path, folder: Path) -> str:
    """Return the file as seen from the folder; as it is if it is absolute."""
    if source.is_absolute():
        return source.as_posix()
    there = Path(os.path.realpath(source.parent)) / source.name
    try:
        return Path(os.path.relpath(there, os.path.realpath(folder))).as_posix()
    except ValueError:  # on another drive of Windows
        return there.as_posix()


def _write(folder: Path, path: Path, text: str) -> None:
    """Make the folder and write the file; on failure nothing is left."""
    is_new = not folder.is_dir()
    try:
        folder.mkdir(exist_ok=True)
    except FileNotFoundError as error:
        raise with_message(error, f"there is no folder {folder.parent} to make {folder.name} in") from None
    except PermissionError as error:
        raise with_message(error, f"no permission to make {folder}: give another folder") from None
    created = False
    try:
        with suppress(PermissionError):  # write_bytes says it in a sentence
            path.open("xb").close()  # so that of two commands at once only one goes on
            created = True
        write_bytes(path, text.encode())
    except BaseException as error:
        if created:
            with suppress(OSError):
                path.unlink()
        if is_new:
            with suppress(OSError):
                folder.rmdir()
        if isinstance(error, FileExistsError):
            raise FileExistsError(f"{path} is there already, and it is not overwritten") from None
        raise
