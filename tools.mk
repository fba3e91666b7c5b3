# Targets for maintainers. The Makefile includes this file: make NAME runs one, and
# CONTRIBUTING.md has a line for each.

FUZZTIME   = 20s
SWEEP_TIME = 3m
SWEEP_CASE =
PIPELINES  = 5000
DRAWS      = 4
CUTS       = 40
PART       =
FAMILY     =
CONFIGS    = 200

# The Go files that gofmt checks, without hidden folders and testdata, where some files
# are broken on purpose.
GO_FILES = find . -path './.?*' -prune -o -name testdata -prune -o -name '*.go' -print

# FILES lists the source files and imports of each package in a configuration.
FILES = $(GO) list -f '{{.ImportPath}}|{{.GoFiles}} {{.CgoFiles}} {{.CFiles}} {{.SFiles}} {{.TestGoFiles}} {{.XTestGoFiles}}|{{join .Deps " "}} {{join .TestImports " "}} {{join .XTestImports " "}}' ./...

# CHANGED builds the command in a configuration, and vets each package whose files
# differ from the first configuration ($files), and every package that imports one.
CHANGED = $(GO) build -o /dev/null ./cmd/devmap && { echo "$$files"; echo -; $(FILES); } | awk -F'|' \
	'$$0 == "-" { second = 1; next } \
	!second { before[$$1] = $$2; next } \
	{ imports[$$1] = $$3; if (before[$$1] != $$2) changed[$$1] = 1 } \
	END { do { grown = 0; for (p in imports) if (!(p in changed)) { n = split(imports[p], all, " "); for (i = 1; i <= n; i++) if (all[i] in changed) { changed[p] = grown = 1; break } } } while (grown); \
		for (p in changed) print p }' | xargs -r $(GO) vet

# What looks for faults of access in the report's page.
AXE_PIN = axe-core@4.14.1

# The versions that modelgraph/hf follows; OpenPI's are those of its pyproject.toml.
OPENPI_PINS = jax==0.5.3 jaxlib==0.5.3 flax==0.10.2 'numpy<2' beartype==0.19.0 jaxtyping==0.2.36 augmax einops chex==0.1.90 orbax-checkpoint==0.11.13 optax dm-tree equinox==0.11.12 ml_collections==1.0.0

# Go's fuzzing can fail at its time limit without a failing input: "context deadline
# exceeded" (golang.org/issue/75804). That is no failure here. By default it may spend a
# minute on making one new input smaller, which is more than FUZZTIME.
OUT_OF_TIME = awk '/^ *context deadline exceeded$$/ { over = 1 } /Failing input written|panic|hung|data race/ { bad = 1 } END { exit !over || bad }'

.PHONY: tools accuracy bits browser compared configurations conformance corpus engines exporter formatted fuzz golden gpu house kernels oracle paint presets programs prose python sweep tidy wheels

tools: ## List the targets of this file
	@sed -n 's/^\([a-z]*\):[^#]*## \(.*\)/\1|\2/p' tools.mk | while IFS='|' read -r name text; do \
		printf '%-14s %s\n' "$$name" "$$text"; done

accuracy: ## Print predicted and measured peaks with the error of each GPU
	@out=$$($(GO) test -count=1 -run 'Accuracy|Reserved|Overhead|Slack|LoRA|Images|StepTime|Measured|Published|DeepSpeedEstimator|ZeroPaper' -v ./costmodel/internal/accuracy ./costmodel/internal/ops ./costmodel/estimate ./costmodel/estimate/internal/engine) && status=0 || status=1; \
	echo "$$out" | sed -e '/^=== /d' -e 's/^        //'; exit $$status

bits: ## Run random programs on the CPU; compare all cuts bit by bit (SEED=n CUTS=40)
	$(GO) test ./executor/cpu -count=1 -run '^TestBits$$' -cuts $(CUTS) -seed $(SEED)

browser: ## Test the report's page in a headless Chromium (ONLY=regexp SCREENSHOTS=folder)
	@command -v chromium >/dev/null || { echo 'skipped: no chromium on this machine (apt-get install chromium)'; exit 0; }; \
	set -e; work=$$(mktemp -d); trap 'rm -rf "$$work"' EXIT; \
	if command -v npm >/dev/null; then (cd "$$work" && npm pack --silent $(AXE_PIN) >/dev/null && tar xzf axe-core-*.tgz package/axe.min.js); export AXE="$$work/package/axe.min.js"; \
	else echo 'skipped: faults that axe-core finds (no npm)'; fi; \
	SCREENSHOTS='$(abspath $(SCREENSHOTS))' $(GO) test -C cmd/devmap/internal/page/browser -count=1 -v -run '$(ONLY)' .

