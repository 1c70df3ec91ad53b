"""Normalization of writing style."""

from __future__ import annotations

import re
import unicodedata
from typing import Annotated

import polars as pl
from pydantic import Field

from sfumato.dataset import Data
from sfumato.errors import WrongKind
from sfumato.masking.base import Context, Step
from sfumato.release import Change

_CONTRACTIONS = {
    "can't": "cannot", "won't": "will not", "shan't": "shall not", "n't": " not", "'re": " are", "'ve": " have",
    "'ll": " will", "i'm": "i am", "let's": "let us", "it's": "it is", "that's": "that is", "what's": "what is",
    "he's": "he is", "she's": "she is", "there's": "there is", "i'd": "i would",
}  # fmt: skip
_SPELLINGS = {
    "u": "you", "ur": "your", "r": "are", "thx": "thanks", "pls": "please", "plz": "please", "cos": "because",
    "cuz": "because", "coz": "because", "ok": "okay", "dont": "do not", "cant": "cannot", "wont": "will not",
    "im": "i am", "ive": "i have", "didnt": "did not", "doesnt": "does not", "isnt": "is not", "gonna": "going to",
    "wanna": "want to", "gotta": "have to", "kinda": "kind of", "alot": "a lot", "tho": "though", "thru": "through",
    "tonite": "tonight", "nite": "night", "abt": "about", "bc": "because", "b4": "before", "w/": "with", "&": "and",
    "colour": "color", "favourite": "favorite", "centre": "center", "grey": "gray", "whilst": "while",
    "amongst": "among", "towards": "toward", "learnt": "learned", "realise": "realize", "organise": "organize",
    "programme": "program", "behaviour": "behavior", "neighbour": "neighbor",
}  # fmt: skip
_FILLERS = re.compile(r"\b(?:lol|haha+|hmm+|umm*|uhh*|actually|basically|literally|honestly)\b,? ?")
_PLACEHOLDER = re.compile(r"(\[[A-Z]+(?: \d+)?\])")
"""What ``deidentify-text`` puts in: it keeps its capitals."""


class NormalizeStyle(Step):
    """Rewrite texts in one style: lower case, plain punctuation, one spelling, no contractions, no fillers.

    An attacker who has other texts of an author compares habits of writing: capitals, punctuation, spacing, short
    forms, emoticons. This step removes these habits. Choice of words, length and order of sentences, errors of spelling
    that are in no list, and what the text says remain, so it makes authorship attribution harder and guarantees
    nothing. Run it after ``deidentify-text``, whose rules need capital letters, and attack the outcome with
    ``nearest-documents`` (``features: characters``). For English text; the words stay readable.

    >>> plain("Hmm, I CAN'T come on 2021-03-04!!  thx :-) [PERSON 3]")
    'i cannot come on 2021-03-04. thanks [PERSON 3]'
    """

    report_phrase = "rewritten in one style"
    simulable = False
    examples = ({"columns": ["diagnosis"]},)
    reference = (
        "Brennan, Afroz, Greenstadt: Adversarial stylometry: circumventing authorship recognition (2012), "
        "doi:10.1145/2382448.2382450"
    )

    columns: Annotated[tuple[str, ...], Field(min_length=1)]
    """Columns with texts."""

    def apply(self, data: Data, context: Context) -> Change:
        data.table.require(self.columns)
        frame = data.table.frame
        for name in self.columns:
            if frame.schema[name] != pl.String:
                raise WrongKind(f"normalize-style: column `{name}` holds no texts.", column=name)
        texts = [
            pl.Series(name, [None if text is None else plain(text) for text in frame[name]], dtype=pl.String)
            for name in self.columns
        ]
        return Change(table=data.table.with_frame(frame.with_columns(texts)), public={"columns": list(self.columns)})


def plain(text: str) -> str:
    """A text in one style. Placeholders in brackets stay as they are."""
    parts = _PLACEHOLDER.split(_one_alphabet(text))
    return re.sub(r"\s+", " ", "".join(one if at % 2 else _part(one) for at, one in enumerate(parts))).strip()


def _one_alphabet(text: str) -> str:
    """Straight quotes, no accents, no emoticons or other symbols."""
    text = text.translate(str.maketrans("’‘“”–—…", "''\"\"--."))
    decomposed = unicodedata.normalize("NFKD", text)
    kept = (one for one in decomposed if unicodedata.category(one) not in ("Mn", "So", "Sk", "Cf", "Co"))
    return re.sub(r"[:;=8][-o']?[)(DPp/\\|*]+|<3", " ", "".join(kept))


def _part(text: str) -> str:
    text = text.lower()
    for short, full in _CONTRACTIONS.items():
        text = re.sub(rf"(?<=\w){re.escape(short)}\b|\b{re.escape(short)}\b", full, text)
    text = re.sub(r"[\w/&]+", lambda found: _SPELLINGS.get(found[0], found[0]), text)
    text = _FILLERS.sub("", text)
    text = re.sub(r"[!?.]+(?:\s*[!?.])*", ".", text)
    text = re.sub(r"[\"()*_~#]+|(?<!\d)[,;:]|[,;:](?!\d)|(?<!\w)-|-(?!\w)", " ", text)
    text = re.sub(r"([^\W\d_])\1{2,}", r"\1\1", text)
    return re.sub(r"\s+(?=\.)", "", re.sub(r"\s+", " ", text)).lstrip(".") if text.strip() else text
