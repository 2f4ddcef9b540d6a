"""What a site is worth: the built-in table, a policy's changes to it, and who never inherits it."""

from __future__ import annotations

import tomllib
from datetime import UTC, datetime, timedelta
from importlib import resources
from pathlib import Path

import pytest

from tests.running.hangs import given_up_after
from vouchgate.ingest.checks.citations import judge_reading
from vouchgate.ingest.citations import given_citation
from vouchgate.ingest.claims.citation import Citation, CitationType
from vouchgate.ingest.claims.claim import Verdict
from vouchgate.ingest.claims.source import Found, Missing, Standing, Unreachable
from vouchgate.ingest.data.policy_file import PolicyError, load_policy
from vouchgate.ingest.policy import Policy
from vouchgate.ingest.scoring.reputation import SiteGroup, check_entry
from vouchgate.ingest.scoring.sites import registrable_domain, site_of

POLICY = load_policy()
TABLE = POLICY.reputation


def page(url: str) -> Found:
    cited = given_citation(CitationType.URL, "https://short.example/1")
    return Found(
        citation=cited, source_id=url, standing=Standing.IN_FORCE, detail="There.", site=site_of(url)
    )


def policy(tmp_path: Path, text: str) -> Policy:
    path = tmp_path / "policy.toml"
    path.write_text(text, encoding="utf-8")
    return load_policy(path)


def test_where_anybody_changes_a_page_it_is_unlisted_until_it_has_stood() -> None:
    at = datetime(2026, 5, 20, tzinfo=UTC)
    for url, edited in (
        ("https://en.wikipedia.org/wiki/HTTP", True),
        ("https://wiki.archlinux.org/title/Btrfs", True),
        ("https://archlinux.org/packages", False),
        ("https://docs.python.org/3", False),
    ):
        for days, fresh in ((None, True), (6, True), (7, False), (400, False)):
            revised = None if days is None else at - timedelta(days=days)
            source = TABLE.settle(page(url).model_copy(update={"revised": revised}), at)
            assert source.fresh is (edited and fresh)
            assert (TABLE.group_of(source) is SiteGroup.UNLISTED) is source.fresh
    assert TABLE.settle(TABLE.settle(page(url), at), at) == TABLE.settle(page(url), at)


