"""The files for `docker compose` hang together, as far as that can be told without building an image."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from vouchgate.settings import PREFIX, Settings

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("name", ["compose.yaml", "compose.scale.yaml"])
def test_a_compose_file_names_only_what_there_is(name: str) -> None:
    whole: dict[str, Any] = yaml.safe_load((ROOT / name).read_text("utf-8"))
    services, volumes = whole["services"], whole["volumes"]
    gates = [each for each in services.values() if each.get("build") == "."]
    assert len(gates) == (2 if "scale" in name else 1)
    for service in services.values():
        assert ("build" in service) != ("image" in service)
        assert set(service.get("depends_on", ())) <= set(services)
        for volume in service.get("volumes", ()):
            assert volume.split(":")[0] in volumes or volume.startswith("${")
        for config in service.get("configs", ()):
            assert config["source"] in whole["configs"]
        for port in service.get("ports", ()):
            assert port.startswith("127.0.0.1:"), "only this machine, unless its operator says otherwise"
        for variable in service.get("environment", {}):
            if variable.startswith(PREFIX):
                assert variable.removeprefix(PREFIX).lower() in Settings.model_fields
    if "scale" in name:
        proxied = whole["configs"]["caddyfile"]["content"]
        assert all(f"{gate}:8080" in proxied for gate, each in services.items() if "build" in each)
        # Not yet told apart by anything: one key, one list of erasures, one policy.
        assert all(each["environment"] == gates[0]["environment"] for each in gates)
