"""Numbers and addresses of people are found in the forms in which they are written, and what only looks like one is
let pass; what the policy masks is gone before anything is decided."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.answers import DETECTOR, POLICY, answer_of, claim_of, policy_with
from tests.rechecking import World
from tests.running.hangs import given_up_after
from vouchgate.client import next_step
from vouchgate.gate.examiner import Examiner
from vouchgate.gate.incoming import ClaimRefused
from vouchgate.gate.masking import mask_claim
from vouchgate.ingest.checks.personal import KINDS, PersonalDataDetector
from vouchgate.ingest.checks.secrets import mask
from vouchgate.ingest.claims.decision import Tier
from vouchgate.ingest.data import read_data
from vouchgate.ingest.pipeline import replay
from vouchgate.ingest.rules import Rule
from vouchgate.review.pages.findings import finding_view
from vouchgate.wire import ClaimIn

NOW = datetime(2026, 5, 4, tzinfo=UTC)
ALL = PersonalDataDetector(frozenset(KINDS))


def with_check_digit(digits: str) -> str:
    """A card's number from all but its last digit, by adding up digit by digit."""
    total = sum(sum(map(int, str(int(digit) * (2 - at % 2)))) for at, digit in enumerate(reversed(digits)))
    return digits + str(-total % 10)


def iban(country: str, behind: str) -> str:
    """With the check digits that make it 1 modulo 97."""
    as_number = "".join(str(int(sign, 36)) for sign in f"{behind}{country}00")
    return f"{country}{98 - int(as_number) % 97:02}{behind}"


VISA, AMEX, DINERS = map(with_check_digit, ("453201511283036", "37828224631000", "3612345678901"))
CARDS = {"4532015112830366": VISA, "378282246310005": AMEX}
GERMAN = iban("DE", "370400440532013000")
BRITISH = iban("GB", "WEST12345698765432")
FOUND = {
    "payment_card": [
        VISA,
        *(with_check_digit(each) for each in ("510510510510510", "222300313245678", "601111111111111")),
        *(with_check_digit(each) for each in ("352812345678901", "621234567890123", "220012345678901")),
        *(AMEX, DINERS, with_check_digit("6212345678901234567"[:18])),
        *(
            f"{VISA[:4]}{sign}{VISA[4:8]}{sign}{VISA[8:12]}{sign}{VISA[12:]}"
            for sign in (" ", "-", " - ", ".", "\n")
        ),
        *(
            f"{VISA[:4]}{sign}{VISA[4:8]}{sign}{VISA[8:12]}{sign}{VISA[12:]}"
            for sign in "\u00a0\u2009\u2011\u2013"
        ),
        f"{VISA[:4]} {VISA[4:8]} {VISA[8:12]}\n{VISA[12:]}",
        f"{AMEX[:4]} {AMEX[4:10]} {AMEX[10:]}",
        f"{AMEX[:4]}-{AMEX[4:10]}-{AMEX[10:]}",
        f"{DINERS[:4]} {DINERS[4:10]} {DINERS[10:]}",
        "".join(chr(ord("٠") + int(digit)) for digit in VISA),
        "".join(chr(ord("०") + int(digit)) for digit in VISA),
        "".join(chr(ord("０") + int(digit)) for digit in VISA),
        "\u200b".join((VISA[:4], VISA[4:8], VISA[8:])),
        "\u00ad".join(VISA),
        f"{VISA[:8]}<b>{VISA[8:]}</b>",
    ],
    "us_social_security": [
        "219-45-6789",
        "219\u201145\u20116789",
        "٢١٩-٤٥-٦٧٨٩",
        "219 - 45 - 6789",
        "219-45-\n6789",
    ],
    "iban": [
        *(GERMAN, GERMAN.lower(), BRITISH, iban("NO", "86011117947"), iban("FR", "20041010050500013M02606")),
        *(" ".join(each[at : at + 4] for at in range(0, len(each), 4)) for each in (GERMAN, BRITISH)),
        "-".join(GERMAN[at : at + 4] for at in range(0, 22, 4)),
        "\n".join((GERMAN[:12], GERMAN[12:])),
        "\u00a0".join(GERMAN[at : at + 4] for at in range(0, 22, 4)),
    ],
    "phone": [
        *("+49 30 1234567", "+49 (0)30 1234567", "+442071838750", "+44 20 7183 8750", "+33 1 23 45 67 89"),
        *(
            "+1 212 555 0123",
            "+1-212-555-0123",
            "+1 (212) 555-0123",
            "(212) 555-0123",
            "212-555-0123",
            "212.555.0123",
        ),
        *("1-800-555-0123", "+91 98765 43210"),
    ],
    "mail": [
        *(
            "ada@example.com",
            "ada.lovelace+notes@mail.example.co.uk",
            "o'brien@example.org",
            "ada_l@example.io",
        ),
        *("ädа@bücher.de", "a@b.co"),
    ],
}
BESIDE_A_WORD = {
    "us_social_security": [
        *("SSN 219456789", "ssn: 219 45 6789", "Her social security number is 219456789", "219456789 (SSN)"),
        "Social Security No. 219.45.6789",
    ],
    "phone": ["phone: 555-0123", "tel. 030 1234567", "Mobile 0171/1234567", "fax 030-12 34 56 78"],
}
NOTHING = f"""
    Version 4.1.1.1 of 2026-11-23T10:15:30.123456Z, build 20261123101530
    1732356930123 and 1732356930123456 and 1732356930123456789 are times
    550e8400-e29b-41d4-a716-446655440000 and 12345678-1234-1234-1234-123456789012
    3b18e512dba79e4c8300dd08aeb37f8e728b8dad and 0123456789012345678901234567890123456789
    sha256:4111111111111111aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa
    Order {VISA} was shipped, tracking number {with_check_digit("51234567890123" + "4")}
    USPS 9400 1000 0000 0000 0000 00, UPS 1Z999AA10123456784, FedEx 9612 0199 9999 9999 9999 99
    The table has 0.{VISA} and {VISA}.5 and 1.{VISA} in it
    https://shop.example/items/{VISA} and #{VISA}
    {VISA[:-1]}{(int(VISA[-1]) + 1) % 10} fails its check digit
    4000 4001 4002 4003 4004 4005 and 5432 5433 5434 5435 5436
    1111 2222 3333 4444 and 9999 9999 9999 9999
    IMEI {with_check_digit("35209900176148")} and ISBN 978-0-306-40615-7
    000-45-6789 and 666-45-6789 and 912-45-6789 and 219-00-6789 and 219-45-0000
    1-219-45-6789 and 219-45-6789-1 and 2194-45-6789 and part A219-45-6789
    51 Franklin Street, Boston, MA 02110-1301 USA, and 45320151-12830366
    219456789 bytes, and 219 45 6789 rows
    DE00 3704 0044 0532 0130 00 and DE89370400440532013001 and XX89370400440532013000
    is 26 in all, and no 12 of these were found to be open at the end of the day
    1,234,567,890 bytes at 192.168.100.200, ports 8080-8090, 2026-11-23, +2 -3
    212-055-0123 and 012-555-0123 and 1.2.3 + 12345
    git@github.com:acme/app.git and https://ada:pw@example.com/x and pkg@1.2.3 and icon@2x.png
    @app.route and ada@localhost and numpy@main
"""


