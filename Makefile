# Everything is built from Go modules: into bin/, and the control plane into the user's cache. Run `make` to list the targets.

# The library, the examples and the benchmarks are built in the workspace of the checkout. So all of them have the newest versions of
# Kubernetes' modules, which are compiled once; `make compatibility` builds the library with the oldest. What is in hack/ is built on its own.
export GOWORK = $(CURDIR)/go.work

# Users set these on the command line. Variables of the environment do not count.
$(foreach v,EXAMPLE KEEP IMG BASE_IMAGE NAMESPACE RELEASE FROM MODULE KIND DIR GROUP VERSION LIBRARY,$(eval $v =))
DOCKER  = docker
# Of `make deploy`: default is for the whole cluster, with-webhook the same with webhooks, namespaced for one namespace.
OVERLAY = default
# For make compatibility: versions such as v0.25.2, or latest. See docs/compatibility.md.
CONTROLLER_RUNTIME = oldest
# A version of Kubernetes such as v1.36.3, instead of the one that hack/k8s pins.
KUBERNETES = $(OPBLOCKS_KUBERNETES)
export OPBLOCKS_KUBERNETES := $(KUBERNETES)

examples = $(if $(EXAMPLE),$(EXAMPLE),$(patsubst examples/%/api,%,$(wildcard examples/*/api)))
tools    = $(dir $(wildcard hack/*/go.mod)) # modules that pin programs
modules  = $(patsubst %/,%,$(dir $(wildcard go.mod examples/go.mod bench/go.mod)))
measures = hack/argocd hack/monitoring hack/mutants # modules with code of their own, outside of the workspace
database = $(if $(filter databaseuser,$(examples)),mariadb) # which the demo of this example needs
# The user's own kubectl, or the one that is built for the tests. (Because of the redirection old versions of make use a shell.)
kubectl  = $(if $(shell command -v kubectl 2>/dev/null),kubectl,bin/k8s/kubectl)
# Nothing is compiled with flags of its own, so what was compiled by `go build` and `go test` is not compiled again. Compilers that collect no
# garbage take a fifth less time; few of them allocate more than 1 GiB.
go-build = GOGC=off GOMEMLIMIT=1GiB go build -ldflags='-s -w'

# $(call slowly,what,command) runs a command that may take long. It prints what is being done, and every 15 seconds for how long.
define slowly
@echo "opblocks: $(1)" >&2; start=$$(date +%s); \
(while sleep 15 >/dev/null 2>&1; do echo "opblocks: $(1), $$(($$(date +%s) - start)) s" >&2; done) & beat=$$!; \
trap 'kill $$beat' EXIT; trap 'exit 130' INT TERM; \
$(2)
endef

.PHONY: $(shell sed -n 's/^\([a-z-]*\):.*/\1/p' Makefile)
##@ Try it

help: ## Show this help.
	@awk -F ':.*## ' '/^##@/ { printf "\n%s\n", substr($$0, 5) } /^[a-z-]+:.*## / { printf "  %-14s %s\n", $$1, $$2 }' Makefile

# The programs are built one after the other, since they share most packages.
demo: $(if $(EXAMPLE),,demo-schedule) $(database) control-plane ## Run the examples on a real control plane; KEEP=1 leaves it running, EXAMPLE= runs one.
	$(call slowly,building the demo,$(call build-example,demo))
	@bin/demo $(if $(KEEP),-keep) $(EXAMPLE)

# The first chapter is built while the modules of the control plane are downloaded.
demo-schedule: requirements
	$(call slowly,building the first chapter of the demo,\
	test -x bin/k8s/kubectl -o -n "$(KUBEBUILDER_ASSETS)" || (cd hack/k8s && GOWORK=off go list -deps tool) >/dev/null 2>&1 & downloads=$$!; \
	$(call build-example,demo/schedule,demo-schedule) && bin/demo-schedule && { wait $$downloads || true; })

build-example = (cd examples && $(go-build) -o ../bin/$(or $(2),$(1)) ./$(1))

chaos: control-plane mariadb ## Run the examples while they, the control plane, the network and the database fail; 10 minutes. ARGS=-seed=1 repeats the faults of seed 1.
	$(call slowly,building,$(call build-example,chaos))
	@bin/chaos $(ARGS)

test: control-plane mariadb ## Run all tests, also those against the real control plane and a real MariaDB; KUBERNETES=v1.36.3 chooses a version.
	@$(run-tests)
test-race: control-plane mariadb ## Run the tests of the packages that share memory between goroutines once more, under the race detector.
	@$(run-tests) -race

# Compilers and tests that collect garbage less often need a quarter less time.
run-tests = go build -o bin/runtests ./internal/runtests && GOGC=$${GOGC:-400} GOMEMLIMIT=$${GOMEMLIMIT:-1GiB} exec bin/runtests

##@ Your own operator

new: requirements ## Copy an example into a module of your own: FROM=memcached MODULE=example.com/shop KIND=Shop [DIR= GROUP= VERSION= CONTROLLER_RUNTIME=v0.24].
	@go run ./examples/new -make -from '$(FROM)' -module '$(MODULE)' -kind '$(KIND)' -dir '$(or $(DIR),../$(notdir $(MODULE)))' \
		$(if $(filter command line,$(origin CONTROLLER_RUNTIME)),-controller-runtime '$(CONTROLLER_RUNTIME)') $(if $(GROUP),-group '$(GROUP)') $(if $(VERSION),-version '$(VERSION)') $(if $(LIBRARY),-library '$(LIBRARY)',-replace '$(CURDIR)')

##@ Work on it

lint: requirements bin/golangci-lint bin/actionlint ## Check style, tidy modules, generated files, the exported API, imports, links of pages and workflows.
	$(call slowly,linting,for m in $(modules) $(measures); do ($(enter) && "$(CURDIR)/bin/golangci-lint" run --allow-parallel-runners ./...) || exit 1; done)
	$(call slowly,comparing go.mod files with what is imported,for m in $(modules) $(tools); do \
		(cd $$m && $(tidy) -diff) || { echo "opblocks: run 'make tidy'" >&2; exit 1; }; done)
	@have=$$(cat $(generated) 2>/dev/null | cksum); $(MAKE) --no-print-directory EXAMPLE= generate manifests || exit 1; \
	test "$$have" = "$$(cat $(generated) 2>/dev/null | cksum)" || \
	{ echo "opblocks: generated files were out of date and have been generated again: commit them" >&2; exit 1; }
	go test ./internal/documented ./internal/imports ./internal/limits ./internal/links ./internal/sentences
	bin/actionlint -shellcheck= -pyflakes= .github/workflows/*.yml
	go run ./internal/exportedapi

tidy: requirements ## Tidy the go.mod files of all modules.
	@for m in $(modules) $(tools); do (cd $$m && $(tidy)) || exit 1; done
	@cd examples && go mod edit -dropreplace=github.com/opblocks/opblocks $(tidied) && cp $(tidied) go.mod && cp $(tidied:.mod=.sum) go.sum

# The examples are tidied by a copy of their go.mod that replaces the library by the working copy: go mod tidy ignores go.work.
tidied = ../bin/tidy/go.mod
tidy   = export GOWORK=off && { test $$m != examples || { mkdir -p ../bin/tidy && cp go.mod go.sum ../bin/tidy && \
	go mod edit -replace=github.com/opblocks/opblocks=../ $(tidied) && export GOFLAGS="$$(go env GOFLAGS) -modfile=$(tidied)"; }; } && go mod tidy

# Enters the folder of a module, and leaves the workspace if the module is none of its.
enter = cd $$m && case $$m in hack/*) export GOWORK=off ;; esac
programs  = reconcile/reconciletest/controlplane/internal/programs
generated = examples/*/api/*/zz_generated.deepcopy.go examples/*/config/crd/bases/*.yaml examples/*/config/rbac/role.yaml examples/*/config/webhook/base/manifests.yaml \
	bench/api/zz_generated.deepcopy.go bench/api/*.yaml $(addprefix ownedresources/overlay/testdata/api/,zz_generated.deepcopy.go *.yaml) \
	$(addprefix $(programs)/,k8s.mod k8s.sum)

generate: bin/controller-gen ## Generate the deep copies of the examples' API types, and those and the CRDs of benchmarks and tests.
	@cp hack/k8s/go.mod $(programs)/k8s.mod && cp hack/k8s/go.sum $(programs)/k8s.sum
	@for e in $(examples); do (cd examples && ../bin/controller-gen object paths=./$$e/api/...) || exit 1; done
	@cd bench && ../bin/controller-gen object crd paths=./api output:crd:dir=api
	@bin/controller-gen object crd paths=./ownedresources/overlay/testdata/api output:crd:dir=ownedresources/overlay/testdata/api

manifests: bin/controller-gen ## Generate the examples' CRDs, roles and webhook configurations.
	@for e in $(examples); do (cd examples && ../bin/controller-gen paths=./$$e/... \
		crd output:crd:dir=$$e/config/crd/bases \
		rbac:roleName=manager-role output:rbac:dir=$$e/config/rbac \
		webhook output:webhook:dir=$$e/config/webhook/base) || exit 1; done

bench: control-plane ## Measure beside other ways to write an operator, an hour, and write docs/figures.md. BENCH=List runs only benchmarks of this name.
	@$(if $(BENCH),for m in $(modules); do ($(enter) && go test -run '^$$' -bench '$(BENCH)' -benchmem -timeout 60m ./... $(ARGS)) || exit 1; done,\
		cd bench && go run ./figures -measure)

mutants: control-plane mariadb ## Measure the tests by small changes in the code, and write docs/mutants.md; two hours. A run that is stopped goes on. ARGS="-area memcached" takes one area.
	@cd hack/mutants && GOWORK=off go run . $(ARGS)

api: requirements ## Accept incompatible changes of the exported API, which lint reports. RELEASE=v0.2.0 writes the API of a release.
	go run ./internal/exportedapi $(if $(RELEASE),-release $(RELEASE),-accept)
compatibility: requirements ## Compile and test the library with the oldest controller-runtime that it works with. CONTROLLER_RUNTIME= names other versions.
	@for v in $(CONTROLLER_RUNTIME); do hack/compatibility $$v || exit 1; done
vulncheck: requirements bin/govulncheck ## Look for known vulnerabilities in what the modules call; asks https://vuln.go.dev.
	@for m in $(modules); do echo "opblocks: looking for known vulnerabilities in module $$m" >&2; (cd $$m && "$(CURDIR)/bin/govulncheck" ./...) || \
		{ echo "opblocks: module $$m has a vulnerability, or https://vuln.go.dev could not be reached: see above" >&2; exit 1; }; done
release-check: requirements ## Check that the commit can get the tag RELEASE=v0.1.0 or RELEASE=examples/v0.1.0; see docs/releasing.md.
	@go run ./internal/release "$(RELEASE)"
	$(if $(findstring /,$(RELEASE)),,go run ./internal/exportedapi -exact "$(RELEASE)")
clean: ## Remove bin/. Go's caches and the control plane's programs, in the user's cache, stay.
	rm -rf bin

##@ One example in your cluster (EXAMPLE=memcached, the current context of kubectl)

install: example $(filter bin/%,$(kubectl)) ## Install its CRDs.
	$(kubectl) apply --server-side -k examples/$(EXAMPLE)/config/$(if $(wildcard examples/$(EXAMPLE)/config/install),install,crd)
uninstall: example $(filter bin/%,$(kubectl)) ## Remove its CRDs and all objects of these kinds.
	$(kubectl) delete --ignore-not-found -f examples/$(EXAMPLE)/config/crd/bases
run: example ## Run the operator on this machine; ARGS= sets its flags.
	cd examples && go run ./$(EXAMPLE) $(ARGS)
docker-build: example image ## Build the image that IMG= names; BASE_IMAGE= is what it is based on.
	$(DOCKER) build -t $(IMG) -f examples/$(EXAMPLE)/Dockerfile $(foreach a,GOPROXY BASE_IMAGE,$(if $($a),--build-arg $a=$($a))) $(DOCKER_ARGS) .
docker-push: image ## Push the image that IMG= names to its registry.
	$(DOCKER) push $(IMG)

images: requirements ## Build the images of all examples; without docker, run the steps of their Dockerfiles and deploy the programs.
	@if $(DOCKER) info >/dev/null 2>&1; then \
		for e in $(examples); do $(MAKE) --no-print-directory docker-build EXAMPLE=$$e IMG=$$e-operator:latest || exit 1; done; \
	else echo "opblocks: $(DOCKER) does not run here: the steps of the Dockerfiles run on this machine" >&2; \
		$(MAKE) --no-print-directory control-plane mariadb && cd examples && go test -count=1 ./deployed; fi

deploy: example image kustomization bin/kustomize ## Run the operator in the cluster, from the image that IMG= names. OVERLAY=namespaced NAMESPACE= is for one namespace; PLAN=1 first prints what it would change, with its flags in ARGS=.
	$(if $(PLAN),$(call build-example,$(EXAMPLE)) && { bin/$(EXAMPLE) -plan=text $(ARGS); exit=$$?; test $$exit -eq 0 || test $$exit -eq 3; })
	@cd bin/deploy/$(EXAMPLE) && ../../kustomize edit set image controller=$(IMG)
	$(kubectl) apply --server-side -k bin/deploy/$(EXAMPLE)
undeploy: kustomization ## Remove what deploy created, with OVERLAY=default first the objects of its CRDs; WAIT= seconds for these.
	@examples/new/template/undeploy $(kubectl) bin/deploy/$(EXAMPLE) examples/$(EXAMPLE)/config/crd/bases
kustomization: example $(filter bin/%,$(kubectl))
	@test -z "$(NAMESPACE)" || ! grep -qs '^- ../webhook' examples/$(EXAMPLE)/config/$(OVERLAY)/kustomization.yaml || { echo "opblocks: certificates and webhooks name the namespace: change it in examples/$(EXAMPLE)/config, and deploy without NAMESPACE, or with OVERLAY=namespaced" >&2; exit 1; }
	@mkdir -p bin/deploy/$(EXAMPLE) && printf 'resources: [../../../examples/$(EXAMPLE)/config/$(OVERLAY)]\n$(if $(NAMESPACE),namespace: $(NAMESPACE)\n)' > bin/deploy/$(EXAMPLE)/kustomization.yaml

##@ Used by the targets above

control-plane: requirements ## Build what is missing of etcd, kube-apiserver, …, kubectl into the user's cache, to which bin/k8s links.
	@folder=$$(go run ./reconcile/reconciletest/controlplane/internal/build) && mkdir -p bin && ln -sfn "$$folder" bin/k8s

bin/k8s/kubectl: control-plane
mariadb: ## Install MariaDB's server programs if they are missing; needs root or sudo.
	@hack/mariadb

bin/golangci-lint: hack/lint/go.sum   ; $(call tool,lint,github.com/golangci/golangci-lint/v2/cmd/golangci-lint)
bin/actionlint: hack/ci/go.sum        ; $(call tool,ci,github.com/rhysd/actionlint/cmd/actionlint)
bin/govulncheck: hack/ci/go.sum       ; $(call tool,ci,golang.org/x/vuln/cmd/govulncheck)
bin/controller-gen: hack/generate/go.sum ; $(call tool,generate,sigs.k8s.io/controller-tools/cmd/controller-gen)
bin/kustomize: hack/generate/go.sum   ; $(call tool,generate,sigs.k8s.io/kustomize/kustomize/v5)
tool = $(call slowly,building $(@F),cd hack/$(1) && GOWORK=off $(go-build) -o ../../$@ $(2))

requirements:
	@command -v go >/dev/null || { echo "opblocks: Go is missing; install Go 1.26 or newer: https://go.dev/dl/" >&2; exit 1; }
	@why=$$(go list -m 2>&1) || { echo "opblocks: Go 1.26 or newer is needed, see https://go.dev/dl/: $$why" >&2; exit 1; }
	@cache="$${OPBLOCKS_CACHE:-$${XDG_CACHE_HOME:-$$HOME/.cache}/opblocks}"; test -e bin/k8s || test -d "$$cache/controlplane" || for d in . "$$cache" "$$(go env GOCACHE)" "$$(go env GOMODCACHE)"; do \
	{ mkdir -p "$$d" && test -w "$$d" && df -Pk "$$d" | awk 'NR > 1 && $$4 < 6000000 { exit 1 }'; } 2>/dev/null || \
	{ echo "opblocks: the first build needs 6 GB in $$d: free that much (see df), make it writable, or choose another folder by GOCACHE, GOMODCACHE or XDG_CACHE_HOME" >&2; exit 1; }; done

example: requirements
	@test -n "$(EXAMPLE)" || { echo "opblocks: name an example: make $(MAKECMDGOALS) EXAMPLE=memcached" >&2; exit 1; }
	@test -d "examples/$(EXAMPLE)/api" || { echo "opblocks: there is no example '$(EXAMPLE)'; choose from:" $(patsubst examples/%/api,%,$(wildcard examples/*/api)) >&2; exit 1; }

image:
	@test -n "$(IMG)" || { echo "opblocks: name an image: make $(MAKECMDGOALS) EXAMPLE=$(EXAMPLE) IMG=registry.example.com/$(EXAMPLE)-operator:v1" >&2; exit 1; }
