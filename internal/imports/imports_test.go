// Package imports tests which package imports which. It contains only tests. Each new import between packages of this module is a decision,
// which is written down here with its reason.
//
// A package may import only packages in lower layers. The layers, from top to bottom:
//
//   - packages that help tests: reconciletest with its engine reconcile/reconciletest/internal/simulation, the server in memory, the real
//     control plane, and the counting of requests. No production package imports them.
//   - reconcile/scheduledjobs, reconcile/external and reconcile/startqueue, which use reconcile together with packages below it
//   - reconcile/storageversion, which uses no other public package
//   - reconcile and its own internal packages, which use conditions and finalizers
//   - the packages that users can import on their own, and that never import each other: ownedresources, ownedresources/workload,
//     ownedresources/overlay, finalizers, predicates, conditions, schedule
//   - the engine of ownedresources: internal/owned and the packages below it
//   - internal packages that several of the public packages share
//
// A new package needs a line in rules.
package imports

import (
	"slices"
	"testing"
)

const module = "github.com/opblocks/opblocks"

// The modules and packages outside of this module that several packages may import.
var (
	apimachinery      = []string{"k8s.io/apimachinery", "k8s.io/utils"}
	controllerRuntime = append([]string{
		"sigs.k8s.io/controller-runtime", "k8s.io/api", "k8s.io/client-go", "github.com/go-logr/logr",
		"github.com/prometheus/client_golang",
	}, apimachinery...)

	// The schemas of the API, by which objects are compared.
	schemas = []string{"sigs.k8s.io/structured-merge-diff/v6", "k8s.io/kube-openapi", "sigs.k8s.io/json"}
	kstatus = []string{"github.com/fluxcd/cli-utils/pkg/kstatus"}
	cron    = []string{"github.com/robfig/cron/v3"}

	// The API of tracing, which k8s.io/apiserver imports too. Its SDK and exporters are the user's choice.
	tracing = []string{"go.opentelemetry.io/otel/attribute", "go.opentelemetry.io/otel/codes", "go.opentelemetry.io/otel/trace"}

	// The packages that only packages which help tests may import, whatever the rules say.
	testLibraries = []string{
		"testing", "sigs.k8s.io/controller-runtime/pkg/client/fake", "sigs.k8s.io/controller-runtime/pkg/envtest",
	}
)

// rule says what one package may import, and why.
type rule struct {
	pkg  string
	ours []string // packages of this module

	// external are the modules and packages outside of this module that a public package may import. The rule also holds for the internal
	// packages that it uses. The standard library is always allowed.
	external []string

	// helpsTests means that the package is only for tests. It may import everything outside of this module, and no production package may
	// import it.
	helpsTests bool

	reason string
}

