"""Synthetic search logs with realistic frequencies, and a directory of the people in them.

Queries follow Zipf's law, people have favourite topics and differ in activity by orders of magnitude, and some search
for their own name, their town, or an account number. Nobody in a log exists.

Frequencies after: Pass, G., Chowdhury, A., Torgeson, C. (2006). A picture of search. doi:10.1145/1146847.1146848
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from sfumato.arrays import Ints
from sfumato.profiling.words import word_list
from sfumato.rng import Rng

TOPICS: dict[str, tuple[str, ...]] = {
    "health": ("diabetes", "back pain", "pregnancy", "allergy", "insomnia", "migraine"),
    "money": ("mortgage", "credit score", "tax refund", "car insurance", "pension", "loan calculator"),
    "travel": ("cheap flights", "hotels", "cruise", "train times", "passport", "camping"),
    "sport": ("football scores", "running shoes", "golf", "fishing", "yoga", "baseball cards"),
    "home": ("recipes", "furniture", "garden", "paint colors", "plumber", "kitchen"),
    "media": ("song lyrics", "movie times", "tv guide", "games", "celebrity news", "crossword"),
    "work": ("jobs", "resume", "salary", "online degree", "business cards", "training"),
    "family": ("baby names", "school calendar", "wedding dresses", "dog breeds", "genealogy", "toys"),
}
"""Topics by group; the taxonomy of a log is query, topic, group, ``*``."""

_MORE = (
    *(
        "",
        "free",
        "best",
        "cheap",
        "online",
        "used",
        "reviews",
        "ideas",
        "help",
        "for beginners",
        "near me",
        "pictures",
    ),
    *("history", "prices", "schedule", "tips", "download", "store", "guide", "forum", "old", "new", "local", "large"),
)
_SYLLABLES = ("bro", "win", "fair", "oak", "mill", "spring", "green", "lake", "ash", "clif", "dover", "red", "stan",
              "marl", "glen", "elm")  # fmt: skip
_ENDS = ("field", "ton", "ville", "brook", "ford", "port", "wood", "dale", "view", "burg")
_STATES = ("oh", "il", "ga", "tx", "ny", "wa", "pa", "mi")


@dataclass(frozen=True, kw_only=True, eq=False)
class SearchLog:
    """A log, the truth about its identifying queries, a taxonomy of the queries and an outside directory."""

    events: pl.DataFrame
    """``user``, ``query`` and ``time``, in random order."""
    kinds: pl.Series
    """For each event what is identifying about it: ``name``, ``place``, ``account`` or null. Known by construction."""
    taxonomy: pl.DataFrame
    """For each distinct query its topic and group."""
    directory: pl.DataFrame
    """Public directory: ``name``, ``town`` and, for the evaluation only, ``user`` (null: not in the log)."""


def search_log(users: int, queries: int, *, seed: int, vocabulary: int | None = None) -> SearchLog:
    """Draw a log of about ``queries`` events of ``users`` people.

    >>> log = search_log(200, 4000, seed=1)
    >>> log.events.columns, log.events["user"].n_unique()
    (['user', 'query', 'time'], 200)
    """
    draw = Rng(seed).child("search log").generator
    topics = [topic for group in TOPICS.values() for topic in group]
    size = max(len(topics) * 40, vocabulary or queries // 12)
    pool = _vocabulary(size, topics)
    names, towns = _people(users, draw)
    # activity has a long tail: the mean is several times the median
    wanted = np.maximum(1, (draw.lognormal(0, 1.1, users) * queries / users / np.exp(1.1**2 / 2)).astype(np.int64))
    owner = np.repeat(np.arange(users), wanted)
    popular = 1 / (draw.permutation(len(topics)) + 2.0)
    popular /= popular.sum()
    favourite = draw.choice(len(topics), (users, 3), p=popular)
    topic = np.where(
        draw.random(len(owner)) < 0.6,
        favourite[owner, draw.integers(0, 3, len(owner))],
        draw.choice(len(topics), len(owner), p=popular),
    )
    per_topic = size // len(topics)
    rank = np.exp(draw.random(len(owner)) * np.log(per_topic)).astype(np.int64) - 1  # Zipf's law: P(rank) ~ 1 / rank
    code = topic + len(topics) * np.minimum(rank, per_topic - 1)
    own, texts, kinds = _personal(users, names, towns, draw)
    distinct = texts.unique(maintain_order=True)
    personal = pl.Series(texts.cast(pl.Enum(distinct)).to_physical()).cast(pl.Int64).to_numpy() + size
    labels = pl.concat([pool, distinct])
    everyone = np.concatenate([owner, own])
    codes = np.concatenate([code, personal])
    order = draw.permutation(len(everyone))
    second = draw.integers(0, 90 * 86_400, len(everyone))
    time = (np.datetime64("2006-03-01T00:00:00") + second.astype("timedelta64[s]")).astype("datetime64[us]")
    events = pl.DataFrame({"user": everyone[order], "query": labels.gather(codes[order]).alias("query"), "time": time})
    truth = pl.concat([pl.Series("kind", [None], dtype=pl.String).new_from_index(0, len(owner)), kinds])
    return SearchLog(
        events=events,
        kinds=truth.gather(order),
        taxonomy=_taxonomy(pool, distinct, topics),
        directory=_directory(users, names, towns, draw),
    )


def _vocabulary(size: int, topics: list[str]) -> pl.Series:
    """Queries by rank within their topic: the topic itself, with one more word, with two, and so on."""
    number = np.arange(size)
    rank = number // len(topics)
    words = pl.Series(["", *dict.fromkeys(word for word in _MORE if word)])
    parts = [pl.Series(topics).gather(number % len(topics))]
    while rank.max() > 0:
        parts.append(words.gather(rank % len(words)))
        rank = rank // len(words)
    joined = pl.DataFrame({f"p{place}": part for place, part in enumerate(parts)})
    text = joined.select(pl.concat_str(pl.all(), separator=" ").str.replace_all(r"\s+", " ").str.strip_chars())
    return text.to_series().alias("query")


def _people(users: int, draw: np.random.Generator) -> tuple[pl.Series, pl.Series]:
    """Name and town of everybody; a few towns hold most people. A quarter of the family names is in no list."""
    given = pl.Series(sorted(word_list("given_names")))
    listed = sorted(word_list("surnames"))
    rare = [f"{a}{b}{end}" for a in _SYLLABLES for b in _SYLLABLES for end in ("", "er", "s") if a != b]
    family = pl.Series([*listed, *rare[: len(listed) // 3]])
    towns = pl.Series(
        [f"{a}{b} {_STATES[(i + j) % len(_STATES)]}" for i, a in enumerate(_SYLLABLES) for j, b in enumerate(_ENDS)]
    )
    first, last = draw.integers(0, len(given), users), draw.integers(0, len(family), users)
    where = np.minimum((draw.pareto(1.2, users) * 4).astype(np.int64), len(towns) - 1)
    names = pl.DataFrame({"a": given.gather(first), "b": family.gather(last)})
    return names.select(pl.concat_str("a", "b", separator=" ")).to_series(), towns.gather(where)


def _personal(
    users: int, names: pl.Series, towns: pl.Series, draw: np.random.Generator
) -> tuple[Ints, pl.Series, pl.Series]:
    """Identifying queries: own name (half of the people), own town (most), an account number (one in fifty)."""
    owners, texts, kinds = [], [], []

    def add(who: Ints, text: pl.Series, kind: str) -> None:
        owners.append(who)
        texts.append(text.alias("query"))
        kinds.append(pl.Series("kind", [kind], dtype=pl.String).new_from_index(0, len(who)))

    searched = np.flatnonzero(draw.random(users) < 0.5)
    add(np.repeat(searched, 2), names.gather(np.repeat(searched, 2)), "name")
    for prefix in ("weather", "pizza", "restaurants", "real estate"):
        who = np.flatnonzero(draw.random(users) < 0.45)
        town = towns.gather(who)
        # people often leave the state out
        short = pl.Series(draw.random(len(who)) < 0.3)
        where = pl.when(short).then(town.str.head(-3)).otherwise(town)
        add(who, pl.select(pl.lit(f"{prefix} ") + where).to_series(), "place")
    who = np.flatnonzero(draw.random(users) < 0.02)
    add(who, pl.Series([_card_number(draw) for _ in who], dtype=pl.String), "account")
    return np.concatenate(owners), pl.concat(texts), pl.concat(kinds)


def _card_number(draw: np.random.Generator) -> str:
    digits = [4, *(int(digit) for digit in draw.integers(0, 10, 14))]
    doubled = [digit * 2 - 9 if digit > 4 else digit * 2 for digit in digits[::-2]]
    check = -(sum(doubled) + sum(digits[-2::-2])) % 10
    return "".join(map(str, [*digits, check]))


def _taxonomy(pool: pl.Series, personal: pl.Series, topics: list[str]) -> pl.DataFrame:
    group = {topic: name for name, members in TOPICS.items() for topic in members}
    topic = pl.Series(topics).gather(np.arange(len(pool)) % len(topics))
    table = pl.DataFrame({"query": pool, "topic": topic, "group": topic.replace_strict(group)})
    other = pl.DataFrame({"query": personal}).with_columns(topic=pl.lit("other topics"), group=pl.lit("other"))
    return pl.concat([table, other]).unique("query", keep="first", maintain_order=True)


def _directory(users: int, names: pl.Series, towns: pl.Series, draw: np.random.Generator) -> pl.DataFrame:
    """Everybody of the log and as many others."""
    others, places = _people(users, draw)
    whom = pl.Series("user", np.arange(users))
    return pl.DataFrame(
        {
            "name": pl.concat([names, others]),
            "town": pl.concat([towns, places]),
            "user": pl.concat([whom, whom.new_from_index(0, 0).extend_constant(None, users)]),
        }
    ).sample(fraction=1, shuffle=True, seed=int(draw.integers(0, 1 << 31)))
