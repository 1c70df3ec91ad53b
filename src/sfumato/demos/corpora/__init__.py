"""Made-up texts and logs about invented people, with what is known about them: for demos, tests and benchmarks."""

from sfumato.registry import exports

__getattr__, __dir__ = exports(
    __name__,
    SearchLog="synthetic_log",
    held_out_case_files="synthetic_case_files",
    patient_messages="synthetic_messages",
    recall_by_kind="known_notes",
    search_log="synthetic_log",
    synthetic_notes="known_notes",
)
