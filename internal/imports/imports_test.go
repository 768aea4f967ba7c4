// Package imports tests which package imports which. It has no code: the arrows are the architecture, and a new one is
// a decision, not an accident.
package imports

import (
	"slices"
	"testing"
)

const module = "github.com/opblocks/opblocks"

// What several packages may import.
var (
	apimachinery      = []string{"k8s.io/apimachinery", "k8s.io/utils"}
	controllerRuntime = append([]string{
		"sigs.k8s.io/controller-runtime", "k8s.io/api", "k8s.io/client-go", "github.com/go-logr/logr",
		"github.com/prometheus/client_golang",
	}, apimachinery...)

	// The API's schemas, by which objects are compared.
	schemas = []string{"sigs.k8s.io/structured-merge-diff/v6", "k8s.io/kube-openapi", "sigs.k8s.io/json"}
	kstatus = []string{"github.com/fluxcd/cli-utils/pkg/kstatus"}

	// What only tests and the packages that help them may import, whatever the rules below say.
	helpsTests = []string{
		"testing", module + "/internal/controlplane", module + "/internal/memoryserver", module + "/internal/simulation",
		"sigs.k8s.io/controller-runtime/pkg/client/fake", "sigs.k8s.io/controller-runtime/pkg/envtest",
	}
)

// rule says what a package may import, itself or through packages under internal/.
type rule struct {
	blocks   []string // packages of this module
	external []string // roots outside of it; the standard library is free
	anything bool     // all of both
	reason   string
}

// rules has one for every package that users can import.
var rules = map[string]rule{
	".": {
		reason: "the map of the packages; no code",
	},
	"conditions": {
		external: apimachinery,
		reason:   "a leaf: API packages and tools without controller-runtime use it too",
	},
	"schedule": {
		external: append([]string{"github.com/robfig/cron/v3"}, apimachinery...),
		reason:   "a leaf: a pure function of times, good for anything that runs now and again",
	},
	"predicates": {
		external: controllerRuntime,
		reason:   "a leaf: works in any controller-runtime project alone",
	},
	"finalizers": {
		external: controllerRuntime,
		reason:   "a leaf: works in any controller-runtime project alone",
	},
	"ownedresources": {
		external: slices.Concat(controllerRuntime, schemas, kstatus),
		reason:   "a leaf: fits package reconcile without knowing it, as a user's own step does",
	},
	"ownedresources/workload": {
		external: slices.Concat(controllerRuntime, kstatus),
		reason:   "a leaf: works on workloads that somebody else owns, so it needs nothing of ownedresources",
	},
	"reconcile": {
		blocks:   []string{"conditions", "finalizers"},
		external: slices.Concat(controllerRuntime, schemas),
		reason:   "stands on conditions and finalizers; the library's steps are no more to it than a user's",
	},
	"reconcile/reconciletest": {
		anything: true,
		reason:   "helps tests; no production package may import it",
	},
}

func TestImports(t *testing.T) {
	for _, violation := range check(rules, readModule(t)) {
		t.Error(violation)
	}
}