def rows(kinds: dict[str, list[str]]) -> list[tuple[str, str]]:
    return [(kind, text) for kind, texts in kinds.items() for text in texts]


def test_what_people_write_is_found_whole() -> None:
    for kind, written in rows(FOUND):
        for said in (
            "It is {}.",
            "{} is what she gave",
            "Ada ({}), since May",
            '"{}", says Bob',
            "- {}\n- nothing",
        ):
            text = said.format(written)
            found = PersonalDataDetector(frozenset({kind})).find(text)
            assert [match.kind for match in found] == [KINDS[kind]], (kind, text)
            masked = mask(text, found)
            assert not any(character.isdigit() for character in masked), masked
            assert masked.replace("*", "") == said.format("").replace("*", "") or kind in (
                "phone",
                "payment_card",
            )
            assert ALL.find(masked) == ()
    grouped = f"{VISA[:4]} {VISA[4:8]} {VISA[8:12]} {VISA[12:]}"
    for text in (f"{grouped} 123", f"{grouped} 12/27 123", f"{grouped}, {AMEX}", f"{grouped}\n{grouped}"):
        assert grouped not in mask(text, ALL.find(text)) and AMEX not in mask(text, ALL.find(text))
    for kind, text in rows(BESIDE_A_WORD):
        assert [match.kind for match in ALL.find(text)] == [KINDS[kind]], text


def test_every_country_and_issuer_is_known() -> None:
    data = read_data("personal.toml")
    by_country = ((country, size) for size, named in data["iban"]["lengths"] for country in named.split())
    for country, length in by_country:
        number = iban(country, "1234567890" * 3 + "12345")[:length]
        number = iban(country, number[4:])
        assert [match.kind for match in ALL.find(f"It is {number}")] == [KINDS["iban"]], number
        assert ALL.find(f"It is {number}7") == (), number
    for issuer in data["payment_card"]["issuers"]:
        for first in issuer["first"]:
            for start in first.split("-"):
                for digits in issuer["digits"]:
                    number = with_check_digit(start + "7" * (digits - len(start) - 1))
                    assert [match.kind for match in ALL.find(f"It is {number}")] == [KINDS["payment_card"]], (
                        number
                    )
                    assert ALL.find(f"It is {number[:-1]}") == (), number


@pytest.mark.parametrize("text", [line.strip() for line in NOTHING.strip().splitlines()])
def test_what_only_looks_like_it_is_let_pass(text: str) -> None:
    assert [(match.kind, text[match.start : match.end]) for match in ALL.find(text)] == []


