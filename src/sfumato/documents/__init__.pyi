# Made by `make docs`.
from sfumato.documents.methods.deidentify_text import DeidentifyText as DeidentifyText
from sfumato.documents.methods.normalize_style import NormalizeStyle as NormalizeStyle
from sfumato.documents.taggers.rules import RulesTagger as RulesTagger
from sfumato.documents.tagger import Tagger as Tagger
from sfumato.documents.text_findings import TextFinding as TextFinding
from sfumato.documents.text_taxonomy import TextTaxonomy as TextTaxonomy
from sfumato.documents.text_findings import find_identifiers as find_identifiers
