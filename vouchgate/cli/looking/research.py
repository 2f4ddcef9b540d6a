"""`vouchgate research`: what sources state that answers a question."""

from __future__ import annotations

from pathlib import Path

from pydantic import ValidationError

from vouchgate.cli.looking.world import looking
from vouchgate.cli.output import UNKNOWN, USAGE, Failure, visible, write_line
from vouchgate.harvest.budget import Purse
from vouchgate.harvest.research import MODEL_SECONDS, Recording, answer, gather, render
from vouchgate.harvest.setup import open_model
from vouchgate.ingest.data.policy_file import load_policy
from vouchgate.ingest.policy import Policy
from vouchgate.settings import Settings, SettingsError


def run(question: str, settings: Settings, *, as_json: bool, record: Path | None, replay: Path | None) -> int:
    """0 when something was found, UNKNOWN when nothing was."""
    if not question.strip() or (record and replay):
        raise Failure("give a question, and one of --record and --replay at most", USAGE)
    policy = load_policy(settings.policy)
    recording = _read(replay, question) if replay else _gather(question, settings, policy)
    if record is not None:
        try:
            record.write_text(recording.model_dump_json(indent=1) + "\n", "utf-8")
        except OSError as error:
            raise Failure(f"{record}: cannot be written: {error.strerror}") from error
    research = answer(recording, policy)
    write_line(research.model_dump_json() if as_json else visible(render(research).removesuffix("\n")))
    return 0 if research.facts or research.inferences else UNKNOWN


def _gather(question: str, settings: Settings, policy: Policy) -> Recording:
    try:
        model = open_model(settings, policy, MODEL_SECONDS)
    except SettingsError as error:
        raise Failure(str(error), USAGE) from error
    purse = Purse(policy.corroboration.budget.claim, "question")
    with looking(settings, policy) as (world, runner):
        return runner.run(gather(question, world, purse, policy, model))


def _read(file: Path, question: str) -> Recording:
    try:
        recording = Recording.model_validate_json(file.read_bytes())
    except OSError as error:
        raise Failure(f"{file}: cannot be read: {error.strerror}", USAGE) from error
    except ValidationError as error:
        raise Failure(f"{file} is no recording of this command", USAGE) from error
    if recording.question != question:
        raise Failure(f"{file} is a recording of another question: {recording.question}", USAGE)
    return recording
