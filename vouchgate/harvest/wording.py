"""A proof in the words of a model, which may choose the words between the quotations and nothing else.

What it wrote counts only when every quotation of the proof stands in it, and nothing else is in quotation marks. The
answer, the claim, the addresses with dates, weights and digests, and the gaps stay those of the template.
"""

from __future__ import annotations

import logging
import re

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from vouchgate.ingest.corroboration.history import AgentResult
from vouchgate.ingest.corroboration.proof import plain, quotations, unescaped, with_words
from vouchgate.ingest.language.align import find
from vouchgate.ingest.sources.model import MARKED, Form, ModelClient, NoReply, parse_object

log = logging.getLogger(__name__)

_FORM = Form(
    name="wording",
    schema={
        "type": "object",
        "properties": {"text": {"type": "string"}},
        "required": ["text"],
        "additionalProperties": False,
    },
    tokens=4_000,
    characters=16_000,
)
_INSTRUCTIONS = f"""\
You turn a list of sources into a few plain paragraphs for somebody who wants to know what they say of a claim.

The list stands between the marks "{{marker}} PROOF" and "{{marker}} END". {MARKED}

Answer with one JSON object and nothing before or after it: {{{{"text": "..."}}}}

Every line of the list that begins with > is a quotation. Your text has each of them, whole and unchanged, in double \
quotation marks, and says which source it is from. Put nothing else in quotation marks, and say nothing that the list \
does not say."""
# Quotation marks; an apostrophe has a letter before it.
_MARK = r"(?:[\"“”„‟«»]|(?<!\w)['‘‚‹›]|(?<=\W)['’‹›])"
_KNOWN = "\0"  # in place of a quotation of the proof; no model's text has it
_IN_MARKS = re.compile(rf"{_MARK}\s*{_KNOWN}(?:[\s.,;…]*{_KNOWN})*[\s.,;…]*{_MARK}")
_ADDRESS = re.compile(r"https?://[^\s<>()\"“”«»]+")


class _Wording(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")
    text: str = Field(min_length=1)


async def worded(result: AgentResult, model: ModelClient) -> AgentResult:
    """The answer with its proof in a model's words; as it is where these do not count. `debug` says which, under
    "proof", and so does the log."""
    if not quotations(result.proof):
        return _noted(result, "template: there is nothing to quote")
    reply = await model.ask(_INSTRUCTIONS, {"PROOF": unescaped(result.proof)}, _FORM)
    if isinstance(reply, NoReply):
        return _noted(result, f"template: the model {reply.why}")
    try:
        text = _Wording.model_validate(parse_object(reply)).text
    except (ValidationError, ValueError, RecursionError):
        return _noted(result, f"template: the model {model.odd_form().why}")
    if why := objection(text, result.proof):
        log.warning("the wording of a proof by %s was thrown away: %s", model.model, why)
        return _noted(result, f"template: {why}")
    paragraphs = "\n\n".join(plain(each) for each in re.split(r"\n\s*\n", text) if each.strip())
    words = f"## In the words of {plain(model.model)}\n\n{paragraphs}"
    proof = with_words(result.proof, words)
    return _noted(result.model_copy(update={"proof": proof}), f"worded by {model.model}")


def objection(text: str, proof: str) -> str:
    """Why a text does not count as the wording of a proof; "" when it does. Case, white space and typography aside,
    each quotation of the proof has to be there, and nothing else may stand in quotation marks. Pure."""
    rest = text.replace(_KNOWN, " ")
    for quotation in sorted(quotations(proof), key=len, reverse=True):
        if find(quotation, text) is None:
            return "the model left a quotation out"
        while (place := find(quotation, rest)) is not None:
            rest = f"{rest[: place[0]]}{_KNOWN}{rest[place[1] :]}"
    if re.search(_MARK, _IN_MARKS.sub(" ", rest)):
        return "the model quoted what no source says"
    known = unescaped(proof)
    if any(address.rstrip(".,;:") not in known for address in _ADDRESS.findall(text)):
        return "the model named an address that no source has"
    return ""


def _noted(result: AgentResult, what: str) -> AgentResult:
    return result.model_copy(update={"debug": {**result.debug, "proof": what}})
