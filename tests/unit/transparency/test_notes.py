"""Signed notes, checkpoints, cosignatures and proofs of entries, with the vectors of Go's note package."""

from __future__ import annotations

import base64
import stat
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vouchgate.ingest.transparency.note import (
    make_signing_key,
    parse_signing_key,
    signing_key,
    write_signing_key,
)
from vouchgate.ingest.transparency.tree import Edge, grow
from vouchgate.ingest.transparency.verifier import (
    COSIGNATURE,
    EMPTY_ROOT,
    Checkpoint,
    Malformed,
    NotProven,
    Proof,
    check_proof,
    leaf_hash,
    open_checkpoint,
    parse_checkpoint,
    parse_key,
    parse_note,
    parse_proof,
)

# golang.org/x/mod/sumdb/note, note_test.go.
PETER = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW"
PETER_SECRET = "PRIVATE+KEY+PeterNeumann+c74f20a3+AYEKFALVFGyNhPJEMzD1QIDr+Y7hfZx09iUvxdXHKDFz"
ENOCH = "EnochRoot+af0cfe78+ATtqJ7zOtqQtYqOo0CpvDXNlMhV3HeJDpjrASKGLWdop"
TEXT = "If you think cryptography is the answer to your problem,\nthen you don't know what your problem is.\n"
PETER_LINE = (
    "— PeterNeumann "
    + "x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM=\n"
)
ENOCH_LINE = (
    "— EnochRoot "
    + "rwz+eBzmZa0SO3NbfRGzPCpDckykFXSdeX+MNtCOXm2/5n2tiOHp+vAF1aGrQ5ovTG01oOTGwnWLox33WWd1RvMc+QQ=\n"
)
# c2sp.org/tlog-cosignature: its example, whose keys are not published.
COSIGNED = """example.com/behind-the-sofa
20852163
CsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=

— example.com/behind-the-sofa \
Az3grlgtzPICa5OS8npVmf1Myq/5IZniMp+ZJurmRDeOoRDe4URYN7u5/Zhcyv2q1gGzGku9nTo+zyWE+xeMcTOAYQ8=
— witness.example.com/w1 \
jWbPPwAAAABkGFDLEZMHwSRaJNiIDoe9DYn/zXcrtPHeolMI5OWXEhZCB9dlrDJsX3b2oyin1nPZqhf5nNo0xUe+mbIUBkBIfZ+qnA==
"""
LOG = signing_key("gate.example/log", b"L" * 32)
WITNESSES = [signing_key(f"w{n}.example", bytes([n]) * 32, COSIGNATURE) for n in range(3)]


def test_the_vectors_of_gos_notes() -> None:
    peter, enoch, secret = parse_key(PETER), parse_key(ENOCH), parse_signing_key(PETER_SECRET)
    assert (str(peter), secret.secret_text(), secret.key) == (PETER, PETER_SECRET, peter)
    assert secret.sign_note(TEXT) == PETER_LINE and PETER_SECRET[-20:] not in repr(secret)
    note = parse_note(f"{TEXT}\n{PETER_LINE}{ENOCH_LINE}".encode())
    assert (note.text, note.signed_at(peter), note.signed_at(enoch)) == (TEXT, 0, 0)
    assert parse_note(f"{TEXT}\n{PETER_LINE}".encode()).signed_at(enoch) is None
    data = base64.b64decode(PETER_LINE.split()[2])
    altered = PETER_LINE.replace(PETER_LINE.split()[2], base64.b64encode(data[:-1] + b"\x00").decode())
    for text in (f"{TEXT}x\n\n{PETER_LINE}", f"{TEXT}\n{altered}", f"{TEXT}\n{PETER_LINE}{altered}"):
        with pytest.raises(NotProven, match="does not hold"):
            parse_note(text.encode()).signed_at(peter)


