"""`vouchgate check`: what would become of each claim if they were sent one after another. Writes nothing."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Callable
from contextlib import ExitStack
from fractions import Fraction

from pydantic import ValidationError

from vouchgate.cli.database import open_store
from vouchgate.cli.input import open_lines
from vouchgate.cli.output import FAILED, write_json, write_line
from vouchgate.gate.examiner import Examiner
from vouchgate.gate.incoming import ClaimRefused
from vouchgate.gate.preview import DecidedClaims, resulting_item_kind
from vouchgate.harvest.documents import open_harvest
from vouchgate.importing.lines import BadLine, Line, read_lines
from vouchgate.ingest.claims.claim import Source
from vouchgate.ingest.claims.decision import Decision
from vouchgate.ingest.claims.likeness import DedupFacts, Neighbour, Neighbours
from vouchgate.ingest.claims.people import Principal, Role
from vouchgate.ingest.data.policy_file import load_policy
from vouchgate.ingest.dedup.compare import Comparisons, LookedUp
from vouchgate.ingest.dedup.signature import SignatureKeys, signature_keys
from vouchgate.ingest.language.validation import plain_messages
from vouchgate.ingest.language.words import tokens
from vouchgate.ingest.pipeline import Examined
from vouchgate.ingest.support.prepared import PreparedTexts
from vouchgate.settings import Settings
from vouchgate.sources.repositories import open_repositories
from vouchgate.sources.setup import open_sources
from vouchgate.storage.claims.echoes import Echoes, name_for
from vouchgate.storage.dedup import contradicting, index
from vouchgate.storage.store import Store
from vouchgate.wire import ClaimIn

OWNER = "me"  # whose claim it is when the line does not say
LOCAL = Principal(id="local", name="command line", role=Role.AGENT, any_owner=True, sources=frozenset(Source))

NeighbourLookup = Callable[[Examined, SignatureKeys], DedupFacts]


def run(given: str, settings: Settings, *, compare_with_database: bool) -> int:
    """Answers every line in order; 1 when any line was bad. What stops the command is raised, as a sentence."""
    logging.basicConfig(level=logging.ERROR)  # that a source could not be read is in the answer already
    policy = load_policy(settings.policy)
    git = open_repositories(settings)
    status = 0
    with ExitStack() as opened:
        stored: NeighbourLookup = _nothing_stored
        if compare_with_database:
            stored = _facts_of(opened.enter_context(open_store(settings)))
        sources = opened.enter_context(open_sources(settings, policy, git))
        harvest = opened.enter_context(open_harvest(policy, sources.corpora, git))
        examiner = Examiner(policy, sources, harvest=harvest)
        opened.callback(examiner.close)
        runner = opened.enter_context(asyncio.Runner())
        opened.callback(lambda: runner.run(sources.stop_reading()))
        loop = runner.get_loop()
        checker = Checker(examiner, loop, stored)
        stream = opened.enter_context(open_lines(given))
        for line in read_lines(stream):
            answer = checker.answer(line)
            if isinstance(answer, BadLine):
                status = FAILED
                write_json(answer.as_json())
            else:
                write_line(answer)
    return status


class Checker:
    """Decides lines in order and remembers what a gate would have kept of them."""

    def __init__(self, examiner: Examiner, loop: asyncio.AbstractEventLoop, stored: NeighbourLookup) -> None:
        self._examiner = examiner
        self._loop = loop
        self._stored = stored
        self._earlier = DecidedClaims()
        self._echoes = Echoes(None)
        self._texts = PreparedTexts()

    def answer(self, line: Line | BadLine) -> str | BadLine:
        """The answer as JSON, or why there is none."""
        if isinstance(line, BadLine):
            return line
        started = time.perf_counter()
        fields = {name: value for name, value in line.fields.items() if name != "id"}
        try:
            # As JSON text, so that exactly what HTTP would refuse is refused here.
            sent = ClaimIn.model_validate_json(json.dumps(fields))
            if sent.user_id is None:
                sent = sent.model_copy(update={"user_id": OWNER})
            examined = self._loop.run_until_complete(
                self._examiner.examine(self._examiner.build_claim(LOCAL, sent), texts=self._texts)
            )
        except ValidationError as error:
            return BadLine(line.number, "invalid_request", _problems(error), line.fields)
        except ClaimRefused as error:
            return BadLine(line.number, error.code, str(error), line.fields)
        dedup, keys = self._dedup(examined)
        counted, source = name_for(examined, keys.words, dedup), examined.claim.asserted_source
        echo = self._echoes.facts(counted, LOCAL.id, source)
        self._echoes.count(counted, LOCAL.id, source, examined.capture_time)
        examined = examined.knowing(dedup=dedup, echo=echo)
        decision = examined.decide()
        self._keep(f"line-{line.number}", examined, decision, keys)
        took_ms = (time.perf_counter() - started) * 1000
        result = examined.answer(
            decision, decision_id=None, memory_id=None, queue_id=None, took_ms=took_ms
        ).model_dump_json()
        if "id" in line.fields:
            result = f'{{"id":{json.dumps(line.fields["id"])},{result[1:]}'
        return result

    def _dedup(self, examined: Examined) -> tuple[DedupFacts, SignatureKeys]:
        claim, threshold = examined.claim, self._examiner.policy.threshold
        keys = signature_keys(tokens(claim.content), claim.memory_type.value, threshold)
        facts = self._stored(examined, keys)
        if isinstance(facts, Neighbours):
            known = Comparisons(claim.content, threshold, examined.policy.values)
            below = LookedUp(self._below(known, facts, threshold), complete=True)
            near = self._earlier.near(claim.owner_id, keys, examined.capture_time, facts)
            earlier = self._earlier.contradicting(claim, known, examined.capture_time)
            facts = contradicting.together(near, below, earlier)
        return facts, keys

    def _below(self, known: Comparisons, facts: Neighbours, threshold: Fraction) -> tuple[Neighbour, ...]:
        """Those of what is stored that contradict the claim below the threshold."""
        return tuple(item for item in facts.items if (known.near(item.content) or threshold) < threshold)

    def _keep(self, item_id: str, examined: Examined, decision: Decision, keys: SignatureKeys) -> None:
        """Lets the lines that follow find what would be stored or queued."""
        if (kind := resulting_item_kind(decision)) is not None:
            self._earlier.add(item_id, kind, examined.claim, keys)


def _nothing_stored(_examined: Examined, _keys: SignatureKeys) -> DedupFacts:
    return Neighbours()


def _facts_of(store: Store) -> NeighbourLookup:
    def facts(examined: Examined, keys: SignatureKeys) -> DedupFacts:
        claim, now = examined.claim, examined.capture_time
        known = Comparisons(claim.content, keys.threshold, examined.policy.values)
        with store.read() as connection:
            found = index.find_neighbours(connection, claim.owner_id, keys, now)
            kind = claim.memory_type.value
            looked_up = contradicting.look_up(connection, claim.owner_id, claim.content, kind, known, now=now)
            return contradicting.together(found, looked_up)

    return facts


def _problems(error: ValidationError) -> str:
    """Where and what, without the value: it may be huge."""
    return plain_messages(error.errors(include_url=False, include_input=False)[:5], ClaimIn, whole="claim")
