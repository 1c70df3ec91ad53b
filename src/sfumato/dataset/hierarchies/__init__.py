"""Generalization hierarchies: one per module, found by its file name (:mod:`sfumato.dataset.hierarchy`)."""
