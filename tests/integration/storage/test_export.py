"""An export, checked as an auditor would: by the program that lies in it, by tools of others, and once altered."""

from __future__ import annotations

import base64
import csv
import hashlib
import importlib.util
import io
import json
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import json_format
from in_toto_attestation.v1.statement import Statement
from in_toto_attestation.v1.statement_pb2 import Statement as StatementMessage
from prov.model import ProvDocument
from securesystemslib.dsse import Envelope
from securesystemslib.signer import SSlibKey  # type: ignore[attr-defined]
from sqlalchemy import Connection, text

from tests.claims import NOW, examined, policy, submission_of
from tests.conftest import THRESHOLD
from tests.integration.review.test_rulings import lived
from tests.integration.storage.test_log_data import DAY, gateway
from vouchgate.cli.looking import export
from vouchgate.cli.looking.export import write_export
from vouchgate.cli.output import Failure
from vouchgate.gate.signing import LogSigner
from vouchgate.ingest.claims.claim import Source
from vouchgate.ingest.claims.modes import Mode, ModeSwitch
from vouchgate.ingest.claims.people import Role
from vouchgate.ingest.transparency.attestation import envelope, statement
from vouchgate.ingest.transparency.note import signing_key
from vouchgate.ingest.transparency.verifier import EXPORT_TYPE, MANIFEST, MANIFEST_SIGNED, main
from vouchgate.review.ending.asking import Asker
from vouchgate.review.ending.erasing import Erased, Erasing
from vouchgate.review.trust import modes
from vouchgate.settings import load_settings
from vouchgate.storage.claims.submit import Decided
from vouchgate.storage.identity import tokens
from vouchgate.storage.log import keys, tree
from vouchgate.storage.queue.rulings import RulingFilter
from vouchgate.storage.store import Store

KEY = signing_key("gate.example/log", b"L" * 32)
OTHER = signing_key("gate.example/log", b"X" * 32)
WHOLE = RulingFilter(owners=frozenset({"acme", "bob"}))


def grow(store: Store) -> None:
    """Takes all entries into the tree, and signs it."""
    with store.read() as connection:
        batch = tree.next_batch(connection)
    store.writer.run(sorted(batch.ends), lambda c: tree.add(c, batch, NOW)).result()
    size, note = LogSigner("gate.example/log", (KEY,), None).sign(store)
    store.writer.run((), lambda c: tree.put_checkpoint(c, size, note, NOW, publish=True)).result()


def send(store: Store, content: str, **more: Any) -> str:
    """The memory that came of it, if one did."""
    answer = store.writer.submit(submission_of(examined(content, owner_id="bob", **more))).result()
    assert isinstance(answer, Decided)
    return str(answer.answer.memory_id)


