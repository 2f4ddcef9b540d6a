"""Files of settings are read setting by setting, each under its keys; measures and spans of time however written."""

from __future__ import annotations

import pytest

from vouchgate.ingest.claims.citation import Citation
from vouchgate.ingest.claims.source import Found, Stance, Standing
from vouchgate.ingest.language.settings import settings_of
from vouchgate.ingest.support.holding import hold

YAML = """# How the two differ is in another file.
log_level: info
bakery:
  ovens: 6
  door:
    port: 8460
    timeout_seconds: 30   # as long as a loaf is carried
trial:
  ovens: 2
  door:
    port: 9000
    # tls: true
    wait_ms: 8000
# planned
new_port: 81
"""
TOML = """[tool.oven]
heat = 230
[tool.mixer]
heat = 21
speeds = [
  "slow",
]
"""
JSON = """{
  "oven": {"door": "left"},
  "mixer": {
    "bowl": {
      "litres": 40
    }
  }
}
"""
TABLE = """| Key | Default | Meaning |
|---|---|---|
| `dough.limit` | `2GiB` | larger ones wait |
| `oven.ask_after` | `80ms` | ask another oven after this time. `0` turns it off |
| `oven.wait` | `30s` | how long a loaf may wait |
"""


def stance_to(claim: str, text: str, title: str) -> Stance:
    citation = Citation(type="path", value=title, key=f"path:{title}")
    found = Found(
        citation=citation,
        source_id=title,
        standing=Standing.IN_FORCE,
        detail="",
        title=title,
        text=text,
        form="file",
    )
    (held,) = hold(claim, (), found).held or ()
    return held.stance


@pytest.mark.parametrize(
    ("claim", "text", "title"),
    [
        ("bakery.ovens is 6.", YAML, "conf/bakery.yaml"),
        ("`trial.ovens` is set to 2.", YAML, "conf/bakery.yaml"),
        ("The trial door port is 9000.", YAML, "conf/bakery.yaml"),
        ("The log level is info.", YAML, "conf/bakery.yaml"),
        ("bakery.door.timeout_seconds is 30.", YAML, "conf/bakery.yaml"),
        ("The bakery door timeout is half a minute.", YAML, "conf/bakery.yaml"),
        ("The trial door wait is 8 seconds.", YAML, "conf/bakery.yaml"),
        ("The proofing takes one and a half hours.", "The proofing takes 90 minutes.", "docs/proofing.md"),
        ("tool.oven.heat is 230.", TOML, "pyproject.toml"),
        ("The mixer's heat is 21.", TOML, "pyproject.toml"),
        ("mixer.bowl.litres is 40.", JSON, "conf/mixer.json"),
        ("`dough.limit` defaults to 2 GiB.", TABLE, "docs/settings.md"),
        ("`oven.ask_after` defaults to 80 ms.", TABLE, "docs/settings.md"),
        ("`oven.wait` is 30 seconds by default.", TABLE, "docs/settings.md"),
        ("A label has 64 byte.", "A label has 64byte.", "docs/labels.md"),
        ("A loaf waits for 5 minutes.", "loaf_waits = 5 * time.Minute", "src/loaf.go"),
    ],
)
def test_what_a_setting_says_is_stated(claim: str, text: str, title: str) -> None:
    assert stance_to(claim, text, title) is Stance.STATES


@pytest.mark.parametrize(
    ("claim", "text", "title"),
    [
        ("bakery.ovens is 2.", YAML, "conf/bakery.yaml"),  # another's value
        ("trial.log_level is info.", YAML, "conf/bakery.yaml"),  # another's key
        ("There are 6 ovens.", YAML, "conf/bakery.yaml"),  # two say otherwise, and nobody said which
        ("door.port is 9000.", YAML, "conf/bakery.yaml"),
        ("trial.door.tls is true.", YAML, "conf/bakery.yaml"),  # it is a comment
        ("The new port is 81.", YAML, "conf/bakery.yaml"),  # it is planned
        ("The trial door wait is 8 minutes.", YAML, "conf/bakery.yaml"),
        ("The log level is 8460.", YAML, "conf/bakery.yaml"),
        ("tool.oven.heat is 21.", TOML, "pyproject.toml"),
        ("`dough.limit` defaults to 2 MiB.", TABLE, "docs/settings.md"),
        ("`oven.ask_after` defaults to 80 seconds.", TABLE, "docs/settings.md"),
        ("`oven.wait` is 30 minutes by default.", TABLE, "docs/settings.md"),
        ("The proofing takes two and a half hours.", "The proofing takes 90 minutes.", "docs/proofing.md"),
        ("A loaf waits for 5 hours.", "loaf_waits = 5 * time.Minute", "src/loaf.go"),
        ("It was so for 1960 seconds.", "It was so in the 1960s.", "docs/past.md"),
    ],
)
def test_what_none_says_is_not(claim: str, text: str, title: str) -> None:
    assert stance_to(claim, text, title) is not Stance.STATES


def test_each_line_has_the_keys_above_it() -> None:
    text = "a:\n  - b: 1\n    c: |\n      d: 2\n    e: 3\nf: 4\n"
    found = [(one.key, [text[start:end] for start, end in one.above]) for one in settings_of(text)]
    assert found == [("a", []), ("b", ["a"]), ("c", ["a"]), ("", ["a", "c"]), ("e", ["a"]), ("f", [])]


@pytest.mark.parametrize(
    "line", ["a:\n", " " * 40 + "a: 1\n", "[a]\n", "- " * 30 + "\n", '"""\n', "a: |\n", "# a: b\n", "["]
)
def test_long_files_are_read_in_no_time(line: str) -> None:
    text = line * (200_000 // len(line))
    assert len(list(settings_of(text))) <= text.count("\n") + 1
    assert stance_to("The oven has a door.", text[:200_000], "conf/long.yaml") is not Stance.STATES
