"""What is said of decisions and rulings to others, in formats that other tools read: in-toto Statements in DSSE
envelopes, and PROV-JSON. Pure; nothing here knows a clock.

Formats: github.com/in-toto/attestation (Statement v1), github.com/secure-systems-lab/dsse,
w3.org/submissions/prov-json.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Mapping
from typing import Any

from vouchgate.ingest.policy import canonical_json
from vouchgate.ingest.transparency.note import SigningKey
from vouchgate.ingest.transparency.verifier import DECISION_TYPE, PAYLOAD_TYPE, SAID, STATEMENT_TYPE, pae

Json = dict[str, Any]  # JSON

PREFIXES = {"vg": "urn:vouchgate:"}
_NO_NAME = re.compile(r"[^A-Za-z0-9_.-]")


def statement(predicate_type: str, digests: Iterable[tuple[str, str]], predicate: Mapping[str, Any]) -> str:
    """An in-toto Statement v1 about things with these names and sha256 digests (hex), as canonical JSON."""
    subject = [{"name": name, "digest": {"sha256": digest}} for name, digest in digests]
    said = {"_type": STATEMENT_TYPE, "subject": subject, "predicateType": predicate_type}
    return canonical_json({**said, "predicate": predicate})


def envelope(payload: str, keys: Iterable[SigningKey]) -> Json:
    """A DSSE envelope around a Statement, signed with each of these keys. A signature's `keyid` is a hint, no proof."""
    body = payload.encode()
    signatures = [
        {
            "keyid": f"{each.key.name}+{each.key.key_id.hex()}",
            "sig": base64.b64encode(each.sign(pae(body))).decode(),
        }
        for each in keys
    ]
    return {"payload": base64.b64encode(body).decode(), "payloadType": PAYLOAD_TYPE, "signatures": signatures}


def decision_statement(decision_id: str, digest: str, row: Mapping[str, Any], answer: Json) -> str:
    """What was decided about a claim: the subject is the answer as it was given, word for word, by its digest.
    `row` has whose it is, who sent it, when (ISO 8601), and the digest of the policy."""
    evidence = _mapping(answer.get("evidence"))
    claim = _mapping(evidence.get("claim"))
    told = {name: answer.get(name) for name in SAID}
    about = {"label": evidence.get("label"), "confidence": evidence.get("confidence")}
    sources = [
        {"uri": _cited(each), "digest": each.get("digest") or None, "kind": each.get("kind")}
        for each in _sources(evidence)
    ]
    said = {**row, **told, **about, "content": claim.get("content"), "sources": sources}
    return statement(DECISION_TYPE, [(decision_id, digest)], said)


def decision_provenance(decision_id: str, row: Mapping[str, Any], answer: Json) -> Json:
    """A PROV bundle: the agent's claim, the sources that were read, the decision, and the memory it became."""
    evidence = _mapping(answer.get("evidence"))
    claim, decision, deciding = f"vg:claim.{decision_id}", f"vg:{decision_id}", f"vg:deciding.{decision_id}"
    agent, policy = _name(row["principal"]), f"vg:policy.{row['policy']}"
    content = _mapping(evidence.get("claim")).get("content")
    entities: Json = {
        claim: {"prov:value": content or "", "vg:owner": row["owner"]},
        decision: {"vg:tier": str(answer.get("tier")), "vg:rule": str(answer.get("rule"))},
        policy: {"prov:type": "prov:Plan"},
    }
    used = {"_:u0": {"prov:activity": deciding, "prov:entity": claim}}
    for number, each in enumerate(_sources(evidence), 1):
        source = f"vg:source.{decision_id}.{number}"
        entities[source] = {"prov:value": _cited(each), "vg:sha256": str(each.get("digest") or "")}
        used[f"_:u{number}"] = {"prov:activity": deciding, "prov:entity": source}
    made = {"_:g0": {"prov:entity": decision, "prov:activity": deciding, "prov:time": row["at"]}}
    derived = {}
    if (memory := answer.get("memory_id")) is not None:
        entities[f"vg:{memory}"] = {"prov:type": "vg:memory"}
        derived = {"_:d0": {"prov:generatedEntity": f"vg:{memory}", "prov:usedEntity": claim}}
    return {
        "entity": entities,
        "activity": {deciding: {"prov:endTime": row["at"]}},
        "agent": {agent: {"prov:type": "prov:SoftwareAgent"}, "vg:gate": {"prov:type": "prov:SoftwareAgent"}},
        "used": used,
        "wasGeneratedBy": made,
        "wasAttributedTo": {"_:a0": {"prov:entity": claim, "prov:agent": agent}},
        "wasAssociatedWith": {
            "_:s0": {"prov:activity": deciding, "prov:agent": "vg:gate", "prov:plan": policy}
        },
        **({"wasDerivedFrom": derived} if derived else {}),
    }


def ruling_provenance(ruling: Json) -> Json:
    """The same of a person's ruling on what waited; `ruling` as `storage.queue.rulings.Ruling` in JSON."""
    item, who = f"vg:{ruling['item_id']}", _name(ruling["person"] or ruling["reviewer"])
    ruled = f"vg:ruling.{ruling['item_id']}.{ruling['seq']}"
    kind = "prov:Person" if ruling["person"] else "prov:Agent"
    memory = ruling["memory_id"]
    made = {"_:g0": {"prov:entity": f"vg:{memory}", "prov:activity": ruled, "prov:time": ruling["at"]}}
    return {
        "entity": {item: {"vg:owner": ruling["owner_id"]}} | ({f"vg:{memory}": {}} if memory else {}),
        "activity": {ruled: {"prov:endTime": ruling["at"], "prov:type": f"vg:{ruling['what']}"}},
        "agent": {
            who: {"prov:type": kind, "prov:label": ruling["person_name"] or ruling["reviewer_name"] or ""}
        },
        "used": {"_:u0": {"prov:activity": ruled, "prov:entity": item}},
        "wasAssociatedWith": {"_:s0": {"prov:activity": ruled, "prov:agent": who}},
        **({"wasGeneratedBy": made} if memory else {}),
    }


def _mapping(value: Any) -> Json:
    return value if isinstance(value, dict) else {}


def _sources(evidence: Json) -> list[Json]:
    found = evidence.get("sources")
    return [_mapping(each) for each in found] if isinstance(found, list) else []


def _cited(source: Json) -> str:
    return str(_mapping(source.get("citation")).get("value") or "")


def _name(principal: str) -> str:
    return "vg:agent." + _NO_NAME.sub("_", principal)
