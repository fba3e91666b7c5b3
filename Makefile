# devmap. Every target is plain POSIX sh: Go, make and git are all it needs.
# A machine with no C compiler skips the cgo configurations, and says so.

.POSIX:

GO       = go
TOOL     = $(GO) tool -modfile=tools.mod
BENCH    = .
COUNT    = 1
FUZZTIME = 20s
PKG      = ./...
ONLY     =
SWEEP_TIME = 3m
SEED     = $$(date +%s)
VERSION  =
SWEEP_CASE =
PIPELINES = 5000
DRAWS    = 4
CUTS     = 40
PART     =
FAMILY   =
CONFIGS  = 200

# cgo is 1 where the compiler that Go would call exists, else empty.
CGO_FOUND = command -v "$$($(GO) env CC | cut -d' ' -f1)" >/dev/null 2>&1

# Go files that gofmt holds: not hidden folders, not testdata (some is broken on purpose).
GO_FILES = find . -path './.?*' -prune -o -name testdata -prune -o -name '*.go' -print

.PHONY: help demo build test check cuda accuracy lint house tidy formatted configurations bench programs bits conformance oracle presets exporter gpu kernels compared wheels release python fuzz sweep corpus golden fmt clean

help: ## List the targets
	@sed -n 's/^\([a-z]*\):[^#]*## \(.*\)/  \1|\2/p' Makefile | while IFS='|' read -r name text; do \
		printf '%-11s %s\n' "$$name" "$$text"; done

demo: build ## Plan Qwen2.5-3B training on four H200: the table, then the map
	bin/devmap plan fixtures/models/qwen2.5-3b --gpus 4 --gpu h200-141gb \
		--mode train --batch 4 --seq 2048 -o bin/qwen2.5-3b.plan.json
	bin/devmap emit bin/qwen2.5-3b.plan.json --for accelerate -o bin/qwen2.5-3b.device_map.json
	cat bin/qwen2.5-3b.device_map.json

build: ## Build bin/devmap; its version comes from the build information
	$(GO) build -trimpath -buildvcs=auto -o bin/devmap ./cmd/devmap

test: formatted configurations ## Formatting, vet, every build configuration, the tests, the CUDA executor's on a driver that is none, recorded commands drawn by a printed SEED
	@$(GO) test -vet=off $(PKG)
	@if $(CGO_FOUND); then $(FAKED); else echo "skipped: the CUDA executor's tests (no C compiler: $$($(GO) env CC))"; fi
	@export SEED=$(SEED); echo "recorded commands: SEED=$$SEED"; $(GO) test -vet=off -run '^TestCorpus$$' ./cmd/devmap

check: house lint tidy compared ## What CI runs: house, lint, tidy module files, PTX as its sources make it, then make test and make corpus
	@$(MAKE) --no-print-directory test
	@$(MAKE) --no-print-directory corpus

lint: ## Run golangci-lint (built on the first call: minutes)
	@$(TOOL) golangci-lint run ./...
	@echo 'ok: lint'

house: ## Cycles of files, methods a type, packages, lines, exported names, private words: each with its limit, in all builds
	@$(GO) run ./cmd/devmap/internal/house
	@echo 'ok: house'

tidy: ## Fail if go.mod or go.sum is not tidy
	@$(GO) mod tidy -diff
	@echo 'ok: go.mod and go.sum are tidy'

formatted:
	@gofmt="$$($(GO) env GOROOT)/bin/gofmt"; \
	unformatted=$$($(GO_FILES) | xargs "$$gofmt" -l) || exit 1; \
	if [ -n "$$unformatted" ]; then \
		echo "gofmt would change these files (run 'make fmt'):" >&2; \
		echo "$$unformatted" >&2; exit 1; \
	fi
	@echo 'ok: gofmt'

