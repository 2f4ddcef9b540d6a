"""The hook, the action and the GitLab template: what they run is run here, on repositories with documents."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.acceptance.cli_program import clean_environment
from tests.repos import TestRepository

ROOT = Path(__file__).parents[3]
RECORD = "# 3. Fire with wood\n\n## Status\n\nAccepted\n\n## Decision\n\nThe kiln of Vester is fired with beech wood.\n"
TRUE = "# Kiln\n\nThe kiln of Vester is fired with beech wood (ADR-3).\n"
WRONG = "# Kiln\n\nThe kiln of Vester is fired with beech wood (ADR-9).\n"


def yaml_of(name: str) -> Any:  # Any: a YAML document
    return yaml.safe_load((ROOT / name).read_text("utf-8"))


@pytest.fixture
def pottery(tmp_path: Path) -> TestRepository:
    repository = TestRepository(tmp_path / "pottery")
    repository.commit("Fire", {"docs/adr/0003-wood.md": RECORD, "docs/kiln.md": TRUE})
    return repository


def environment(first: Path, **more: str) -> dict[str, str]:
    """With the programs of a folder on the path, before all others."""
    path = f"{first}{os.pathsep}{os.environ['PATH']}"
    return clean_environment({**more, "PATH": path})


def bash(script: str, cwd: Path, env: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """As runners call it: it ends with the first command that fails."""
    return subprocess.run(
        ["bash", "-e", "-o", "pipefail", "-c", script],
        cwd=cwd,
        env=dict(env),
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_hook_refuses_a_commit_with_a_claim_that_does_not_hold(
    pottery: TestRepository, programs: Path
) -> None:
    (hook,) = yaml_of(".pre-commit-hooks.yaml")
    assert {"id", "name", "entry", "language"} <= hook.keys()
    assert set(hook["types_or"]) == {"markdown", "rst", "html"}
    command = shlex.join([*shlex.split(hook["entry"]), *hook["args"]])
    script = pottery.path / ".git" / "hooks" / "pre-commit"
    # What pre-commit does: the files that are in the commit, as arguments, whatever they are called.
    script.write_text(
        f"#!/bin/sh\ngit diff --cached --name-only --diff-filter=AM -z | xargs -0 {command}\n", "utf-8"
    )
    script.chmod(0o755)
    ada = {
        f"GIT_{who}_{what}": told
        for who in ("AUTHOR", "COMMITTER")
        for what, told in (("NAME", "Ada"), ("EMAIL", "ada@example.org"))
    }

    def commit(text: str, env: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
        pottery.write({"docs/kiln.md": text})
        return bash("git add --all && git commit --quiet -m Change", pottery.path, env)

    start = pottery.git("rev-parse", "HEAD")
    refused = commit(TRUE + WRONG, environment(programs, **ada))
    assert refused.returncode != 0
    assert "docs/kiln.md:6:1: BROKEN_CITATION: No ADR-9 exists" in refused.stdout + refused.stderr
    assert pottery.git("rev-parse", "HEAD") == start
    pottery.write({"--fail-on=unknown.md": "It is hot.\n"})
    as_option = commit(TRUE + WRONG, environment(programs, **ada))
    assert (
        as_option.returncode != 0
        and "docs/kiln.md:6:1: BROKEN_CITATION" in as_option.stdout + as_option.stderr
    )
    done = commit(
        TRUE + "\nThe kiln is fired with wood of the beech.\n",
        environment(Path(sys.executable).parent, **ada),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert pottery.git("rev-parse", "HEAD~1") == start


def test_the_action_runs_what_it_is_given_and_nothing_of_its_text(
    pottery: TestRepository, tmp_path: Path, programs: Path
) -> None:
    action = yaml_of("action.yml")
    assert action["runs"]["using"] == "composite"
    steps = action["runs"]["steps"]
    assert all("uses" in step or step["shell"] == "bash" for step in steps)
    used = set(re.findall(r"inputs\.([\w-]+)", (ROOT / "action.yml").read_text("utf-8")))
    assert used == action["inputs"].keys()
    assert not any("${{" in step.get("run", "") for step in steps)
    script = steps[-1]["run"]
    assert set(steps[-1]["env"]) == {"FILES", "OPTIONS", "SARIF"}

    def act(files: str, options: str, runner: str) -> subprocess.CompletedProcess[str]:
        (tmp_path / runner).mkdir()
        given = {"FILES": files, "OPTIONS": options, "SARIF": str(tmp_path / f"{runner}.sarif")}
        return bash(script, pottery.path, environment(programs, **given, RUNNER_TEMP=str(tmp_path / runner)))

    passed = act("docs/kiln.md\n", "--fail-on=false,broken\n", "one")
    assert (passed.returncode, passed.stderr) == (0, "")
    assert '"version": "2.1.0"' in (tmp_path / "one.sarif").read_text("utf-8")
    pottery.commit("Wrong", {"docs/my kiln.md": WRONG})
    failed = act("docs/kiln.md\ndocs/my kiln.md\n", "", "two")
    assert failed.returncode == 1
    assert failed.stdout.startswith("::error file=docs/my kiln.md,line=3,")
    assert '"BROKEN_CITATION"' in (tmp_path / "two.sarif").read_text("utf-8")
    assert act("docs/kiln.md; touch ran\n$(touch ran)\n", "", "three").returncode == 2
    assert not (pottery.path / "ran").exists()


def test_the_gitlab_template_reports_as_junit(
    pottery: TestRepository, tmp_path: Path, programs: Path
) -> None:
    (job,) = yaml_of("deploy/gitlab/gate-doc.yml").values()
    assert job["artifacts"]["reports"]["junit"] == "gate-doc.xml"
    script = "\n".join(job["script"])
    pottery.commit("Wrong", {"docs/wrong.md": WRONG})
    for files, status in (("docs/kiln.md", 0), ("docs/kiln.md docs/wrong.md", 1), ("nowhere.md", 2)):
        given = {**job["variables"], "GATE_DOC_FILES": files, "CI_BUILDS_DIR": str(tmp_path)}
        done = bash(script, pottery.path, environment(programs, **given))
        assert done.returncode == status, done.stderr
        failures = (pottery.path / "gate-doc.xml").read_text("utf-8").count("<failure")
        assert (failures > 0) == (status == 1)
