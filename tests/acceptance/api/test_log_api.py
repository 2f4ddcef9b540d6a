"""The log as outsiders read it: a receipt within two seconds, checkpoints and tiles that everybody may have."""

from __future__ import annotations

import base64
import hashlib
import json
import time

import pytest

from tests.acceptance.site import Site, claim, is_problem, without_promises
from vouchgate.client import Client
from vouchgate.ingest.transparency.verifier import (
    check_promise,
    check_proof,
    hashes_of_tiles,
    open_checkpoint,
    range_hash,
    tile_path,
)
from vouchgate.storage.log import keys

pytestmark = pytest.mark.on("sqlite")


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
                 f"0/000.p/{head.size + 1}", "0/" + "x999/" * 40 + "999"):  # fmt: skip
        if head.size < 200:
            is_problem(anybody.get(f"/log/tile/{path}"), 404, "not_found")