# Vet type-checks test files too; build links what vet cannot see. The first
# configuration is Go's own here, which the tests share: cgo where there is a C
# compiler. Another one compiles and links the command, and vets the packages whose
# files it changes, with those that import them. A tag that matches no package exits
# 0, so each backend folder keeps an untagged file.
configurations:
	@$(GO) build ./... && $(GO) vet ./...
	@echo "ok: build and vet, CGO_ENABLED=$$($(GO) env CGO_ENABLED)"
	@files=$$($(FILES)) && export CGO_ENABLED=0 && $(CHANGED)
	@echo 'ok: build and vet, pure Go'
	@files=$$($(FILES)) && export CGO_ENABLED=0 GOFLAGS="$$GOFLAGS -tags=cuda" && $(CHANGED)
	@echo 'ok: build and vet, pure Go asked for cuda'
	@if $(CGO_FOUND); then \
		files=$$($(FILES)) && $(CUDA_FLAGS) GOFLAGS="$$GOFLAGS -tags=cuda" && $(CHANGED) || exit 1; \
		echo 'ok: build and vet, cgo with cuda'; \
	else \
		echo "skipped: the cgo configurations (no C compiler: $$($(GO) env CC))"; \
	fi

# FILES lists what a configuration compiles of each package, and what that imports.
FILES = $(GO) list -f '{{.ImportPath}}|{{.GoFiles}} {{.CgoFiles}} {{.CFiles}} {{.SFiles}} {{.TestGoFiles}} {{.XTestGoFiles}}|{{join .Deps " "}} {{join .TestImports " "}} {{join .XTestImports " "}}' ./...

# CHANGED compiles and links the command in a configuration, and vets the packages
# whose files are not those of the first one ($files), and whatever imports one of them.
CHANGED = $(GO) build -o /dev/null ./cmd/devmap && { echo "$$files"; echo -; $(FILES); } | awk -F'|' \
	'$$0 == "-" { second = 1; next } \
	!second { before[$$1] = $$2; next } \
	{ imports[$$1] = $$3; if (before[$$1] != $$2) changed[$$1] = 1 } \
	END { do { grown = 0; for (p in imports) if (!(p in changed)) { n = split(imports[p], all, " "); for (i = 1; i <= n; i++) if (all[i] in changed) { changed[p] = grown = 1; break } } } while (grown); \
		for (p in changed) print p }' | xargs -r $(GO) vet

# cu includes <cuda.h>: this is the project's own, whatever a toolkit has.
CUDA_FLAGS = export CGO_ENABLED=1 CGO_CFLAGS="-O2 -g -I$$PWD/executor/cuda/internal/driver/include"

# The CUDA executor's tests on a driver that is none, and those of the command with
# it: what it says of faults, and that no GPU library is linked.
FAKED = $(CUDA_FLAGS); $(GO) test -vet=off -tags cuda ./executor/cuda/... ./executor/nvml && $(GO) test -vet=off -tags cuda -run 'CUDA|NoGPULibrary' ./cmd/devmap

cuda: ## Build bin/devmap with the backend of GPUs, say what it finds here, test it: on a driver that is none, then on the GPU that is found
	@$(CUDA_FLAGS); $(GO) build -trimpath -buildvcs=auto -tags cuda -o bin/devmap ./cmd/devmap
	@bin/devmap version
	@$(FAKED)
	@if ! nvidia-smi -L 2>/dev/null; then echo 'skipped: no GPU here (nvidia-smi -L lists none)'; else \
		$(CUDA_FLAGS); export DEVMAP_TEST_GPU=1; \
		$(GO) test -tags cuda -count=1 -v -run '^TestGPU' ./executor/cuda && $(GO) test -tags cuda -count=1 -v -run '^TestDeadGPU' ./executor/cuda; fi

bench: ## Benchmarks (BENCH=regexp COUNT=n, fit for benchstat), then Accelerate, OpenBLAS and PyTorch beside devmap (PYTHON=python3)
	@$(GO) test -run '^$$' -bench '$(BENCH)' -benchmem -count $(COUNT) $(PKG)
	@if [ '$(BENCH)' = . ]; then $(GO) run ./cmd/devmap/internal/peers -python "$${PYTHON:-python3}"; fi
	@if [ '$(BENCH)' = . ]; then $(GO) run ./executor/cpu/internal/products -python "$${PYTHON:-python3}"; fi
	@if [ '$(BENCH)' != . ]; then :; elif "$${PYTHON:-python3}" -c 'import torch, transformers' 2>/dev/null; then \
		$(GO) run ./cmd/devmap/internal/conformance -python "$${PYTHON:-python3}" -only speed; \
	else echo 'PyTorch beside the CPU reference skipped: set PYTHON to a Python that has torch and transformers'; fi

