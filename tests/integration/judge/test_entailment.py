"""The entailment model: real files that load or stop the start, and what its answers do to a claim."""

from __future__ import annotations

import asyncio
import hashlib
import math
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import onnx
import pytest

from tests.entailing import write_model, write_toml
from tests.hostile import TLS
from tests.integration.judge.test_judge import CLAIM, HERE, PATH, TEXT, YES, adr, completion
from tests.integration.judge.test_judge_weigh import DETECTOR, inspected_of, opened
from tests.integration.judge.test_judge_weigh import NOW as AT
from tests.repos import TestRepository
from tests.unit.claims.test_statements_check import RELAY
from tests.web import web_server
from vouchgate.cli import doctor
from vouchgate.embedding.entailment import CrossEncoder
from vouchgate.gate.judge import EntailmentModel, JudgeError, open_entailment, weigh
from vouchgate.ingest.claims.claim import Finding
from vouchgate.ingest.claims.decision import Label, Tier, ValidationResult
from vouchgate.ingest.claims.likeness import Neighbours
from vouchgate.ingest.claims.people import Role
from vouchgate.ingest.claims.source import Found, Stance
from vouchgate.ingest.data.policy_file import load_policy
from vouchgate.ingest.net.client import Outbound
from vouchgate.ingest.net.turns import on_behalf_of
from vouchgate.ingest.pipeline import Examined, examine, remake, replay
from vouchgate.ingest.policy import Policy
from vouchgate.review.trust.backtest import missing_for
from vouchgate.service import open_service
from vouchgate.settings import load_settings
from vouchgate.storage.claims.submit import Decided
from vouchgate.storage.identity import tokens
from vouchgate.storage.store import Store
from vouchgate.wire import ClaimIn

pytestmark = pytest.mark.on("sqlite")

POLICY = load_policy()
# The relay speaks of it, and is not shown to say it.
SPOKEN = "Per ADR-0007 the relay lets go of mail after 30 days."
FAINT = "Per ADR-0007 mail older than 30 days leaves the relay for the archive."


def policy_with(**changed: Any) -> Policy:
    entailment = {"enabled": True} | {key: changed.pop(key) for key in ("lifts_from",) if key in changed}
    return Policy.model_validate(POLICY.model_dump() | {"entailment": entailment} | changed)


ON = policy_with()


def said(
    model: EntailmentModel | None,
    content: str = CLAIM,
    text: str = TEXT,
    policy: Policy = ON,
    *,
    seconds: float = 30.0,
    title: str = "Sessions",
) -> Examined:
    """What becomes of a claim that cites ADR-0007."""

    async def run() -> Examined:
        inspected = inspected_of(content)
        before = examine(inspected, [adr(text, title)], policy, AT)
        with on_behalf_of("ada"):
            after = await weigh(None, inspected, before, seconds=seconds, model=model)
        assert after == examine(inspected, after.readings, policy, AT)  # a replay sees the same
        return after

    return asyncio.run(run())


def finding(examined: Examined) -> Finding | None:
    return examined.findings.one("entailment")


def decided(examined: Examined) -> tuple[str, Tier]:
    decision = examined.knowing(dedup=Neighbours()).decide()
    return decision.rule, decision.tier


def load(folder: Path, words: Mapping[str, str] | None = None, **changed: Any) -> CrossEncoder:
    return CrossEncoder(write_model(folder, words, **changed))


@pytest.fixture(scope="module")
def agrees(tmp_path_factory: pytest.TempPathFactory) -> CrossEncoder:
    """Entails whatever is not denied; `odd` is a word that it breaks down on."""
    return load(tmp_path_factory.mktemp("agrees"))


def test_what_it_entails_stays_as_the_rules_had_it(agrees: CrossEncoder) -> None:
    after = said(agrees)
    found, supports = after.readings[0], finding(after)
    assert isinstance(found, Found) and supports is not None
    assert (supports.code, decided(after)) == ("entailed", ("stated", Tier.STORED))
    assert after.knowing(dedup=Neighbours()).decide().reason == "Stated by its source"
    assert [(one.relation, one.stance) for one in found.held or ()] == [("entailment", Stance.STATES)]
    assert found.inference is not None
    assert found.inference.model == "words@1"
    assert set(found.inference.digests) == {"config", "model", "tokenizer"}
    assert all(len(digest) == 64 for digest in found.inference.digests.values())