def test_names_in_metadata_say_what_a_number_is_and_numbers_are_masked() -> None:
    sent = ClaimIn(
        content=f"Ada pays by card {VISA}.",
        memory_type="fact",
        source="user",
        metadata={
            "ssn": "219456789",
            "card": int(VISA),
            "deep": [{"note": f"again {AMEX}"}],
            "rows": 219456789,
        },
        citations=["ADR-7", f"https://pay.example/?card={VISA}"],
        delivery={"sink": "notes", "place": "cards/1", "data": {"pan": VISA}},
    )
    masking = PersonalDataDetector(POLICY.personal_data.kinds("mask"))
    masked, found = mask_claim(masking, sent)
    told = masked.model_dump_json()
    assert not any(number in told for number in (VISA, AMEX, '"219456789"'))
    assert masked.metadata["rows"] == 219456789
    assert masked.citations == ["ADR-7"]
    assert [match.where for match in found] == [
        *("content", "metadata.ssn", "metadata.card", "metadata.deep[0].note"),
        *("citations[1]", "delivery.data.pan"),
    ]
    assert mask_claim(masking, masked)[1] == ()


def test_a_place_or_an_id_is_refused_and_not_masked_into_another(tmp_path: Path) -> None:
    """Masked, the memories of two people would be written to one place."""
    mail, data = "ada@depot.dev", {"role": "user", "metadata": {"mail": "ada@depot.dev", "n": 1}}
    with closing(
        Examiner(policy_with(personal_data={"mail": "mask", "payment_card": "mask"}), World(tmp_path))
    ) as examiner:

        def kept(**delivery: object) -> ClaimIn:
            said = {"sink": "notes", "place": "tea", **delivery}
            return examiner.mask_claim(
                ClaimIn.model_validate({"content": "Tea is at noon.", "delivery": said})
            )[0]

        told = kept(data=data).delivery
        assert told is not None and told.data["metadata"] == {"mail": "*" * len(mail), "n": 1}
        for wrong in (
            {"place": mail},
            {"place": f'["memories", "{VISA}", "tea"]'},
            {"data": {**data, "user_id": mail}},
            {"data": {**data, "run_id": VISA}},
            {"data": {"row": {"id": mail}}},
        ):
            with pytest.raises(ClaimRefused, match="would name something else") as refused:
                kept(**wrong)
            assert refused.value.code == "personal_data"
            assert mail not in str(refused.value) and VISA not in str(refused.value)


def test_the_policy_says_what_becomes_of_each_kind() -> None:
    for kind in KINDS:
        text = f"Ada gave us {FOUND[kind][0]} in May."
        said = {}
        for does in ("queue", "mask", "allow"):
            policy = policy_with(personal_data={kind: does})
            masking = PersonalDataDetector(policy.personal_data.kinds("mask"))
            found = masking.find(text)
            claim = claim_of(mask(text, found), personal=found, source="user", asserted_source="user")
            answer = answer_of(claim, policy=policy)
            assert replay(answer, policy, DETECTOR) == ()
            said[does] = answer
        waits, goes_on, as_it_was = said["queue"], said["mask"], said["allow"]
        assert (waits.tier, waits.rule) == (Tier.QUEUED, Rule.PERSONAL_DATA)
        assert waits.reason == "Holds personal data"
        (finding,) = (each for each in waits.findings if each.check == "personal")
        assert KINDS[kind] in finding.message
        assert [text[span.start : span.end] for span in finding.spans] == [FOUND[kind][0]]
        assert FOUND[kind][0] not in finding.model_dump_json()
        assert finding_view(finding, decides=True).check == "Personal data"
        assert "holds personal data" in next_step(waits)
        assert goes_on.tier is as_it_was.tier is Tier.STORED
        assert "personal_data_masked" in goes_on.checks_passed
        assert "keep it out of whatever else you write" in next_step(
            goes_on.model_copy(update={"decision_id": "dec_1", "memory_id": "mem_1"})
        )
        assert FOUND[kind][0] not in goes_on.model_dump_json()
        assert not [each for each in as_it_was.findings if each.check == "personal"]


def test_what_waits_is_found_beside_the_text_too() -> None:
    for beside in (
        {"metadata": {"notes": [GERMAN]}},
        {"delivery": {"sink": "notes", "place": f"accounts/{GERMAN}", "data": {}}},
    ):
        answer = answer_of(claim_of("The account of the depot is new.", **beside))
        assert answer.rule == Rule.PERSONAL_DATA
        assert answer.findings[0].spans == () or answer.findings[0].check != "personal"


def test_hostile_texts_take_time_as_their_length() -> None:
    parts = (
        *(
            "1",
            "1 ",
            "4111 ",
            "4111-",
            "411111111111111 ",
            "4532015112830366 ",
            "219-45-",
            "219-45-6789 ",
            "1.",
            "1)(",
        ),
        *(
            "+1 ",
            "phone ",
            "phone 1 ",
            "tel 1234567 ",
            "DE89 ",
            "DE89",
            "de89 1 ",
            "a@",
            "a.",
            "a@a.",
            "@",
            "٤",
            "😀4",
            "a-1-",
        ),
        *("order ", "order 4532015112830366 ", "ssn 219456789 ", "<b>4", "4<!--", "://a@b.co ", "a-1-"),
    )
    with given_up_after(30):
        for part in parts:
            ALL.find((part * 32_768)[:32_768])