compared: ## Check that the committed PTX is what its sources compile to
	@executor/cuda/internal/ptx/make.sh check

# Vet also type-checks test files, and build finds link errors. The first configuration
# is Go's default, which the tests share: cgo if there is a C compiler. The others build
# the command, and vet the packages whose files differ, with those that import them. A
# tag that matches no package exits 0, so each backend folder keeps an untagged file.
configurations: ## Build and vet without cgo, with cgo, and with the tag cuda
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

conformance: ## Compare devmap run with PyTorch and Transformers (ONLY=sections SEED=n DRAWS=4 PYTHON=python3)
	@$(GO) run ./cmd/devmap/internal/conformance -python "$${PYTHON:-}" -only '$(ONLY)' -seed "$(SEED)" -draws $(DRAWS)

corpus: ## Replay all recorded commands; compare status, output and files
	@set -e; work=$$(mktemp -d); trap 'rm -rf "$$work"' EXIT; $(GO) test -vet=off -c -o "$$work/replay" ./cmd/devmap; cd cmd/devmap; \
	half() { CORPUS=$$1/2 "$$work/replay" -test.run '^TestCorpus$$' -test.v; }; \
	half 1 & half 2 && wait $$!

# The pinned environments of the training programs; a package that two disagree on is in
# one of them alone.
JOBS_transformers      = torch transformers==5.24.0 accelerate==1.15.0 deepspeed==0.19.8
JOBS_accelerate-config = torch accelerate==1.15.0
JOBS_trl               = torch trl==1.16.0 peft==0.21.2 deepspeed==0.19.8
JOBS_llamafactory      = torch llamafactory==0.9.5 deepspeed==0.19.8
# What axolotl's validation of a configuration imports, with the pins of its own metadata.
JOBS_axolotl           = torch transformers==5.16.1 accelerate==1.13.0 peft==0.20.0 datasets==4.8.4 bitsandbytes==0.50.2 pydantic==2.12.5 addict==2.4.0 colorama==0.4.6 pillow==12.1.1
ALONE_axolotl          = axolotl==0.19.0
JOBS_lightning         = torch lightning==2.6.6 jsonargparse[signatures]
JOBS_torchtune         = torch torchao==0.10.0 torchtune==0.6.1
JOBS_torchtitan        = torch==2.15.0 torchtitan==0.3.0
JOBS_megatron          = torch numpy packaging pyyaml megatron-core==0.19.2
JOBS_megatron-bridge   = torch numpy packaging pyyaml megatron-core==0.19.2
JOBS_ms-swift-megatron = torch ms-swift==4.6.0 mcore-bridge==1.6.5 megatron-core==0.19.2
JOBS_verl              = torch verl==0.9.1 megatron-core==0.19.2
ENGINES                = transformers accelerate-config trl llamafactory axolotl lightning torchtune torchtitan megatron megatron-bridge ms-swift-megatron verl

engines: ## Read emitted jobs with the programs' own parsers (ENGINES="trl axolotl" PYTHON=python3)
	@set -e; work=$$(mktemp -d); trap 'rm -rf "$$work"' EXIT; $(GO) build -trimpath -o "$$work/devmap" ./cmd/devmap; failed=0; \
	$(foreach engine,$(ENGINES),echo "$(engine): $(JOBS_$(engine)) $(ALONE_$(engine))"; python="$${PYTHON:-}"; \
		if [ -z "$$python" ]; then \
			python3 -m venv "$$work/$(engine)"; python="$$work/$(engine)/bin/python"; \
			DS_BUILD_OPS=0 "$$python" -m pip install --quiet $(JOBS_$(engine)); \
			$(if $(ALONE_$(engine)),"$$python" -m pip install --quiet --no-deps $(ALONE_$(engine));) fi; \
		PYTHONDONTWRITEBYTECODE=1 CUDA_VISIBLE_DEVICES= "$$python" fixtures/oracle/jobs.py $(engine) "$$work/devmap" || failed=1; rm -rf "$$work/$(engine)";) exit $$failed

