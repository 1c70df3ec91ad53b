# Made by `make docs`.
from sfumato.documents.methods.deidentify_text import DeidentifyText as DeidentifyText
from sfumato.documents.text_findings import TextFinding as TextFinding
from sfumato.documents.text_findings import find_identifiers as find_identifiers
from sfumato.documents.known_notes import recall_by_kind as recall_by_kind
from sfumato.documents.known_notes import synthetic_notes as synthetic_notes