@pytest.fixture(scope="module")
def exported(module_store: Store, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Rulings of acme, claims of bob, the last of which is not in the tree yet; and one owner that is left out."""
    store = module_store
    store.save_policy(policy(), NOW)
    lived(store)
    keys.add(store, KEY.key, actor="test", now=NOW)
    send(store, "The barn is dry", source=Source.USER)
    send(store, '=HYPERLINK("x") is "dry",\nsays \u2028 ann', source=Source.USER)
    send(store, "I guess the hall is haunted", speculates=True)
    erased = send(store, gateway(7443), source=Source.USER)
    send(store, gateway(7444), source=Source.AI_SYNTHESIS)
    one = examined("Nobody may read this", owner_id="cleo", source=Source.USER)
    store.writer.submit(submission_of(one)).result()
    observing = ModeSwitch(owner_id="bob", agent="", mode=Mode.OBSERVE, reason="trial", by="op", since=NOW)
    modes.switch(store, observing)
    send(store, "The loft is let through", source=Source.AI_SYNTHESIS)
    erasing = Erasing(store, policy(), path=tmp_path_factory.mktemp("erased") / "list")
    done = erasing.erase(["bob"], [erased], "Art. 17", Asker("operator", "operator"), NOW + DAY)
    assert isinstance(done, Erased)
    assert done.counts["decisions on other claims that showed it"] == 1
    grow(store)
    send(store, "The attic is dark", source=Source.USER, now=NOW + DAY)
    out = tmp_path_factory.mktemp("export") / "period"
    with store.read() as connection:
        counts = write_export(connection, out, WHOLE, [KEY])
    assert (counts["decisions"], counts["rulings"]) == (14, 8)
    return out


@pytest.fixture(scope="module")
def module_store(module_database_url: str) -> Any:
    store = Store.open(module_database_url, threshold=THRESHOLD)
    yield store
    store.close()


def check(folder: Path, *more: str) -> int:
    return main(["export", str(folder), "--key", str(KEY.key), *more])


def lines(folder: Path, name: str) -> list[Any]:
    return [json.loads(line) for line in (folder / name).read_text().split("\n")[:-1]]


@pytest.mark.on("sqlite")
def test_a_machine_with_nothing_but_the_export_and_cryptography(exported: Path, tmp_path: Path) -> None:
    """No site-packages but these: neither vouchgate nor anything else can be imported."""
    alone = tmp_path / "alone"
    alone.mkdir()
    for name in ("cryptography", "cffi", "_cffi_backend"):
        found = importlib.util.find_spec(name)
        assert found is not None and found.origin is not None
        place = Path(found.origin)
        place = place.parent if place.name == "__init__.py" else place
        (alone / place.name).symlink_to(place)
    lone = (
        "import sys, runpy; sys.path.append(sys.argv.pop(1)); "
        "import importlib.util as u; assert not any(map(u.find_spec, ('vouchgate', 'pydantic', 'sqlalchemy'))); "
        "sys.argv = sys.argv[1:]; runpy.run_path(sys.argv[0], run_name='__main__')"
    )
    program = [sys.executable, "-I", "-S", "-c", lone, str(alone), str(exported / "vouchgate_verify.py")]
    told = subprocess.run(
        [*program, "export", str(exported), "--key", str(KEY.key)],
        check=False,
        capture_output=True,
        text=True,
    )
    assert (told.returncode, told.stderr) == (0, "")
    assert "14 decisions as the log commits to them" in told.stdout
    assert "1 of them lost words by an erasure" in told.stdout
    assert "1 more were erased" in told.stdout
    assert "No receipt of 1 decisions" in told.stdout
    assert "Not proven are the last 1 entries" in told.stdout
    receipt = tmp_path / "receipt.json"
    receipt.write_text(json.dumps(lines(exported, "receipts.jsonl")[0]))
    answer = tmp_path / "answer.json"
    answer.write_bytes((exported / "decisions.jsonl").read_bytes().split(b"\n")[0])
    told = subprocess.run(
        [*program, str(receipt), "--answer", str(answer), "--key", str(KEY.key)],
        check=False,
        capture_output=True,
        text=True,
    )
    assert told.returncode == 0, told.stderr


def test_what_is_in_it(exported: Path) -> None:
    assert check(exported) == 0
    everything = b"".join(path.read_bytes() for path in exported.rglob("*") if path.is_file())
    assert b'"cleo"' not in everything and b"Nobody may read this" not in everything
    decisions, rows = lines(exported, "decisions.jsonl"), (exported / "decisions.csv").read_bytes().decode()
    table = list(csv.DictReader(io.StringIO(rows, newline="")))
    assert [row["decision_id"] for row in table] == [one["decision_id"] for one in decisions]
    assert "'=HYPERLINK" in rows
    assert [row["content"].removeprefix("'") for row in table] == [
        one["evidence"]["claim"]["content"] for one in decisions
    ]
    receipts = lines(exported, "receipts.jsonl")
    assert len([one for one in receipts if one["decision_id"]]) == 14
    entries = lines(exported, "log.jsonl")
    assert {entry["owner_id"] for entry in entries} == {"acme", "bob"}
    table = list(csv.DictReader((exported / "log.csv").read_text().split("\n")[:-1]))
    assert [row["digest"] for row in table] == [entry["digest"] for entry in entries]
    assert {row["what"] for row in lines(exported, "reviews.jsonl")} == {"approved", "rejected", "let_go"}
    assert (exported / "keys.txt").read_text() == f"{KEY.key}\n"


def test_tools_of_others_read_it(exported: Path) -> None:
    key = SSlibKey(
        f"{KEY.key.name}+{KEY.key.key_id.hex()}", "ed25519", "ed25519", {"public": KEY.key.public.hex()}
    )
    answers = (exported / "decisions.jsonl").read_bytes().split(b"\n")[:-1]
    sealed = [*lines(exported, "decisions.dsse.jsonl"), json.loads((exported / MANIFEST_SIGNED).read_text())]
    for number, one in enumerate(sealed):
        opened = Envelope.from_dict(one)
        assert opened.payload_type == "application/vnd.in-toto+json"
        assert len(opened.verify([key], 1)) == 1
        message = json_format.Parse(opened.payload, StatementMessage())
        Statement.copy_from_pb(message).validate()
        if number < len(answers):
            assert message.subject[0].digest["sha256"] == hashlib.sha256(answers[number]).hexdigest()
    found = ProvDocument.deserialize(exported / "prov.json", format="json")
    bundles = list(found.bundles)
    assert len(bundles) == len(answers) + len(lines(exported, "reviews.jsonl"))
    said = {str(record.get_type()) for bundle in bundles for record in bundle.get_records()}
    assert {"prov:Entity", "prov:Activity", "prov:Agent", "prov:Generation", "prov:Usage"} <= said


def test_the_same_bytes_again(exported: Path, module_store: Store, tmp_path: Path) -> None:
    with module_store.read() as connection:
        for name in ("a", "b"):
            (tmp_path / name).mkdir()
            write_export(connection, tmp_path / name / "q4.zip", WHOLE, [KEY])
        with pytest.raises(Failure, match="there already"):
            write_export(connection, tmp_path / "a" / "q4.zip", WHOLE, [KEY])
    assert (tmp_path / "a/q4.zip").read_bytes() == (tmp_path / "b/q4.zip").read_bytes()
    assert (exported.stat().st_mode & 0o777, (tmp_path / "a/q4.zip").stat().st_mode & 0o777) == (0o700, 0o600)
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["q4.zip"]  # and nothing half done beside it
    with zipfile.ZipFile(tmp_path / "a/q4.zip") as packed:
        packed.extractall(tmp_path)
    names = sorted(path.relative_to(exported) for path in exported.rglob("*") if path.is_file())
    assert all((tmp_path / "q4" / name).read_bytes() == (exported / name).read_bytes() for name in names)
    assert check(tmp_path / "q4") == 0


@pytest.mark.on("sqlite")
def test_a_changed_byte_is_found_in_every_file(exported: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(exported, copy)
    names = sorted(path.relative_to(copy) for path in copy.rglob("*") if path.is_file())
    assert len(names) == 17
    for name in names:
        whole = (copy / name).read_bytes()
        middle = len(whole) // 2
        for altered in (
            whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :],
            whole[:-1],
            whole + b"\n",
        ):
            (copy / name).write_bytes(altered)
            assert check(copy) != 0, name
        (copy / name).unlink()
        assert check(copy) != 0, name
        (copy / name).write_bytes(whole)
    (copy / "more.txt").write_text("not in the manifest")
    assert check(copy) == 1
    (copy / "more.txt").unlink()
    (copy / "more").symlink_to("/dev/zero")
    assert check(copy) == 1
    (copy / "more").unlink()
    assert check(copy) == 0


def resign(folder: Path, by: Any = KEY) -> None:
    """Makes the manifest anew, as whoever has the key could."""
    told = json.loads((folder / MANIFEST).read_text())
    names = sorted(
        path for path in folder.rglob("*") if path.is_file() and not path.name.startswith("manifest.")
    )
    digests = [
        (path.relative_to(folder).as_posix(), hashlib.sha256(path.read_bytes()).hexdigest()) for path in names
    ]
    said = statement(EXPORT_TYPE, digests, told["predicate"])
    (folder / MANIFEST).write_text(said)
    sealed = json.dumps(envelope(said, [by]), separators=(",", ":"))
    (folder / MANIFEST_SIGNED).write_text(sealed + "\n")


def edit(name: str, change: Callable[[list[Any]], object]) -> Callable[[Path], None]:
    def altered(folder: Path) -> None:
        found = lines(folder, name)
        change(found)
        dumped = (
            json.dumps(one, separators=(",", ":"), ensure_ascii=name != "decisions.jsonl") for one in found
        )
        (folder / name).write_text("".join(f"{one}\n" for one in dumped))

    return altered


def swap_receipts(found: list[Any]) -> None:
    found[0]["proof"], found[1]["proof"] = found[1]["proof"], found[0]["proof"]


def forge(folder: Path, *, agreeing: bool) -> None:
    """A decision, with a statement of its digest, that the log does not commit to."""
    answers, sealed = lines(folder, "decisions.jsonl"), lines(folder, "decisions.dsse.jsonl")
    answers[0]["reason"] = "because"
    text_ = json.dumps(answers[0], separators=(",", ":"), ensure_ascii=False)
    told = json.loads(base64.b64decode(sealed[0]["payload"]))
    digest = hashlib.sha256(text_.encode()).hexdigest()
    said = statement(
        told["predicateType"],
        [(told["subject"][0]["name"], digest)],
        told["predicate"] | ({"reason": "because"} if agreeing else {}),
    )
    sealed[0] = envelope(said, [KEY])
    whole = (folder / "decisions.jsonl").read_text().split("\n")
    (folder / "decisions.jsonl").write_text("\n".join([text_, *whole[1:]]))
    (folder / "decisions.dsse.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in sealed))


def drop_decision(folder: Path) -> None:
    for name in ("decisions.jsonl", "decisions.dsse.jsonl"):
        (folder / name).write_text("\n".join((folder / name).read_text().split("\n")[1:]))


def rechain(index: int, **more: Any) -> Callable[[Path], None]:
    """Another entry in the log, which its owner's later ones continue."""

    def change(found: list[Any]) -> None:
        found[index] |= more
        owner = [entry for entry in found if entry["owner_id"] == found[index]["owner_id"]]
        for number, entry in enumerate(owner):
            entry["previous"] = owner[number - 1]["digest"] if number else entry["previous"]
            names = ("owner_id", "seq", "at", "actor", "action", "subject_id", "content_digest", "previous")
            said = json.dumps([entry[name] for name in names])
            entry["digest"] = hashlib.sha256(said.encode()).hexdigest()

    return edit("log.jsonl", change)


def last_of_acme(folder: Path) -> None:
    """No decision comes after it."""
    entries = lines(folder, "log.jsonl")
    index = max(number for number, entry in enumerate(entries) if entry["owner_id"] == "acme")
    assert not entries[index]["action"].startswith("claim.")
    rechain(index, actor="me")(folder)


def show_other_log(folder: Path) -> None:
    """The checkpoint of a log that another auditor may be shown, and kept: the receipts are of this one."""
    (folder / "checkpoint").write_text(KEY.sign_checkpoint(3, bytes(32)))


ALTERED: list[tuple[str, Callable[[Path], object]]] = [
    (
        "is not what its statement says",
        edit("decisions.jsonl", lambda found: found[0].update(reason="because")),
    ),
    ("is not a decision that the log commits to", partial(forge, agreeing=True)),
    ("says something else than the decision", partial(forge, agreeing=False)),
    ("are missing", drop_decision),
    (
        "was altered, or one before it is missing",
        edit("log.jsonl", lambda found: found[3].update(actor="me")),
    ),
    ("was altered, or one before it is missing", edit("log.jsonl", lambda found: found.pop(3))),
    ("leads to another root", edit("receipts.jsonl", swap_receipts)),
    ("or there twice", edit("receipts.jsonl", lambda found: found.append(found[0]))),
    ("another entry than the log here has", rechain(3, actor="me")),
    ("another entry than the log here has", last_of_acme),
    ("two views of one log", show_other_log),
    ("two views of one log", lambda folder: (folder / "checkpoint").unlink()),
    ("and a later entry has one", edit("receipts.jsonl", lambda found: found.pop(0))),
    ("no entry says that they were erased", edit("erasures.jsonl", lambda found: found.pop(0))),
    ("is not a decision that the log commits to", edit("erasures.jsonl", lambda found: found.pop(1))),
    ("does not commit to", edit("erasures.jsonl", lambda found: found[0]["items"].pop())),
    ("not the entry that the log has", edit("erasures.jsonl", lambda found: found[0].update(actor="me"))),
    ("An erasure has", edit("erasures.jsonl", lambda found: found[0].pop("basis"))),
    ("is missing", lambda folder: next((folder / "policies").iterdir()).unlink()),
    ("is not the policy", lambda folder: next((folder / "policies").iterdir()).write_text("{}")),
    ("lacks a part", edit("log.jsonl", lambda found: found[0].pop("seq"))),
    ("with owner_id, seq", edit("receipts.jsonl", lambda found: found[0].update(leaf=3))),
    ("about one decision", edit("log.jsonl", lambda found: found[0].update(salt="x"))),
    ("is not JSON", lambda folder: (folder / "log.jsonl").write_text("[" * 100_000)),
]


@pytest.mark.on("sqlite")
def test_whoever_has_the_key_cannot_alter_it_either(
    exported: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for number, (says, alter) in enumerate(ALTERED):
        copy = tmp_path / str(number)
        shutil.copytree(exported, copy)
        alter(copy)
        resign(copy)
        assert check(copy) != 0, says
        assert says in capsys.readouterr().err


@pytest.mark.on("sqlite")
@pytest.mark.usefixtures("exported")
def test_an_owner_or_the_end_of_a_log_cannot_be_left_out_of_all(
    module_store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """By whoever has the key; of an export of some owners or a period nobody can tell."""
    with module_store.read() as connection:
        write_export(connection, tmp_path / "all", RulingFilter(), [KEY])
    assert check(tmp_path / "all") == 0
    assert "It is of all owners, from the first entry to the last one." in capsys.readouterr().out

    def without(gone: Callable[[Any], bool], name: str) -> None:
        copy = tmp_path / name
        shutil.copytree(tmp_path / "all", copy)
        lost = {one["subject_id"] for one in lines(copy, "log.jsonl") if gone(one)}
        for file in ("log.jsonl", "receipts.jsonl"):
            kept = [one for one in lines(copy, file) if not gone(one)]
            (copy / file).write_text("".join(f"{json.dumps(one, separators=(',', ':'))}\n" for one in kept))
        answers, sealed = (
            (copy / file).read_text().split("\n")[:-1] for file in ("decisions.jsonl", "decisions.dsse.jsonl")
        )
        left = [at for at, answer in enumerate(answers) if json.loads(answer)["decision_id"] not in lost]
        (copy / "decisions.jsonl").write_text("".join(f"{answers[at]}\n" for at in left))
        (copy / "decisions.dsse.jsonl").write_text("".join(f"{sealed[at]}\n" for at in left))
        resign(copy)
        assert check(copy) == 1
        assert "missing or lost their receipts" in capsys.readouterr().err

    without(lambda one: one["owner_id"] == "cleo", "owner")
    last = max(one["seq"] for one in lines(tmp_path / "all", "log.jsonl") if one["owner_id"] == "acme")
    without(lambda one: one["owner_id"] == "acme" and one["seq"] == last, "end")


@pytest.mark.on("sqlite")
def test_who_signed_it(exported: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(exported, copy)
    resign(copy, OTHER)
    assert check(copy) == 1
    assert "not signed by a key of the log that you trust" in capsys.readouterr().err
    assert main(["export", str(copy)]) == 0
    assert "NO KEY was given" in capsys.readouterr().out
    assert main(["export", str(tmp_path / "nowhere")]) == 2
    (tmp_path / "q4.zip").write_bytes(b"PK")
    assert main(["export", str(tmp_path / "q4.zip")]) == 2
    assert "is a file: unpack it" in capsys.readouterr().err


@pytest.mark.on("sqlite")
def test_the_command_writes_for_those_who_may(
    module_store: Store, exported: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    url = module_store._engine.url.render_as_string(hide_password=False)
    file = tmp_path / "key"
    file.write_text(KEY.secret_text() + "\n")
    _, auditor = tokens.create(
        module_store, role=Role.AUDITOR, name="a", owners=["bob"], actor="test", now=NOW
    )
    _, agent = tokens.create(module_store, role=Role.AGENT, name="b", owners=["bob"], actor="test", now=NOW)

    def run(name: str, token: str | None = None, **more: Any) -> int:
        settings = load_settings({}, database_url=url, token=token, log_key=str(file))
        wanted = {"since": None, "until": None, "owners": None} | more
        return export.run(settings, tmp_path / name, **wanted)

    assert run("bobs", auditor) == 0
    assert check(tmp_path / "bobs") == 0
    assert json.loads((tmp_path / "bobs" / MANIFEST).read_text())["predicate"]["owners"] == ["bob"]
    with module_store.read() as connection:
        read = text("SELECT subject_id FROM log_entry WHERE owner_id = '' AND action = 'audit.read'")
        assert connection.scalars(read).all() == ["audit%20export"]
    assert f"{tmp_path / 'bobs'}: 6 decisions" in capsys.readouterr().out  # of 14
    assert run("all", since="2020-01-01", until=str(NOW.date() + timedelta(days=400))) == 0
    assert check(tmp_path / "all") == 0
    assert b"Nobody may read this" in (tmp_path / "all" / "decisions.jsonl").read_bytes()
    assert run("none", until="2020-01-01") == 0
    assert check(tmp_path / "none") == 0
    for name, token, more, says in (
        ("x", agent, {}, "not one of an auditor"),
        ("x", auditor, {"owners": ["acme"]}, "does not act for"),
        ("x", None, {"owners": ["nobody"]}, "there is no owner"),
        ("x", None, {"since": "soon"}, "give a day"),
        ("x", None, {"since": "2027-01-01", "until": "2026-01-01"}, "nothing can be between"),
        ("nowhere/x", None, {}, "no folder"),
    ):
        with pytest.raises(Failure, match=says):
            run(name, token, **more)
    assert not (tmp_path / "x").exists()


@pytest.mark.on("sqlite")
def test_an_erasure_after_the_period_is_proven_and_no_empty_row_passes_for_one(
    module_store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    period = WHOLE.model_copy(update={"until": NOW + DAY / 2})
    with module_store.read() as connection:
        write_export(connection, tmp_path / "period", period, [KEY])
    assert check(tmp_path / "period") == 0
    told = capsys.readouterr().out
    assert "1 of them lost words by an erasure" in told
    assert "Not proven" not in told
    assert "memory.erased" not in (tmp_path / "period" / "log.jsonl").read_text()
    send(
        module_store, "The cellar was asked about before.", source=Source.USER
    )  # behind the erasure in the log
    with module_store.read() as connection:
        write_export(connection, tmp_path / "crossed", period, [KEY])
    assert check(tmp_path / "crossed") == 0
    assert "Not proven are the last" in capsys.readouterr().out
    assert "memory.erased" in (tmp_path / "crossed" / "log.jsonl").read_text()
    edit("erasures.jsonl", lambda found: found[0].update(actor="me", digest=digest_by_me(found[0])))(
        tmp_path / "period"
    )
    resign(tmp_path / "period")
    assert check(tmp_path / "period") == 1
    assert "another entry than the log here has" in capsys.readouterr().err
    barn = next(
        one
        for one in lines(tmp_path / "period", "decisions.jsonl")
        if "barn" in one["evidence"]["claim"]["content"]
    )
    for change in (
        "UPDATE decision SET answer = '' WHERE id = :id",
        "UPDATE log_entry SET salt = NULL WHERE subject_id = :id",
    ):
        named = {"id": barn["decision_id"]}
        module_store.writer.run(
            (), partial(Connection.execute, statement=text(change), parameters=named)
        ).result()
    with module_store.read() as connection:
        write_export(connection, tmp_path / "emptied", WHOLE, [KEY])
    assert check(tmp_path / "emptied") == 1
    assert "no entry says that they were erased" in capsys.readouterr().err


def digest_by_me(entry: Any) -> str:
    names = ("at", "action", "subject_id", "content_digest", "previous")
    at, *rest = (entry[name] for name in names)
    return hashlib.sha256(json.dumps([entry["owner_id"], entry["seq"], at, "me", *rest]).encode()).hexdigest()