exporter: ## Compare devmap.export with the config readers, and try maps of all families and of 29 modules (FAMILY="types" CONFIGS=1 GPUS="2 3" PYTHON=python3)
	@set -e; work=$$(mktemp -d); trap 'rm -rf "$$work"' EXIT; python="$${PYTHON:-}"; \
	if [ -z "$$python" ]; then \
		python3 -m venv "$$work/venv"; python="$$work/venv/bin/python"; \
		"$$python" -m pip install --quiet torch==2.11.0 transformers==5.17.0 diffusers==0.42.1 timm==1.0.31 torchaudio torchvision; fi; \
	$(GO) build -trimpath -o "$$work/devmap" ./cmd/devmap; \
	export PYTHONDONTWRITEBYTECODE=1 DEVMAP_BINARY="$$work/devmap"; failed=0; \
	"$$python" fixtures/oracle/exported.py maps $(FAMILY) || failed=1; \
	"$$python" fixtures/oracle/modules.py || failed=1; \
	"$$python" fixtures/oracle/exported.py all "$$work/exported.jsonl.gz" $(FAMILY) || failed=1; \
	DEVMAP_EXPORTED="$$work/exported.jsonl.gz" $(GO) test ./planner -count=1 -run '^TestExported$$' -v > "$$work/log" || failed=1; \
	grep -v '^ *--- PASS\|^ *--- SKIP\|^=== ' "$$work/log"; exit $$failed

formatted: ## Fail if gofmt would change a file
	@gofmt="$$($(GO) env GOROOT)/bin/gofmt"; \
	unformatted=$$($(GO_FILES) | xargs "$$gofmt" -l) || exit 1; \
	if [ -n "$$unformatted" ]; then \
		echo "gofmt would change these files (run 'make fmt'):" >&2; \
		echo "$$unformatted" >&2; exit 1; \
	fi
	@echo 'ok: gofmt'

