"""The corpora that claims are looked up in, as configured."""

from __future__ import annotations

import os

from vouchgate.ingest.sources.corpus.source import Corpus, CorpusSource
from vouchgate.ingest.sources.web.extractor import Extractor
from vouchgate.settings import PREFIX, Settings, SettingsError


def open_corpora(settings: Settings, extractor: Extractor) -> CorpusSource:
    """The folders that the settings name. Raises SettingsError, which names what cannot be used."""
    corpora = [
        Corpus(name, folder.absolute(), name in settings.official_corpora)
        for name, folder in settings.corpora.items()
    ]
    if corpora and os.open not in os.supports_dir_fd:
        raise SettingsError(f"{PREFIX}CORPORA: this system cannot keep a reader within a folder")
    for corpus in corpora:
        if not corpus.folder.is_dir():
            raise SettingsError(f"{PREFIX}CORPORA: {corpus.name}: {corpus.folder} is no folder")
        if not os.access(corpus.folder, os.R_OK | os.X_OK):
            raise SettingsError(f"{PREFIX}CORPORA: {corpus.name}: {corpus.folder} cannot be read")
    try:
        return CorpusSource(corpora, extractor, memory_files=settings.memory_files)
    except ValueError as error:  # of a pattern
        raise SettingsError(str(error)) from error
