# Made by `make docs`.
from sfumato.documents.methods.deidentify_text import DeidentifyText as DeidentifyText
from sfumato.documents.methods.normalize_style import NormalizeStyle as NormalizeStyle
from sfumato.documents.taggers.rules import RulesTagger as RulesTagger
from sfumato.documents.tagger import Tagger as Tagger
from sfumato.documents.text_findings import TextFinding as TextFinding
from sfumato.documents.text_taxonomy import TextTaxonomy as TextTaxonomy
from sfumato.documents.text_findings import find_identifiers as find_identifiers
from sfumato.documents.synthetic_case_files import held_out_case_files as held_out_case_files
from sfumato.documents.synthetic_letters import held_out_letters as held_out_letters
from sfumato.documents.synthetic_messages import patient_messages as patient_messages
from sfumato.documents.known_notes import recall_by_kind as recall_by_kind
from sfumato.documents.known_notes import synthetic_notes as synthetic_notes