fuzz: ## Run every fuzz target (FUZZTIME=20s)
	@packages=$$($(GO) list $(PKG)) || exit 1; ran=0; \
	for package in $$packages; do \
		listed=$$($(GO) test -list '^Fuzz' "$$package") || { echo "$$listed" >&2; exit 1; }; \
		for target in $$(echo "$$listed" | grep '^Fuzz'); do \
			echo "$$package $$target"; \
			said=$$($(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 100x -timeout 0 "$$package" 2>&1) || { \
				echo "$$said" | $(OUT_OF_TIME) || { echo "$$said" >&2; exit 1; }; }; \
			echo "$$said" | tail -n 2; \
			ran=$$((ran + 1)); \
		done; \
	done; \
	echo "$$ran fuzz targets ran for $(FUZZTIME) each"; [ "$$ran" -gt 0 ]

golden: ## Rewrite the golden files of all tests; read the diff
	@UPDATE_GOLDEN=1 $(GO) test -count=1 $(PKG)
	@git diff --stat

gpu: ## Test devmap run on this machine's GPU (PART=memory,step; PART=help lists all)
	@if [ '$(PART)' != help ] && command -v $(GO) >/dev/null 2>&1 && $(CGO_FOUND); then \
		$(CUDA_FLAGS); $(GO) build -trimpath -ldflags '-s -w' -tags cuda -o bin/devmap ./cmd/devmap && \
		$(GO) test -trimpath -ldflags '-s -w' -tags cuda -c -o bin/cuda.test ./executor/cuda && \
		$(GO) test -trimpath -ldflags '-s -w' -tags cuda -c -o bin/kernel.test ./executor/cuda/internal/kernel; fi
	@PYTHONDONTWRITEBYTECODE=1 "$${PYTHON:-python3}" cmd/devmap/internal/gpu/gpu.py bin/devmap --part '$(PART)' --seed "$(SEED)" --keep bin/gpu --table bin/gpu.md

house: ## Check the limits on the source: cycles, sizes, exported names, private words
	@$(GO) run ./cmd/devmap/internal/house
	@echo 'ok: house'

kernels: ## Compile the PTX of the CUDA kernels again (PYTHON=python3; minutes)
	@executor/cuda/internal/ptx/make.sh

oracle: ## Compare random configs with Transformers (FOLDERS=1, PEAKS=1 or cells, OPENPI=CHECKOUT or COMPONENTS=1; FAMILY, CONFIGS, SEED, LIMIT seconds a part, PYTHON); TABLE=5.24.0 writes the table of a release, TYPES=10 tries the default and ten configs of each type, DIFFUSERS=1 writes the table of diffusers
	@set -e; work=$$(mktemp -d); trap 'rm -rf "$$work"' EXIT; python="$${PYTHON:-}"; \
	if [ -z "$$python" ]; then \
		python3 -m venv "$$work/venv"; python="$$work/venv/bin/python"; \
		"$$python" -m pip install --quiet $(if $(OPENPI),$(OPENPI_PINS),torch==2.11.0 transformers==$(if $(TABLE)$(TYPES),$(or $(TABLE),5.24.0) timm torchvision,5.17.0) accelerate==1.15.0 $(if $(PEAKS),peft==0.21.0) $(if $(COMPONENTS)$(DIFFUSERS),diffusers==0.42.1)); fi; \
	export PYTHONDONTWRITEBYTECODE=1 ORACLE_SEED="$(SEED)"; \
	if [ -n "$(TABLE)" ]; then \
		write() { "$$python" fixtures/oracle/tables.py "$${CACHE:-$$work/cache}" "$$work/table.gz" "$$work/types.jsonl.gz" "$$@"; "$$python" fixtures/oracle/releases.py modelgraph/hf/internal/tables "$$work/table.gz"; }; \
		export OMP_NUM_THREADS=1 DEVMAP_TYPES="$$work/types.jsonl.gz" DEVMAP_TYPES_OF="$(TABLE)"; \
		write; $(GO) test ./modelgraph/hf/internal/tables -count=1 -run '^TestTypes$$' -v > "$$work/log" || write leave "$$work/log"; \
		$(GO) test -c -o "$$work/tables.test" ./modelgraph/hf/internal/tables; \
		"$$python" fixtures/oracle/rounds.py modelgraph/hf/internal/tables "$$work/tables.test" "$${CACHE:-$$work/cache}" "$$work" $(or $(SEED),1); \
		$(GO) test ./modelgraph/hf/internal/tables -count=1 -run '^TestTypes$$' -v | grep -v refused; \
	elif [ -n "$(TYPES)" ]; then \
		export OMP_NUM_THREADS=1 DEVMAP_TYPES="$$work/each.gz"; parts=$$(getconf _NPROCESSORS_ONLN); \
		for part in $$(seq 0 $$((parts - 1))); do "$$python" fixtures/oracle/held_out.py modelgraph/hf/internal/tables/types.jsonl.gz "$$work/each.$$part" $(or $(SEED),1) each $(TYPES) $$part $$parts & done; wait; \
		cat "$$work"/each.* | gzip > "$$DEVMAP_TYPES"; $(GO) test ./modelgraph/hf/internal/tables -count=1 -run '^TestTypes$$' -v | grep -v refused; \
	elif [ -n "$(DIFFUSERS)" ]; then \
		table=modelgraph/hf/internal/tables/types-diffusers.jsonl.gz; export OMP_NUM_THREADS=1; \
		"$$python" fixtures/oracle/diffusing.py $${CACHE:-$$work/cache} $$table fixtures/oracle/types-diffusers.jsonl.gz; \
		"$$python" fixtures/oracle/diffusing.py held $$table "$$work/held" $(or $(SEED),1) 300; \
		DEVMAP_COMPONENT_TYPES="$$work/held" $(GO) test ./modelgraph/hf/internal/tables -count=1 -run '^TestComponentTypes$$' -v | grep -v refused; \
	elif [ -n "$(OPENPI)" ]; then \
		OPENPI="$(OPENPI)" "$$python" fixtures/oracle/openpi.py > "$$work/openpi.json.gz"; \
		DEVMAP_OPENPI="$$work/openpi.json.gz" $(GO) test ./modelgraph/hf ./costmodel/internal/accuracy -count=1 -run '^(TestPi0|TestAccuracyJAX.*)$$'; \
	elif [ -n "$(COMPONENTS)" ]; then \
		"$$python" fixtures/oracle/components.py $(CONFIGS) "$$work/drawn.jsonl.gz" $(FAMILY); \
		DEVMAP_COMPONENTS="$$work/drawn.jsonl.gz" $(GO) test ./modelgraph/diffusers -count=1 -run '^TestComponents$$'; \
	elif [ -n "$(PEAKS)" ]; then \
		$(GO) build -trimpath -o "$$work/devmap" ./cmd/devmap; export DEVMAP_BINARY="$$work/devmap" PYTHONPATH="modelgraph/python$${PYTHONPATH:+:$$PYTHONPATH}"; \
		export ORACLE_SECONDS="$(LIMIT)"; failed=0; \
		if [ "$(PEAKS)" = cells ]; then "$$python" fixtures/oracle/peaks.py cells $(FAMILY); exit; fi; \
		"$$python" fixtures/oracle/peaks.py rows $(FAMILY) || failed=1; \
		"$$python" fixtures/oracle/peaks.py plans $(if $(filter command%,$(origin CONFIGS)),$(CONFIGS),1) $(FAMILY) || failed=1; exit $$failed; \
	elif [ -n "$(FOLDERS)" ]; then \
		$(GO) build -trimpath -o "$$work/devmap" ./cmd/devmap; \
		DEVMAP="$$work/devmap" "$$python" fixtures/oracle/checkpoints.py $(if $(filter command%,$(origin CONFIGS)),$(CONFIGS),8) "$$work/drawn.jsonl.gz" $(FAMILY); \
		DEVMAP_FOLDERS="$$work/drawn.jsonl.gz" $(GO) test ./modelgraph/hf -count=1 -run '^TestCheckpoints$$'; \
	else \
		"$$python" fixtures/oracle/families.py $(CONFIGS) "$$work/drawn.jsonl.gz" $(FAMILY); \
		DEVMAP_ORACLE="$$work/drawn.jsonl.gz" $(GO) test ./modelgraph/hf -count=1 -run '^TestFamilies$$'; fi

# Torch's pages load MemoryViz.js from the network. Here it is inside, so that no network counts.
paint: ## Time the first paint of reports and of torch's memory_viz (VIZ=MemoryViz.js PYTHON=python3)
	@set -e; work=$$(mktemp -d); trap 'rm -rf "$$work"' EXIT; \
	if [ -n "$(VIZ)" ]; then for batches in 1 16; do \
		mkdir "$$work/$$batches"; sh cmd/devmap/internal/page/browser/viz.sh "$$work/$$batches" '$(abspath $(VIZ))' $$batches; \
		mv "$$work/$$batches/memory_viz.html" "$$work/memory_viz-$$batches.html"; COMPARE="$$COMPARE $$work/memory_viz-$$batches.html"; done; fi; \
	PAINT=1 COMPARE="$$COMPARE" $(GO) test -C cmd/devmap/internal/page/browser -count=1 -v -run '^TestFirstPaint$$' .

presets: ## Compare the defaults of --preset with those of the pinned packages (NEWEST=1: the newest packages)
	@"$${PYTHON:-python3}" cmd/devmap/internal/ask/presets.py

programs: ## Check compiled programs: planned, laid out and simulated memory agree (ONLY=section)
	@$(GO) run ./executor/compile/internal/figures -only '$(ONLY)'

prose: ## Check the English of documents, help texts, messages and comments
	@$(GO) run ./cmd/devmap/internal/prose
	@echo 'ok: prose'

python: ## Test the Python wheel with Transformers, Accelerate and Lightning (PYTHON=python3)
	@set -e; work=$$(mktemp -d); trap 'rm -rf "$$work"' EXIT; python="$${PYTHON:-}"; export PYTHONDONTWRITEBYTECODE=1; \
	CGO_ENABLED=0 $(GO) run ./cmd/devmap/internal/release -only host -wheels "$$work"; \
	if [ -z "$$python" ]; then \
		python3 -m venv "$$work/venv"; python="$$work/venv/bin/python"; \
		"$$python" -m pip install --quiet --pre --no-index --find-links "$$work" devmap-gpu; \
		"$$python" -m pip install --quiet torch==2.11.0 transformers==5.17.0 accelerate==1.15.0 lightning==2.6.6; \
		"$$python" -m pip check; "$$work/venv/bin/devmap" version; \
	else "$$python" -m pip install --quiet --pre --no-index --no-deps --find-links "$$work" --target "$$work/site" devmap-gpu; fi; \
	export PYTHONPATH="$$work/site$${PYTHONPATH:+:$$PYTHONPATH}"; unset DEVMAP_BINARY; \
	for names in 'test_*.py' 'torch_*.py'; do "$$python" -m unittest discover -s modelgraph/python/tests -p "$$names"; done

sweep: ## Run random commands and validate every answer (SWEEP_TIME=3m SEED=n SWEEP_CASE=one PIPELINES=5000)
	@seed=$(SEED); status=0; \
	SWEEP_TIME=$(SWEEP_TIME) SEED=$$seed SWEEP_CASE=$(SWEEP_CASE) \
		$(GO) test -count=1 -timeout 0 -run '^TestSweep$$' -v ./cmd/devmap || status=1; \
	if [ -z '$(SWEEP_CASE)' ]; then \
		$(GO) test ./planner -count=1 -timeout 0 -run RandomPipelines -v -pipelines $(PIPELINES) -pipeline-seed $$seed || status=1; \
	fi; exit $$status

tidy: ## Fail if go.mod or go.sum is not tidy
	@$(GO) mod tidy -diff
	@echo 'ok: go.mod and go.sum are tidy'

wheels: ## Build bin/wheels: a Python wheel for each platform (VERSION=1.2.3)
	@CGO_ENABLED=0 $(GO) run ./cmd/devmap/internal/release -version '$(VERSION)' -only '$(ONLY)' -wheels bin/wheels
