"""The feature recipe value by value, as its rules are stated: slow, and with nothing of armful in it."""

import math
import re
import unicodedata
import zlib
from collections import Counter
from datetime import date


def is_known_number(value):
    return value is not None and math.isfinite(value) and abs(value) <= 1e100


def quantile(numbers, q):
    ordered = sorted(numbers)
    return ordered[max(math.ceil(q * len(ordered)), 1) - 1]


def code_of(numbers):
    for code in (max(numbers), min(numbers)):
        rest = [x for x in numbers if x != code]
        n_equal = len(numbers) - len(rest)
        if n_equal < 10 or n_equal < 0.05 * len(numbers) or len(set(rest)) < 3:
            continue
        gap = code - max(rest) if code > max(rest) else min(rest) - code
        if gap > 3 * (max(rest) - min(rest)) or code < 0 <= min(rest):
            return code
    return None


def bounds_of(numbers):
    low, high = quantile(numbers, 0.005), quantile(numbers, 0.995)
    rest = [x for x in numbers if x != low]
    if low == high and rest:
        return min(low, quantile(rest, 0.005)), max(high, quantile(rest, 0.995))
    return low, high


def symmetric_log(x):
    return math.copysign(math.log1p(abs(x)), x)


def show(number):
    return str(int(number)) if number == int(number) else str(number)


def fit_number(values, settings):
    """Return what is frozen of a column, or the reason to leave it out; for fewer rows than the sample has."""
    known = [x for x in values if is_known_number(x)]
    if not known:
        return "no value in any row"
    if len(set(known)) == 1 and len(known) == len(values):
        return f"{show(known[0])} in every row"
    code = code_of(known)
    rest = [x for x in known if x != code]
    low, high = bounds_of(rest)
    change = symmetric_log if settings.log else float
    log = settings.log and (change(low) < change(high))
    knots = []
    if settings.spline > 1 and change(low) < change(high):
        inner = [quantile(rest, i / (settings.spline - 1)) for i in range(1, settings.spline - 1)]
        for knot in sorted([low, high, *(min(max(x, low), high) for x in inner)]):
            if not knots or change(knot) > change(knots[-1]):
                knots.append(knot)
    return {
        "column": settings.name,
        "median": quantile(rest, 0.5),
        "scale": {"low": low, "high": high, "log": log, "knots": knots},
        "code": code,
        "missing": len(known) < len(values),
    }


def as_category(value):
    return None if value in (None, "", "missing") else value


def fit_category(values, settings):
    words = [as_category(value) for value in values]
    distinct = set(words)
    if distinct == {None}:
        return "no value in any row"
    if len(distinct) == 1:
        return f"{words[0]!r} in every row"
    counts = Counter(word for word in words if word not in (None, "other"))
    frequent = sorted(counts, key=lambda word: (-counts[word], word))[: settings.at_most]
    return {"column": settings.name, "categories": sorted(frequent), "missing": None in distinct, "numbers": False}


def fit_ordered(values, settings):
    found = sorted(settings.order.index(value) for value in values if value in settings.order)
    if not found:
        return "no value that is in its order, " + ", ".join(map(repr, settings.order[:5]))
    if len(set(found)) == 1 and len(found) == len(values):
        return f"{values[0]!r} in every row"
    return {
        "column": settings.name,
        "order": list(settings.order),
        "median": quantile(found, 0.5),
        "other": len(found) < len(values),
        "numbers": False,
    }


def fit_text(values, settings):
    distinct = {value or "" for value in values}
    if len(distinct) == 1:
        return f"{distinct.pop()[:40]!r} in every row"
    return {"column": settings.name, "buckets": settings.buckets}


def days_of(text):
    return None if text in (None, "") else float((date.fromisoformat(text) - date(1970, 1, 1)).days)


def fit_date(values, settings):
    days = [days_of(text) for text in values]
    frozen = fit_number(days, settings)
    if isinstance(frozen, str):
        first = next((text for text in values if text), None)
        return frozen if first is None else f"{first} in every row"
    return frozen | {"written": "ISO 8601"}


FITS = {"number": fit_number, "category": fit_category, "ordered": fit_ordered, "text": fit_text, "date": fit_date}


def number_features(value, frozen):
    scale, features = frozen["scale"], []
    is_known = is_known_number(value)
    used = value if is_known and value != frozen["code"] else frozen["median"]
    change = symmetric_log if scale["log"] else float
    if scale["knots"]:
        knots = [change(knot) for knot in scale["knots"]]
        x = min(max(change(used), knots[0]), knots[-1])
        for i, knot in enumerate(knots):  # a hat: 1 at its knot, 0 at the two beside it
            before, after = knots[i - 1] if i else None, knots[i + 1] if i + 1 < len(knots) else None
            if x <= knot:
                features.append(1.0 if before is None else max(0.0, (x - before) / (knot - before)))
            else:
                features.append(1.0 if after is None else max(0.0, (after - x) / (after - knot)))
    elif scale["low"] != scale["high"]:
        low, high = change(scale["low"]), change(scale["high"])
        features.append(min(max((change(used) - low) / (high - low), 0.0), 1.0))
    if frozen["code"] is not None:
        features.append(float(value == frozen["code"]))
    if frozen["missing"]:
        features.append(float(not is_known))
    return features


def category_features(value, frozen):
    word = as_category(value)
    slots = [*frozen["categories"], "other", *["missing"] * frozen["missing"]]
    mine = "missing" if word is None and frozen["missing"] else word if word in frozen["categories"] else "other"
    return [float(slot == mine) for slot in slots]


def ordered_features(value, frozen):
    order = frozen["order"]
    position = order.index(value) if value in order else frozen["median"]
    return [position / (len(order) - 1), *[float(value not in order)] * frozen["other"]]


def words_of(text):
    letters = [letter if unicodedata.category(letter)[0] in "LN" else " " for letter in (text or "").lower()]
    return re.findall(r"[^ ]+", "".join(letters))


def text_features(value, frozen):
    buckets = {zlib.crc32(word.encode()) % frozen["buckets"] for word in words_of(value)}
    return [1 / math.sqrt(len(buckets)) if i in buckets else 0.0 for i in range(frozen["buckets"])]


def date_features(value, frozen):
    return number_features(days_of(value), frozen)


FEATURES = {
    "number": number_features,
    "category": category_features,
    "ordered": ordered_features,
    "text": text_features,
    "date": date_features,
}


def row_features(row, content):
    """Return the features of one row, by the content of a recipe's JSON."""
    of_column = {each["column"]: FEATURES[each["kind"]](row[each["column"]], each) for each in content["columns"]}
    features = [1.0] * content["intercept"] + [x for each in of_column.values() for x in each]
    for first, second in content["interactions"]:
        features += [a * b for a in of_column[first] for b in of_column[second]]
    return [x / math.sqrt(len(features)) for x in features]