@pytest.mark.parametrize(
    ("url", "group"),
    [
        ("https://www.nature.com/articles/x", SiteGroup.PEER_REVIEWED),
        ("https://dl.acm.org/doi/10.1145/1", SiteGroup.PEER_REVIEWED),
        ("https://docs.python.org/3/library/json.html", SiteGroup.PRIMARY),
        ("https://www.rfc-editor.org/rfc/rfc9110", SiteGroup.PRIMARY),
        ("https://csrc.nist.gov/pubs", SiteGroup.PRIMARY),
        ("https://www.gov.uk/vat-rates", SiteGroup.PRIMARY),
        ("https://www.cl.cam.ac.uk/research", SiteGroup.PRIMARY),
        ("https://docs.github.com/en/rest", SiteGroup.PRIMARY),
        ("https://cloud.google.com/storage/docs", SiteGroup.PRIMARY),
        ("https://a.b.aws.amazon.com/s3", SiteGroup.PRIMARY),
        ("https://arxiv.org/abs/2301.00001", SiteGroup.SECONDARY),
        ("https://doi.org/10.1000/1", SiteGroup.SECONDARY),
        ("https://en.wikipedia.org/wiki/HTTP", SiteGroup.SECONDARY),
        ("https://stackoverflow.com/questions/1", SiteGroup.SECONDARY),
        ("https://bit.ly/abc", SiteGroup.SHORTENER),
        ("https://example.com/", SiteGroup.UNLISTED),
        ("http://127.0.0.1:8000/", SiteGroup.UNLISTED),
        ("http://localhost/", SiteGroup.UNLISTED),
        ("https://notpython.org/", SiteGroup.UNLISTED),
        ("https://python.org.example.com/", SiteGroup.UNLISTED),
        # one host below an unlisted domain does not lift the rest
        ("https://www.google.com/search?q=x", SiteGroup.UNLISTED),
        ("https://docs.google.com/document/d/1/edit", SiteGroup.UNLISTED),
        ("https://www.amazon.com/dp/1", SiteGroup.UNLISTED),
        # a page on a platform is not the platform's
        ("https://github.com/alice/tool", SiteGroup.UNLISTED),
        ("https://gist.github.com/alice/1", SiteGroup.UNLISTED),
        ("https://pypi.org/project/tool/", SiteGroup.UNLISTED),
        ("https://salsa.debian.org/alice/x", SiteGroup.UNLISTED),
        ("https://huggingface.co/alice/model", SiteGroup.UNLISTED),
        ("https://www.cs.cornell.edu/~alice/", SiteGroup.UNLISTED),
        ("https://alice.academia.edu/", SiteGroup.UNLISTED),
        ("https://www.academia.edu/about", SiteGroup.UNLISTED),
        # nor is what visitors write
        ("https://discuss.python.org/t/1", SiteGroup.UNLISTED),
        ("https://bugzilla.mozilla.org/show_bug.cgi?id=1", SiteGroup.UNLISTED),
        ("https://lists.w3.org/archives/1", SiteGroup.UNLISTED),
        ("https://people.eecs.berkeley.edu/alice", SiteGroup.UNLISTED),
        ("https://learn.microsoft.com/en-us/answers/questions/1", SiteGroup.UNLISTED),
        ("https://support.google.com/chrome/thread/1", SiteGroup.UNLISTED),
        ("https://support.mozilla.org/en-US/questions/1", SiteGroup.UNLISTED),
        ("https://internals.rust-lang.org/t/x/1", SiteGroup.UNLISTED),
        ("https://go.dev/play/p/x.go", SiteGroup.UNLISTED),
        ("https://play.rust-lang.org/?gist=1", SiteGroup.UNLISTED),
        ("https://www.regulations.gov/comment/x", SiteGroup.UNLISTED),
        ("https://petition.parliament.uk/petitions/1", SiteGroup.UNLISTED),
        ("https://cdnjs.cloudflare.com/ajax/libs/x/1/x.js", SiteGroup.UNLISTED),
        ("https://bz.apache.org/bugzilla/show_bug.cgi?id=1", SiteGroup.UNLISTED),
        # nor, at any listed site, what nobody looks at before it is there
        ("https://www.ietf.org/archive/id/draft-mallory-00.txt", SiteGroup.UNLISTED),
        ("https://datatracker.ietf.org/doc/draft-mallory/", SiteGroup.UNLISTED),
        ("https://datatracker.ietf.org/doc/rfc9110/", SiteGroup.PRIMARY),
        ("https://www.nature.com/articles/draft-genome", SiteGroup.PEER_REVIEWED),
        ("https://en.wikipedia.org/wiki/Queue", SiteGroup.SECONDARY),
        ("https://en.wikipedia.org/wiki/User:Mallory/Queue", SiteGroup.UNLISTED),
        ("https://en.wikipedia.org/wiki/User%3AMallory", SiteGroup.UNLISTED),
        ("https://de.wikipedia.org/wiki/Diskussion:Queue", SiteGroup.UNLISTED),
        ("https://en.wikipedia.org/w/index.php?title=Queue&oldid=1", SiteGroup.UNLISTED),
        ("https://en.wikipedia.org/w/index.php?title=User:Mallory", SiteGroup.UNLISTED),
        ("https://wiki.archlinux.org/title/Queue", SiteGroup.SECONDARY),
        ("https://bbs.archlinux.org/viewtopic.php?id=1", SiteGroup.UNLISTED),
        ("https://forums.theregister.com/forum/all/1", SiteGroup.UNLISTED),
        ("https://www.heise.de/forum/x/1", SiteGroup.UNLISTED),
        ("https://www.heise.de/news/x", SiteGroup.SECONDARY),
        ("https://apnews.com/press-release/x", SiteGroup.UNLISTED),
        ("https://www.nasa.gov/press-release/x", SiteGroup.PRIMARY),
        ("https://openreview.net/forum?id=x", SiteGroup.SECONDARY),
        ("https://home.cern/science", SiteGroup.PRIMARY),
        ("https://docs.python.org/3/howto/more/community/", SiteGroup.PRIMARY),
    ],
)
def test_group_of_a_page(url: str, group: SiteGroup) -> None:
    assert TABLE.group_of(page(url)) is group


def test_the_scores_are_those_of_the_contract() -> None:
    assert {group.value: score for group, score in TABLE.scores.items()} == {
        "peer_reviewed": 1.0,
        "primary": 0.9,
        "secondary": 0.7,
        "unlisted": 0.5,
        "shortener": 0.2,
        "banned": 0.0,
    }


