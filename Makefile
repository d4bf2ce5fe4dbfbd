# Entry points of the project; each goal includes the necessary set-up on a new machine.
#   make demo         compare the exchange strategies on this machine and recommend some, about a minute after the build
#   make test         all tests (also what continuous integration runs); with HALOSCOPE_STUDIES=OFF, as with every goal,
#                     without the apps, programs and tests of studies/
#   make bench        the performance figures; FIGURE=name for one
#   make check-long   all tests, slow ones too: full strategy matrix, sanitizers, more MPI libraries; resumes killed runs,
#                     with KEEP=1 also from the committed record, which counts the tests of each commit; SINCE=commit
#                     runs those of earlier commits again
#   make studies      the five studies as far as this machine allows, kept under results/studies/; continues killed runs,
#                     RUN=name for one; REPORTS=1 makes the reports again from kept records
#   make mutants      whether tests notice changed lines, those of tests/mutants.toml, which break rows of studies, and
#                     COUNT=n of plans, packing, schedules and the model; continues killed runs
#   make docs         studies/coverage.md and the measured parts of README.md and docs/
#   make site         the pages and the reference of all languages as a searchable site, build/site/index.html
#   make release      the changelog, commit, tag and notes of a release: VERSION=X.Y.Z
#   make format       clang-format and ruff
#   make lint         check format, types, complexity and words of the sources without changes
SHELL := /bin/bash
BUILD ?= build/release
# ON or OFF, as on the command line, else as in the build.
STUDIES = $(or $(HALOSCOPE_STUDIES),$(shell sed -n s/^HALOSCOPE_STUDIES:BOOL=//p $(BUILD)/CMakeCache.txt 2>/dev/null),ON)
VENV  := .venv/bin
# An installed MPI comes first; the MPI that set-up may have put into .venv comes last.
export PATH := $(PATH):$(CURDIR)/.venv/bin
export HALOSCOPE_BUILD := $(CURDIR)/$(BUILD)
# Set in some containers: each of thousands of Python programs would compile its modules, JAX's 600 files too.
unexport PYTHONDONTWRITEBYTECODE

PYTHON := python tests bench scripts packaging studies conftest.py
CPP := '*.cpp' '*.hpp' '*.h' '*.cu' '*.hip'
# Three tests run at a time, since many only wait. With four, ranks that poll take more of two cores.
# If a test ends its process, the run ends too: a new process would begin with the same test.
PYTEST := $(VENV)/python -m pytest -q -m 'not long' -n 3 --dist loadfile --no-loadscope-reorder --max-worker-restart 0
SETUP = HALOSCOPE_STUDIES=$(STUDIES) scripts/setup.sh
TESTED = tests $(if $(filter ON,$(STUDIES)),studies)

.NOTPARALLEL:  # two goals would build in one folder concurrently
.PHONY: demo test docs site bench studies mutants check-long build programs configure setup release format lint clean
demo: programs
	$(VENV)/haloscope demo

test: build
	@$(SETUP) test
	$(PYTEST) $(TESTED)

# studies/coverage.md, the measured parts of README.md and docs/ and the schema, from a test run, results/ and choice.def.
docs: build
	@$(SETUP) test
	$(PYTEST) --junitxml=build/tests.xml tests studies | tee build/tests.txt
	$(VENV)/python studies/coverage.py build/tests.xml $(wildcard results/check-long.xml)
	tail -1 build/tests.txt > results/test.txt
	$(VENV)/python scripts/pages.py
	$(VENV)/python scripts/schema.py

site:
	@$(SETUP) site
	$(VENV)/python scripts/make_site.py

bench: build
	$(VENV)/python -m bench $(if $(FIGURE),--figure $(FIGURE))

studies: build
	$(VENV)/python studies/keep.py $(if $(REPORTS),--reports) $(RUN)

mutants: setup
	$(VENV)/python scripts/mutants.py --rows
	$(VENV)/python scripts/mutants.py $(if $(COUNT),--count $(COUNT))

check-long: build
	$(SETUP) long
	$(VENV)/cmake -DHALOSCOPE_MPI_ABI=ON $(BUILD) >&2 && $(VENV)/cmake --build $(BUILD) -- --quiet >&2
	$(VENV)/python scripts/check_long.py $(if $(SINCE),--since $(SINCE),$(if $(KEEP),--keep))

build: configure
	@$(VENV)/cmake --build $(BUILD) -- --quiet >&2

# The targets that `haloscope` runs and `cmake --install` installs, without tests and benchmarks.
programs: configure
	@$(VENV)/cmake --build $(BUILD) --target haloscope_installed -- --quiet >&2

configure: setup
	@test -e $(BUILD)/build.ninja || $(VENV)/cmake --preset $(notdir $(BUILD)) -DCMAKE_MAKE_PROGRAM=$(CURDIR)/$(VENV)/ninja >&2
	@$(if $(HALOSCOPE_STUDIES),$(VENV)/cmake -DHALOSCOPE_STUDIES=$(HALOSCOPE_STUDIES) $(BUILD) >&2)

setup:
	@$(SETUP)

release: setup
	$(VENV)/python scripts/release.py $(VERSION)

format:
	git ls-files $(CPP) | xargs $(VENV)/clang-format -i
	$(VENV)/ruff format $(PYTHON) && $(VENV)/ruff check --fix $(PYTHON)

lint: setup
	$(VENV)/ruff format --check $(PYTHON)
	$(VENV)/ruff check $(PYTHON)
	$(VENV)/mypy
	git ls-files $(CPP) | xargs $(VENV)/clang-format --dry-run -Werror
	$(VENV)/lizard -C 15 -L 10000 -a 100 -w -W scripts/complex.txt -x '*/tests/*' src include python bench scripts packaging studies
	$(VENV)/python scripts/words.py

clean:
	rm -rf build
