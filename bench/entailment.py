"""What the entailment model's word on a claim costs, and how much of that is the model: the gate's part as a ratio to
the time in the model, in one run, both of the processor.

Without `--model` it is a model of random weights of the size of a small one (6 layers of 768 numbers), made here.
"""

from __future__ import annotations

import asyncio
import statistics
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench.claims import claim_of
from tests.entailing import write_model
from vouchgate.embedding.entailment import CrossEncoder
from vouchgate.gate.judge import weigh
from vouchgate.ingest.checks.hedge import HedgeDetector
from vouchgate.ingest.citations import given_citation
from vouchgate.ingest.claims.citation import CitationType
from vouchgate.ingest.claims.source import Found, Standing
from vouchgate.ingest.data.policy_file import load_policy
from vouchgate.ingest.pipeline import examine, inspect
from vouchgate.ingest.policy import Policy

CLAIMS = 60
LAYERS = 6  # of the model that is made
_SAYS = "The gateway {} keeps a session for {} minutes and asks for a new sign-in afterwards, whoever the user is."
_AROUND = "Each gateway stands in a zone of its own. Operators look after it by turns and write down what they did.\n"


def run(path: Path | None) -> None:
    """Prints one line."""
    with tempfile.TemporaryDirectory() as folder:
        model = CrossEncoder(path or write_model(Path(folder), layers=LAYERS))
        print(asyncio.run(_measured(model)))
        model.close()


async def _measured(model: CrossEncoder) -> str:
    policy = Policy.model_validate(load_policy().model_dump() | {"entailment": {"enabled": True}})
    detector, session, in_model = HedgeDetector(policy.lexicon), model._session, 0.0

    class Timed:
        def run(self, *given: Any) -> Any:
            nonlocal in_model
            started = time.thread_time()
            try:
                return session.run(*given)
            finally:
                in_model += time.thread_time() - started

    model._session = Timed()
    modelled, ours, ratios = [], [], []
    for number in range(CLAIMS):
        said = _SAYS.format(number, number + 20)
        text = _AROUND * 20 + said + "\n" + _AROUND * 20
        citation = given_citation(CitationType.ADR, "ADR-0007")
        source = Found(
            citation=citation,
            source_id="ADR-0007",
            standing=Standing.IN_FORCE,
            detail="There.",
            title="Sessions",
            text=text,
        )
        inspected = inspect(claim_of(f"Per ADR-0007: {said}"), detector)
        before = examine(inspected, [source.model_copy(update={"official": True})], policy, datetime.now(UTC))
        in_model, started = 0.0, time.process_time()
        after = await weigh(None, inspected, before, seconds=60, model=model)
        took = time.process_time() - started
        if not after.findings.of("entailment") or not in_model:
            raise RuntimeError("the model was not asked")
        modelled.append(in_model)
        ours.append(took - in_model)
        ratios.append(ours[-1] / in_model)
    model_ms = 1000 * statistics.median(modelled)
    return (
        f"{model.name}: {model_ms:.1f} ms of the processor in the model for a claim of one statement with one source, "
        f"{1000 * statistics.median(ours):.1f} ms in the gate; gate / model: {statistics.median(ratios):.3f} "
        f"(medians of {CLAIMS})"
    )
