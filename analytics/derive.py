"""Raw rows of the turns that were touched -> the tables that everything else reads.

A pure function of the raw tables: whatever the order of loading, the same raw rows give the same tables.
Turns are derived in batches, so that memory does not grow with what was loaded.
"""

from __future__ import annotations

from hashlib import blake2b
from importlib.resources import files

from analytics.warehouse import Warehouse
from guard.errors import PolicyError
from guard.policy import CapPolicy

BATCH = 64_000  # turns at a time

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
                "CREATE OR REPLACE TEMP TABLE batch AS SELECT turn_id, row_number() OVER () AS place FROM "
                "(SELECT DISTINCT id AS turn_id FROM pending "
                f"WHERE kind = 'turn' ORDER BY ALL LIMIT {BATCH})"
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
    import pyarrow as pa

    connection = warehouse.connection
    for table in ("raw_started", "raw_detected"):
        connection.execute(
            "INSERT OR IGNORE INTO policies BY NAME SELECT DISTINCT ON (policy_hash) policy_hash, "
            "policy_kind AS kind, policy_signal AS signal, policy_soft_cap AS soft_cap, "
            "policy_stuck_at AS stuck_at, policy_backstop AS backstop, policy_hard_cap AS hard_cap "
            f"FROM {table} SEMI JOIN batch USING (turn_id) "
            "WHERE policy_hash IS NOT NULL AND policy_kind IS NOT NULL ORDER BY ALL"
        )
    texts = [
        text for (text,) in warehouse.rows("SELECT DISTINCT unnest(candidates) AS c FROM ended ORDER BY c")
    ]
    policies = {text: _policy(text) for text in texts if text is not None}
    hashes = [blake2b(text.encode()).hexdigest()[:16] for text in policies]
    with warehouse.staged(
        pa.table(
            {"text": pa.array(list(policies), pa.string()), "policy_hash": pa.array(hashes, pa.string())}
        )
    ):
        connection.execute("CREATE OR REPLACE TEMP TABLE policy_texts AS SELECT * FROM staged")
    for (text, policy), digest in zip(policies.items(), hashes, strict=True):
        connection.execute(
            "INSERT INTO policies BY NAME SELECT ? AS policy_hash, ? AS kind, ? AS signal, ? AS soft_cap, "
            "? AS stuck_at, ? AS backstop, ? AS hard_cap, ? AS text "
            "ON CONFLICT (policy_hash) DO UPDATE SET text = excluded.text",
            [digest, text.split(" ")[0], *policy, text],
        )
    for digest, *fields in warehouse.rows(
        "SELECT policy_hash, kind, signal, soft_cap, stuck_at, backstop, hard_cap FROM policies "
        "WHERE text IS NULL"
    ):
        connection.execute("UPDATE policies SET text = ? WHERE policy_hash = ?", [_text(*fields), digest])


def _text(
    kind: str, signal: str | None, soft_cap: int | None, stuck_at: int | None, backstop: int | None,
    hard_cap: int | None,
) -> str | None:  # fmt: skip
    """The canonical text of a policy told by its fields; None where they make none."""
    try:
        if kind == "adaptive" and None not in (soft_cap, stuck_at, backstop):
            return CapPolicy.adaptive(
                signal=signal, soft_cap=soft_cap, stuck_at=stuck_at, backstop=backstop
            ).text  # fmt: skip
        if kind == "hard" and hard_cap is not None:
            return CapPolicy.hard(hard_cap).text
        return CapPolicy.disabled().text if kind == "disabled" else None
    except PolicyError:
        return None


def _policy(text: str) -> tuple[str | int | None, ...]:
    """Signal, soft cap, stuck at, backstop and hard cap of a canonical text; all None when it is none."""
    try:
        policy = CapPolicy.from_text(text)
    except PolicyError:
        return (None,) * 5
    return policy.signal, policy.soft_cap, policy.stuck_at, policy.backstop, policy.hard_cap
