PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

DEMO_LOGS := \
	fixtures/vllm/crash-loop-truncated-shard.log \
	fixtures/vllm/slow-healthy-start.log \
	fixtures/llama-cpp/clean-stop.log

PICTURED_LOG := fixtures/sglang/gpu-flap-ready.log
CHROMIUM ?= $(or $(shell command -v chromium || command -v chromium-browser),chromium)

.DEFAULT_GOAL := help
.PHONY: help install demo test lint types golden docs bench dist clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-8s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

install: $(STAMP) ## make .venv with loopdetect and its tools in it

$(STAMP): setup.cfg pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Python 3.11 or newer is needed: make PYTHON=python3.12 ..." >&2; exit 2; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@

demo: $(STAMP) ## look at three logs: a crash loop, a slow healthy start, a clean stop
	@for log in $(DEMO_LOGS); do \
		echo "\$$ loopdetect inspect $$log"; \
		$(BIN)/loopdetect inspect $$log || exit; \
		echo; \
	done

test: $(STAMP) ## run the tests; ARGS="-k word" for some
	$(BIN)/python -m pytest $(ARGS)

lint: $(STAMP) ## check the style
	$(BIN)/ruff check .

types: $(STAMP) ## check the types
	$(BIN)/mypy

golden: $(STAMP) ## write the expected outputs anew; look at the difference before you commit it
	$(BIN)/python -m pytest tests --update-golden -k golden

docs: $(STAMP) ## draw docs/report.png anew (needs Chromium)
	@mkdir -p build
	$(BIN)/loopdetect inspect $(PICTURED_LOG) --format html -o build/report.html
	$(CHROMIUM) --headless --no-sandbox --disable-gpu --hide-scrollbars --window-size=1180,1205 \
		--screenshot=docs/report.png build/report.html 2>build/chromium.log || \
		{ cat build/chromium.log >&2; exit 1; }

data: $(STAMP) ## compile the profiles and choose what to search for; after each change of a profile
	$(BIN)/python bench/anchors.py

bench: $(STAMP) ## measure speed beside other tools (bench/README.md); ARGS="--size 100M" for less
	$(BIN)/python bench/run.py $(ARGS)
	$(BIN)/python bench/latency.py

dist: $(STAMP) ## build the wheel into dist/
	$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps -w dist .

clean: ## remove all that was made
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
