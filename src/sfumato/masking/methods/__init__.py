"""Masking methods: one per module, found by its file name. Modules with a leading underscore are shared by several."""
