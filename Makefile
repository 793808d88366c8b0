# GaussiAnimate. `make demo` runs the main job, `make test` the tests; each installs all it needs.

PYTHON ?= $(shell .ci/find-python)
BPY ?= 5.3.0
VENV ?= .venv
BIN := $(VENV)/bin
BLENDER ?= blender
PLATFORMS ?= current
PYTEST_ARGS ?=
BENCH ?=
CAPTURES ?=
EVALUATE_ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help demo test test-lts test-gui extension bench evaluate lint clean

help: ## Show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-10s %s\n", $$1, $$2}'

demo: $(VENV)/.ready-run ## Import, rig, pose and bake the sample capture; results in demo/
	$(BIN)/python examples/demo.py

test: $(VENV)/.ready-dev ## Run all tests on Blender 5.3
	$(BIN)/python -m pytest $(PYTEST_ARGS)

test-lts: ## Run the same tests on Blender 5.2 LTS
	$(MAKE) test BPY=5.2.3 VENV=.venv-lts

test-gui: ## Drive a real Blender window (BLENDER=command that starts it)
	tests/gui/run.sh $(BLENDER)

extension: $(VENV)/.ready-dev ## Build and validate dist/*.zip (PLATFORMS=all for every platform)
	$(BIN)/python .ci/build_extension.py --platforms $(PLATFORMS)

bench: $(VENV)/.ready-dev ## Time every stage, as ratios in one run (BENCH="import ssdr" for some)
	$(BIN)/python benchmarks $(BENCH)

evaluate: $(VENV)/.ready-dev ## Answer held-out poses by every method (CAPTURES="a.npz ...")
	$(BIN)/python benchmarks/evaluate.py $(CAPTURES) $(EVALUATE_ARGS)
	$(BIN)/python benchmarks/motion_sweeps.py $(firstword $(CAPTURES)) --plots docs/images
	$(BIN)/python benchmarks/skeleton_sweeps.py $(lastword $(CAPTURES)) --plots docs/images

lint: $(VENV)/.ready-dev ## Check style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright --pythonpath $(BIN)/python

clean: ## Remove environments and everything made
	rm -rf .venv .venv-lts build dist demo *.egg-info

$(VENV)/.ready-run: pyproject.toml .ci/setup
	.ci/setup "$(PYTHON)" $(VENV) "bpy==$(BPY)" "."
	touch $@

$(VENV)/.ready-dev: pyproject.toml .ci/setup
	.ci/setup "$(PYTHON)" $(VENV) "bpy==$(BPY)" ".[dev,torch]"
	touch $@ $(VENV)/.ready-run
