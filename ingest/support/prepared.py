"""A source's text made ready once, for all the claims of some documents or a batch that are held against it.

Cutting a long text into words and sentences takes far longer than holding a claim against it. Nothing here is kept
beyond the work it is made for: whoever has several claims makes a `PreparedTexts` and passes it along.
"""

from __future__ import annotations

from collections import OrderedDict
from functools import cached_property
from threading import Lock

from vouchgate.ingest.claims.source import Form, Found, PackedText
from vouchgate.ingest.contradictions.glossed import GlossWord, glossed
from vouchgate.ingest.language.languages import load_languages
from vouchgate.ingest.language.settings import ENDINGS
from vouchgate.ingest.language.terms import language_of
from vouchgate.ingest.support.passages import RankedText
from vouchgate.ingest.support.quotation import Folded
from vouchgate.ingest.support.record import Record, read_record
from vouchgate.ingest.support.source_text import SourceText
from vouchgate.ingest.support.texts import digest_of, pack
from vouchgate.ingest.support.turns import asserted

# Of all texts that are ready at a time, at some 110 bytes each: two of the longest that is read, and some short ones.
MOST_CHARACTERS = 500_000
_SAMPLE = 20_000  # characters of a source by which its language is told
# Beside English those that have lists of negation, modality and quantifiers.
READ_BY_GLOSS = {language.name.lower(): language for language in load_languages().values()}


class PreparedSource:
    """One text of a source, `whole` as it was read. Each view of it is made when it is first asked for, in time
    linear in the text."""

    def __init__(self, whole: str, title: str, project: str, form: Form = "page") -> None:
        self.whole = whole
        self.title = title
        self._project = project
        self._form = form

    @cached_property
    def record(self) -> Record | None:
        """Its parts, when it is a decision record."""
        return read_record(self.whole) if self._form == "record" else None

    @cached_property
    def text(self) -> str:
        """What it says in its own words: what offsets of `Held.place` are in."""
        if self._form == "turn":
            return asserted(self.whole)
        return self.whole if self.record is None else self.record.spoken

    @cached_property
    def source(self) -> SourceText:
        """As statements are laid over it."""
        settings = self._form == "file" and self.title.lower().endswith(ENDINGS)
        return SourceText(self.text, self.title, self._project, settings=settings)

    @cached_property
    def whole_source(self) -> SourceText:
        """With the parts of a record that are not its own word, too."""
        return SourceText(self.whole, self.title, self._project)

    @cached_property
    def ranked(self) -> RankedText:
        """As its passages are chosen."""
        if not self.source.is_whole:  # what it asks is shown, too
            return RankedText(self.text)
        return RankedText(self.text, self.source.words, self.source.spans)

    @cached_property
    def language(self) -> str:
        """Which language it is written in."""
        return language_of(self.text[:_SAMPLE])

    @cached_property
    def glossed(self) -> list[list[GlossWord]]:
        """Its sentences, in one of `READ_BY_GLOSS`."""
        language = READ_BY_GLOSS[self.language]
        return [glossed(self.source.text[slice(*span)], language) for span in self.source.spans]

    @cached_property
    def folded(self) -> Folded:
        """As quotations are looked up in it."""
        return Folded(self.whole)

    @cached_property
    def lowered(self) -> str:
        """In small letters."""
        return self.whole.lower()

    @cached_property
    def digest(self) -> str:
        """sha256 hex of it."""
        return digest_of(self.whole)

    @cached_property
    def packed(self) -> PackedText:
        """As it is kept."""
        return pack(self.whole)


class PreparedTexts:
    """The texts that were asked for last, at most `most` characters of them, or one that is longer. Thread-safe."""

    def __init__(self, most: int = MOST_CHARACTERS) -> None:
        self._most = most
        self._characters = 0
        self._ready: OrderedDict[tuple[str, str, str, Form], PreparedSource] = OrderedDict()
        self._lock = Lock()

    def of(self, found: Found) -> PreparedSource:
        """What was read of a source."""
        return self._of((found.text or found.excerpt, found.title, found.project, found.form))

    def later(self, found: Found) -> PreparedSource:
        """What later records say of a source."""
        return self._of((found.later, found.title, found.project, "page"))

    def _of(self, key: tuple[str, str, str, Form]) -> PreparedSource:
        with self._lock:
            if (ready := self._ready.get(key)) is not None:
                self._ready.move_to_end(key)
                return ready
            ready = self._ready[key] = PreparedSource(*key)
            self._characters += len(key[0])
            while self._characters > self._most and len(self._ready) > 1:
                self._characters -= len(self._ready.popitem(last=False)[0][0])
            return ready
