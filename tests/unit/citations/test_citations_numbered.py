"""ADR, RFC, PEP, CVE, arXiv and DOI citations in sentences, and what only looks like one."""

import pytest

from vouchgate.ingest.citations import detect_citations


def seen(text: str) -> list[tuple[str, str, str]]:
    return [(citation.type, citation.value, citation.key) for citation in detect_citations(text)]


@pytest.mark.parametrize(
    ("text", "value", "key"),
    [
        ("Writes are single-threaded (ADR-003).", "ADR-003", "adr:3"),
        ("As ADR 12 says, we keep SQLite.", "ADR 12", "adr:12"),
        ("See adr-0007 for the queue.", "adr-0007", "adr:7"),
        ("ADR0015 replaced it.", "ADR0015", "adr:15"),
        ("ADR_004, ratified in May", "ADR_004", "adr:4"),
        ("This follows ADR #9.", "ADR #9", "adr:9"),
        ("ADR:21 is binding", "ADR:21", "adr:21"),
        ("The file ADR-0033-use-grpc.md explains it", "ADR-0033", "adr:33"),
        ("**ADR-0040**: accepted", "ADR-0040", "adr:40"),
        ("`adr-0041` is out of date", "adr-0041", "adr:41"),
        ("Both engines stay, ADR\u20110005 says.", "ADR\u20110005", "adr:5"),
        ("Both engines stay, ADR\u20130005 says.", "ADR\u20130005", "adr:5"),
        ("Both engines stay, ADR\u00a06 says.", "ADR\u00a06", "adr:6"),
        ("Both engines stay, ADR\u200b-6 says.", "ADR\u200b-6", "adr:6"),
        ("Both engines stay, ＡＤＲ－００８ says.", "ＡＤＲ－００８", "adr:8"),
        ("決定はADR-0012を参照。", "ADR-0012", "adr:12"),
        ("wrapped by the mailer, see ADR\n0013 for more", "ADR\n0013", "adr:13"),
        ("ADR-0006's second option", "ADR-0006", "adr:6"),
        ("per ADR-17, §2.1", "ADR-17", "adr:17"),
    ],
)
def test_adr(text: str, value: str, key: str) -> None:
    assert seen(text) == [("adr", value, key)]


@pytest.mark.parametrize(
    "text",
    [
        "MADR 3.0.0 is our template.",
        "The BADR-7 relay was replaced.",
        "We wrote the ADR 3 weeks ago.",
        "The ADR 12 months later was void.",
        "ADR-NNNN is a placeholder, so is ADR-XXX.",
        "ADR 1.2 of the tool is out.",
        "The ADR-2023-11-05 file is dated.",
        "adr3 holds the address.",
        "SET_ADR_4 is a macro.",
        "ADR-12b is no number.",
        "It moved to notes.html#adr-4 later.",
        "Shares fell 3 %; the ADR 5% more.",
        "The quadrant 4 team",
    ],
)
def test_not_an_adr(text: str) -> None:
    assert seen(text) == []


