"""`vouchgate-verify`, as an outsider meets it: one file, a key, and what they kept."""

from __future__ import annotations

import base64
import hashlib
import json
import subprocess
import sys
import tomllib
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from vouchgate.ingest.transparency import verifier
from vouchgate.ingest.transparency.note import signing_key
from vouchgate.ingest.transparency.promises import Commit
from vouchgate.ingest.transparency.tree import Edge, grow, inclusion_proof
from vouchgate.ingest.transparency.verifier import (
    COSIGNATURE,
    HASH_BYTES,
    Checkpoint,
    Proof,
    hashes_of_tiles,
    leaf_hash,
    main,
    tile_path,
)

LOG = signing_key("gate.example/log", b"L" * 32)
WITNESS = signing_key("auditor.example/witness", b"W" * 32, COSIGNATURE)
KEY, OF_WITNESS = ("--key", str(LOG.key)), ("--witness", str(WITNESS.key))
ANSWER, SALT = b'{"decision_id":"d1","outcome":"stored"}', bytes(range(16))
DIGEST = "ab" * 32
HANDED = b',"delivery":{"id":"dlv_1","lease":"mem_1.1","data":{"promise":{}}}'
LEAF = json.dumps(
    {
        "action": "claim.stored",
        "commitment": f"1s:{hashlib.sha256(SALT + ANSWER).hexdigest()}",
        "owner": "o1",
        "seq": 3,
        "digest": DIGEST,
    }
).encode()


def answer_with(**changed: object) -> bytes:
    """The answer as it goes out, with a promise."""
    commit = Commit([("o0", 9, DIGEST), ("o1", 3, DIGEST), ("o2", 7, DIGEST)])
    promise = commit.promise(1, "gate.example/log", LOG.sign_note).model_dump() | changed
    return ANSWER[:-1] + b',"promise":' + json.dumps(promise).encode() + b"}"


class Kept:
    """A log of these entries as somebody keeps it in a folder: tiles, and by size a checkpoint that was cosigned."""

    def __init__(self, folder: Path, *sizes: int, entry: bytes = b"entry %d") -> None:
        folder.mkdir(exist_ok=True)
        self.folder, edge, tiles = folder, Edge(), dict[tuple[int, int], bytes]()
        for size in sizes:
            hashes = [leaf_hash(LEAF if i == 3 else entry % i) for i in range(edge.size, size)]
            edge, changed = grow(edge, hashes)
            tiles |= changed
            for (level, number), tile in changed.items():
                path = folder / tile_path(level, number, len(tile) // HASH_BYTES)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(tile)
            text = str(Checkpoint("gate.example/log", size, edge.root))
            at = WITNESS.sign_note(text, at=1_763_870_400)
            (folder / f"at-{size}").write_text(LOG.sign_checkpoint(size, edge.root) + at)
        get = hashes_of_tiles(lambda level, number, width: tiles[level, number], edge.size)
        self.proof = str(
            Proof(3, tuple(inclusion_proof(get, 3, edge.size)), (folder / f"at-{edge.size}").read_bytes())
        )

    def receipt(self, **changed: object) -> str:
        """The path of one, for entry number 3."""
        told = {"leaf": base64.b64encode(LEAF).decode(), "salt": SALT.hex(), "proof": self.proof, **changed}
        return self.put(f"receipt-{sorted(changed)}.json", json.dumps(told).encode())

    def put(self, name: str, data: bytes) -> str:
        (self.folder / name).write_bytes(data)
        return str(self.folder / name)


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Kept:
    return Kept(tmp_path_factory.mktemp("kept"), 5, 300, 700)


def test_it_is_a_command_of_its_own() -> None:
    scripts = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text())["project"]["scripts"]
    assert (
        EntryPoint("vouchgate-verify", scripts["vouchgate-verify"], "console_scripts").load() is verifier.run
    )


def test_the_file_works_alone(kept: Kept, tmp_path: Path) -> None:
    """Copied to a machine without vouchgate: `-I` keeps the current folder and the environment out."""
    alone = tmp_path / "verifier.py"
    alone.write_bytes(Path(verifier.__file__).read_bytes())
    blocked = "import sys; sys.modules['vouchgate'] = None; sys.argv = sys.argv[1:]; import runpy; "
    run = [
        sys.executable,
        "-I",
        "-c",
        blocked + "runpy.run_path(sys.argv[0], run_name='__main__')",
        str(alone),
    ]
    answer = kept.put("answer.json", ANSWER)
    told = subprocess.run(
        [*run, kept.receipt(), *KEY, "--answer", answer], check=False, capture_output=True, text=True
    )
    assert (told.returncode, told.stderr) == (0, "")
    assert "It holds: the entry is number 3 (from 0) of the 700 in the log gate.example/log." in told.stdout
    assert "claim.stored" in told.stdout and "You named no witnesses" in told.stdout
    assert told.stdout.endswith("The answer is the one that was logged.\n")


