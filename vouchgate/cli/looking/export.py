"""`vouchgate audit export`: a period of an owner's records as files that others can check."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import shutil
import tempfile
import zipfile
from collections.abc import Sequence
from contextlib import ExitStack, closing
from datetime import datetime
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any, BinaryIO

from sqlalchemy import Connection, Table, and_, func, select

from vouchgate.cli.database import open_store
from vouchgate.cli.looking.reviews import COLUMNS, csv_line, period, scope
from vouchgate.cli.output import Failure, ended_as_by_hand, hint, one_line, say
from vouchgate.gate.signing import read_keys
from vouchgate.ingest.transparency import verifier
from vouchgate.ingest.transparency.attestation import (
    PREFIXES,
    Json,
    decision_provenance,
    decision_statement,
    envelope,
    ruling_provenance,
    statement,
)
from vouchgate.ingest.transparency.note import SigningKey
from vouchgate.ingest.transparency.tree import inclusion_proof
from vouchgate.ingest.transparency.verifier import (
    DECIDED,
    EXPORT_TYPE,
    MANIFEST,
    MANIFEST_SIGNED,
    GetHash,
    Proof,
)
from vouchgate.settings import Settings
from vouchgate.storage.claims import decisions
from vouchgate.storage.erasing.tombstones import TABLE as ERASED
from vouchgate.storage.log import keys as log_keys
from vouchgate.storage.log import tree
from vouchgate.storage.log.chain import TABLE as LOG
from vouchgate.storage.log.tree import LEAF
from vouchgate.storage.queue import rulings
from vouchgate.storage.queue.rulings import RulingFilter
from vouchgate.storage.sql import limited_to
from vouchgate.storage.tables.claims import PolicyRow

_POLICY: Table = PolicyRow.metadata.tables["policy"]
_TILES_KEPT = 1_000  # receipts after which what was read of the tree is let go: at most some MB
_LOG = ("owner_id", "seq", "at", "actor", "action", "subject_id", "content_digest", "previous", "digest")
_DECISION = (
    *(
        "decision_id",
        "owner_id",
        "at",
        "principal",
        "tier",
        "outcome",
        "rule",
        "reason",
        "label",
        "confidence",
    ),
    *("content", "policy", "memory_id", "queue_id", "conflicting_memory_id", "sha256"),
)
_ENTRIES = select(LOG).order_by(LOG.c.owner_id, LOG.c.seq)
_ZIP_TIME = (1980, 1, 1, 0, 0, 0)  # the first that a zip can say


class Export:
    """Writes one export into an empty folder, out of one reading transaction; a batch of rows in memory at a time.
    The same records, checkpoint and key give the same bytes."""

    def __init__(
        self, connection: Connection, folder: Path, wanted: RulingFilter, keys: Sequence[SigningKey]
    ) -> None:
        self._connection, self._folder, self._wanted, self._keys = connection, folder, wanted, keys
        self._size, self._checkpoint = tree.last_checkpoint(connection, published=True) or (0, "")
        self._policies: set[str] = set()
        self._get: GetHash = self._hashes()
        self._proved = 0
        self._emptied: set[str] = set()  # decisions that lost something by an erasure, perhaps all
        self._ends = _ends(connection, wanted)
        self._bound: dict[str, int] = {}  # by owner, the last entry that has a receipt

    def write(self) -> dict[str, int]:
        """Writes all files; how many decisions, entries and rulings there are."""
        with ExitStack() as opened:
            self._files = {
                name: opened.enter_context((self._folder / name).open("wb"))
                for name in (
                    *(
                        "decisions.jsonl",
                        "decisions.csv",
                        "decisions.dsse.jsonl",
                        "receipts.jsonl",
                        "erasures.jsonl",
                        "log.jsonl",
                    ),
                    *("log.csv", "reviews.jsonl", "reviews.csv", "prov.json"),
                )
            }
            with closing(_Bundles(self._files["prov.json"])) as bundles:
                counts = {
                    "decisions": self._decisions(bundles),
                    "entries": self._entries(),
                    "erasures": self._erasures(),
                    "rulings": self._rulings(bundles),
                }
        self._beside()
        self._manifest(counts)
        return counts

    def _put(self, name: str, line: str) -> None:
        self._files[name].write(line.encode("utf-8", "replace") + b"\n")

    def _decisions(self, bundles: _Bundles) -> int:
        count, wanted = 0, self._wanted
        self._put("decisions.csv", csv_line(_DECISION))
        for row in decisions.between(self._connection, wanted.owners, wanted.since, wanted.until):
            self._receipt(row, row.id)
            if row.salt is None:
                self._emptied.add(row.id)
            if not row.answer:  # it was erased
                continue
            count += 1
            self._policies.add(row.policy_digest)
            self._put("decisions.jsonl", row.answer)
            about = {
                "owner": row.owner_id,
                "principal": row.principal_id,
                "at": row.created_at.isoformat(),
                "policy": row.policy_digest,
            }
            answer, digest = _object(row.answer), hashlib.sha256(row.answer.encode()).hexdigest()
            said = decision_statement(row.id, digest, about, answer)
            self._put("decisions.dsse.jsonl", _json(envelope(said, self._keys)))
            told = json.loads(said)["predicate"]
            cells = {**told, "decision_id": row.id, "owner_id": row.owner_id, "sha256": digest}
            self._put("decisions.csv", csv_line([cells[name] for name in _DECISION]))
            bundles.add(f"vg:bundle.{row.id}", decision_provenance(row.id, about, answer))
        return count

    def _hashes(self) -> GetHash:
        """Of the tree under the checkpoint; neighbours share most of their proofs."""
        return lru_cache(maxsize=10_000)(tree.hashes(self._connection, self._size))

    def _receipt(self, row: Any, decision_id: str | None) -> None:  # Any: a leaf, with the salt of its entry
        if row.number is None or row.number >= self._size:
            return
        self._proved += 1
        if self._proved % _TILES_KEPT == 0:
            self._get = self._hashes()
        self._bound[row.owner_id] = max(row.seq, self._bound.get(row.owner_id, row.seq))
        hashes = tuple(inclusion_proof(self._get, row.number, self._size))
        proof = Proof(row.number, hashes, self._checkpoint.encode())
        leaf = base64.b64encode(row.data.encode()).decode()
        salt = None if decision_id is None or row.salt is None else row.salt.hex()
        about = {"decision_id": decision_id, "owner_id": row.owner_id, "seq": row.seq}
        self._put("receipts.jsonl", _json(about | {"leaf": leaf, "salt": salt, "proof": str(proof)}))

    def _entries(self) -> int:
        count = 0
        self._put("log.csv", csv_line(_LOG))
        for owner_id, (first, last) in sorted(self._ends.items()):
            of_owner = _ENTRIES.where(LOG.c.owner_id == owner_id, LOG.c.seq.between(first, last))
            for row in self._connection.execute(of_owner, execution_options={"yield_per": 500}):
                entry = _entry(row)
                more: Json = {}
                if row.action in DECIDED:
                    more = {"salt": row.salt.hex() if row.salt is not None and self._within(row.at) else None}
                self._put("log.jsonl", _json(entry | more))
                self._put("log.csv", csv_line(entry.values()))
                count += 1
            # What is proved of an entry is proved of those before it: each names the digest of the one before.
            within = and_(
                LEAF.c.owner_id == owner_id, LEAF.c.seq.between(first, last), LEAF.c.number < self._size
            )
            wanted = select(LEAF).where(within).order_by(LEAF.c.seq.desc()).limit(1)
            leaf = self._connection.execute(wanted).one_or_none()
            if leaf is not None and leaf.seq > self._bound.get(owner_id, -1):
                self._receipt(leaf, None)
        return count

    def _within(self, at: datetime) -> bool:
        since, until = self._wanted.since, self._wanted.until
        return (since is None or since <= at) and (until is None or at < until)

    def _erasures(self) -> int:
        """What took something from decisions of the period, also after it."""
        count, erasing = 0, _ENTRIES.where(LOG.c.action == verifier.ERASED, LOG.c.salt.is_not(None))
        for row in self._connection.execute(limited_to(self._wanted.owners, erasing, LOG)).all():
            ids, more = {row.subject_id}, dict[str, Any]()
            if row.subject_id.startswith("ers_"):
                of_it = select(ERASED.c.item_id, ERASED.c.basis).where(
                    ERASED.c.owner_id == row.owner_id, ERASED.c.erasure_id == row.subject_id
                )
                gone = self._connection.execute(of_it).all()
                ids = {each.item_id for each in gone}
                more = {"basis": min((each.basis for each in gone), default=""), "items": sorted(ids)}
            if self._emptied.isdisjoint(ids):
                continue
            self._put("erasures.jsonl", _json(_entry(row) | {"salt": row.salt.hex()} | more))
            count += 1
            if row.seq <= self._ends.get(row.owner_id, (0, 0))[1]:  # `log.jsonl` has it
                continue
            of_entry = select(LEAF).where(LEAF.c.owner_id == row.owner_id, LEAF.c.seq == row.seq)
            if (leaf := self._connection.execute(of_entry).one_or_none()) is not None:
                self._receipt(leaf, None)
        return count

    def _rulings(self, bundles: _Bundles) -> int:
        count = 0
        self._put("reviews.csv", csv_line(COLUMNS))
        for together in rulings.walk(self._connection, self._wanted):
            for each in together:
                ruling = each.model_dump(mode="json")
                self._put("reviews.jsonl", _json(ruling))
                self._put("reviews.csv", csv_line(ruling.values()))
                bundles.add(f"vg:bundle.{each.item_id}.{each.seq}", ruling_provenance(ruling))
                count += 1
        return count

    def _beside(self) -> None:
        """What stands beside the records: policies, checkpoint, keys, the verifier."""
        (self._folder / "policies").mkdir()
        for digest in sorted(self._policies):
            document = self._connection.scalar(select(_POLICY.c.document).where(_POLICY.c.digest == digest))
            if document is not None:
                (self._folder / "policies" / f"{digest}.json").write_bytes(document.encode())
        if self._checkpoint:
            (self._folder / "checkpoint").write_bytes(self._checkpoint.encode())
        known = sorted(str(each.key) for each in log_keys.known(self._connection))
        (self._folder / "keys.txt").write_text("".join(f"{key}\n" for key in known))
        (self._folder / "vouchgate_verify.py").write_bytes(Path(verifier.__file__).read_bytes())
        told = files("vouchgate.cli.looking").joinpath("templates/VERIFY.md").read_bytes()
        (self._folder / "VERIFY.md").write_bytes(told)

    def _manifest(self, counts: dict[str, int]) -> None:
        digests = []
        for path in sorted(each for each in self._folder.rglob("*") if each.is_file()):
            with path.open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
            digests.append((path.relative_to(self._folder).as_posix(), digest))
        wanted = self._wanted
        about = {
            "owners": None if wanted.owners is None else sorted(wanted.owners),
            "from": None if wanted.since is None else wanted.since.isoformat(),
            "to": None if wanted.until is None else wanted.until.isoformat(),
            "checkpoint": self._checkpoint or None,
            **counts,
        }
        said = statement(EXPORT_TYPE, digests, about)
        (self._folder / MANIFEST).write_bytes(said.encode())
        (self._folder / MANIFEST_SIGNED).write_text(_json(envelope(said, self._keys)) + "\n")


def _ends(connection: Connection, wanted: RulingFilter) -> dict[str, tuple[int, int]]:
    """By owner, the numbers of the first and the last entry of the period. Entries have the times at which something
    was begun, so between these two may be some from shortly before or after it: without them there would be gaps."""
    first = limited_to(wanted.owners, select(LOG.c.owner_id, func.min(LOG.c.seq)), LOG).group_by(
        LOG.c.owner_id
    )
    last = limited_to(wanted.owners, select(LOG.c.owner_id, func.max(LOG.c.seq)), LOG).group_by(
        LOG.c.owner_id
    )
    if wanted.since is not None:
        first = first.where(LOG.c.at >= wanted.since)
    if wanted.until is not None:
        last = last.where(LOG.c.at < wanted.until)
    ends: dict[str, int] = {row[0]: row[1] for row in connection.execute(last)}
    return {
        owner: (seq, ends[owner]) for owner, seq in connection.execute(first) if seq <= ends.get(owner, 0)
    }


def _entry(row: Any) -> Json:  # Any: of `_ENTRIES`
    return {name: getattr(row, name) for name in _LOG} | {"at": row.at.isoformat()}


class _Bundles:
    """A PROV-JSON document that is written bundle by bundle."""

    def __init__(self, file: BinaryIO) -> None:
        self._file, self._between = file, ""
        self._file.write(b'{"prefix":%b,"bundle":{' % _json(PREFIXES).encode())

    def add(self, name: str, bundle: Json) -> None:
        self._file.write(
            f"{self._between}\n{json.dumps(name)}:{_json({'prefix': PREFIXES, **bundle})}".encode()
        )
        self._between = ","

    def close(self) -> None:
        self._file.write(b"\n}}\n")


def run(
    settings: Settings, out: Path, *, since: str | None, until: str | None, owners: Sequence[str] | None
) -> int:
    """Writes an export, signed with the log's key if there is one. Raises Failure as `write_export` and `scope`."""
    times = period(since, until)
    with ended_as_by_hand(), open_store(settings) as store, store.browse() as connection:
        wanted = RulingFilter(
            owners=scope(store, connection, settings, owners or (), "audit export"), **times
        )
        in_use = {each.id for each in log_keys.known(connection) if each.retired_at is None}
        keys = [key for key in read_keys(settings) if key.key.key_id.hex() in in_use]
        counts = write_export(connection, out, wanted, keys)
    told = ", ".join(f"{count:,} {what}" for what, count in counts.items())
    say(f"{one_line(str(out))}: {told}. VERIFY.md in it says how to check it.")
    if not keys:
        hint("It is not signed: no key of the log is here (VOUCHGATE_LOG_KEY).")
    return 0


