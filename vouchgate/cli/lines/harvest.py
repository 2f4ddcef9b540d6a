"""`vouchgate corroborate --harvest`: what do the sources of each line say of its claim, and those that are found along
the configured paths?"""

from __future__ import annotations

from typing import Any

from vouchgate.cli.lines.answering import Answer, answer_lines
from vouchgate.cli.lines.corroborate import sent_in
from vouchgate.cli.looking.world import looking
from vouchgate.harvest.budget import Purse
from vouchgate.harvest.search import World, search
from vouchgate.harvest.setup import open_model
from vouchgate.harvest.wording import worded
from vouchgate.importing.lines import BadLine, Line
from vouchgate.ingest.corroboration.decision import conclude
from vouchgate.ingest.corroboration.given import GivenClaim, corroborated, names_of, readings_of, task_of
from vouchgate.ingest.corroboration.hits import MOST_HITS, hits_of
from vouchgate.ingest.data.policy_file import load_policy
from vouchgate.ingest.policy import Policy, SearchBudgets
from vouchgate.ingest.sources.model import ModelClient
from vouchgate.settings import Settings

OWNER = "me"  # whose claim it is when the line does not say
WORDING_SECONDS = 60.0


def run(path: str, settings: Settings) -> int:
    """Answers every line in order; 1 when any line was bad. What stops the command is raised, as a sentence."""
    policy = load_policy(settings.policy)
    model = open_model(settings, policy, WORDING_SECONDS) if settings.word_proofs else None
    purses = Purses(policy.corroboration.budget)
    with looking(settings, policy) as (world, runner):

        def answer(line: Line) -> Answer:
            sent, owner = sent_in(line), line.fields.get("user_id", OWNER)
            if isinstance(sent, BadLine):
                return sent
            if not isinstance(owner, str):
                return BadLine(line.number, "fields_invalid", "user_id must be a string", line.fields)
            fields = runner.run(answer_of(sent, world, purses.of(owner), policy, model))
            return {"id": line.fields.get("id"), **fields}

        return answer_lines(path, answer)


class Purses:
    """The budget of a run, of its owners, and of each claim."""

    def __init__(self, budget: SearchBudgets) -> None:
        self._budget = budget
        self._run = Purse(budget.run, "run")
        self._owners: dict[str, Purse] = {}

    def of(self, owner: str) -> Purse:
        """A new purse for one claim of this owner."""
        purse = self._owners.setdefault(owner, Purse(self._budget.owner, "owner", self._run))
        return Purse(self._budget.claim, "claim", purse)


async def answer_of(
    sent: GivenClaim, world: World, purse: Purse, policy: Policy, model: ModelClient | None
) -> dict[str, Any]:
    """What the sources that were brought and those that were found say together, as it is written out. What was
    brought ends no search: it could not be checked."""
    task, brought = task_of(sent), readings_of(sent)
    searched = await search(task, world, purse, policy, MOST_HITS - len(brought))
    readings = [*brought, *searched.readings]
    history = searched.history.model_copy(update={"hits": hits_of(sent.claim, readings, policy)})
    names = names_of(sent)
    for reading in searched.readings:
        name = reading.url or reading.title
        names.append(f"{name} (read)" if name in names else name)
    result = conclude(task, history, policy)
    if model is not None:
        result = await worded(result, model)
    answer = corroborated(task, history, names, result)
    return {
        **answer.model_dump(mode="json"),
        "wording": result.debug.get("proof"),
        "attempts": [one.model_dump() for one in history.attempts],
        "failures": [one.model_dump() for one in history.failures],
    }
