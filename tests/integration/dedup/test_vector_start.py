"""What stops a start under `dedup_method = "vector"`, and what is not loaded without it."""

from __future__ import annotations

import shutil
import subprocess
import sys
import uuid
from pathlib import Path

import pytest
from sqlalchemy import text

from tests.conftest import Postgresql
from tests.models import Bag, NewerBag, flat, policy_file, silent
from vouchgate.embedding.paraphraser import Embedder, EmbeddingError, load_embedder
from vouchgate.ingest.data.policy_file import load_policy
from vouchgate.service import open_service
from vouchgate.settings import Settings
from vouchgate.storage.dedup import vectors
from vouchgate.storage.engine import open_engine, prepare_vectors, writing
from vouchgate.storage.errors import StorageError


@pytest.mark.parametrize(
    ("model", "said"),
    [
        ("no_such_module:Model", r"pip install 'vouchgate\[vector\]'"),
        ("tests.models:nothing", "cannot be used: .*nothing"),
        ("tests.models:NOT_CALLABLE", "cannot be used: 'int'"),
        ("tests.models:silent", "0 vectors of one text"),
        ("tests.models:flat", "without a direction"),
    ],
)
def test_a_model_that_cannot_be_used_stops_the_start(tmp_path: Path, model: str, said: str) -> None:
    policy = load_policy(policy_file(tmp_path, model))
    with pytest.raises(EmbeddingError, match=said):
        load_embedder(policy)
    settings_ = Settings(database_url=f"sqlite:///{tmp_path}/a.db", policy=policy_file(tmp_path, model))
    with pytest.raises(EmbeddingError, match=said), open_service(settings_):
        raise AssertionError("it started")
    assert not (tmp_path / "a.db").exists()


def test_versions_name_the_vectors() -> None:
    assert Embedder("b", Bag()).model == "b@1"
    assert Embedder("b", NewerBag()).model == "b@2"
    for broken in (silent, flat):
        with pytest.raises(ValueError):
            Embedder("b", broken)


def test_a_service_loads_nothing_of_it_under_jaccard_nor_alembic_for_an_up_to_date_database(
    migrated_file: Path, tmp_path: Path
) -> None:
    program = (
        "import sys\n"
        "from vouchgate.service import open_service\n"
        "from vouchgate.settings import Settings\n"
        "for url in sys.argv[1:]:\n"
        "    with open_service(Settings(database_url=url)):\n"
        "        print('alembic' in sys.modules)\n"
        "loaded = {'sqlite_vec', 'tokenizers', 'safetensors'}\n"
        "loaded |= {'vouchgate.embedding.paraphraser', 'vouchgate.embedding.minilm'}\n"
        "assert not loaded & set(sys.modules), loaded & set(sys.modules)\n"
    )
    whole = shutil.copyfile(migrated_file, tmp_path / "whole.db")
    urls = [f"sqlite:///{whole}", f"sqlite:///{tmp_path / 'new.db'}"]
    said = subprocess.check_output([sys.executable, "-c", program, *urls], text=True, timeout=60)
    assert said == "False\nTrue\n"


def test_a_user_who_may_not_make_the_extension_is_told(postgresql: Postgresql) -> None:
    name, role = f"test_{uuid.uuid4().hex}", f"role_{uuid.uuid4().hex}"
    postgresql.run(f"CREATE DATABASE {name} TEMPLATE template1")
    postgresql.run(f"CREATE ROLE {role}")
    engine = open_engine(postgresql.url(name))
    try:
        with writing(engine) as connection:
            connection.execute(text(f"SET LOCAL ROLE {role}"))
            with pytest.raises(StorageError, match="superuser run CREATE EXTENSION vector"):
                vectors.prepare_postgresql(connection)
        prepare_vectors(engine)
        with writing(engine) as connection:  # now it is there, and nobody needs to make it
            connection.execute(text(f"SET LOCAL ROLE {role}"))
            vectors.prepare_postgresql(connection)
    finally:
        engine.dispose()
        postgresql.run(f"DROP DATABASE {name} WITH (FORCE)")
        postgresql.run(f"DROP ROLE {role}")
