"""The beginning of a campaign: a look at the customers, and a first `campaign.toml`."""

from pathlib import Path

from armful import checks
from armful.campaigns.init._guessing import changes_rarely
from armful.campaigns.init._profiles import profile_file
from armful.campaigns.init._roles import check_id, guess_columns, guess_id, guess_k, guess_quota, guess_reward
from armful.campaigns.init._service import init_service
from armful.campaigns.init._template import Guess, campaign_toml
from armful.campaigns.init._words import columns_as_words, listed, separated
from armful.campaigns.init._writing import InitResult, name_of, new_folder, new_settings, relative, write_settings
from armful.campaigns.reading._delimiter import guess_delimiter, is_csv
from armful.campaigns.settings import parse_settings

__all__ = ["InitResult", "init_campaign", "init_service"]


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
    folder, source = new_folder(folder), Path(source)
    path = new_settings(folder)
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
    columns = guess_columns(profile, id, rewards)
    guess = Guess(
        name=name or name_of(folder),
        source=relative(source, folder),
        delimiter=delimiter,
        n_rows=profile.n_rows,
        id=id,
        k=k or guess_k(profile.n_rows),
        reward=rewards,
        columns=columns,
        quota=guess_quota(columns),
    )
    if all(column.settings is None for column in columns):
        there = listed(columns, with_reasons=True) or "it has the ids alone"
        raise ValueError(f"{source} has no column that can be a feature: {there}")
    text = campaign_toml(guess)
    parse_settings(text, folder, where=str(path))  # what is written is valid
    write_settings(folder, path, text)
    return InitResult(path=path, explanations=_explanations(guess, k), questions=_questions(guess, reward))


def _explanations(guess: Guess, k: int | None) -> list[str]:
    lines = [
        f"{guess.n_rows:,} rows with {len(guess.columns) + 1} columns" + separated(guess.delimiter),
        f"id: {guess.id}, which differs in every row",
    ]
    lines += columns_as_words(guess.columns)
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
            f"do these tell the time more than the customer: {listed(rare)}? They hardly change from row to row; if "
            "so, move them to leave_out"
        )
    return questions