@pytest.mark.parametrize(
    ("label", "message"), [("contradiction", "says otherwise than"), ("neutral", "does not say")]
)
def test_what_it_does_not_entail_goes_to_a_human(tmp_path: Path, label: str, message: str) -> None:
    after = said(load(tmp_path, {"session": label}))
    doubt = finding(after)
    assert doubt is not None
    assert (doubt.code, decided(after)) == ("not_entailed", ("refuted", Tier.QUEUED))
    assert doubt.message == (
        f"To the entailment model ADR-0007 {message} “the gateway keeps a session for 30 minutes”."
    )
    (found,) = after.readings
    assert isinstance(found, Found) and found.held is not None
    assert found.held[0].relation == label
    assert found.held[0].probability == pytest.approx(0.982, abs=0.001)


def test_no_answer_that_counts_lets_nothing_pass(
    agrees: CrossEncoder, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    short = load(tmp_path, max_length=64)
    odd = "Per ADR-0007 the gateway keeps an odd session for 30 minutes"
    cases: list[tuple[EntailmentModel | None, dict[str, Any], str]] = [
        (None, {}, "offline"),  # a command without the service
        (agrees, {"seconds": 0.0}, "timeout"),
        (agrees, {"content": odd, "text": "The gateway keeps an odd session for 30 minutes."}, "error"),
        (short, {"title": "long " * 64}, "unread"),
        (short, {"title": "long" * 300}, "unread"),  # not even made into tokens
    ]
    for model, given, code in cases:
        after = said(model, **given)
        unknown, (found,) = finding(after), after.readings
        assert isinstance(found, Found) and found.inference is not None and unknown is not None
        assert (found.inference.code, unknown.code) == (code, "entailment_unknown"), given
        assert unknown.message == found.inference.detail
        assert decided(after) == ("citation_unknown", Tier.QUEUED)
        assert not any(one.relation for one in found.held or ())
    assert "could not be asked" in caplog.text
    assert "nan" in caplog.text


def test_what_was_not_kept_cannot_be_read(agrees: CrossEncoder) -> None:
    inspected = inspected_of()
    (reading,) = examine(inspected, [adr()], ON, AT).readings
    assert isinstance(reading, Found)
    before = examine(inspected, [reading.model_copy(update={"packed": ()})], ON, AT)
    after = asyncio.run(weigh(None, inspected, before, seconds=30, model=agrees))
    assert isinstance(after.readings[0], Found) and after.readings[0].inference is not None
    assert after.readings[0].inference.code == "unread"


def test_only_the_policy_lets_it_lift_and_only_to_an_inference(agrees: CrossEncoder, tmp_path: Path) -> None:
    against = load(tmp_path, {"archive": "neutral", "lets": "neutral"})
    queues = {"spoken_of": "queue"}
    cases: list[tuple[CrossEncoder, dict[str, Any], str, Tier]] = [
        (agrees, queues, "ungrounded", Tier.QUEUED),
        (agrees, queues | {"lifts_from": 0.97}, "ungrounded", Tier.QUEUED),  # it is less sure
        (agrees, queues | {"lifts_from": 0.9}, "stated", Tier.STORED),
        (agrees, queues | {"lifts_from": 0.9, "auto_approve_ai_synthesis": False}, "ungrounded", Tier.QUEUED),
        (against, queues | {"lifts_from": 0.9}, "refuted", Tier.QUEUED),
        (agrees, {"spoken_of": "store"}, "spoken_of", Tier.STORED),
        (against, {"spoken_of": "store"}, "refuted", Tier.QUEUED),
        (agrees, {"spoken_of": "store", "lifts_from": 0.9}, "stated", Tier.STORED),
    ]
    for model, changed, rule, tier in cases:
        after = said(model, SPOKEN, RELAY, policy=policy_with(**changed))
        decision = after.knowing(dedup=Neighbours()).decide()
        assert (decision.rule, decision.tier) == (rule, tier), changed
        assert decision.label is Label.INFERENCE
        if rule == "stated":
            assert decision.reason == "Stated by its source, as the entailment model reads it"
    faintly: list[tuple[CrossEncoder | None, dict[str, Any], str]] = [
        (agrees, queues, "uncovered"),
        (agrees, {"spoken_of": "store"}, "uncovered"),
        (agrees, {"spoken_of": "store", "lifts_from": 0.97}, "uncovered"),
        (agrees, queues | {"lifts_from": 0.9}, "stated"),
        (against, queues | {"lifts_from": 0.9}, "refuted"),
        (None, {"spoken_of": "store", "lifts_from": 0.9}, "citation_unknown"),
    ]
    for asks, changed, rule in faintly:
        after = said(asks, FAINT, RELAY, policy=policy_with(**changed))
        assert decided(after)[0] == rule, changed
    asked = said(agrees, SPOKEN, RELAY, policy=policy_with(**queues))
    assert finding(asked) is None  # it would wait whatever the model said


def test_what_it_may_not_lift(agrees: CrossEncoder) -> None:
    """It never makes up for what no source has, for what a source contradicts, or for a hedge."""
    lifts = policy_with(spoken_of="store", lifts_from=0.5)
    for content, rule in (
        (CLAIM.replace("30", "40"), "refuted"),
        (f"{CLAIM}. Eve is the admin of all gateways.", "uncovered"),
        (f"I think {CLAIM}", "speculation"),
        (f"{CLAIM}, roughly", "technical_hedge"),
    ):
        after = said(agrees, content, policy=lifts)
        assert (decided(after)[0], finding(after)) == (rule, None), content


def test_of_several_sources_each_answers_for_what_it_alone_states(tmp_path: Path) -> None:
    both = "The gateway keeps a session for 30 minutes (ADR-0007). A lease lasts two hours (ADR-0008)."
    inspected = inspected_of(both)
    sources = [adr(), adr("A lease lasts two hours.", "Leases", "ADR-0008")]
    for word, doubted in (("lease", "ADR-0008"), ("session", "ADR-0007")):
        model = load(tmp_path / word, {word: "neutral"})
        before = examine(inspected, sources, ON, AT)
        after = asyncio.run(weigh(None, inspected, before, seconds=30, model=model))
        codes = {each.citation.value: each.code for each in after.findings.of("entailment") if each.citation}
        assert codes == {"ADR-0007": "entailed", "ADR-0008": "entailed"} | {doubted: "not_entailed"}
        found = [each for each in after.readings if isinstance(each, Found)]
        assert [sum(one.relation is not None for one in each.held or ()) for each in found] == [1, 1]


def test_beside_the_judge_either_can_only_lower(store: Store, agrees: CrossEncoder, tmp_path: Path) -> None:
    policy = policy_with(judge=POLICY.judge.model_dump() | {"enabled": True})
    denies = load(tmp_path, {"session": "contradiction"})

    async def run(url: str, model: CrossEncoder) -> Examined:
        inspected = inspected_of()
        before = examine(inspected, [adr()], policy, AT)

        async def none(examined: Examined) -> Neighbours:
            return Neighbours()

        judge = opened(policy, Outbound(allow_networks=(HERE,), spacing_seconds=0, tls=TLS), store, url)
        return await weigh(judge, inspected, before, seconds=30, neighbours=none, model=model)

    with web_server({PATH: completion(YES)}) as site:
        for model, answer, expected, asked in (
            (agrees, YES, ("stated", Tier.STORED), 1),
            (agrees, YES | {"contains": "no"}, ("refuted", Tier.QUEUED), 1),
            (denies, YES, ("refuted", Tier.QUEUED), 0),  # there is enough against it
        ):
            site.routes[PATH] = completion(answer)
            site.asked.clear()
            after = asyncio.run(run(site.url, model))
            assert (decided(after), len(site.asked)) == (expected, asked)
            again = after.knowing(dedup=Neighbours())
            kept = again.answer(
                again.decide(), decision_id="dec_1", memory_id=None, queue_id=None, took_ms=1.0
            )
            assert replay(kept, policy, DETECTOR) == ()


def test_it_has_threads_of_its_own_and_owners_take_turns(tmp_path: Path) -> None:
    go, running, most = threading.Event(), 0, 0

    class Counted(CrossEncoder):
        def infer(self, premise: str, hypothesis: str) -> Any:
            nonlocal running, most
            if threading.current_thread() is not threading.main_thread():
                running, most = running + 1, max(most, running + 1)
                assert go.wait(30)
                running -= 1
            return super().infer(premise, hypothesis)

    model = Counted(write_model(tmp_path))

    async def run() -> None:
        inspected = inspected_of()
        before = examine(inspected, [adr()], ON, AT)
        waiting = []
        for owner in ("ada", "ada", "bob", "cy"):
            with on_behalf_of(owner):
                waiting.append(asyncio.create_task(weigh(None, inspected, before, seconds=30, model=model)))
        async with asyncio.timeout(30):
            while running < 2:
                await asyncio.sleep(0.001)
        await asyncio.sleep(0.02)
        assert model._turns.names == {"ada", "bob", "cy"}
        go.set()  # the loop was free to say so
        assert {finding(each).code for each in await asyncio.gather(*waiting)} == {"entailed"}  # type: ignore[union-attr]

    asyncio.run(run())
    assert most == 2
    options = model._session.get_session_options()
    assert (options.intra_op_num_threads, options.inter_op_num_threads) == (1, 1)
    assert (options.enable_cpu_mem_arena, options.enable_mem_pattern) == (False, False)
    model.close()


def test_what_does_not_fit_stops_the_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each with a sentence that says what is wrong."""
    elsewhere = write_model(tmp_path / "elsewhere")
    model = onnx.load(str(tmp_path / "elsewhere/model.onnx"))
    onnx.save_model(
        model,
        str(tmp_path / "elsewhere/model.onnx"),
        save_as_external_data=True,
        location="weights.bin",
        size_threshold=100,
    )
    monkeypatch.chdir(tmp_path / "elsewhere")  # and yet weights in another file are not read
    (tmp_path / "garbled").mkdir()
    (garbled := write_toml(tmp_path / "garbled")).write_text("name = ")
    no_model = write_model(tmp_path / "a", model="other.onnx")
    (tmp_path / "b").mkdir()
    no_onnx = write_model(tmp_path / "b")
    (tmp_path / "b/model.onnx").write_bytes(b"not a model")
    no_tokens = write_model(tmp_path / "c")
    (tmp_path / "c/tokenizer.json").write_text("{}")
    cases = [
        (tmp_path / "none.toml", "No such file"),
        (garbled, "Invalid value"),
        (no_model, "No such file.*other.onnx"),
        (no_onnx, "INVALID_PROTOBUF|Failed to load model"),
        (no_tokens, "Cannot instantiate Tokenizer"),
        (elsewhere, "weights.bin"),
        (write_model(tmp_path / "d", wight="1"), "wight"),
        (write_model(tmp_path / "e", max_length=5000), "max_length"),
        (write_model(tmp_path / "f", version=None), "version"),
        (write_model(tmp_path / "g", sha256={"model": "0" * 64}), "sha256 of its model is .{64}, not 000"),
        (write_model(tmp_path / "h", labels=("entailment", "neutral", "maybe")), "labels"),
        (write_model(tmp_path / "i", labels=("entailment", "neutral")), "labels"),
        (write_model(tmp_path / "j", labels=("entailment", "neutral", "neutral")), "each once"),
        (write_model(tmp_path / "k", labels=("entailment", "neutral", "contradiction")), "in another order"),
        (write_model(tmp_path / "l", width=2), "made .*, and not three numbers"),
        (write_model(tmp_path / "m", inputs=("input_ids", "attention_mask", "pixels")), "asks for pixels, "),
        (write_model(tmp_path / "n", rows=6), "has not all words of its tokenizer: .*out of (data )?bounds"),
        (write_model(tmp_path / "o", pairs=False), "does not tell two texts apart"),
    ]
    for path, why in cases:
        with pytest.raises(JudgeError, match=f"the entailment model {path}.*cannot be used: (?s:.*)({why})"):
            open_entailment(ON, path)
    assert open_entailment(POLICY, tmp_path / "none.toml") is None


def test_other_inputs_and_digests_that_are_right(tmp_path: Path) -> None:
    """A model without types of tokens reads both texts alike."""
    loaded = load(tmp_path, inputs=("input_ids", "attention_mask"))
    write_toml(tmp_path, sha256={name: loaded.digests[name].upper() for name in ("model", "tokenizer")})
    again = CrossEncoder(tmp_path / "entailment.toml")
    assert again.digests["config"] != loaded.digests["config"]
    assert all(again.digests[name] == loaded.digests[name] for name in ("model", "tokenizer"))
    relation, probability = again.infer("It is open.", "It is not.") or ("", 0.0)
    assert relation == "contradiction"
    assert math.isclose(probability, math.exp(8) / (math.exp(8) + math.exp(4) + 1), abs_tol=1e-5)


RECORD = f"# 7. Sessions\n\n## Status\n\nAccepted\n\n## Decision\n\n{TEXT}\n"


def test_a_service_asks_it_and_its_word_is_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Through the whole service: a claim stored, one doubted, both made again without the model; and `doctor`."""
    TestRepository(tmp_path / "repo").commit("Decide", {"docs/adr/0007-sessions.md": RECORD})
    file = write_model(tmp_path / "model", {"afterwards": "neutral"})
    (policy := tmp_path / "policy.toml").write_text("entailment.enabled = true\n")
    settings = load_settings(
        {},
        database_url=f"sqlite:///{tmp_path}/gate.db",
        repo=(tmp_path / "repo",),
        policy=policy,
        entailment_model=file,
        offline=True,
        url="http://127.0.0.1:1",  # where no service is
    )
    with open_service(settings) as service:
        agent, _ = tokens.create(service.store, role=Role.AGENT, name="a", actor="t", now=AT, owners=("ada",))

        async def send(content: str) -> ValidationResult:
            done = await service.gate.submit(agent, ClaimIn(content=content, user_id="ada"))
            assert isinstance(done, Decided)
            return ValidationResult.model_validate_json(done.json)

        stored = asyncio.run(send(CLAIM))
        doubted = asyncio.run(send("Per ADR-0007 the gateway afterwards asks for a new sign-in"))
    assert [(one.rule, one.tier) for one in (stored, doubted)] == [
        ("stated", Tier.STORED),
        ("refuted", Tier.QUEUED),
    ]
    assert doubted.reason.startswith("To the entailment model ADR-0007 does not say")
    for one in (stored, doubted):
        assert replay(one, load_policy(policy), DETECTOR) == ()
        (source,) = one.evidence.sources
        assert isinstance(source, Found) and source.inference is not None
        assert source.inference.model == "words@1"
        assert source.inference.digests["config"] == hashlib.sha256(file.read_bytes()).hexdigest()
    again = remake(stored, POLICY, DETECTOR).decide()  # a backtest does not guess what it would have said
    assert "a model is asked" in (missing_for(stored, again, load_policy(policy), POLICY) or "")
    assert doctor.run(settings) == 0
    assert f"{file}: the entailment model can be loaded, and answers." in capsys.readouterr().out
    file.unlink()
    broken = settings.model_copy(update={"database_url": f"sqlite:///{tmp_path}/other.db"})
    with pytest.raises(JudgeError, match="No such file"), open_service(broken):
        raise AssertionError("it started")
    assert not (tmp_path / "other.db").exists()
    with pytest.raises(JudgeError, match="No such file"):
        doctor.run(settings)


def test_the_digest_of_a_policy_without_it_is_what_it_was() -> None:
    assert '"entailment"' not in POLICY.document
    assert '"entailment":{"enabled":true,"lifts_from":0.0}' in ON.document
