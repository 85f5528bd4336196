"""Raw rows of the turns that were touched -> the tables that everything else reads.

A pure function of the raw tables: whatever the order of loading, the same raw rows give the same tables.
Turns are derived in batches, so that memory does not grow with what was loaded.
"""

from __future__ import annotations

import hashlib
from importlib.resources import files

from analytics.warehouse import Warehouse

BATCH = 50_000  # turns at a time

# Tables of one batch, in this order: what a later one reads is there.
_TEMPORARY = ("started", "ended", "chunks")
_TABLES = ("retries", "loop_events", "labels", "milestones", "candidates", "calls", "turns")


def _sql(name: str) -> str:
    return files("analytics").joinpath("sql", "derive", f"{name}.sql").read_text(encoding="utf-8")


def derive(warehouse: Warehouse) -> int:
    """Derive every pending turn; how many there were. Each batch is one transaction."""
    total = 0
    while True:
        with warehouse.transaction() as connection:
            connection.execute(
                "CREATE OR REPLACE TEMP TABLE batch AS SELECT DISTINCT id AS turn_id FROM pending "
                f"WHERE kind = 'turn' ORDER BY ALL LIMIT {BATCH}"
            )
            (count,) = connection.execute("SELECT count(*) FROM batch").fetchall()[0]
            if not count:
                return total
            _derive_batch(warehouse)
            connection.execute(
                "DELETE FROM pending WHERE kind = 'turn' AND id IN (SELECT turn_id FROM batch)"
            )
        total += count


def _derive_batch(warehouse: Warehouse) -> None:
    connection = warehouse.connection
    for name in _TEMPORARY:
        connection.execute(f"CREATE OR REPLACE TEMP TABLE {name} AS {_sql(name)}")
    _policies(warehouse)
    for name in _TABLES:
        connection.execute(f"DELETE FROM {name} WHERE turn_id IN (SELECT turn_id FROM batch)")
        connection.execute(f"INSERT INTO {name} BY NAME {_sql(name)}")


def _policies(warehouse: Warehouse) -> None:
    """Fill `policies` from what was told of them, and `policy_texts` with the hash of each candidate."""
    texts = [row[0] for row in warehouse.rows("SELECT DISTINCT unnest(candidates) FROM ended")]
    kinds = {"text": "TEXT", "policy_hash": "TEXT"}
    warehouse.stage("texts", {"text": texts, "policy_hash": [policy_hash(text) for text in texts]}, kinds)
    warehouse.connection.execute("CREATE OR REPLACE TEMP TABLE policy_texts AS SELECT * FROM texts")
    warehouse.connection.unregister("texts")
    for table in ("raw_started", "raw_detected"):
        warehouse.connection.execute(
            "INSERT OR IGNORE INTO policies BY NAME SELECT DISTINCT policy_hash, policy_kind AS kind, "
            "policy_signal AS signal, policy_soft_cap AS soft_cap, policy_stuck_at AS stuck_at, "
            "policy_backstop AS backstop, policy_hard_cap AS hard_cap "
            f"FROM {table} SEMI JOIN batch USING (turn_id) "
            "WHERE policy_hash IS NOT NULL AND policy_kind IS NOT NULL"
        )
    for text, digest in zip(texts, map(policy_hash, texts), strict=True):
        kind, *pairs = text.split()
        fields = dict(pair.split("=", 1) for pair in pairs if "=" in pair)
        numbers = [_number(fields.get(name)) for name in ("soft_cap", "stuck_at", "backstop", "hard_cap")]
        warehouse.connection.execute(
            "INSERT INTO policies BY NAME SELECT ? AS policy_hash, ? AS kind, ? AS signal, ? AS soft_cap, "
            "? AS stuck_at, ? AS backstop, ? AS hard_cap, ? AS text "
            "ON CONFLICT (policy_hash) DO UPDATE SET text = excluded.text",
            [digest, kind, fields.get("signal"), *numbers, text],
        )


def _number(text: str | None) -> int | None:
    return int(text) if text and text.isdecimal() else None


def policy_hash(text: str) -> str:
    """The hash of a policy's canonical text."""
    return hashlib.blake2b(text.encode()).hexdigest()[:16]
