# devmap. Every target is plain POSIX sh: Go, make and git are all it needs. Without a
# C compiler, targets skip the builds with cgo and print a message.

.POSIX:

GO      = go
TOOL    = $(GO) tool -modfile=tools.mod
PKG     = ./...
BENCH   = .
COUNT   = 1
SEED    = $$(date +%s)
VERSION =
ONLY    =

# True if the compiler that cgo would call exists.
CGO_FOUND = command -v "$$($(GO) env CC | cut -d' ' -f1)" >/dev/null 2>&1

# The package cu includes <cuda.h>. Use the project's own, even if there is a toolkit.
CUDA_FLAGS = export CGO_ENABLED=1 CGO_CFLAGS="-O2 -g -I$$PWD/executor/cuda/internal/driver/include"

# Tests of the CUDA executor, and of the command with it, on a fake CUDA driver.
FAKED = $(CUDA_FLAGS); $(GO) test -vet=off -tags cuda ./executor/cuda/... ./executor/nvml && $(GO) test -vet=off -tags cuda -run 'CUDA|NoGPULibrary' ./cmd/devmap

.PHONY: help demo build test check lint fmt cuda bench docs release clean

help: ## List the targets
	@sed -n 's/^\([a-z]*\):[^#]*## \(.*\)/\1|\2/p' Makefile | while IFS='|' read -r name text; do \
		printf '%-8s %s\n' "$$name" "$$text"; done
	@echo 'tools.mk has the targets for maintainers: make tools lists them.'

demo: build ## Plan Qwen2.5-3B training on four H200: the table, then the device map
	bin/devmap plan fixtures/models/qwen2.5-3b --gpus 4 --gpu h200-141gb \
		--mode train --batch 4 --seq 2048 -o bin/qwen2.5-3b.plan.json
	bin/devmap emit bin/qwen2.5-3b.plan.json --for accelerate -o bin/qwen2.5-3b.device_map.json
	cat bin/qwen2.5-3b.device_map.json

build: ## Build bin/devmap for this machine
	$(GO) build -trimpath -buildvcs=auto -o bin/devmap ./cmd/devmap

test: formatted configurations ## Formatting, vet in every build, all tests, 24 recorded commands (SEED=n)
	@$(GO) test -vet=off $(PKG)
	@if $(CGO_FOUND); then $(FAKED); else echo "skipped: the CUDA executor's tests (no C compiler: $$($(GO) env CC))"; fi
	@export SEED=$(SEED); echo "recorded commands: SEED=$$SEED"; $(GO) test -vet=off -run '^TestCorpus$$' ./cmd/devmap

check: house lint prose tidy compared ## What CI runs: house, lint, prose, tidy, PTX, then make test and make corpus
	@$(MAKE) --no-print-directory test
	@$(MAKE) --no-print-directory corpus

lint: ## Run golangci-lint; the first call builds it (minutes)
	@$(TOOL) golangci-lint run ./...
	@echo 'ok: lint'

fmt: ## Format the Go files with gofumpt
	@$(GO_FILES) | xargs $(TOOL) gofumpt -w

docs: ## Build the pages of docs as a static site in bin/site
	@set -e; work=$$(mktemp -d); trap 'rm -rf "$$work"' EXIT; python3 -m venv "$$work/venv"; \
	"$$work/venv/bin/python" -m pip install --quiet --disable-pip-version-check mkdocs==1.6.1 mkdocs-material==9.8.2; \
	NO_MKDOCS_2_WARNING=1 "$$work/venv/bin/mkdocs" build --quiet --strict
	@echo 'ok: bin/site/index.html'

cuda: ## Build bin/devmap with CUDA support and test it; no CUDA toolkit needed
	@$(CUDA_FLAGS); $(GO) build -trimpath -buildvcs=auto -tags cuda -o bin/devmap ./cmd/devmap
	@bin/devmap version
	@$(FAKED)
	@if ! nvidia-smi -L 2>/dev/null; then echo 'skipped: no GPU here (nvidia-smi -L lists none)'; else \
		$(CUDA_FLAGS); export DEVMAP_TEST_GPU=1; \
		$(GO) test -tags cuda -count=1 -v -run '^TestGPU' ./executor/cuda && $(GO) test -tags cuda -count=1 -v -run '^TestDeadGPU' ./executor/cuda; fi

bench: ## Run the benchmarks (BENCH=regexp COUNT=n PYTHON=python3)
	@$(GO) test -run '^$$' -bench '$(BENCH)' -benchmem -count $(COUNT) $(PKG)
	@if [ '$(BENCH)' = . ]; then $(GO) run ./cmd/devmap/internal/peers -python "$${PYTHON:-python3}"; fi
	@if [ '$(BENCH)' != . ]; then :; elif "$${PYTHON:-python3}" -c 'import torch, transformers' 2>/dev/null; then \
		$(GO) run ./cmd/devmap/internal/conformance -python "$${PYTHON:-python3}" -only speed; \
	else echo 'skipped: the comparison with PyTorch (set PYTHON to a Python with torch and transformers)'; fi

release: ## Build bin/release: archives, wheels, an SBOM, a Homebrew formula and checksums (VERSION=1.2.3)
	@CGO_ENABLED=0 $(GO) run ./cmd/devmap/internal/release -version '$(VERSION)' -only '$(ONLY)' -archives bin/release -wheels bin/release

clean: ## Remove what was built and measured
	rm -rf bin
	find . -path './.?*' -prune -o \( -name '*.test' -o -name '*.prof' -o -name '*.got' \) -type f -exec rm -f {} +

# Targets for maintainers: make tools lists them.
include tools.mk