accuracy: ## Predicted against measured peaks, with the error of each GPU
	@out=$$($(GO) test -count=1 -run 'Accuracy|Reserved|Overhead|Slack|LoRA|Images|StepTime|Measured|Published|DeepSpeedEstimator|ZeroPaper' -v ./costmodel/internal/accuracy ./costmodel/internal/ops ./costmodel/estimate ./costmodel/estimate/internal/engine) && status=0 || status=1; \
	echo "$$out" | sed -e '/^=== /d' -e 's/^        //'; exit $$status

programs: ## Programs of every family, schedule, cut: planned = laid out = alive + idle bytes, planned = played steps (ONLY=section; minutes)
	@$(GO) run ./executor/compile/internal/figures -only '$(ONLY)'

bits: ## Programs of every family and way to run, cut CUTS ways each: the reference backend makes one device's bits (SEED=n CUTS=40)
	$(GO) test ./executor/cpu -count=1 -run '^TestBits$$' -cuts $(CUTS) -seed $(SEED)

conformance: ## devmap run beside PyTorch and Transformers, every figure with its bar (ONLY=sections SEED=n DRAWS=4 PYTHON=one that has them; else a new environment)
	@$(GO) run ./cmd/devmap/internal/conformance -python "$${PYTHON:-}" -only '$(ONLY)' -seed "$(SEED)" -draws $(DRAWS)

# The pinned versions are those that modelgraph/hf was written after; OpenPI's are those of its pyproject.toml.
OPENPI_PINS = jax==0.5.3 jaxlib==0.5.3 flax==0.10.2 'numpy<2' beartype==0.19.0 jaxtyping==0.2.36 augmax einops chex==0.1.90 orbax-checkpoint==0.11.13 optax dm-tree equinox==0.11.12 ml_collections==1.0.0
presets: ## The defaults of --preset beside those of the pinned packages, whose wheels are read and not installed (NEWEST=1: of the newest; PYTHON=python3)
	@"$(or $(PYTHON),python3)" cmd/devmap/internal/ask/presets.py

oracle: ## Drawn configs of every family beside Transformers' modules on the meta device; FOLDERS=1: checkpoint folders and their device maps; OPENPI=CHECKOUT: the arrays of its models, and where JAX puts them on eight devices of the host; COMPONENTS=1: diffusers' components (FAMILY="types" CONFIGS=200 of each SEED=n PYTHON=one with torch 2.11.0, transformers 5.17.0, accelerate, and diffusers 0.42.1 for components; else a new environment)
	@set -e; work=$$(mktemp -d); trap 'rm -rf "$$work"' EXIT; python="$${PYTHON:-}"; \
	if [ -z "$$python" ]; then \
		python3 -m venv "$$work/venv"; python="$$work/venv/bin/python"; \
		"$$python" -m pip install --quiet $(if $(OPENPI),$(OPENPI_PINS),torch==2.11.0 transformers==5.17.0 accelerate==1.15.0 $(if $(COMPONENTS),diffusers==0.42.1)); fi; \
	export PYTHONDONTWRITEBYTECODE=1 ORACLE_SEED="$(SEED)"; \
	if [ -n "$(OPENPI)" ]; then \
		OPENPI="$(OPENPI)" "$$python" fixtures/oracle/openpi.py > "$$work/openpi.json.gz"; \
		DEVMAP_OPENPI="$$work/openpi.json.gz" $(GO) test ./modelgraph/hf ./costmodel/internal/accuracy -count=1 -run '^(TestPi0|TestAccuracyJAX.*)$$'; \
	elif [ -n "$(COMPONENTS)" ]; then \
		"$$python" fixtures/oracle/components.py $(CONFIGS) "$$work/drawn.jsonl.gz" $(FAMILY); \
		DEVMAP_COMPONENTS="$$work/drawn.jsonl.gz" $(GO) test ./modelgraph/diffusers -count=1 -run '^TestComponents$$'; \
	elif [ -n "$(FOLDERS)" ]; then \
		$(GO) build -trimpath -o "$$work/devmap" ./cmd/devmap; \
		DEVMAP="$$work/devmap" "$$python" fixtures/oracle/checkpoints.py $(if $(filter command%,$(origin CONFIGS)),$(CONFIGS),8) "$$work/drawn.jsonl.gz" $(FAMILY); \
		DEVMAP_FOLDERS="$$work/drawn.jsonl.gz" $(GO) test ./modelgraph/hf -count=1 -run '^TestCheckpoints$$'; \
	else \
		"$$python" fixtures/oracle/families.py $(CONFIGS) "$$work/drawn.jsonl.gz" $(FAMILY); \
		DEVMAP_ORACLE="$$work/drawn.jsonl.gz" $(GO) test ./modelgraph/hf -count=1 -run '^TestFamilies$$'; fi

