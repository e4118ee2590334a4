# The commands of a new user: `make demo`, `make demo-real`, `make test`. They set up their own environment in .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/pip --disable-pip-version-check --quiet

# Tests start many processes: each would compile the package anew.
unexport PYTHONDONTWRITEBYTECODE

# Databases and atomic writes wait for a disk: the folders of tests are in memory, where it has room for them.
MEMORY := $(shell [ "$$(df -Pk /dev/shm 2>/dev/null | awk 'NR==2 {print $$4}')" -gt 4000000 ] 2>/dev/null && echo /dev/shm)

SUITE := $(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder -q --ignore tests/architecture --ignore tests/field

.PHONY: demo demo-real test slow check properties field api notebook settings peers clean

demo: $(VENV)/.demo
	$(BIN)/steelyard demo --out demo

# With Gemma 3 270M, under the Gemma Terms of Use: https://ai.google.dev/gemma/terms
demo-real: $(VENV)/.backbones
	$(BIN)/steelyard demo --real --out demo-real

test: $(VENV)/.dev
	$(if $(TMPDIR),,$(if $(MEMORY),TMPDIR=$(MEMORY))) $(SUITE)

# What starts processes, kills them, opens browsers or trains for long.
slow: $(VENV)/.dev
	$(SUITE) -m 'slow and not field'

# The types and the structure side by side; the types are printed last.
check: $(VENV)/.dev
	$(BIN)/ruff check src tests speed studies typings
	$(BIN)/ruff format --check src tests speed studies typings
	@$(BIN)/pyrefly check --min-severity error --output-format min-text > $(VENV)/types.log 2>&1 & types=$$!; \
	$(BIN)/python -m pytest -q tests/architecture; structure=$$?; \
	wait $$types; types=$$?; cat $(VENV)/types.log; exit $$((structure | types))

# Examples of the properties that no run had before, ten times as many; what fails is shown with its numbers.
properties: $(VENV)/.dev
	$(BIN)/python -m pytest -n 2 --dist loadfile -q -m 'hypothesis and not field' --hypothesis-profile=search

field: $(VENV)/.dev
	$(BIN)/python -m pytest -q -m field

# The page of the Python API and the types of its keywords, from the source.
api: $(VENV)/.dev
	$(BIN)/python docs/api_page.py --stubs
	$(BIN)/python docs/api_page.py > docs/api.md

# The notebook in both languages, with the outputs of its cells.
notebook: $(VENV)/.dev
	OMP_NUM_THREADS=1 $(BIN)/python docs/notebook_page.py

# The tables of all settings, from the source.
settings: $(VENV)/.dev
	$(BIN)/python docs/settings_page.py > docs/settings.md

# Published tools, each in an environment of its own: `make field` then makes their golden values again.
ENVIRONMENTS := trl rewardbench inspect_ai ppi_python label_studio potato

peers: $(ENVIRONMENTS:%=.peers/%/.installed) .peers/CheemsRM .peers/OpenRLHF .peers/LLaMA-Factory

# An environment cannot be moved: its programs name its folder. The mark is made last.
$(ENVIRONMENTS:%=.peers/%/.installed): .peers/%/.installed: tests/golden/peers/%.txt
	rm -rf $(@D)
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/pip --disable-pip-version-check --quiet install -r $<
	touch $@

.peers/CheemsRM:
	git clone --quiet --depth 1 https://github.com/AlignRM/CheemsRM $@

# Their loaders alone, in TRL's environment: they cannot be installed without a GPU.
.peers/OpenRLHF:
	git clone --quiet --depth 1 https://github.com/OpenRLHF/OpenRLHF $@

.peers/LLaMA-Factory:
	git clone --quiet --depth 1 https://github.com/hiyouga/LLaMA-Factory $@

$(VENV)/bin/python:
	@echo "setting up $(VENV) (once; a minute or two)"
	$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) install -e '.[demo]' -c constraints.txt
	@touch $@

$(VENV)/.backbones: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) install -e '.[demo,backbones]' -c constraints.txt
	@touch $@ $(VENV)/.demo

$(VENV)/.dev: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) install -e '.[dev]' -c constraints.txt
	@touch $@ $(VENV)/.demo

clean:
	rm -rf $(VENV) .peers demo demo-real .pytest_cache .ruff_cache .hypothesis
