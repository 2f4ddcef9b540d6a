"""The log as outsiders read it: a receipt within two seconds, checkpoints and tiles that everybody may have."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.acceptance.site import Site, claim, is_problem, without_promises
from vouchgate.client import Client
from vouchgate.ingest.transparency.verifier import (
    check_promise,
    check_proof,
    hashes_of_tiles,
    main,
    open_checkpoint,
    parse_checkpoint,
    parse_note,
    range_hash,
    tile_path,
)
from vouchgate.storage.log import keys

pytestmark = pytest.mark.on("sqlite")

ROOT = Path(__file__).parents[3]


def test_a_promise_is_kept(site: Site, owner: str) -> None:
    agent = site.agent(owner)
    sent = agent.post("/v1/claims", json=claim("The west stairs are closed", metadata={"ticket": 7}))
    promise, decision_id = sent.json()["promise"], sent.json()["decision_id"]
    other = agent.post("/v1/claims/batch", json={"claims": [claim("The roof is grey")]}).json()["results"][0]
    with site.store.read() as connection:
        trust = [each.key for each in keys.known(connection)]
    for each in (promise, other["promise"]):
        check_promise(each, trust)
    assert (promise["owner"], promise["seq"]) == (other["promise"]["owner"], other["promise"]["seq"] - 1)

    end = time.monotonic() + 60
    while (answer := site.auditor(owner).get(f"/v1/receipts/{decision_id}")).status_code == 202:
        assert (answer.headers["retry-after"], answer.json()["proof"]) == ("1", None)
        assert time.monotonic() < end
        time.sleep(0.1)
    receipt = answer.json()
    leaf = base64.b64decode(receipt["leaf"])
    _, checkpoint, _ = check_proof(receipt["proof"].encode(), leaf, trust)
    said = json.loads(leaf)
    assert [said[name] for name in ("owner", "seq", "digest")] == [
        promise[n] for n in ("owner", "seq", "digest")
    ]
    assert (said["actor"]["role"], said["actor"]["person"], said["subject"]) == ("agent", None, decision_id)
    committed = bytes.fromhex(receipt["salt"]) + without_promises(sent.content)
    assert said["commitment"] == "1s:" + hashlib.sha256(committed).hexdigest()
    assert owner.encode() not in leaf
    # An agent is not shown all of the answer, so it gets nothing to try guesses with.
    assert agent.get(f"/v1/receipts/{decision_id}").json() == receipt | {"salt": None}
    token = agent.headers["Authorization"].removeprefix("Bearer ")
    with Client(site.running.url, token) as client:
        assert client.receipt(decision_id).proof is not None
    is_problem(site.agent(site.owner()).get(f"/v1/receipts/{decision_id}"), 404, "not_found")

    anybody = site.caller()
    served = anybody.get("/log/checkpoint")
    assert served.headers["content-type"] == "text/plain; charset=utf-8"
    head, _ = open_checkpoint(served.content, trust)

    def read(level: int, number: int, width: int) -> bytes:
        found = anybody.get(f"/log/{tile_path(level, number, width)}")
        assert (found.status_code, len(found.content)) == (200, 32 * width), found.text
        assert "immutable" in found.headers["cache-control"]
        return found.content

    assert range_hash(hashes_of_tiles(read, head.size), 0, head.size) == head.root
    assert head.size >= checkpoint.size
    for path in ("0/000", "0/x000/000", "00/000.p/1", "0/000.p/0", "0/000.p/256", "9/000.p/1", "entries/000", "0/x1",
                 f"0/000.p/{head.size + 50}", "0/" + "x999/" * 40 + "999"):  # fmt: skip
        if head.size < 200:
            is_problem(anybody.get(f"/log/tile/{path}"), 404, "not_found")


def test_what_auditors_are_told_fetches_the_hashes_of_a_checkpoint(
    site: Site, owner: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of the second of three, while the log has grown on."""
    agent, size = site.agent(owner), 0
    for name, count in (("old", 1), ("new", 60), ("newer", 1)):
        claims = [claim(f"Stair {number} of the {name} house is closed") for number in range(count)]
        assert agent.post("/v1/claims/batch", json={"claims": claims}).status_code == 200
        end, least = time.monotonic() + 60, size + count
        while size < least:
            assert time.monotonic() < end
            time.sleep(0.1)
            served = site.caller().get("/log/checkpoint").content
            size = parse_checkpoint(parse_note(served).text).size
        (tmp_path / name).write_bytes(served)
    (told,) = re.findall("```python\n(.*?)```", (ROOT / "docs" / "auditors.md").read_text(), re.DOTALL)
    (tmp_path / "fetch_tiles.py").write_text(told)
    shutil.copy(ROOT / "ingest" / "transparency" / "verifier.py", tmp_path / "vouchgate_verify.py")
    command = [sys.executable, "fetch_tiles.py", f"{site.running.url}/log", "new", "tiles"]
    subprocess.run(command, cwd=tmp_path, check=True)
    with site.store.read() as connection:
        trust = [str(each.key) for each in keys.known(connection)]
    paths = [str(tmp_path / name) for name in ("old", "new")]
    assert main(["checkpoint", *paths, "--key", trust[0], "--proof", str(tmp_path / "tiles")]) == 0
    assert "kept its first" in capsys.readouterr().out