def test_a_receipt(kept: Kept, capsys: pytest.CaptureFixture[str]) -> None:
    proof, leaf = kept.put("r.tlog-proof", kept.proof.encode()), kept.put("leaf", LEAF)
    answer = kept.put("answer.json", ANSWER + b"\n")
    keys = kept.put("keys", f"# the log\n{LOG.key}\n".encode())
    shown = kept.put("shown", f"ended   {LOG.key}\nin use  {LOG.key}\n".encode())
    for arguments in (
        [kept.receipt(), *KEY, "--answer", answer],
        [kept.receipt(), "--key", keys, *OF_WITNESS],
        [kept.receipt(), "--key", shown],
        [kept.receipt(salt=None), *KEY, *OF_WITNESS, "--need", "1"],
        [proof, "--leaf", leaf, *KEY],
        [kept.receipt(), *KEY, "--answer", kept.put("promised", answer_with())],
        [
            kept.receipt(),
            *KEY,
            "--answer",
            kept.put("handed", ANSWER[:-1] + HANDED + answer_with()[len(ANSWER) - 1 :]),
        ],
        [kept.receipt(), *KEY, "--answer", kept.put("again", ANSWER[:-1] + HANDED + b"}")],
        [kept.put("promised", answer_with()), *KEY],  # before there is a receipt
    ):
        assert main(arguments) == 0, capsys.readouterr()
    assert "auditor.example/witness at 2025-11-23 04:00:00 UTC" in capsys.readouterr().out
    other = base64.b64encode(LEAF.replace(b"stored", b"queued")).decode()
    deep = kept.put("deep", b"[" * 200_000)
    receipt, wrong_key = kept.receipt(), str(signing_key("gate.example/log", b"X" * 32).key)
    theirs = Commit([("o1", 4, DIGEST)]).promise(0, "gate.example/log", LOG.sign_note)
    another = answer_with(**theirs.model_dump())
    for status, said, arguments in (
        (1, "another root", [kept.receipt(leaf=other), *KEY]),
        (1, "not signed by a key", [receipt, "--key", wrong_key]),
        (1, "1 of your witnesses", [receipt, *KEY, *OF_WITNESS, "--need", "2"]),
        (1, "not the one that was logged", [receipt, *KEY, "--answer", kept.put("b", ANSWER.replace(b"d1", b"d2"))]),
        (1, "it broke its promise", [receipt, *KEY, "--answer", kept.put("other", another)]),
        (1, "another root", [receipt, *KEY, "--answer", kept.put("c", answer_with(seq=4))]),
        (1, "another root", [kept.put("d", answer_with(digest="cd" * 32)), *KEY]),
        (1, "not signed by a key", [kept.put("promised", answer_with()), "--key", wrong_key]),
        (2, "A promise has", [kept.put("e", answer_with(index=float("inf"))), *KEY]),
        (2, "A promise has", [kept.put("f", b'{"promise":[]}'), *KEY]),
        (2, "has no salt", [kept.receipt(salt=None), *KEY, "--answer", answer]),
        (2, "other way round", [receipt, "--key", str(WITNESS.key)]),
        (2, "mistyped", [receipt, "--key", str(LOG.key)[:-1] + "A"]),
        (2, "No such file", [receipt, "--key", "nowhere"]),
        (2, "not JSON", [deep, *KEY]),
        (2, "leaf, salt and proof", [kept.put("list", b"[]"), *KEY]),
        (2, "--leaf", [proof, *KEY]),
        (2, "has more than", [kept.put("huge", b" " * 300_000), *KEY]),
        (2, "begins with the line", [kept.receipt(proof=""), *KEY]),
    ):  # fmt: skip
        assert (main(arguments), said in (told := capsys.readouterr().err)) == (status, True), told


def test_a_fork_a_rollback_and_a_split_view_are_seen_by_who_kept_one_checkpoint(
    kept: Kept, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old, five = str(kept.folder / "at-300"), str(kept.folder / "at-5")
    rewritten = Kept(tmp_path / "rewritten", 5, 700, entry=b"other %d").folder
    split = Kept(tmp_path / "split", 300, entry=b"theirs %d").folder
    table = [
        (
            0,
            "kept its first 300 entries as they were, and has 700 now",
            old,
            kept.folder / "at-700",
            kept.folder,
        ),
        (0, "kept its first 300 entries as they were, and has 300 now", old, old, kept.folder),
        (0, "kept its first 5 entries", five, old, kept.folder),
        (1, "rewritten: its first 300 entries", old, rewritten / "at-700", rewritten),
        (1, "rolled back from 300 entries to 5", old, kept.folder / "at-5", kept.folder),
        (1, "a split view", old, split / "at-300", split),
        (1, "damaged, or not those of", old, rewritten / "at-700", kept.folder),
        (2, "is not in", old, kept.folder / "at-700", tmp_path),
    ]
    for status, said, before, after, folder in table:
        assert (
            main(["checkpoint", str(before), str(after), "--proof", str(folder), *KEY, *OF_WITNESS]) == status
        ), said
        out, err = capsys.readouterr()
        assert said in (err if status else out), (said, out, err)
    # Tiles that agree with each root by itself, but not with each other: what is above the leaves is of another log.
    tile = rewritten / "tile" / "0" / "000"
    tile.write_bytes((kept.folder / "tile" / "0" / "000").read_bytes())
    assert main(["checkpoint", five, str(rewritten / "at-700"), "--proof", str(rewritten), *KEY]) == 1
    assert "changed, removed or reordered" in capsys.readouterr().err
    for arguments in ([], ["checkpoint", old], [old]):
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        assert ended.value.code == 2
    assert "usage: vouchgate-verify" in capsys.readouterr().err