exporter: ## Modules of Transformers as devmap.export describes them beside the readers of their configs: parameters, ties, units, peaks, a table (FAMILY="types" PYTHON=one with torch 2.11.0 and transformers 5.17.0; else a new environment)
	@set -e; work=$$(mktemp -d); trap 'rm -rf "$$work"' EXIT; python="$${PYTHON:-}"; \
	if [ -z "$$python" ]; then \
		python3 -m venv "$$work/venv"; python="$$work/venv/bin/python"; \
		"$$python" -m pip install --quiet torch==2.11.0 transformers==5.17.0; fi; \
	PYTHONDONTWRITEBYTECODE=1 "$$python" fixtures/oracle/exported.py all "$$work/exported.jsonl.gz" $(FAMILY) || true; \
	DEVMAP_EXPORTED="$$work/exported.jsonl.gz" $(GO) test ./planner -count=1 -run '^TestExported$$' -v | grep -v '^ *--- PASS\|^=== '

gpu: ## devmap run on this machine's GPU, every figure with its bar (PART=memory,step; PART=help lists them; SEED=n PYTHON=python3 with torch; bin/ as it is where there is no Go)
	@if [ '$(PART)' != help ] && command -v $(GO) >/dev/null 2>&1 && $(CGO_FOUND); then \
		$(CUDA_FLAGS); $(GO) build -trimpath -ldflags '-s -w' -tags cuda -o bin/devmap ./cmd/devmap && \
		$(GO) test -trimpath -ldflags '-s -w' -tags cuda -c -o bin/cuda.test ./executor/cuda && \
		$(GO) test -trimpath -ldflags '-s -w' -tags cuda -c -o bin/kernel.test ./executor/cuda/internal/kernel; fi
	@PYTHONDONTWRITEBYTECODE=1 "$${PYTHON:-python3}" cmd/devmap/internal/gpu/gpu.py bin/devmap --part '$(PART)' --seed "$(SEED)" --keep bin/gpu --table bin/gpu.md

wheels: ## Build bin/wheels: a Python wheel a platform, the program inside (VERSION=1.2.3; as git describes the commit)
	@CGO_ENABLED=0 $(GO) run ./cmd/devmap/internal/release -version '$(VERSION)' -only '$(ONLY)' -wheels bin/wheels

release: ## Build bin/release: an archive a platform, with completion files, man page and checksums (VERSION=1.2.3)
	@CGO_ENABLED=0 $(GO) run ./cmd/devmap/internal/release -version '$(VERSION)' -only '$(ONLY)' -archives bin/release