def test_no_mangled_key_is_taken() -> None:
    """As the test of Go's package has it: every part of a key, and every character put up by one."""
    wrong = [
        "PeterNeumann+cc469956+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TWBADKEY==",  # too long, with its id
        "PeterNeumann+173116ae+ZRpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW",  # another kind, with its id
    ]
    for whole in (PETER, PETER_SECRET):
        wrong = [whole[i:j] for i in range(len(whole)) for j in range(i + 1, len(whole) + 1)][:2_000]
        wrong += [whole[:i] + chr(ord(whole[i]) + 1) + whole[i + 1 :] for i in range(len(whole))]
        for each in wrong:
            if each != whole:
                with pytest.raises(Malformed):
                    (parse_key if whole == PETER else parse_signing_key)(each)
    for name in ("", "a b", "a+b", "a\nb", "a\u2028b", "x" * 256):
        with pytest.raises(Malformed):
            make_signing_key(name)


@pytest.mark.parametrize(
    "text",
    [
        TEXT,
        f"{TEXT}\n",
        f"{TEXT}\n{PETER_LINE[:-1]}",
        f"\x01{TEXT}\n{PETER_LINE}",
        f"{TEXT}\n{PETER_LINE.replace('PeterNeumann', 'Bad Name')}",
        f"{TEXT}\n{PETER_LINE}Unexpected line.\n",
        f"{TEXT}\n{PETER_LINE * 101}",
        f"{TEXT}\n— PeterNeumann x08g\n",
        f"{TEXT}\n— PeterNeumann x08go/Z=\n",
        f"{'x' * 70_000}\n\n{PETER_LINE}",
        "",
    ],
)
def test_a_malformed_note_is_refused(text: str) -> None:
    with pytest.raises(Malformed):
        parse_note(text.encode())
    with pytest.raises(Malformed):
        parse_note(b"\xff" + text.encode())


def test_a_checkpoint_is_three_lines() -> None:
    root = base64.b64encode(leaf_hash(b"")).decode()
    assert parse_checkpoint(f"o\n5\n{root}\nmore\n") == Checkpoint("o", 5, leaf_hash(b""))
    note = parse_note(COSIGNED.encode())
    checkpoint = parse_checkpoint(note.text)
    assert (checkpoint.origin, checkpoint.size, str(checkpoint)) == (
        "example.com/behind-the-sofa",
        20_852_163,
        note.text,
    )
    assert int.from_bytes(note.signatures[1].data[4:12], "big") == 1_679_315_147
    for text in (
        f"o\n5\n{root}",
        f"\n5\n{root}\n",
        f"o\n05\n{root}\n",
        f"o\n-5\n{root}\n",
        f"o\n٥\n{root}\n",
        f"o\n{2**63}\n{root}\n",
        f"o\n0\n{root}\n",
        f"o\n5\n{root[:-1]}\n",
        "o\n5\nAAAA\n",
        f"o\n5\n{root}\n\n",
        "o\n5\n",
    ):
        with pytest.raises(Malformed):
            parse_checkpoint(text)


def test_enough_of_the_named_witnesses_must_have_cosigned() -> None:
    signed = LOG.sign_checkpoint(1, leaf_hash(b"entry"))
    text = str(Checkpoint("gate.example/log", 1, leaf_hash(b"entry")))
    lines = [witness.sign_note(text, at=1_700_000_000 + n) for n, witness in enumerate(WITNESSES)]
    keys = tuple(witness.key for witness in WITNESSES)
    one = (signed + lines[0]).encode()
    assert open_checkpoint(one, [LOG.key], keys, 1)[1] == {"w0.example": 1_700_000_000}
    everybody = (signed + "".join(lines)).encode()
    assert len(open_checkpoint(everybody, [LOG.key], keys, 3)[1]) == 3
    for data, needed in (
        (one, 2),
        ((signed + lines[0] * 3).encode(), 2),
        (signed.encode(), 1),
        (everybody, 4),
    ):
        with pytest.raises(NotProven, match="needed"):
            open_checkpoint(data, [LOG.key], keys, needed)
    # One key under two names is one witness, whatever it calls itself; and a log is none.
    double = signing_key("double.example", WITNESSES[0].seed, COSIGNATURE)
    data = (signed + lines[0] + double.sign_note(text, at=1)).encode()
    with pytest.raises(NotProven, match="1 of your witnesses"):
        open_checkpoint(data, [LOG.key], (*keys, double.key, LOG.key), 2)
    # Another time than the one that was signed; a witness in place of a log.
    moved = parse_note(one).signatures[1]
    forged = base64.b64encode(moved.data[:4] + b"\x00" * 8 + moved.data[12:]).decode()
    with pytest.raises(NotProven, match="forged or altered"):
        open_checkpoint((signed + f"— w0.example {forged}\n").encode(), [LOG.key], keys, 1)
    posing = signing_key("gate.example/log", b"P" * 32, COSIGNATURE)
    with pytest.raises(NotProven, match="not signed by a key of the log"):
        open_checkpoint(f"{text}\n{posing.sign_note(text, at=1)}".encode(), [posing.key])