def test_over_two_hundred_registrable_domains_and_no_entry_twice() -> None:
    raw = tomllib.loads(
        resources.files("vouchgate.ingest.data").joinpath("reputation.toml").read_text("utf-8")
    )
    entries = [site for topic in raw["domains"].values() for site in topic["sites"]]
    assert len(entries) == len(set(entries)) == len(TABLE.groups)
    assert sum(registrable_domain(site) == site for site in entries) >= 200
    for entry in entries:
        check_entry(entry)


def test_a_source_that_is_no_page_is_known_by_its_site() -> None:
    rfc = Found(
        citation=given_citation(CitationType.RFC, "RFC 9110"),
        source_id="RFC 9110",
        standing=Standing.IN_FORCE,
        detail="There.",
        site="rfc-editor.org",
    )
    assert TABLE.group_of(rfc) is SiteGroup.PRIMARY
    assert TABLE.group_of(rfc.model_copy(update={"site": ""})) is SiteGroup.UNLISTED


def test_a_policy_moves_single_sites(tmp_path: Path) -> None:
    mine = policy(
        tmp_path,
        """
        [reputation.domains]
        "docs.corp.example" = "primary"
        "python.org" = "secondary"
        "github.com/alice" = "primary"
        "gitlab.gnome.org/alice" = "primary"
        "bugs.corp.example" = "primary"
        "mit.edu" = "unlisted"
        ".museum" = "primary"
        [reputation.scores]
        shortener = 0.1
        """,
    ).reputation
    assert mine.group_of(page("https://docs.corp.example/x")) is SiteGroup.PRIMARY
    assert mine.group_of(page("https://www.corp.example/x")) is SiteGroup.UNLISTED
    assert mine.group_of(page("https://docs.python.org/3/")) is SiteGroup.SECONDARY
    assert mine.group_of(page("https://github.com/alice/tool")) is SiteGroup.PRIMARY
    assert mine.group_of(page("https://github.com/alice/tool/issues/3")) is SiteGroup.UNLISTED
    assert mine.group_of(page("https://gitlab.gnome.org/alice/tool")) is SiteGroup.PRIMARY
    assert mine.group_of(page("https://github.com/bob/tool")) is SiteGroup.UNLISTED
    assert mine.group_of(page("https://bugs.corp.example/3")) is SiteGroup.PRIMARY
    assert mine.group_of(page("https://mit.edu/")) is SiteGroup.UNLISTED
    assert mine.group_of(page("https://louvre.museum/")) is SiteGroup.PRIMARY
    assert mine.scores[SiteGroup.SHORTENER] == 0.1
    assert mine.scores[SiteGroup.PRIMARY] == 0.9
    assert mine.group_of(page("https://www.nature.com/")) is SiteGroup.PEER_REVIEWED