python: ## The Python package in its wheel, under real Transformers, Accelerate and Lightning on the CPU (PYTHON=one that has them; else a new environment of 5 GB)
	@set -e; work=$$(mktemp -d); trap 'rm -rf "$$work"' EXIT; python="$${PYTHON:-}"; export PYTHONDONTWRITEBYTECODE=1; \
	CGO_ENABLED=0 $(GO) run ./cmd/devmap/internal/release -only host -wheels "$$work"; \
	if [ -z "$$python" ]; then \
		python3 -m venv "$$work/venv"; python="$$work/venv/bin/python"; \
		"$$python" -m pip install --quiet --pre --no-index --find-links "$$work" devmap; \
		"$$python" -m pip install --quiet torch==2.11.0 transformers==5.17.0 accelerate==1.15.0 lightning==2.6.6; \
		"$$python" -m pip check; "$$work/venv/bin/devmap" version; \
	else "$$python" -m pip install --quiet --pre --no-index --no-deps --find-links "$$work" --target "$$work/site" devmap; fi; \
	export PYTHONPATH="$$work/site$${PYTHONPATH:+:$$PYTHONPATH}"; unset DEVMAP_BINARY; \
	for names in 'test_*.py' 'torch_*.py'; do "$$python" -m unittest discover -s modelgraph/python/tests -p "$$names"; done

kernels: ## Make the PTX of the CUDA kernels anew, in a throw-away environment (PYTHON=python3; minutes, no GPU)
	@executor/cuda/internal/ptx/make.sh

compared:
	@executor/cuda/internal/ptx/make.sh check

# Go's coordinator may end the time it was given as a failure of its own
# (golang.org/issue/75804): "context deadline exceeded", with no input that fails.
OUT_OF_TIME = awk '/^ *context deadline exceeded$$/ { over = 1 } /Failing input written|panic|hung|data race/ { bad = 1 } END { exit !over || bad }'

fuzz: ## Run every fuzz target for FUZZTIME each (default 20s)
	@packages=$$($(GO) list $(PKG)) || exit 1; ran=0; \
	for package in $$packages; do \
		listed=$$($(GO) test -list '^Fuzz' "$$package") || { echo "$$listed" >&2; exit 1; }; \
		for target in $$(echo "$$listed" | grep '^Fuzz'); do \
			echo "$$package $$target"; \
			said=$$($(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) -timeout 0 "$$package" 2>&1) || { \
				echo "$$said" | $(OUT_OF_TIME) || { echo "$$said" >&2; exit 1; }; }; \
			echo "$$said" | tail -n 2; \
			ran=$$((ran + 1)); \
		done; \
	done; \
	echo "$$ran fuzz targets ran for $(FUZZTIME) each"; [ "$$ran" -gt 0 ]

sweep: ## Random commands and pipelines from a seed, each answer held to its word (SWEEP_TIME=3m SEED=n SWEEP_CASE=one PIPELINES=5000)
	@seed=$(SEED); status=0; \
	SWEEP_TIME=$(SWEEP_TIME) SEED=$$seed SWEEP_CASE=$(SWEEP_CASE) \
		$(GO) test -count=1 -timeout 0 -run '^TestSweep$$' -v ./cmd/devmap || status=1; \
	if [ -z '$(SWEEP_CASE)' ]; then \
		$(GO) test ./planner -count=1 -timeout 0 -run RandomPipelines -v -pipelines $(PIPELINES) -pipeline-seed $$seed || status=1; \
	fi; exit $$status

corpus: ## 1,568 recorded commands over all models and strategies: status, output and files as they were; part of make check
	@CORPUS=all $(GO) test -count=1 -run '^TestCorpus$$' -v ./cmd/devmap

golden: ## Rewrite golden files (tests that see UPDATE_GOLDEN=1); read the diff
	@UPDATE_GOLDEN=1 $(GO) test -count=1 $(PKG)
	@git diff --stat

fmt: ## Format with gofumpt
	@$(GO_FILES) | xargs $(TOOL) gofumpt -w

clean: ## Remove what was built and measured
	rm -rf bin
	find . -path './.?*' -prune -o \( -name '*.test' -o -name '*.prof' -o -name '*.got' \) -type f -exec rm -f {} +