def test_the_name_of_the_key_is_the_origin_of_the_log() -> None:
    """So a key that somebody trusts for one log says nothing of another; and a log may change its key."""
    text = str(Checkpoint("other.example", 0, EMPTY_ROOT))
    with pytest.raises(NotProven, match="not signed by a key of the log"):
        open_checkpoint(f"{text}\n{LOG.sign_note(text)}".encode(), [LOG.key])
    later = make_signing_key("gate.example/log")
    signed = later.sign_checkpoint(0, EMPTY_ROOT)
    for trusted in ([LOG.key, later.key], [later.key, LOG.key]):
        assert open_checkpoint(signed.encode(), trusted)[0].size == 0
    with pytest.raises(NotProven):
        open_checkpoint(signed.encode(), [LOG.key])
    line = LOG.sign_note(str(Checkpoint("gate.example/log", 1, EMPTY_ROOT)))
    with pytest.raises(NotProven, match="forged"):  # one signature holds, the other one is of something else
        open_checkpoint((signed + line).encode(), [later.key, LOG.key])


def test_a_proof_of_an_entry() -> None:
    leaves = [leaf_hash(b"first"), leaf_hash(b"second")]
    signed = LOG.sign_checkpoint(2, grow(Edge(), leaves)[0].root)
    text = str(Proof(1, (leaves[0],), signed.encode()))
    assert parse_proof(text.encode()) == parse_proof(text.replace("\nindex", "\nextra AAAA\nindex").encode())
    index, checkpoint, seen = check_proof(text.encode(), b"second", [LOG.key])
    assert (index, checkpoint.size, seen) == (1, 2, {})
    for data, leaf in (
        (text, b"first"),
        (text.replace("index 1", "index 0"), b"second"),
        (text.replace("index 1", "index 01"), b"second"),
        (text.replace("index 1", "index 1" + "0" * 40), b"second"),
        (text.replace("v1", "v2"), b"second"),
        (text.replace("index 1\n", ""), b"second"),
        (text.replace("\n\n", "\n" + "AAAA\n" * 64 + "\n", 1), b"second"),
        (text.replace("\n\n", "\nAAAA\n\n", 1), b"second"),
        (text, b"x" * 65_536),
        (text + "x" * 200_000, b"second"),
        ("", b"second"),
    ):
        with pytest.raises(NotProven):
            check_proof(data.encode(), leaf, [LOG.key])


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 2_000), st.binary(min_size=1, max_size=3), st.binary(max_size=200))
def test_text_of_any_bytes_ends_in_one_kind_of_error(at: int, put: bytes, junk: bytes) -> None:
    whole = str(Proof(0, (EMPTY_ROOT,), COSIGNED.encode())).encode()
    for data in (junk, whole[: at % len(whole)] + put + whole[at % len(whole) + len(put) :], whole[:at]):
        try:
            proof = parse_proof(data)
            parse_checkpoint(parse_note(proof.checkpoint).text)
        except NotProven:
            continue
        assert parse_proof(str(proof).encode()) == proof


def test_a_key_is_written_once_and_for_its_owner_alone(tmp_path: Path) -> None:
    made, file = make_signing_key("witness.example", COSIGNATURE), tmp_path / "key"
    write_signing_key(file, made)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert parse_signing_key(file.read_text()) == made and [each.name for each in tmp_path.iterdir()] == [
        "key"
    ]
    with pytest.raises(FileExistsError):
        write_signing_key(file, make_signing_key("witness.example"))
    assert parse_signing_key(file.read_text()) == made
    other = tmp_path / "second.new"
    other.write_text("of another process, which writes at the same moment")
    write_signing_key(tmp_path / "second", made)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["key", "second", "second.new"]
