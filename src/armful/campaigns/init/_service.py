"""The beginning of a service: a look at items or past impressions, and a first `campaign.toml`."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from armful import checks
from armful.campaigns.features import FeatureRecipe
from armful.campaigns.features._size import refuse_too_many
from armful.campaigns.init import _names as names
from armful.campaigns.init._guessing import ColumnGuess
from armful.campaigns.init._profiles import ColumnProfile, FileProfile, profile_file
from armful.campaigns.init._roles import RewardGuess, guess_columns, guess_quota, guess_reward, named
from armful.campaigns.init._service_template import ServiceGuess, service_toml
from armful.campaigns.init._words import columns_as_words, listed, separated
from armful.campaigns.init._writing import InitResult, name_of, new_folder, new_settings, relative, write_settings
from armful.campaigns.reading._delimiter import guess_delimiter, is_csv
from armful.campaigns.rounds._customers import fit_recipe
from armful.campaigns.settings import Settings, parse_settings

SLATE = 5
VARIES = 0.2
"""A column describes the request if it differs in so many of the items that have several rows."""


def init_service(
    folder: Path | str,
    source: Path | str | None = None,
    *,
    features: int | None = None,
    context: Sequence[str] = (),
    id: str | None = None,
    reward: str | None = None,
    k: int | None = None,
    delimiter: str | None = None,
    name: str | None = None,
) -> InitResult:
    r"""Write the settings of a service that decides slates, with comments.

    Parameters
    ----------
    folder : Path or str
        The folder of the campaign, which is made if it is not there. A `campaign.toml` in it is never overwritten.
    source : Path or str, optional
        Items, one row for each, or past impressions, which also have the context and the reward: CSV or Parquet.
    features : int, optional
        Instead of a file: how many ready features requests bring.
    context : sequence of str
        Columns of the file that come once with a request.
    id : str, optional
        The column that tells items apart; guessed if it is not given.
    reward : str, optional
        What the reward is called; guessed if it is not given.
    k : int, default 5
        The number of items in a slate.
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
        If there is neither a file nor a number of features, no column can be the id, or an option is wrong.
    FileFormatError
        If the file cannot be read.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     result = init_service(Path(folder, "shop"), features=20)
    ...     print("\n".join(result.explanations))
    20 ready features: every candidate of a request brings so many numbers, used as they are
    k = 5 items in a slate
    cap = 1: right for yes or no, 1 or 0; for amounts, a number that no mean reward exceeds
    2 % of each slate are drawn at random, 5 % of the units get random slates to compare with
    """
    folder = new_folder(folder)
    path = new_settings(folder)
    k = SLATE if k is None else checks.count("k", k)
    if (source is None) == (features is None):
        raise ValueError(
            "a service begins from a file of items or past impressions, or from a number of ready features"
        )
    if features is not None:
        if context:
            raise ValueError("a context needs a file with its columns: ready features are not crossed with anything")
        ready = checks.count("features", features)
        rewards = RewardGuess(name=reward or "reward", cap=1.0, why=_FOR_YES_OR_NO, in_file=False)
        guess = ServiceGuess(
            name=name or name_of(folder),
            source=None,
            delimiter=",",
            n_rows=0,
            id=id or "id",
            k=k,
            reward=rewards,
            ready=ready,
        )
        lines = [_READY.format(ready)]
        questions: list[str] = []
    else:
        assert source is not None
        guess, lines, questions = _from_file(folder, Path(source), context, id, reward, k, delimiter, name)
    text = service_toml(guess)
    settings = parse_settings(text, folder, where=str(path))  # what is written is valid
    lines += _number_of_features(settings, source)
    write_settings(folder, path, text)
    lines += [f"k = {k} items in a slate", f"cap = {guess.reward.cap:g}: {guess.reward.why}", _SHARES]
    return InitResult(path=path, explanations=lines, questions=[*questions, *_about_reward(guess, reward)])


_FOR_YES_OR_NO = "right for yes or no, 1 or 0; for amounts, a number that no mean reward exceeds"
_READY = "{} ready features: every candidate of a request brings so many numbers, used as they are"
_SHARES = "2 % of each slate are drawn at random, 5 % of the units get random slates to compare with"


def _from_file(
    folder: Path,
    source: Path,
    context: Sequence[str],
    id: str | None,
    reward: str | None,
    k: int,
    delimiter: str | None,
    name: str | None,
) -> tuple[ServiceGuess, list[str], list[str]]:
    """Return what is guessed of a file, what to say about it, and what to ask."""
    delimiter = delimiter or (guess_delimiter(source) if is_csv(source) else ",")
    profile = profile_file(source, delimiter)
    item = _item_column(source, profile, id)
    if reward == item.name:
        raise ValueError(f"the reward must be another column than the id, got {item.name!r} for both")
    context = tuple(dict.fromkeys(named(source, profile, each).name for each in context))
    rewards = guess_reward(profile, item.name, reward)
    columns = [_for_requests(column, item, context) for column in guess_columns(profile, item.name, rewards)]
    for column in columns:
        if column.name in context and column.settings is None:
            raise ValueError(f"{column.name} cannot be a column of the context: {column.why}")
    if item.name in context:
        raise ValueError(f"{item.name} is the id of the items, and cannot be a column of the context")
    if not [column for column in columns if column.settings is not None and column.name not in context]:
        there = listed(columns, with_reasons=True) or "it has the ids alone"
        raise ValueError(f"{source} has no column that can be a feature of items: {there}")
    guess = ServiceGuess(
        name=name or name_of(folder),
        source=relative(source, folder),
        delimiter=delimiter,
        n_rows=profile.n_rows,
        id=item.name,
        k=k,
        reward=rewards,
        columns=columns,
        quota=guess_quota([column for column in columns if column.name not in context]),
        context=context,
    )
    differ = (
        "which differs in every row" if item.all_differ else f"{item.n_distinct:,} different ones in the rows looked at"
    )
    lines = [
        f"{profile.n_rows:,} rows with {len(columns) + 1} columns" + separated(delimiter),
        f"id: {item.name}, {differ}",
        *columns_as_words(columns),
    ]
    lines += [f"context, which comes once with a request: {', '.join(context)}"] if context else []
    questions = [column.question for column in columns if column.question]
    varying = [] if context else [column for column in columns if column.settings and _describes_request(column, item)]
    if varying:
        questions.append(
            f"do these describe the request and not the item: {listed(varying)}? They differ between rows of one item; "
            "if so, list them in service.context"
        )
    return guess, lines, questions


def _item_column(source: Path, profile: FileProfile, id: str | None) -> ColumnProfile:
    """Return the column that tells items apart; it may repeat, as in past impressions."""
    if id is not None:
        column = named(source, profile, id)
    else:
        scores = {column.name: names.item_score(column.name) for column in profile.columns}
        usable = [column for column in profile.columns if scores[column.name] and column.looks in ("numbers", "texts")]
        usable = [column for column in usable if not column.n_missing and (column.numbers is None or column.are_whole)]
        if not usable:
            raise ValueError(
                f"{source} has no column that is evidently the id of an item: name it by --id; its columns are "
                f"{', '.join(column.name for column in profile.columns[:12])}"
            )
        column = max(usable, key=lambda each: scores[each.name])
    if column.n_missing:
        raise ValueError(f"column {column.name!r} of {source} cannot be the id: it is empty in a row")
    return column


def _for_requests(column: ColumnGuess, item: ColumnProfile, context: Sequence[str]) -> ColumnGuess:
    """Return the guess for a column of items or impressions, where some names mean something else than of customers."""
    column = replace(
        column,
        why=column.why.replace("a contact", "a decision"),
        question=column.question.replace("a contact", "a decision"),
    )
    if column.name in context:
        return column
    if names.id_score(column.name) > 1:
        return replace(column, settings=None, why="it tells who or what it was; to decide for it, send it as unit")
    why = None
    if column.settings is None:
        return column
    if names.is_place(column.name):
        why = "it tells the place in a slate, which is not known before a decision"
    elif not item.all_differ and (column.settings.kind == "date" or names.is_time(column.name)):
        why = "it tells when it was, and later is always beyond it"
    return column if why is None else replace(column, settings=None, why=why, question="")


def _describes_request(column: ColumnGuess, item: ColumnProfile) -> bool:
    """Return whether a column differs between rows of the same item."""
    first: dict[str | None, str | None] = {}
    repeated: set[str | None] = set()
    differing: set[str | None] = set()
    for id, value in zip(item.texts, column.profile.texts, strict=True):
        if id in first:
            repeated.add(id)
            if first[id] != value:
                differing.add(id)
        first.setdefault(id, value)
    return len(differing) > VARIES * len(repeated)


def _number_of_features(settings: Settings, source: Path | str | None) -> list[str]:
    """Return how many features the columns make; raise ValueError if they are too many."""
    if source is None:
        refuse_too_many(FeatureRecipe.fit(settings.features, ()))
        return []
    recipe = fit_recipe(source, settings)
    refuse_too_many(recipe)
    widths = {part.columns[0]: len(part.names) for part in recipe.parts}
    crossed = sum(widths[a] * widths[b] for a, b in recipe.interactions)
    products = f", {crossed:,} of them products of an item's column and one of the context" if crossed else ""
    return [f"these make {recipe.n_features:,} features{products}"]


def _about_reward(guess: ServiceGuess, reward: str | None) -> list[str]:
    if reward is not None:
        return []
    if guess.reward.in_file:
        return [f"is {guess.reward.name} the reward that counts? If not, change outcomes.reward"]
    return ["is the reward yes or no, 1 or 0? If not, set policy.cap to a number that no mean reward exceeds"]
