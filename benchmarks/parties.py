"""Several parties: CPU seconds of each beyond the local query, for a histogram of 1,000 cells.

python benchmarks/parties.py [--record]             # 5 processes, 1,000,000 rows each
python benchmarks/parties.py --parties 3 --rows 100000
python benchmarks/parties.py --parties 3 --keys [--record]  # the cells are private keys
python benchmarks/parties.py --encodings [--record] # attacks on encoded names, and what hardening costs in links
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np
import polars as pl
from record import Figures

from sfumato.data.yaml_documents import yaml_text
from sfumato.demos.people import hospital
from sfumato.dp.loss import approximate
from sfumato.ledger.ledger import Ledger
from sfumato.parties.agreement import Agreement
from sfumato.parties.bloom_encoding import BloomEncoder, best_links, dice
from sfumato.parties.certificates import client_context, make_certificates
from sfumato.parties.channels import https_channels
from sfumato.parties.coordinator import Coordinator
from sfumato.parties.encoding_attacks import frequency_attack, pattern_attack
from sfumato.parties.party_file import PartyFile
from sfumato.query.session import Session

SQL = "SELECT cell, COUNT(*) AS n FROM rows GROUP BY cell"


def party(path: str, delta: str | None, pipe: Connection) -> None:
    """Serve one party in this process, and tell its CPU seconds for the local query and for the shared one."""
    import threading

    server = PartyFile.load(Path(path)).server(Path(path).parent)
    session: Session = server.party._session
    session.ask(SQL, epsilon="1/10", delta=delta)  # loads what is loaded once
    start = time.process_time()
    session.ask(SQL, epsilon="1/9", delta=delta)
    local = time.process_time() - start
    threading.Thread(target=server.serve_forever, daemon=True).start()
    pipe.send(server.port)
    pipe.recv()
    start = time.process_time()
    pipe.send(None)
    pipe.recv()
    pipe.send((local, time.process_time() - start))
    os._exit(0)  # the service has no end of its own


def encodings() -> None:
    """2,000 family names under attack; links of 2,000 full names with 30 % typing errors and 2 % wrong years."""
    draw = np.random.default_rng(1)
    people = hospital(1, patients=2000)
    families = sorted({name.rsplit(" ", 1)[1] for name in people["name"]})
    weights = 1 / np.arange(1, len(families) + 1)
    names, public = (list(draw.choice(families, size, p=weights / weights.sum())) for size in (2000, 20_000))
    full, years = people["name"].to_list(), [str(day.year) for day in people["birth_date"]]
    typed = [_mistyped(name, draw) if draw.random() < 0.3 else name for name in full]
    noted = [year if draw.random() > 0.02 else "1900" for year in years]
    forms = {"encoding": "", "frequency": ".1%", "pattern": ".1%", "precision": ".1%", "recall": ".1%"}
    titles = {"frequency": "frequency attack", "pattern": "pattern attack"}
    figures = Figures("parties", "encodings", forms, titles)
    guess = max(names.count(name) for name in set(names)) / len(names)
    figures.add(encoding="none: always guess the most frequent name", frequency=guess, pattern=guess)
    for title, flip, salted in (
        ("keyed", 0, False), ("keyed, 5 % flips", "0.05", False), ("keyed, salted", 0, True),
        ("hardened: keyed, salted, 5 % flips", "0.05", True),
    ):  # fmt: skip
        encoder = BloomEncoder(key=b"benchmark", flip=flip)
        encoded = encoder.encode(names, years if salted else None)
        one, other = (encoder.encode(texts, own if salted else None) for texts, own in ((typed, noted), (full, years)))
        links = best_links(dice(one, other), range(len(full)))
        figures.add(
            encoding=title, frequency=frequency_attack(encoded, public).right(names),
            pattern=pattern_attack(encoded, public).right(names), precision=links.precision, recall=links.recall,
        )  # fmt: skip
    figures.save()


def _mistyped(name: str, draw: np.random.Generator) -> str:
    place = int(draw.integers(0, len(name)))
    return name[:place] + chr(97 + int(draw.integers(0, 26))) + name[place + 1 :]


def main() -> None:
    reader = argparse.ArgumentParser()
    reader.add_argument("--encodings", action="store_true")
    reader.add_argument("--keys", action="store_true")
    reader.add_argument("--parties", type=int, default=5)
    reader.add_argument("--rows", type=int, default=1_000_000)
    reader.add_argument("--cells", type=int, default=1000)
    given = reader.parse_args()
    if given.encodings:
        encodings()
        return
    names = [f"p{i}" for i in range(given.parties)]
    cells = [f"c{i:05d}" for i in range(given.cells)]
    column: dict[str, object] = {"kind": "category"}
    if not given.keys:
        column["domain"] = {"values": cells}
    delta = "1e-6" if given.keys else None
    epsilon = "1" if given.keys else "1/10"
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        public = make_certificates(folder, parties=dict.fromkeys(names, "127.0.0.1"), analysts=["analyst"])
        document = {
            "sfumato": 1, "federation": "benchmark", "parties_per_person": 1, "colluding": 1,
            "parties": {name: {"address": "https://127.0.0.1:1", "key": public[name]} for name in names},
            "person": "row", "tables": {"rows": {"columns": {"cell": column}}},
        }  # fmt: skip
        (folder / "parties.yaml").write_text(yaml_text(document))
        draw = np.random.default_rng(1)
        for name in names:
            pl.DataFrame({"cell": np.array(cells)[draw.integers(0, len(cells), given.rows)]}).write_parquet(
                folder / f"{name}.parquet"
            )
            Ledger.open(folder / f"{name}.db").set_cap(approximate(100, "1e-3"), dataset="benchmark")
            own = {
                "sfumato": 1, "party": name, "parties": "parties.yaml", "data": {"rows": f"{name}.parquet"},
                "ledger": f"{name}.db", "key": f"{name}.key", "certificate": f"{name}.crt",
                "authority": "authority.crt", "listen": "127.0.0.1:0",
            }  # fmt: skip
            (folder / f"{name}.yaml").write_text(yaml_text(own))
        context = get_context("spawn")
        pipes, processes = [], []
        for name in names:
            here, there = context.Pipe()
            process = context.Process(target=party, args=(str(folder / f"{name}.yaml"), delta, there))
            process.start()
            pipes.append(here)
            processes.append(process)
        ports = [pipe.recv() for pipe in pipes]
        loaded = Agreement.load(folder / "parties.yaml")
        addressed = {
            name: loaded.parties[name].model_copy(update={"address": f"https://127.0.0.1:{port}"})
            for name, port in zip(names, ports, strict=True)
        }
        agreement = loaded.model_copy(update={"parties": addressed})
        tls = client_context(
            certificate=folder / "analyst.crt", key=folder / "analyst.key", authority=folder / "authority.crt"
        )
        asked = Coordinator(agreement=agreement, channels=https_channels(agreement, tls), base=folder)
        for pipe in pipes:
            pipe.send(None)
            pipe.recv()
        start = time.process_time()
        answer = asked.ask(SQL, epsilon=epsilon, delta=delta)
        coordinator = time.process_time() - start
        for pipe in pipes:
            pipe.send(None)
        spent = np.array([pipe.recv() for pipe in pipes])
        for process in processes:
            process.join()
        assert abs(answer.frame["n"].sum() - given.parties * given.rows) < 100 * given.cells
    forms = {"parties": ",", "rows": ",", "cells": ",", "local": ".2f", "shared": ".2f", "beyond": ".2f"}
    titles = {
        "rows": "rows each", "local": "CPU s, local query", "shared": "CPU s, shared query",
        "beyond": "CPU s beyond", "coordinator": "CPU s, coordinator",
    }  # fmt: skip
    forms |= {"coordinator": ".2f"}
    figures = Figures("parties", "private-keys" if given.keys else "histogram", forms, titles)
    local, shared = spent.mean(axis=0)
    figures.add(
        parties=given.parties, rows=given.rows, cells=given.cells, local=local, shared=shared,
        beyond=(spent[:, 1] - spent[:, 0]).max(), coordinator=coordinator,
    )  # fmt: skip
    figures.save()


if __name__ == "__main__":
    main()