def test_an_issue_is_written_by_visitors_of_the_account(tmp_path: Path) -> None:
    mine = policy(tmp_path, '[reputation.domains]\n"github.com/alice" = "primary"').reputation
    issue = Found(
        citation=given_citation(CitationType.ISSUE, "alice/tool#3"),
        source_id="issue:alice/tool#3",
        standing=Standing.IN_FORCE,
        detail="There.",
        site="github.com/alice",
    )
    assert mine.group_of(issue) is SiteGroup.UNLISTED
    linked = page("https://github.com/alice/tool/issues/3").model_copy(
        update={"source_id": "issue:alice/tool#3"}
    )
    assert mine.group_of(linked) is SiteGroup.UNLISTED


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('[reputation.domains]\n"example.com" = "excellent"', "excellent"),
        ('[reputation.domains]\n"example.com" = 0.9', "example.com"),
        ('[reputation.domains]\n"https://example.com" = "primary"', "https://example.com"),
        ('[reputation.domains]\n"*.example.com" = "primary"', "no registrable domain"),
        ('[reputation.domains]\n"Example.com" = "primary"', "no registrable domain"),
        ('[reputation.domains]\n"example.com/page" = "primary"', "no registrable domain"),
        ('[reputation.domains]\n"co.uk" = "primary"', "no registrable domain"),
        ('[reputation.domains]\n"github.io" = "primary"', "no registrable domain"),
        ('[reputation.domains]\n"" = "primary"', "no registrable domain"),
        ('[reputation.domains]\n".example.com" = "primary"', "public suffix"),
        ('[reputation.domains]\n"." = "primary"', "public suffix"),
        ("[reputation.scores]\nprimary = 1.5", "reputation.scores"),
        ("[reputation.scores]\nexcellent = 1", "reputation.scores"),
        ("[reputation.scores]\nbanned = 0.1", "banned"),
        ("[reputation.sites]\nprimary = []", "scores, visitors and domains"),
        ("[reputation.visitors]\nurls = []", "urls"),
        ("[reputation]\ndomains = []", "are tables"),
        ("reputation = 1", "scores, visitors and domains"),
        ('banned_domains = ["https://spam.example"]', "banned_domains"),
        ('banned_domains = ["*.spam.example"]', "banned_domains"),
        ('official_domains = ["docs.example/handbook"]', "official_domains"),
        ('official_domains = ["com"]', "anybody"),
        ('official_domains = ["github.io"]', "anybody"),
    ],
)
def test_a_change_that_cannot_be_is_refused_by_name(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(PolicyError, match=says):
        policy(tmp_path, text)


def test_a_stored_table_with_a_site_in_two_groups_is_refused() -> None:
    document = POLICY.model_dump(mode="json")
    document["reputation"]["sites"]["secondary"] = ["python.org"]
    with pytest.raises(ValueError, match=r"python\.org is listed twice"):
        Policy.model_validate(document)


def test_the_table_stays_a_small_part_of_what_is_stored_once_per_policy() -> None:
    assert len(TABLE.model_dump_json()) < 16_000


def test_looking_up_does_not_grow_with_the_length_of_a_hostile_address() -> None:
    source = page("https://" + "a." * 100 + "example.com/" + "b/" * 3000)
    with given_up_after(6):
        for _ in range(1_000):
            TABLE.group_of(source)


URL = given_citation(CitationType.URL, "https://short.example/1")
BANNED = frozenset({"spam.example", "github.com/mallory"})


@pytest.mark.parametrize(
    ("url", "banned"),
    [
        ("https://spam.example/", True),
        ("https://a.SPAM.example:8080/", True),
        ("https://spam.example./", True),
        ("https://x@spam.example/", True),
        ("https://nospam.example/", False),
        ("https://spam.example.com/", False),
        ("https://github.com/mallory/tool", True),
        ("https://gist.github.com/Mallory/1", True),
        ("https://github.com/alice/tool", False),
    ],
)
def test_a_banned_site_fails_whatever_was_read(url: str, banned: bool) -> None:
    cited = given_citation(CitationType.URL, url)
    readings = (
        Missing(citation=cited, detail="Gone."),
        Unreachable(citation=cited, code="timeout", detail="Late."),
        page(url).model_copy(update={"citation": cited}),
    )
    for reading in readings:
        assert (judge_reading(reading, BANNED).code == "citation_banned") is banned


def test_a_link_that_leads_to_a_banned_site_is_banned() -> None:
    finding = judge_reading(page("https://www.spam.example/page"), BANNED)
    assert (finding.verdict, finding.code) == (Verdict.FAIL, "citation_banned")
    assert finding.message == "https://short.example/1 leads to spam.example, which is on the banned list."
    assert judge_reading(page("https://gist.github.com/mallory/1"), BANNED).code == "citation_banned"
    assert judge_reading(page("https://example.com/"), BANNED).verdict is Verdict.PASS


def test_both_lists_of_banned_sites_count(tmp_path: Path) -> None:
    mine = policy(
        tmp_path, 'banned_domains = ["Spam.example"]\n[reputation.domains]\n"farm.example" = "banned"\n'
    )
    assert mine.banned == {"spam.example", "farm.example"}
    assert judge_reading(page("https://a.farm.example/"), mine.banned).code == "citation_banned"


def test_a_platform_that_is_banned_bans_its_accounts() -> None:
    banned = frozenset({"github.com"})
    issue = Found(
        citation=Citation(type=CitationType.ISSUE, value="alice/tool#3", key="issue:alice/tool#3"),
        source_id="issue:alice/tool#3",
        standing=Standing.IN_FORCE,
        detail="There.",
        site="github.com/alice",
    )
    assert judge_reading(issue, banned).code == "citation_banned"