@pytest.mark.parametrize(
    ("text", "value", "key"),
    [
        ("RFC 9112 defines framing.", "RFC 9112", "rfc:9112"),
        ("as in RFC7540.", "RFC7540", "rfc:7540"),
        ("RFC-3986, section 3", "RFC-3986", "rfc:3986"),
        ("the rfc 822 format", "rfc 822", "rfc:822"),
        ("RFC2822-style dates", "RFC2822", "rfc:2822"),
        ("[RFC8446]", "RFC8446", "rfc:8446"),
        ("RFC 9110 §8.6", "RFC 9110", "rfc:9110"),
        ("RFC5321.MailFrom is checked", "RFC5321", "rfc:5321"),
        ("（RFC 6749）", "RFC 6749", "rfc:6749"),
        ("RFC 0791", "RFC 0791", "rfc:791"),
        ("PEP 695 adds syntax.", "PEP 695", "pep:695"),
        ("PEP8 asks for it", "PEP8", "pep:8"),
        ("(pep-0440)", "pep-0440", "pep:440"),
        ("PEP\u00a0604-style unions", "PEP\u00a0604", "pep:604"),
        ("CVE-2019-5482 is a heap overflow", "CVE-2019-5482", "cve:CVE-2019-5482"),
        ("patched (cve-2024-3094)", "cve-2024-3094", "cve:CVE-2024-3094"),
        ("CVE\u20112021\u201144228.", "CVE\u20112021\u201144228", "cve:CVE-2021-44228"),
        ("CVE-2023-1234567 has seven digits", "CVE-2023-1234567", "cve:CVE-2023-1234567"),
        ("CVE-2018-0500.patch", "CVE-2018-0500", "cve:CVE-2018-0500"),
        ("as arXiv:2005.14165 shows", "arXiv:2005.14165", "arxiv:2005.14165"),
        ("arXiv:2005.14165v4.", "arXiv:2005.14165v4", "arxiv:2005.14165v4"),
        ("ARXIV: 0704.0001 is the first", "ARXIV: 0704.0001", "arxiv:0704.0001"),
        ("arXiv preprint arXiv:1412.6980, 2014", "arXiv:1412.6980", "arxiv:1412.6980"),
        ("arXiv 1810.04805 (BERT)", "arXiv 1810.04805", "arxiv:1810.04805"),
        ("[arXiv:1503.02531 [stat.ML]]", "arXiv:1503.02531", "arxiv:1503.02531"),
        ("arXiv:hep-th/9711200", "arXiv:hep-th/9711200", "arxiv:hep-th/9711200"),
        ("arXiv:math.GT/0309136v1 is long", "arXiv:math.GT/0309136v1", "arxiv:math.GT/0309136v1"),
        ("see quant-ph/9508027 for it", "quant-ph/9508027", "arxiv:quant-ph/9508027"),
        ("shown in 10.1038/nature14539.", "10.1038/nature14539", "doi:10.1038/nature14539"),
        ("doi:10.1000/ABC.1", "10.1000/ABC.1", "doi:10.1000/abc.1"),
        ("DOI: 10.5281/zenodo.3509134, v2", "10.5281/zenodo.3509134", "doi:10.5281/zenodo.3509134"),
        ("(see 10.1016/S0092-8674(00)81683-9)", "10.1016/S0092-8674(00)81683-9", None),
        ("<doi:10.1109/5.771073>", "10.1109/5.771073", None),
        ("`10.1109/5.771073`", "10.1109/5.771073", None),
        ("“10.1109/5.771073”", "10.1109/5.771073", None),
        ("10.1109/5.771073's appendix", "10.1109/5.771073", None),
        ("doi.org/10.1109/5.771073", "10.1109/5.771073", None),
        ("[10.1109/5.771073]", "10.1109/5.771073", None),
        ("**10.1109/5.771073**", "10.1109/5.771073", None),
        ("10.48550/arXiv.1706.03762 is one citation", "10.48550/arXiv.1706.03762", None),
        ("10.1002/(SICI)1097-0258(19980815)17:15<1661::AID-SIM968>3.0.CO;2-2 is old",
         "10.1002/(SICI)1097-0258(19980815)17:15<1661::AID-SIM968>3.0.CO;2-2", None),
        ("10.1000.10/123 has a subdivision", "10.1000.10/123", None),
        ("10.1234/4e5d6c7 holds no commit", "10.1234/4e5d6c7", None),
    ],
)  # fmt: skip
def test_documents(text: str, value: str, key: str | None) -> None:
    [(_, got_value, got_key)] = seen(text)
    assert got_value == value
    assert got_key == (key or f"doi:{value.lower()}")


@pytest.mark.parametrize(
    "text",
    [
        "The RFC is still open, and RFCs come slowly.",
        "[RFC 2/5] net: drop the lock",
        "time.RFC3339 and RFC3339Nano are layouts",
        "is_rfc2047_special is a function",
        "The RFC 2 weeks ago drew no answer",
        "RFC 123456 does not exist yet",
        "PEPTIDE-12 binds. A pep-talk 5 times a day.",
        "The autopep8 tool, PEP 3 times",
        "CVE-20201-33 and CVE-2020-1 are malformed, CVE-XXXX-12345 too",
        "CVE-2020-11008a, CVE-1234-56789",
        "Release 1706.03762 and build 2103.00020v1",
        "arXiv:2013.12345 has no such month; arXiv:1706.037621 is too long",
        "arXiv:1706 is cut off",
        "math/0309136 alone may be a path",
        "Darwin 10.15.7 and 10.0.0.0/8, 10.5/3, 10.12.6/x86",
        "v10.1000/182 and /srv/10.1000/182",
        "10.1000/ alone, 10.xxxx/yyy",
    ],
)
def test_not_documents(text: str) -> None:
    assert seen(text) == []


def test_several_in_a_row() -> None:
    assert [value for _, value, _ in seen("ADRs 0003 and 0004")] == ["ADRs 0003"]
    assert [value for _, value, _ in seen("[RFC2119][RFC8174]; RFC 2119/RFC 8174")] == [
        "RFC2119",
        "RFC8174",
        "RFC 2119",
        "RFC 8174",
    ]
    assert [value for _, value, _ in seen("10.1000/a1,10.1000/b2;doi:10.1000/c3")] == [
        "10.1000/a1",
        "10.1000/b2",
        "10.1000/c3",
    ]
