"""A file of endpoints is used as it is meant, or refused with a sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from vouchgate.harvest.endpoints import EndpointError, EndpointPath, load_endpoints
from vouchgate.harvest.paths import Look, in_order
from vouchgate.ingest.data.policy_file import load_policy
from vouchgate.ingest.net.client import Outbound

WEB = """[[endpoints]]
kind = "web_search"
name = "searx"
address = "https://searx.example/search?q={query}&format=json"
results = "results"
url = "url"
"""
OFFICIAL = """[[endpoints]]
kind = "official_api"
name = "statistics"
address = "https://api.statistics.example/?w={words}"
results = "data"
url = "page"
text = "note"
domain = "statistics.example"
"""


def loaded(folder: Path, text: str) -> None:
    file = folder / "paths.toml"
    file.write_text(text, "utf-8")
    load_endpoints(file)


def test_what_is_asked(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text(WEB + OFFICIAL, "utf-8")
    web, official = load_endpoints(tmp_path / "a.toml")
    assert web.asked("a&b {c}/ü") == "https://searx.example/search?q=a%26b%20%7Bc%7D%2F%C3%BC&format=json"
    assert official.asked("a&b {c}") == "https://api.statistics.example/?w=a%26b+%7Bc%7D"
    assert (web.path, official.path) == ("web_search.searx", "official_api.statistics")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[[trackers]]\n", "[[endpoints]] and nothing else"),
        ("endpoints = 1", "[[endpoints]] and nothing else"),
        ("[[endpoints", "Expected"),
        (WEB.replace('results = "results"\n', ""), "results: is missing"),
        (WEB + "colour = 1", "colour: is unknown"),
        (WEB.replace("{query}", "all"), "address must have {query} or {words}"),
        (WEB.replace("{query}", "{question}"), "{query} and {words} in braces"),
        (WEB.replace("{query}", "{"), "{query} and {words} in braces"),
        (WEB.replace("searx.example", "{query}.example"), "of one host"),
        (WEB.replace("https://", "file://"), "of one host"),
        (WEB + "body = '{<query>}'", "Expecting property name"),
        (WEB + "official = true", "what it shows is no evidence"),
        (WEB + 'text = "content"', "what it shows is no evidence"),
        (OFFICIAL.replace('text = "note"\n', ""), "the domain of one publisher"),
        (
            OFFICIAL.replace('domain = "statistics.example"', 'domain = "co.uk"'),
            "the domain of one publisher",
        ),
        (OFFICIAL.replace('domain = "statistics.example"', 'domain = "a b"'), "the domain of one publisher"),
        (OFFICIAL.replace('domain = "statistics.example"\n', ""), "the domain of one publisher"),
    ],
)
def test_a_wrong_file_is_refused_with_a_sentence_that_names_it(tmp_path: Path, text: str, why: str) -> None:
    with pytest.raises(EndpointError) as refused:
        loaded(tmp_path, text)
    assert str(refused.value).startswith(f"{tmp_path / 'paths.toml'}: ")
    assert why in str(refused.value)


def test_a_token_that_is_not_there_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text(WEB + 'token = "SEARX_TOKEN"', "utf-8")
    (endpoint,) = load_endpoints(tmp_path / "a.toml")
    with pytest.raises(EndpointError, match="environment variable SEARX_TOKEN"):
        EndpointPath(Outbound(), endpoint, {})


class Named:
    """A path of this name, where nothing is."""

    def __init__(self, name: str) -> None:
        self.name = name

    async def look(self, query: str, seconds: float) -> Look:
        return Look()


def test_paths_come_in_the_order_of_the_policy_and_only_those_it_names() -> None:
    rules = load_policy().corroboration.model_copy(update={"paths": ("wiki", "web_search.b", "repository")})
    policy = load_policy().model_copy(update={"corroboration": rules})
    paths = map(Named, ("repository", "corpus", "web_search.a", "web_search.b", "wiki"))
    assert list(in_order(paths, policy)) == ["wiki", "web_search.b", "repository"]
    kinds = map(Named, ("web_search.a", "web_search.b", "repository", "wiki"))
    assert list(in_order(kinds, load_policy())) == ["repository", "web_search.a", "web_search.b"]
