"""Free text about people: find direct identifiers by rules and replace them consistently.

>>> from sfumato.documents import find_identifiers
>>> text = "Mr. Tom Baker (MRN 448812) lives in Springfield; seen on 3 March 2021."
>>> [(found.kind, found.text) for found in find_identifiers(text)]
[('name', 'Tom Baker'), ('id', '448812'), ('place', 'Springfield'), ('date', '3 March 2021')]
"""

from sfumato.registry import exports

__getattr__, __dir__ = exports(
    __name__,
    Tagger="tagger",
    TextFinding="text_findings",
    TextTaxonomy="text_taxonomy",
    find_identifiers="text_findings",
)
