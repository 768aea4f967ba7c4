# Everything is built from Go modules: into bin/, and the control plane into the user's cache. Run `make` to list the targets.

# Modules are built on their own, with the versions in their go.mod: a go.work file above the checkout would change that. Only the examples
# are built in a workspace, that of the checkout: their go.mod requires a released version of the library.
export GOWORK = off
workspace     = GOWORK="$(CURDIR)/go.work"

EXAMPLE    =
KEEP       =
IMG        =
BASE_IMAGE =
DOCKER     = docker
# Of `make deploy`: default is for the whole cluster, namespaced for one namespace.
OVERLAY   = default
NAMESPACE =
TIMEOUT  = 40m
RELEASE  =
ROUNDS   = 1
# For make compatibility: see docs/compatibility.md.
CONTROLLER_RUNTIME = latest
# A version of Kubernetes such as v1.34.4, instead of the one that hack/k8s pins.
KUBERNETES = $(OPBLOCKS_KUBERNETES)
export OPBLOCKS_KUBERNETES := $(KUBERNETES)

# Of `make new`. Empty values are here so that the environment does not set them.
FROM     =
MODULE   =
KIND     =
DIR      =
GROUP    =
VERSION  =
LIBRARY  =

examples = $(if $(EXAMPLE),$(EXAMPLE),$(patsubst examples/%/api,%,$(wildcard examples/*/api)))
# The modules that pin programs.
tools    = $(dir $(wildcard hack/*/go.mod))
modules  = $(patsubst %/,%,$(dir $(wildcard go.mod examples/go.mod bench/go.mod)))
# What the demo of these examples needs beside the control plane.
database = $(if $(filter databaseuser,$(examples)),mariadb)
# The user's own kubectl, or the one that is built for the tests. (Because of the redirection old versions of make use a shell.)
kubectl  = $(if $(shell command -v kubectl 2>/dev/null),kubectl,bin/k8s/kubectl)
# The race detector needs a C compiler, which a fresh machine may not have.
race     = $(if $(filter 1,$(shell go env CGO_ENABLED)),-race)

# Programs that are built to be run have the flags of those of the control plane (buildFlags in
# reconcile/reconciletest/controlplane/internal/programs), so they share their compiled packages.
go-flags = -gcflags=all=-dwarf=false -trimpath -buildvcs=false
go-build = CGO_ENABLED=0 go build $(go-flags) -ldflags='-s -w'

# $(call slowly,what,command) runs a command that may take long. It prints what is being done, and every 15 seconds for how long.
define slowly
@echo "opblocks: $(1)" >&2; start=$$(date +%s); \
(while sleep 15 >/dev/null 2>&1; do echo "opblocks: $(1), $$(($$(date +%s) - start)) s" >&2; done) & beat=$$!; \
trap 'kill $$beat' EXIT; trap 'exit 130' INT TERM; \
$(2)
endef

.PHONY: help images demo demo-schedule demo-program chaos test stress new lint tidy api compatibility vulncheck release-check generate manifests \
	bench clean install uninstall run docker-build docker-push deploy undeploy control-plane mariadb requirements example image

##@ Try it

help: ## Show this help.
	@awk -F ':.*## ' '/^##@/ { printf "\n%s\n", substr($$0, 5) } /^[a-z-]+:.*## / { printf "  %-14s %s\n", $$1, $$2 }' Makefile

demo: $(if $(EXAMPLE),,demo-schedule) $(database) ## Run the examples on a real control plane; KEEP=1 leaves it running, EXAMPLE= runs one.
	@$(MAKE) --no-print-directory -j control-plane demo-program
	@bin/demo $(if $(KEEP),-keep) $(EXAMPLE)

# The first chapter is built while the modules of the control plane are downloaded.
demo-schedule: requirements
	$(call slowly,building the first chapter of the demo,\
	test -x bin/k8s/kubectl -o -n "$(KUBEBUILDER_ASSETS)" || (cd hack/k8s && go list -deps tool) >/dev/null 2>&1 & downloads=$$!; \
	(cd examples && $(workspace) $(go-build) -o ../bin/demo-schedule ./demo/schedule) && bin/demo-schedule && { wait $$downloads || true; })

demo-program: requirements
	$(call slowly,building the demo,cd examples && $(workspace) $(go-build) -o ../bin/demo ./demo)

chaos: control-plane mariadb ## Run the examples while they, the control plane, the network and the database fail; 10 minutes. ARGS=-seed=1 repeats the faults of seed 1.
	$(call slowly,building,cd examples && $(workspace) $(go-build) -o ../bin/chaos ./chaos)
	@bin/chaos $(ARGS)

# Programs that collect garbage less often need a quarter less time: tests, the control planes and the linker.
test: export GOGC ?= 400
test: export GOMEMLIMIT ?= 1GiB
test: control-plane mariadb ## Run all tests, also those against the real control plane and a real MariaDB; KUBERNETES=v1.34.4 chooses a version.
	@test -n "$(race)" || echo "opblocks: there is no C compiler, so the tests run without the race detector" >&2
	$(call slowly,testing,$(MAKE) --no-print-directory -k -j $(addprefix test-of-,$(modules) monitoring) builds-of-examples computations-of-. computations-of-examples)

# Tests are compiled and linked without what only a debugger reads: linking takes half the time. Those without the race detector share
# their compiled packages with the programs.
test-flags     = -ldflags='-s -w' -timeout $(TIMEOUT)
race-test      = go test $(race-flags) $(test-flags)
# Each process of a test parses the 17,000 lines of YAML of client-go's schema: in 0.1 s, or in 0.7 s if the parser has the race detector.
# checkptr checks conversions of unsafe.Pointer, which our code does not have.
race-flags     = $(race) -gcflags=all='$(compiler-flags)' -gcflags=go.yaml.in/yaml/v2='$(compiler-flags) $(if $(race),-race=false)'
compiler-flags = -dwarf=false -d=checkptr=0
computing-test = env CGO_ENABLED=0 GOGC=800 GOMEMLIMIT=2GiB go test $(go-flags) $(test-flags)

# What follows runs in parallel, since tests wait for other processes some of the time. More packages at once would take longer, because each
# of them needs more processor time then. Computations use what the others leave.
test-of-%:
	@cd $* && $(race-test) ./...

# With the race detector a test needs up to ten times as long. These tests run without it, because they compute much and their
# goroutines share nothing: explorations run one pass at a time, the corpus has an applier for each object, and the others
# have one goroutine. Packages of which no file starts a goroutine are tested without it, too. All other tests run with it:
# TestHundredDue has the goroutines of TestThousandDue.
computations = Test[A-Za-z]*EveryFault TestDepth TestActionNeedsWhatTheOperatorCreates TestSoundOperatorsSurvive \
	TestSoundScenariosSurvive TestEachAction TestFurtherThanWithoutFaults TestReportGroupsFindings TestTimeTravelOfEachObject \
	TestSkipFindingsGoesOn TestExplorationFindsImpureBuilders TestStatusWriteByFreshness \
	TestThousandDue TestAttacks TestNamesInEveryMode TestHostileLeftovers
corpus       = TestCorpus

nothing =
either  = $(subst $(nothing) $(nothing),|,$(strip $(1)))
# $(call folders,module,expression,files) are the folders of a module in which such a file has a line that matches a regular expression.
folders = $(sort $(dir $(shell cd $(1) && grep -rlE --include='$(3)' --exclude-dir=examples --exclude-dir=bench --exclude-dir=hack '$(2)' .)))
starts-goroutines = (^|[[:space:]])go [A-Za-z.]+\(|\.Go\(|Parallel\(\)|NewManager|\.Start\(|synctest
is-computation    = ^func ($(call either,$(computations)))\(

# The folders with tests, those of them without goroutines, and those of a module with computations: $(call computing,module).
tested     = $(call folders,.,^package ,*_test.go)
sequential = $(filter-out $(call folders,.,$(starts-goroutines),*.go),$(tested))
computing  = $(call folders,$(1),$(is-computation),*_test.go)

test-of-.:
	@$(race-test) -skip '^($(call either,$(computations) $(corpus)))$$' $(filter-out $(sequential),$(tested))

# Without the race detector: Prometheus' modules are large, and the tests of the operator that runs here have it.
test-of-monitoring:
	@cd hack/monitoring && GOWORK=off $(computing-test) ./...

test-of-examples:
	@export $(workspace); cd examples && $(race-test) -p 1 -skip '^($(call either,$(computations)))$$' \
	$$(go list ./... | grep -vE '/(controller|deployed|new)$$')

# These tests build programs.
builds-of-examples:
	@cd examples && $(workspace) $(race-test) -p 1 ./deployed ./new

computations-of-.:
	@{ $(computing-test) -run '^$(corpus)$$' ./ownedresources; failed=$$?; \
	nice -n 19 $(computing-test) -p 1 $(sequential) || failed=1; \
	nice -n 19 $(computing-test) -p 1 -run '^($(call either,$(computations)))$$' $(filter-out $(sequential),$(call computing,.)) && exit $$failed; }

computations-of-examples:
	@export $(workspace); cd examples && \
	{ $(computing-test) -run '^($(call either,$(computations)))$$' $(filter-out %/controller/,$(call computing,examples)); failed=$$?; \
	nice -n 19 $(computing-test) -p 1 ./*/controller && exit $$failed; }

stress: export GOGC ?= 400
stress: export GOMEMLIMIT ?= 1GiB
stress: control-plane mariadb ## Run seven suites side by side, ROUNDS= times, to find tests that wait for a time instead of an event.
	@hack/stress '$(ROUNDS)' '^($(call either,$(computations) $(corpus)))$$' $(race-flags)

##@ Your own operator

new: requirements ## Copy an example into a module of your own: FROM=memcached MODULE=example.com/shop KIND=Shop [DIR= GROUP= VERSION=].
	@$(workspace) go run $(go-flags) ./examples/new -make -from '$(FROM)' -module '$(MODULE)' -kind '$(KIND)' -dir '$(or $(DIR),../$(notdir $(MODULE)))' \
		$(if $(GROUP),-group '$(GROUP)') $(if $(VERSION),-version '$(VERSION)') $(if $(LIBRARY),-library '$(LIBRARY)',-replace '$(CURDIR)')

##@ Work on it

lint: requirements bin/golangci-lint bin/actionlint ## Check style, tidy modules, generated files, the exported API, imports, links of pages and workflows.
	$(call slowly,linting,for m in $(modules) hack/monitoring; do ($(enter) && "$(CURDIR)/bin/golangci-lint" run --allow-parallel-runners ./...) || exit 1; done)
	$(call slowly,comparing go.mod files with what is imported,for m in $(modules) $(tools); do \
		(cd $$m && $(tidy) -diff) || { echo "opblocks: run 'make tidy'" >&2; exit 1; }; done)
	@have=$$(cat $(generated) 2>/dev/null | cksum); $(MAKE) --no-print-directory EXAMPLE= generate manifests || exit 1; \
	test "$$have" = "$$(cat $(generated) 2>/dev/null | cksum)" || \
	{ echo "opblocks: generated files were out of date and have been generated again: commit them" >&2; exit 1; }
	go test ./internal/documented ./internal/imports ./internal/links
	bin/actionlint -shellcheck= -pyflakes= .github/workflows/*.yml
	go run ./internal/exportedapi

tidy: requirements ## Tidy the go.mod files of all modules.
	@for m in $(modules) $(tools); do (cd $$m && $(tidy)) || exit 1; done
	@cd examples && go mod edit -dropreplace=github.com/opblocks/opblocks $(tidied) && cp $(tidied) go.mod && cp $(tidied:.mod=.sum) go.sum

# The examples are tidied by a copy of their go.mod that replaces the library by the working copy: go mod tidy ignores go.work.
tidied = ../bin/tidy/go.mod
tidy   = { test $$m != examples || { mkdir -p ../bin/tidy && cp go.mod go.sum ../bin/tidy && \
	go mod edit -replace=github.com/opblocks/opblocks=../ $(tidied) && export GOFLAGS="$$(go env GOFLAGS) -modfile=$(tidied)"; }; } && go mod tidy

# Enters the folder of a module. The examples are built in the workspace.
enter = cd $$m && { test $$m != examples || export $(workspace); }

generated = examples/*/api/*/zz_generated.deepcopy.go examples/*/config/crd/bases/*.yaml examples/*/config/rbac/role.yaml \
	bench/api/zz_generated.deepcopy.go bench/api/*.yaml $(addprefix ownedresources/overlay/testdata/api/,zz_generated.deepcopy.go *.yaml) \
	$(addprefix $(programs)/,k8s.mod k8s.sum)

programs = reconcile/reconciletest/controlplane/internal/programs

generate: bin/controller-gen ## Generate the deep copies of the examples' API types, and those and the CRDs of benchmarks and tests.
	@cp hack/k8s/go.mod $(programs)/k8s.mod && cp hack/k8s/go.sum $(programs)/k8s.sum
	@for e in $(examples); do (cd examples && $(workspace) ../bin/controller-gen object paths=./$$e/api/...) || exit 1; done
	@cd bench && ../bin/controller-gen object crd paths=./api output:crd:dir=api
	@bin/controller-gen object crd paths=./ownedresources/overlay/testdata/api output:crd:dir=ownedresources/overlay/testdata/api

manifests: bin/controller-gen ## Generate the examples' CRDs and roles.
	@for e in $(examples); do (cd examples && $(workspace) ../bin/controller-gen paths=./$$e/... \
		crd output:crd:dir=$$e/config/crd/bases \
		rbac:roleName=manager-role output:rbac:dir=$$e/config/rbac) || exit 1; done

bench: control-plane ## Measure beside other ways to write an operator, half an hour, and write docs/figures.md. BENCH=List runs only benchmarks of this name.
ifdef BENCH
	@for m in $(modules); do ($(enter) && go test -run '^$$' -bench '$(BENCH)' -benchmem -timeout 60m ./... $(ARGS)) || exit 1; done
else
	@echo "opblocks: measuring for about half an hour; do nothing else on this machine. Each value is measured 5 times, most of them in turns:" >&2
	@echo "opblocks: comparison and schedules 2 minutes, creation of Services 2, a pass with nothing to do 5, lists 1, convergence of 1,000 objects 7, of 10,000 objects 12" >&2
	@$(versions) > bin/bench.txt
	@{ go test -run '^$$' -bench Deployment -benchmem -count 5 ./internal/compare; \
	go test -run '^$$' -bench 'Due|Parse|MayStart' -benchmem -benchtime 200ms -count 5 ./schedule; cd bench; \
	go test -run '^$$' -bench 'SteadyState|CreateService' -timeout 60m . ; \
	go test -run '^$$' -bench 'List|Convergence' -benchtime 1x -timeout 60m . ; } | tee -a bin/bench.txt
	@! grep -E '^(--- FAIL|FAIL|panic)' bin/bench.txt
	@cd bench && go run ./figures -text figures/page.tmpl -page ../docs/figures.md < ../bin/bench.txt
	@echo "opblocks: docs/figures.md and its pictures have the figures of this run; see whether what is written around them still holds" >&2
endif

# The lines of a benchmark's output that say what was measured.
define versions
{ echo "date: $$(date -u +%Y-%m-%d)"; echo "go: $$(go env GOVERSION | sed 's/^go//')"; \
echo "kube-apiserver: $$(bin/k8s/kube-apiserver --version | sed 's/.* v//')"; \
echo "etcd: $$(bin/k8s/etcd --version | sed -n 's/^etcd Version: //p')"; }
endef

api: requirements ## Accept incompatible changes of the exported API, which lint reports. RELEASE=v0.2.0 writes the API of a release.
	go run ./internal/exportedapi $(if $(RELEASE),-release $(RELEASE),-accept)

compatibility: requirements ## Compile and test the library with other versions of controller-runtime. CONTROLLER_RUNTIME= names them.
	@for v in $(CONTROLLER_RUNTIME); do hack/compatibility $$v || exit 1; done

vulncheck: requirements bin/govulncheck ## Look for known vulnerabilities in what the modules call; asks https://vuln.go.dev.
	@for m in $(modules); do echo "opblocks: looking for known vulnerabilities in module $$m" >&2; \
		(cd $$m && "$(CURDIR)/bin/govulncheck" ./...) 2> bin/govulncheck.err && continue; cat bin/govulncheck.err >&2; \
		! grep -q 'vuln\.go\.dev' bin/govulncheck.err || \
		echo "opblocks: the vulnerability database https://vuln.go.dev could not be reached, so nothing was checked: check the network" >&2; \
		exit 1; done

release-check: requirements ## Check that the commit can get the tag RELEASE=v0.1.0 or RELEASE=examples/v0.1.0; see docs/releasing.md.
	@test -n "$(RELEASE)" || { echo "opblocks: name a tag: make release-check RELEASE=v0.1.0" >&2; exit 1; }
	@test -z "$$(git status --porcelain)" || { echo "opblocks: a tag is of a commit, and there are changes that are not committed: see git status" >&2; exit 1; }
	go run ./internal/release "$(RELEASE)"
	$(if $(findstring /,$(RELEASE)),,go run ./internal/exportedapi -exact "$(RELEASE)")

clean: ## Remove bin/. Go's caches and the control plane's programs, in the user's cache, stay.
	rm -rf bin

##@ One example in your cluster (EXAMPLE=memcached, the current context of kubectl)

install: example $(filter bin/%,$(kubectl)) ## Install its CRDs.
	$(kubectl) apply --server-side -f examples/$(EXAMPLE)/config/crd/bases

uninstall: example $(filter bin/%,$(kubectl)) ## Remove its CRDs and all objects of these kinds.
	$(kubectl) delete --ignore-not-found -f examples/$(EXAMPLE)/config/crd/bases

run: example ## Run the operator on this machine; ARGS= sets its flags.
	cd examples && $(workspace) go run ./$(EXAMPLE) $(ARGS)

docker-build: example image ## Build the image that IMG= names; BASE_IMAGE= is what it is based on.
	$(DOCKER) build -t $(IMG) -f examples/$(EXAMPLE)/Dockerfile $(foreach a,GOPROXY BASE_IMAGE,$(if $($a),--build-arg $a=$($a))) $(DOCKER_ARGS) .

docker-push: image ## Push the image that IMG= names to its registry.
	$(DOCKER) push $(IMG)

images: requirements ## Build the images of all examples; without docker, run the steps of their Dockerfiles and deploy the programs.
	@if $(DOCKER) info >/dev/null 2>&1; then \
		for e in $(examples); do $(MAKE) --no-print-directory docker-build EXAMPLE=$$e IMG=$$e-operator:latest || exit 1; done; \
	else echo "opblocks: $(DOCKER) does not run here: the steps of the Dockerfiles run on this machine" >&2; \
		$(MAKE) --no-print-directory control-plane mariadb && cd examples && $(workspace) go test -count=1 ./deployed; fi

deploy: example image bin/kustomize $(filter bin/%,$(kubectl)) ## Run the operator in the cluster, from the image that IMG= names. OVERLAY=namespaced NAMESPACE= is for one namespace.
	@mkdir -p bin/deploy/$(EXAMPLE)
	@cd bin/deploy/$(EXAMPLE) && printf 'resources: [../../../examples/$(EXAMPLE)/config/$(OVERLAY)]\n' > kustomization.yaml && \
		../../kustomize edit set image controller=$(IMG) $(if $(NAMESPACE),&& ../../kustomize edit set namespace $(NAMESPACE))
	$(kubectl) apply --server-side -k bin/deploy/$(EXAMPLE)

undeploy: example $(filter bin/%,$(kubectl)) ## Remove what deploy created, with OVERLAY=default first the objects of its CRDs; WAIT= seconds for these.
	@mkdir -p bin/deploy/$(EXAMPLE)
	@printf 'resources: [../../../examples/$(EXAMPLE)/config/$(OVERLAY)]\n$(if $(NAMESPACE),namespace: $(NAMESPACE)\n)' > bin/deploy/$(EXAMPLE)/kustomization.yaml
	@examples/new/template/undeploy $(kubectl) bin/deploy/$(EXAMPLE) examples/$(EXAMPLE)/config/crd/bases

##@ Used by the targets above

# A folder bin/k8s is that of a checkout before the programs were in the user's cache.
control-plane: requirements ## Build what is missing of etcd, kube-apiserver, …, kubectl into the user's cache, to which bin/k8s links.
	@folder=$$(CGO_ENABLED=0 go run $(go-flags) ./reconcile/reconciletest/controlplane/internal/build) && mkdir -p bin && \
	{ test -L bin/k8s || rm -rf bin/k8s; } && ln -sfn "$$folder" bin/k8s

bin/k8s/kubectl: control-plane

mariadb: ## Install MariaDB's server programs if they are missing; needs root or sudo.
	@hack/mariadb

bin/golangci-lint: hack/lint/go.sum | requirements
	$(call slowly,building golangci-lint,cd hack/lint && go build -o ../../$@ github.com/golangci/golangci-lint/v2/cmd/golangci-lint)

bin/actionlint: hack/ci/go.sum | requirements
	$(call slowly,building actionlint,cd hack/ci && go build -o ../../$@ github.com/rhysd/actionlint/cmd/actionlint)

bin/govulncheck: hack/ci/go.sum | requirements
	$(call slowly,building govulncheck,cd hack/ci && go build -o ../../$@ golang.org/x/vuln/cmd/govulncheck)

bin/controller-gen: hack/generate/go.sum | requirements
	$(call slowly,building controller-gen,cd hack/generate && go build -o ../../$@ sigs.k8s.io/controller-tools/cmd/controller-gen)

bin/kustomize: hack/generate/go.sum | requirements
	$(call slowly,building kustomize,cd hack/generate && go build -o ../../$@ sigs.k8s.io/kustomize/kustomize/v5)

requirements:
	@command -v go >/dev/null || { echo "opblocks: Go is missing; install Go 1.26 or newer: https://go.dev/dl/" >&2; exit 1; }
	@why=$$(go list -m 2>&1) || { echo "opblocks: Go 1.26 or newer is needed, see https://go.dev/dl/: $$why" >&2; exit 1; }
	@test -e bin/k8s || test -d "$${OPBLOCKS_CACHE:-$${XDG_CACHE_HOME:-$$HOME/.cache}/opblocks}/controlplane" || df -Pk . "$${HOME:-.}" | awk 'NR > 1 && $$4 < 6000000 { exit 1 }' || \
	{ echo "opblocks: the build of the control plane needs 6 GB of free disk space, here and in your home folder; see df" >&2; exit 1; }

example: requirements
	@test -n "$(EXAMPLE)" || { echo "opblocks: name an example: make $(MAKECMDGOALS) EXAMPLE=memcached" >&2; exit 1; }
	@test -d "examples/$(EXAMPLE)/api" || { echo "opblocks: there is no example '$(EXAMPLE)'; choose from:" $(patsubst examples/%/api,%,$(wildcard examples/*/api)) >&2; exit 1; }

image:
	@test -n "$(IMG)" || { echo "opblocks: name an image: make $(MAKECMDGOALS) EXAMPLE=$(EXAMPLE) IMG=registry.example.com/$(EXAMPLE)-operator:v1" >&2; exit 1; }
