"""Similar columns get one role."""

import numpy as np
import polars as pl

from sfumato.profiling import propose


def test_repeated_measurements_share_a_role_with_a_reason_and_a_lower_confidence():
    rng = np.random.default_rng(1)
    base = np.clip(rng.normal(350, 118, 2000), 0, 1200).round().astype(int)
    wide = np.clip(rng.gamma(5, 200, 2000), 40, 5000).round().astype(int)
    other = rng.permutation(base)
    found = propose(pl.DataFrame({"cd40": base, "cd80": wide, "q1": other, "q2": rng.permutation(wide)}))
    columns = {column.name: column for column in found.columns}
    assert columns["cd40"].role == columns["cd80"].role == "quasi"
    assert "`cd80`" in columns["cd40"].reason
    assert 0 < columns["cd40"].finding.confidence < columns["cd80"].finding.confidence
    assert columns["q1"].role == "undecided"
