"""An error names an option as it is written at the door one came through."""

import polars as pl
import pytest

from sfumato.cli import main
from sfumato.data import Table, write
from sfumato.errors import OutputExists


def test_an_existing_output_is_replaced_with_force_as_each_door_writes_it(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    table = Table(frame=pl.DataFrame({"age": [1, 2, 3], "sex": ["F", "M", "F"]}))
    write(table, "people.csv")
    with pytest.raises(OutputExists) as refusal:
        write(table, "people.csv")
    assert refusal.value.fix == "Choose another name, or set `force`."
    assert main(["datasets", "amounts9", "--out", "people.csv"]) != 0
    told = capsys.readouterr().err
    assert "Choose another name, or set --force." in told