// rules has a rule for each package, in the order of the layers: a package may import only packages that come later in the list.
var rules = []rule{
	{pkg: ".", reason: "the map of the packages; no code"},

	// Packages that help tests.
	{pkg: "internal/owned/ownedtest", ours: []string{"internal/applyschema", "internal/owned", "internal/owned/apply", "internal/owned/report", "internal/owned/testkinds", "internal/requests", "reconcile/preview", "reconcile/reconciletest", "reconcile/reconciletest/controlplane"}, helpsTests: true, reason: "the environment of tests of the engine"},
	{pkg: "reconcile/reconciletest/fakeapi", ours: []string{"reconcile/reconciletest/internal/simulation/outside", "reconcile/reconciletest/internal/simulation/request", "reconcile/reconciletest"}, helpsTests: true, reason: "stands in for an API outside; the engine does not know it"},
	{pkg: "reconcile/reconciletest", ours: []string{"internal/readiness", "internal/record", "reconcile/reconciletest/internal/memoryserver", "reconcile/reconciletest/internal/roundtrip", "reconcile/reconciletest/internal/simulation", "reconcile/reconciletest/internal/simulation/console", "reconcile/reconciletest/internal/simulation/controllers", "reconcile/reconciletest/internal/simulation/kinds", "reconcile/reconciletest/internal/simulation/operator", "reconcile/reconciletest/internal/simulation/plan", "reconcile/reconciletest/internal/simulation/request", "reconcile/reconciletest/internal/simulation/run", "reconcile/reconciletest/internal/simulation/state", "reconcile/reconciletest/internal/simulation/text", "reconcile/reconciletest/internal/simulation/trace", "reconcile/reconciletest/internal/simulation/verdict", "reconcile/reconciletest/internal/simulation/world"}, helpsTests: true, reason: "the public face of the simulation"},
	{pkg: "reconcile/reconciletest/internal/roundtrip", ours: []string{"internal/diff"}, helpsTests: true, reason: "finds what a conversion loses; knows no operator"},
	{pkg: "reconcile/reconciletest/internal/simulation", ours: []string{"reconcile/reconciletest/internal/simulation/bubble", "reconcile/reconciletest/internal/simulation/failure", "reconcile/reconciletest/internal/simulation/kinds", "reconcile/reconciletest/internal/simulation/plan", "reconcile/reconciletest/internal/simulation/request", "reconcile/reconciletest/internal/simulation/result", "reconcile/reconciletest/internal/simulation/run", "reconcile/reconciletest/internal/simulation/state", "reconcile/reconciletest/internal/simulation/text", "reconcile/reconciletest/internal/simulation/trace"}, helpsTests: true, reason: "explores: chooses the runs, and compares them"},
	{pkg: "reconcile/reconciletest/internal/simulation/run", ours: []string{"reconcile/reconciletest/internal/memoryserver", "reconcile/reconciletest/internal/simulation/bubble", "reconcile/reconciletest/internal/simulation/failure", "reconcile/reconciletest/internal/simulation/fakemanager", "reconcile/reconciletest/internal/simulation/kinds", "reconcile/reconciletest/internal/simulation/operator", "reconcile/reconciletest/internal/simulation/plan", "reconcile/reconciletest/internal/simulation/request", "reconcile/reconciletest/internal/simulation/result", "reconcile/reconciletest/internal/simulation/state", "reconcile/reconciletest/internal/simulation/text", "reconcile/reconciletest/internal/simulation/trace", "reconcile/reconciletest/internal/simulation/verdict", "reconcile/reconciletest/internal/simulation/world"}, helpsTests: true, reason: "one run: the loop, the user's actions and the checks"},
	{pkg: "reconcile/reconciletest/internal/simulation/operator", ours: []string{"reconcile/reconciletest/internal/memoryserver", "internal/passcontext", "internal/readiness", "reconcile/reconciletest/internal/simulation/bubble", "reconcile/reconciletest/internal/simulation/failure", "reconcile/reconciletest/internal/simulation/fakemanager", "reconcile/reconciletest/internal/simulation/httpapi", "reconcile/reconciletest/internal/simulation/kinds", "reconcile/reconciletest/internal/simulation/outside", "reconcile/reconciletest/internal/simulation/plan", "reconcile/reconciletest/internal/simulation/request", "reconcile/reconciletest/internal/simulation/state", "reconcile/reconciletest/internal/simulation/text", "reconcile/reconciletest/internal/simulation/trace", "reconcile/reconciletest/internal/simulation/verdict", "reconcile/reconciletest/internal/simulation/world", "internal/hashedvalues"}, helpsTests: true, reason: "the operator's processes in a run, and the faults that they meet"},
	{pkg: "reconcile/reconciletest/internal/simulation/verdict", ours: []string{"reconcile/reconciletest/internal/simulation/request"}, helpsTests: true, reason: "judges how steps and passes end; reads nothing"},
	{pkg: "reconcile/reconciletest/internal/simulation/world", ours: []string{"reconcile/reconciletest/internal/memoryserver", "reconcile/reconciletest/internal/simulation/failure", "reconcile/reconciletest/internal/simulation/kinds", "reconcile/reconciletest/internal/simulation/outside", "reconcile/reconciletest/internal/simulation/plan", "reconcile/reconciletest/internal/simulation/request", "reconcile/reconciletest/internal/simulation/result", "reconcile/reconciletest/internal/simulation/state", "reconcile/reconciletest/internal/simulation/text", "reconcile/reconciletest/internal/simulation/trace"}, helpsTests: true, reason: "what is around the operator, which it does not know"},
	{pkg: "reconcile/reconciletest/internal/simulation/result", ours: []string{"reconcile/reconciletest/internal/memoryserver", "reconcile/reconciletest/internal/simulation/bubble", "reconcile/reconciletest/internal/simulation/failure", "reconcile/reconciletest/internal/simulation/kinds", "reconcile/reconciletest/internal/simulation/plan", "reconcile/reconciletest/internal/simulation/request", "reconcile/reconciletest/internal/simulation/state", "reconcile/reconciletest/internal/simulation/text", "reconcile/reconciletest/internal/simulation/trace"}, helpsTests: true, reason: "what a run led to; runs nothing"},
	{pkg: "reconcile/reconciletest/internal/simulation/trace", ours: []string{"reconcile/reconciletest/internal/memoryserver", "reconcile/reconciletest/internal/simulation/kinds", "reconcile/reconciletest/internal/simulation/request", "reconcile/reconciletest/internal/simulation/text"}, helpsTests: true, reason: "prints what happened; decides nothing"},
	{pkg: "reconcile/reconciletest/internal/simulation/plan", ours: []string{"reconcile/reconciletest/internal/simulation/kinds", "reconcile/reconciletest/internal/simulation/request"}, helpsTests: true, reason: "which faults happen where; injects none"},
	{pkg: "reconcile/reconciletest/internal/simulation/outside", ours: []string{"reconcile/reconciletest/internal/simulation/request"}, helpsTests: true, reason: "what the engine and a ready-made API outside know of each other"},
	{pkg: "reconcile/reconciletest/internal/simulation/request", ours: []string{"reconcile/reconciletest/internal/memoryserver", "reconcile/reconciletest/internal/simulation/state", "reconcile/reconciletest/internal/simulation/text"}, helpsTests: true, reason: "the operator's requests, and the rights that they need"},
	{pkg: "reconcile/reconciletest/internal/simulation/bubble", helpsTests: true, reason: "knows nothing of operators"},
	{pkg: "reconcile/reconciletest/internal/simulation/console", helpsTests: true, reason: "keeps an operator's logs from the console; knows nothing of runs"},
	{pkg: "reconcile/reconciletest/internal/simulation/text", ours: []string{"reconcile/reconciletest/internal/simulation/state"}, helpsTests: true, reason: "words of messages"},
	{pkg: "reconcile/reconciletest/internal/simulation/fakemanager", ours: []string{"reconcile/reconciletest/internal/memoryserver", "internal/passcontext", "reconcile/reconciletest/internal/simulation/failure", "internal/cacheselection"}, helpsTests: true, reason: "a manager whose cache reads the server in memory"},
	{pkg: "reconcile/reconciletest/internal/simulation/httpapi", ours: []string{"reconcile/reconciletest/internal/memoryserver", "reconcile/reconciletest/internal/memoryserver/kind"}, helpsTests: true, reason: "answers HTTP by the operator's own client; injects nothing"},
	{pkg: "reconcile/reconciletest/internal/simulation/failure", ours: []string{"reconcile/reconciletest/internal/simulation/kinds", "reconcile/reconciletest/internal/simulation/state"}, helpsTests: true, reason: "the errors of a run"},
	{pkg: "reconcile/reconciletest/internal/simulation/controllers", helpsTests: true, reason: "simulated controllers of built-in kinds"},
	{pkg: "reconcile/reconciletest/internal/simulation/state", ours: []string{"internal/diff", "internal/record"}, helpsTests: true, reason: "compares the end states of two runs"},
	{pkg: "reconcile/reconciletest/internal/simulation/kinds", helpsTests: true, reason: "the kinds of faults and findings, for the simulation and its public face"},
	{pkg: "reconcile/reconciletest/internal/memoryserver", ours: []string{"reconcile/reconciletest/internal/memoryserver/builtin", "reconcile/reconciletest/internal/memoryserver/crd", "reconcile/reconciletest/internal/memoryserver/kind", "reconcile/reconciletest/internal/memoryserver/webhook"}, helpsTests: true, reason: "serves the kinds of the packages below it"},
	{pkg: "reconcile/reconciletest/internal/memoryserver/builtin", ours: []string{"reconcile/reconciletest/internal/memoryserver/kind", "internal/applyschema"}, helpsTests: true, reason: "shares the parsed schemas of the built-in kinds"},
	{pkg: "reconcile/reconciletest/internal/memoryserver/crd", ours: []string{"reconcile/reconciletest/internal/memoryserver/kind", "reconcile/reconciletest/internal/memoryserver/webhook", "internal/applyschema"}, helpsTests: true, reason: "takes the schema of metadata from the built-in kinds, and the address of a webhook behind a Service"},
	{pkg: "reconcile/reconciletest/internal/memoryserver/kind", helpsTests: true, reason: "what the server needs of a kind, whoever makes it"},
	{pkg: "reconcile/reconciletest/internal/memoryserver/webhook", helpsTests: true, reason: "calls webhooks; knows no server"},
	{pkg: "cmd/explore", helpsTests: true, reason: "a program: reads other modules, and writes code that imports ours"},
	{pkg: "cmd/controlplane", ours: []string{"internal/serviceaccount", "reconcile/reconciletest/controlplane"}, helpsTests: true, reason: "a program: the control plane for a shell"},
	{pkg: "reconcile/reconciletest/controlplane", ours: []string{"internal/serviceaccount", "reconcile/reconciletest/controlplane/internal/programs", "reconcile/reconciletest/controlplane/supervisor"}, helpsTests: true, reason: "runs the programs under the supervisor"},
	{pkg: "reconcile/reconciletest/controlplane/internal/build", ours: []string{"reconcile/reconciletest/controlplane/internal/programs", "reconcile/reconciletest/controlplane/supervisor"}, helpsTests: true, reason: "a program: builds the control plane's programs"},
	{pkg: "reconcile/reconciletest/controlplane/supervisor", ours: []string{"reconcile/reconciletest/controlplane/internal/programs", "reconcile/reconciletest/controlplane/supervisor/internal/server"}, helpsTests: true, reason: "runs any program, under its own, which it builds"},
	{pkg: "reconcile/reconciletest/controlplane/internal/programs", ours: []string{"internal/filelock"}, helpsTests: true, reason: "builds from other modules only"},
	{pkg: "reconcile/reconciletest/controlplane/supervisor/internal/supervise", ours: []string{"reconcile/reconciletest/controlplane/supervisor/internal/server"}, helpsTests: true, reason: "a program: the supervisor process"},
	{pkg: "reconcile/reconciletest/controlplane/supervisor/internal/server", helpsTests: true, reason: "is compiled in a module of its own, so it imports the standard library only"},
	{pkg: "internal/buildfolder", ours: []string{"internal/filelock"}, helpsTests: true, reason: "folders for programs of tests; builds nothing"},
	{pkg: "internal/filelock", helpsTests: true, reason: "locks a file; knows nothing of what it guards"},
	{pkg: "internal/serviceaccount", helpsTests: true, reason: "requests the token of a ServiceAccount in any cluster"},
	{pkg: "internal/owned/testkinds", ours: []string{"ownedresources/overlay"}, helpsTests: true, reason: "custom resources for tests of the engine, and the owner of all of them"},
	{pkg: "internal/typecheck", helpsTests: true, reason: "checks packages by the rules of the compiler; knows none of ours"},
	{pkg: "internal/requests", helpsTests: true, reason: "counts at the transport, for any client"},
	{pkg: "internal/exportedapi", reason: "a program: compares the exported API with that of the last release"},
	{pkg: "internal/runtests", reason: "a program: runs the tests of all modules"},
	{pkg: "internal/release", reason: "a program: checks the files before a tag is pushed"},

	// Packages that users import.
	{
		pkg:      "reconcile/scheduledjobs",
		ours:     []string{"reconcile", "ownedresources", "schedule", "internal/fieldmanager", "internal/heldjob", "internal/ownwrites", "internal/record"},
		external: slices.Concat(controllerRuntime, schemas, kstatus, cron),
		reason:   "joins schedule and reconcile: a step that records each run in the status, with the pass, before it starts",
	},
	{
		pkg:      "reconcile/external",
		ours:     []string{"reconcile", "ownedresources", "reconcile/external/internal/calls", "reconcile/external/internal/claims", "internal/forecast", "internal/record", "reconcile/preview"},
		external: slices.Concat(controllerRuntime, schemas, kstatus, []string{"golang.org/x/time/rate"}),
		reason:   "a step that anybody could write on reconcile: the order of calls that survives a crash. It publishes by a set of ownedresources",
	},
	{
		pkg:      "reconcile/external/internal/calls",
		ours:     []string{"reconcile", "reconcile/internal/turns", "internal/passcontext"},
		external: append([]string{"golang.org/x/time/rate"}, controllerRuntime...),
		reason:   "which calls are made now, and what they answer; knows no records. A call that never returns has to be taken out of the pass",
	},
	{pkg: "reconcile/external/internal/claims", external: apimachinery, reason: "which object holds a key in this process; knows no records"},
	{
		pkg:      "reconcile/startqueue",
		ours:     []string{"reconcile", "schedule", "internal/record"},
		external: slices.Concat(controllerRuntime, schemas, cron),
		reason:   "joins schedule and reconcile: lists candidates and watches them, which schedule must not, and decides by their due times, which reconcile must not",
	},
	{
		pkg:      "reconcile/storageversion",
		external: append([]string{"golang.org/x/time/rate", "k8s.io/apiextensions-apiserver/pkg/apis", "sigs.k8s.io/structured-merge-diff/v6/fieldpath"}, controllerRuntime...),
		reason:   "migrates the stored objects of any kind; knows no reconciler",
	},
	{
		pkg:      "reconcile/upgrade",
		ours:     []string{"reconcile", "internal/forecast", "internal/record", "internal/step", "internal/cacheselection", "reconcile/preview"},
		external: slices.Concat(controllerRuntime, schemas),
		reason:   "runs the set-up of an operator with a manager that plans; reconcile knows only the contract of package step",
	},
	{
		pkg:      "reconcile",
		ours:     []string{"conditions", "finalizers", "internal/compare", "internal/eventnote", "internal/fieldmanager", "internal/ownwrites", "internal/passcontext", "internal/record", "internal/references", "internal/servedkinds", "internal/step", "internal/writeloop", "reconcile/internal/builders", "reconcile/internal/compaction", "reconcile/internal/requestlog", "reconcile/internal/status", "reconcile/internal/turns", "internal/cacheselection", "internal/hashedvalues", "reconcile/internal/managercache", "reconcile/preview"},
		external: slices.Concat(controllerRuntime, schemas, tracing),
		reason:   "stands on conditions and finalizers; the library's steps are no more to it than a user's",
	},
	{
		pkg:      "reconcile/internal/status",
		ours:     []string{"conditions", "internal/compare"},
		external: slices.Concat(controllerRuntime, schemas),
		reason:   "reads and changes the status of a kind by reflection; sends nothing",
	},
	{pkg: "reconcile/internal/builders", ours: []string{"internal/managervalues"}, external: controllerRuntime, reason: "which steps of a manager build which children; builds nothing itself"},
	{pkg: "reconcile/internal/turns", ours: []string{"conditions", "internal/passcontext"}, external: controllerRuntime, reason: "how much one pass may do; knows no steps"},
	{pkg: "reconcile/internal/requestlog", external: []string{"github.com/go-logr/logr"}, reason: "keeps the bodies of requests out of logs"},
	{pkg: "reconcile/internal/managercache", external: controllerRuntime, reason: "how the cache of a manager starts, and why it cannot"},
	{pkg: "reconcile/internal/compaction", reason: "what the objects of a cache share; knows nothing of Kubernetes"},
	{
		pkg:      "ownedresources",
		ours:     []string{"internal/owned", "internal/owned/apply", "internal/owned/set", "internal/compare", "internal/references", "internal/servedkinds", "internal/step", "reconcile/preview"},
		external: slices.Concat(controllerRuntime, schemas, kstatus),
		reason:   "a leaf: fits package reconcile without knowing it, as a user's own step does",
	},
	{
		pkg:      "ownedresources/workload",
		ours:     []string{"internal/readiness"},
		external: slices.Concat(controllerRuntime, kstatus),
		reason:   "a leaf: works on workloads that somebody else owns, so it needs nothing of ownedresources",
	},
	{
		pkg:      "ownedresources/overlay",
		external: append([]string{"k8s.io/api", "sigs.k8s.io/json"}, apimachinery...),
		reason:   "a leaf: API packages import it for a field's type. sigs.k8s.io/json finds duplicate keys; apimachinery stands on it",
	},
	{
		pkg:      "finalizers",
		ours:     []string{"internal/eventnote"},
		external: controllerRuntime,
		reason:   "a leaf: works in any controller-runtime project alone",
	},
	{
		pkg:      "predicates",
		ours:     []string{"internal/record"},
		external: controllerRuntime,
		reason:   "a leaf: works in any controller-runtime project alone",
	},
	{
		pkg:      "reconcile/ratcheting",
		external: controllerRuntime,
		reason:   "a leaf: makes a validator of any function, in any controller-runtime project",
	},
	{
		pkg:      "conditions",
		external: append([]string{"k8s.io/api/apps/v1", "k8s.io/api/core/v1"}, apimachinery...),
		reason:   "a leaf: API packages and tools without controller-runtime use it too; the types of Deployments have a condition struct of their own",
	},
	{
		pkg:      "schedule",
		external: slices.Concat(cron, apimachinery),
		reason:   "a leaf: a pure function of times, good for anything that runs now and again",
	},

	// What the public packages share.
	{pkg: "internal/owned/set", ours: []string{"internal/applyschema", "internal/owned", "internal/owned/apply", "internal/owned/childindex", "internal/owned/feature", "internal/owned/memory", "internal/owned/report", "internal/owned/write", "internal/passcontext", "internal/forecast", "internal/record", "internal/references", "internal/servedkinds", "internal/step", "internal/versions", "internal/cacheselection", "internal/hashedvalues", "reconcile/preview"}, reason: "the children of one owner: build, apply, prune, watch"},
	{pkg: "internal/owned/apply", ours: []string{"internal/diff", "internal/heldjob", "internal/owned", "internal/owned/feature", "internal/owned/memory", "internal/owned/plan", "internal/owned/report", "internal/owned/write", "internal/ownwrites", "internal/passcontext", "internal/forecast", "internal/record", "internal/versions", "internal/cacheselection", "internal/hashedvalues", "reconcile/preview"}, reason: "one object: follows the plan, and remembers what was written"},
	{pkg: "internal/owned/write", ours: []string{"internal/applyschema", "internal/fieldmanager", "internal/owned", "internal/owned/feature", "internal/owned/plan", "internal/passcontext", "internal/record"}, reason: "all requests that write; remembers nothing"},
	{pkg: "internal/owned/plan", ours: []string{"internal/applyschema", "internal/compare", "internal/fieldmanager", "internal/owned", "internal/owned/feature", "internal/record"}, reason: "decides what is done next to one object; sends nothing"},
	{pkg: "internal/owned/feature", ours: []string{"internal/heldjob", "internal/owned", "internal/passcontext", "internal/record"}, reason: "what single options decide; sends nothing"},
	{pkg: "internal/owned/childindex", ours: []string{"internal/record"}, reason: "the names of children by their owners; reads nothing"},
	{pkg: "internal/owned/memory", ours: []string{"internal/compare", "internal/owned", "internal/owned/report", "internal/record", "internal/versions", "internal/writeloop"}, reason: "what is remembered of children"},
	{pkg: "internal/heldjob", ours: []string{"internal/record"}, external: controllerRuntime, reason: "the life of a Job that runs once: held, recorded, started, ended"},
	{pkg: "internal/owned/report", ours: []string{"internal/eventnote", "internal/owned", "internal/writeloop"}, reason: "metrics, events and log entries about children"},
	{pkg: "internal/owned", ours: []string{"internal/applyschema", "internal/compare", "internal/eventnote", "internal/fieldmanager", "internal/passcontext", "internal/readiness", "internal/record"}, reason: "the nouns of the engine of ownedresources"},
	{pkg: "internal/readiness", reason: "kstatus, for ownedresources and workload, which never import each other"},
	{pkg: "internal/compare", ours: []string{"internal/applyschema", "internal/diff"}, reason: "compares by the API's schema, and shares paths with diff"},
	{pkg: "internal/applyschema", ours: []string{"internal/diff"}, reason: "the API's schema, for ownedresources and compare; shares paths with diff"},
	{pkg: "internal/ownwrites", reason: "a client around another one"},
	{pkg: "internal/passcontext", reason: "what reconcile puts into a context and leaves read: it must know neither"},
	{pkg: "internal/step", ours: []string{"internal/forecast", "internal/references", "internal/servedkinds", "reconcile/preview"}, reason: "the contract between reconcile and the sets of ownedresources"},
	{pkg: "internal/references", ours: []string{"internal/servedkinds", "internal/versions", "internal/hashedvalues"}, reason: "the watch of what objects refer to, and its reads, for reconcile and ownedresources, which must not import each other"},
	{pkg: "internal/forecast", ours: []string{"reconcile/preview"}, reason: "what a reconcile would do, of all objects; prints it for reconcile/upgrade"},
	{pkg: "reconcile/secrets", external: append([]string{"k8s.io/api", "sigs.k8s.io/controller-runtime"}, apimachinery...), reason: "reads the Secrets that an object refers to; works in any reconciler"},
	{pkg: "reconcile/preview", external: apimachinery, reason: "what would be done to one child, as data, for ownedresources and for steps of users"},
	{pkg: "internal/servedkinds", ours: []string{"internal/managervalues"}, reason: "the watch of kinds that may not be served, for ownedresources, and their reads for reconcile"},
	{pkg: "internal/hashedvalues", reason: "hashes in place of large values in a cache, and how they are read; knows no owners"},
	{pkg: "internal/cacheselection", reason: "which objects a cache holds, by its options; reads nothing"},
	{pkg: "internal/managervalues", reason: "one value for each manager, for what its reconcilers share; knows none of the values"},
	{pkg: "internal/versions", reason: "what ownedresources and references remember by version"},
	{pkg: "internal/writeloop", reason: "how often a write is repeated that another writer undoes: of a child for ownedresources, of a status for reconcile"},
	{pkg: "internal/eventnote", reason: "a pure function of strings"},
	{pkg: "internal/fieldmanager", ours: []string{"internal/record"}, reason: "the names by which the blocks write"},
	{pkg: "internal/record", reason: "the annotations, labels and finalizers, which several packages read"},
	{pkg: "internal/diff", reason: "knows nothing of Kubernetes"},
}

func TestImports(t *testing.T) {
	for _, violation := range check(rules, readModule(t)) {
		t.Error(violation)
	}
}

// Package compare and others read objects by reflection. Without package unsafe, a mistake there leads to a wrong value or a panic, and
// never to corrupted memory.
func TestNoPackageImportsUnsafe(t *testing.T) {
	for pkg, imports := range readModule(t) {
		if slices.Contains(imports, "unsafe") {
			t.Errorf("package %s imports unsafe, which no careful user wants in a dependency: use package reflect", pkg)
		}
	}
}
