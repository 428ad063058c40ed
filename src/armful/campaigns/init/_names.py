"""What the name of a column says about it."""

import re

_IDS = {"id", "uuid", "guid", "key", "number", "no", "nr", "email", "mail", "msisdn", "iban", "hash"}
_PEOPLE = ("customer", "client", "user", "person", "member", "account", "contact", "subscriber", "household")
_ITEMS = (
    *("arm", "item", "product", "article", "sku", "ad", "creative", "banner", "offer", "content", "video", "movie"),
    *("song", "track", "document", "doc", "page", "listing", "post", "news", "story", "recipe", "option", "variant"),
    *("film", "book", "episode", "podcast", "course", "hotel", "restaurant", "job", "coupon", "headline", "image"),
)
_PLACES = {"position", "rank", "slot", "place", "index"}
_TIMES = {"time", "timestamp", "ts", "datetime", "date", "hour", "minute"}
_BESIDE_TIMES = {"shown", "served", "event", "request", "impression", "created", "logged", "at", "utc"}
_AFTERWARDS = (
    *("reward", "target", "label", "y", "converted", "conversion", "response", "responded", "outcome", "result"),
    *("bought", "purchased", "purchase", "ordered", "sold", "sale", "subscribed", "redeemed", "redemption"),
    *("clicked", "click", "opened", "visited", "donated", "accepted", "revenue", "profit", "spend", "spent"),
    *("duration", "churned", "unsubscribed"),
)
_NEVER_A_REWARD = {"duration", "churned", "unsubscribed"}
_BESIDE = {"is", "has", "did", "was", "call", "campaign", "offer", "at", "on", "date", "time", "flag", "this", "value"}
_CODES = {"code", "zip", "zipcode", "postcode", "postal", "plz", "segment", "cluster", "type", "category", "class"}
_PERSONAL = {"name", "surname", "firstname", "lastname", "address", "street", "phone", "mobile", "email", "mail"}
_GROUPS = ("region", "area", "country", "state", "province", "segment", "channel", "store", "branch", "tier", "market")


def tokens(name: str) -> list[str]:
    """Return the words of a name, in small letters.

    Examples
    --------
    >>> tokens("customerID"), tokens("emp.var_rate 3m")
    (['customer', 'id'], ['emp', 'var', 'rate', '3m'])
    """
    return re.sub(r"([a-z0-9])([A-Z])", r"\1 \2", name).lower().replace("_", " ").translate(_BLANKS).split()


def id_score(name: str) -> int:
    """Return how much a name looks like that of an id: 0 for not at all.

    Examples
    --------
    >>> id_score("customer_id"), id_score("userid"), id_score("row id"), id_score("email"), id_score("paid")
    (4, 4, 3, 1, 0)
    """
    words = tokens(name)
    joined = "".join(words)
    if joined == "id" or any(joined == f"{who}id" for who in _PEOPLE):
        return 4
    if "id" in words or "uuid" in words or "guid" in words:
        return 3
    if words and words[-1] in _IDS and any(who in words for who in _PEOPLE):
        return 2
    return int(bool(words) and (words[-1] in _IDS or joined in _PEOPLE))


def item_score(name: str) -> int:
    """Return how much a name looks like that of an item's id: 0 for not at all.

    Examples
    --------
    >>> item_score("film_id"), item_score("id"), item_score("sku"), item_score("user_id"), item_score("price")
    (4, 3, 2, 0, 0)
    """
    words = tokens(name)
    joined = "".join(words)
    if any(joined in (f"{what}id", f"{what}key", f"{what}number") for what in _ITEMS):
        return 4
    if joined == "id":
        return 3
    return 2 if joined in _ITEMS else 0


def is_place(name: str) -> bool:
    """Return whether a column tells the place of an item in a slate.

    Examples
    --------
    >>> is_place("position"), is_place("slot_index"), is_place("market_place_name")
    (True, True, False)
    """
    words = set(tokens(name))
    return bool(words) and words <= {*_PLACES, "in", "slate", "list"}


def is_time(name: str) -> bool:
    """Return whether a column tells the moment of an impression.

    Examples
    --------
    >>> is_time("timestamp"), is_time("shown_at"), is_time("release_date")
    (True, True, False)
    """
    words = set(tokens(name))
    return bool(words & {*_TIMES, "at"}) and words <= {*_TIMES, *_BESIDE_TIMES} and words != {"hour"}


def known_afterwards(name: str) -> bool:
    """Return whether a name is usual for what is known only after a contact.

    Examples
    --------
    >>> [name for name in ("duration", "call_duration", "y", "poutcome", "revenue_2024") if known_afterwards(name)]
    ['duration', 'call_duration', 'y']
    """
    words = set(tokens(name))
    return bool(words & set(_AFTERWARDS)) and words <= {*_AFTERWARDS, *_BESIDE}


def reward_rank(name: str) -> int | None:
    """Return how usual a name is for a reward, 0 for the most usual; None for other names."""
    words = set(tokens(name)) - _BESIDE
    if not known_afterwards(name) or words & _NEVER_A_REWARD:
        return None
    return min(_AFTERWARDS.index(word) for word in words)


def is_code(name: str) -> bool:
    """Return whether numbers under this name are codes, not quantities.

    Examples
    --------
    >>> is_code("zip_code"), is_code("age")
    (True, False)
    """
    return bool(set(tokens(name)) & _CODES)


def is_personal(name: str) -> bool:
    """Return whether a column tells who somebody is, not what they are like.

    Examples
    --------
    >>> is_personal("last_name"), is_personal("job")
    (True, False)
    """
    return bool(set(tokens(name)) & _PERSONAL)


def group_rank(name: str) -> int:
    """Return how usual a column is for quotas: 0 for the most usual."""
    words = tokens(name)
    return next((rank for rank, group in enumerate(_GROUPS) if group in words), len(_GROUPS))


_BLANKS = {ord(mark): " " for mark in "!\"#$%&'()*+,-./:;<=>?@[\\]^`{|}~\t\r\n"}
