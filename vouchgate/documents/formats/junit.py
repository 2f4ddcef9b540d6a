"""JUnit XML: a test suite for each document, a case for each claim."""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

from vouchgate.documents.report import DANGLING, Lines, Report, shown
from vouchgate.ingest.documents.gate import CheckedDocument
from vouchgate.ingest.documents.verdict import CheckedClaim, ClaimVerdict

_NOT_XML = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def write(report: Report) -> str:
    """The report as XML."""
    suites = ET.Element("testsuites", name="vouchgate gate-doc")
    for checked in report.documents:
        _suite(suites, checked)
    if not report.gated.passed:
        suite = ET.SubElement(suites, "testsuite", name="gate", tests="1", failures="1")
        case = ET.SubElement(suite, "testcase", name="the documents pass")
        ET.SubElement(case, "failure", message=_xml("; ".join(report.gated.reasons)))
    ET.indent(suites)
    return ET.tostring(suites, "unicode", xml_declaration=True) + "\n"


def _suite(suites: ET.Element, checked: CheckedDocument) -> None:
    name, lines = checked.document.name, Lines(checked.document.text)
    cases = len(checked.claims) + len(checked.loose)
    suite = ET.SubElement(suites, "testsuite", name=_xml(name), tests=str(cases))
    for one in checked.claims:
        line, _ = lines.at(one.claim.start)
        title = f"{line}: {shown(one.claim.text, 100)}"
        case = ET.SubElement(suite, "testcase", classname=_xml(name), name=_xml(title))
        _outcome(case, checked, one)
    for each in checked.loose:
        title = f"{lines.at(each.start)[0]}: {shown(each.text, 100)}"
        case = ET.SubElement(suite, "testcase", classname=_xml(name), name=_xml(title))
        ET.SubElement(case, "failure", message=DANGLING, type=each.slip.value)
    suite.set("failures", str(len(suite.findall("testcase/failure"))))
    suite.set("errors", str(len(suite.findall("testcase/error"))))
    suite.set("skipped", str(len(suite.findall("testcase/skipped"))))


def _outcome(case: ET.Element, checked: CheckedDocument, one: CheckedClaim) -> None:
    message = _xml(one.message)
    if one.verdict in (ClaimVerdict.VERIFIED, ClaimVerdict.EXEMPT):
        return
    if (entry := checked.accepted.get(checked.fingerprint_of(one))) is not None:
        why = f"{message} Accepted until {entry.until}: {_xml(entry.reason)}"
        ET.SubElement(case, "skipped", message=why)
    elif one.verdict is ClaimVerdict.UNKNOWN:
        ET.SubElement(case, "error", message=message, type=one.verdict.value)
    else:
        ET.SubElement(case, "failure", message=message, type=one.verdict.value)


def _xml(text: str) -> str:
    return _NOT_XML.sub("\ufffd", text)