def write_export(
    connection: Connection, out: Path, wanted: RulingFilter, keys: Sequence[SigningKey]
) -> dict[str, int]:
    """Writes an export as a folder, or as one file where the name ends with `.zip`: whole, or not at all. How many
    decisions, entries and rulings it has. Raises Failure where something is there already."""
    if out.exists() or out.is_symlink():
        raise Failure(f"{one_line(str(out))} is there already; name a folder or file that is not")
    if not out.parent.is_dir():
        raise Failure(f"there is no folder {one_line(str(out.parent))}")
    made = Path(tempfile.mkdtemp(prefix=f".{out.name}.", dir=out.parent))
    try:
        folder = made / out.name.removesuffix(".zip")
        folder.mkdir(0o700)  # it holds what only some may read
        counts = Export(connection, folder, wanted, keys).write()
        if out.suffix == ".zip":
            (made / "zip").touch(0o600)
            _zip(folder, made / "zip")
            folder = made / "zip"
        os.rename(folder, out)  # noqa: PTH104  (a folder, too)
    finally:
        shutil.rmtree(made)
    return counts


def _zip(folder: Path, target: Path) -> None:
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as packed:
        for path in sorted(each for each in folder.rglob("*") if each.is_file()):
            info = zipfile.ZipInfo(path.relative_to(folder.parent).as_posix(), _ZIP_TIME)
            info.compress_type, info.external_attr, info.create_system = zipfile.ZIP_DEFLATED, 0o600 << 16, 3
            with path.open("rb") as file, packed.open(info, "w", force_zip64=True) as entry:
                shutil.copyfileobj(file, entry, 2**20)


def _object(text: str) -> Json:
    """A decision; of one that cannot be understood nothing is told but its bytes."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))
