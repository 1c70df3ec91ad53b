"""Kinds of release: one package each. The registry finds them; `docs/add-a-part.md` says how to add one."""
