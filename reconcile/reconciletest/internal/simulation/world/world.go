// Package world is what is around the operator in a run. A [World] has the API server, the log of the requests, the trace and
// the plan of the faults. history.go has the objects that exist, failures.go what has failed, cluster.go lets the rest of the cluster work,
// controller.go has one simulated controller of it, count.go counts what the operator did, secrets.go looks for values of Secrets where they
// must not appear, otherwriter.go is the other writer of the operator's objects, and apis.go has the APIs outside of the cluster.
package world

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/memoryserver"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/kinds"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/plan"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/request"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/result"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/trace"
)

// World is the API server of a run, and everything on it but the operator: the simulated controllers, the other writer and what
// is outside of the cluster. It knows what has happened there, and which faults are planned.
type World struct {
	Options
	User   client.WithWatch // its requests are not recorded
	Log    *request.Log
	Trace  *trace.Trace
	Rights *request.Rights

	controllers []*controller // the simulated controllers

	Mu            sync.Mutex // guards what follows
	Plan          plan.Plan
	History       History
	Counter       Counter
	Others        OtherWriter
	Probing       bool // the check runs that the operator rests
	Failures      Failures
	random        *rand.ChaCha8 // the random numbers that follow from the seed
	changed       int64         // see lastChange
	beatsUntil    int64         // the revision up to which lastChange has looked
	RealTime      string        // what the operator has made from a time of the real clock; "": nothing
	passedOver    []string      // the objects for which a webhook was passed over at a write of the user
	externalSteps int           // how often what is outside of the cluster has changed by itself
	externalCalls int           // how many calls have gone there
	APIs          APIs
}

// Options are what a world is made from.
type Options struct {
	Scheme      *runtime.Scheme
	Server      *memoryserver.Server
	External    External                                           // nil: the scenario has none
	Controllers []func(ctx context.Context, c client.Client) error // the rest of the cluster
	Ignore      func(*unstructured.Unstructured)                   // removes from an object what may differ between runs; may be nil
	Heartbeats  func(*unstructured.Unstructured)                   // removes fields whose changes do not count; may be nil
	Silent      []kinds.Finding                                    // findings of these kinds do not end a run
	References  *result.References                                 // nil: this is a run without faults
	Faults      []plan.Fault
	Seed        result.Seed
	Latency     time.Duration // the virtual time that each request of the operator takes
}

// New returns a world in which nothing has happened.
func New(o Options) *World {
	w := &World{
		Options: o, User: o.Server.Client(), Log: &request.Log{}, Trace: &trace.Trace{},
		Plan:    plan.New(o.Faults),
		History: History{server: o.Server, ignore: o.Ignore, Present: map[request.ObjectID]client.Object{}},
		Counter: Counter{Operations: result.NewOperations(), createdSince: map[types.UID]bool{}},
		Rights:  request.NewRights(o.Server.Client().RESTMapper()),
		random:  rand.NewChaCha8(o.Seed),
	}
	w.Failures = newFailures(&w.Mu, o.Silent)
	w.Others = OtherWriter{scheme: o.Scheme, user: w.User, trace: w.Trace, present: w.History.Present, failures: &w.Failures}
	for _, reconcile := range o.Controllers {
		w.controllers = append(w.controllers, newController(w, reconcile))
	}
	return w
}

// Version is compared with a later one to find out whether something has changed.
type Version struct {
	Revision int64 // the server's revision after the last change that is not a heartbeat
	effects  int   // how many effects have changed something outside of the cluster
	steps    int   // how often what is outside of the cluster has changed by itself
}

// Version returns the version now.
func (w *World) Version() Version {
	w.Mu.Lock()
	defer w.Mu.Unlock()
	return Version{w.lastChange(), w.Counter.Effects, w.externalSteps}
}

// Moment returns what decides how the run goes on, without what the user has done. The caller holds the lock.
func (w *World) Moment() request.Moment {
	return request.Moment{Revision: w.Server.Revision(), Time: time.Now(), Calls: w.externalCalls, Steps: w.externalSteps, Probe: w.Probing}
}

// SetProbing notes whether the check runs that the operator rests.
func (w *World) SetProbing(probing bool) {
	w.Mu.Lock()
	defer w.Mu.Unlock()
	w.Probing = probing
}

// InjectedSoFar returns how many of the planned faults have been injected. Each call that an outage prevents counts as one more.
func (w *World) InjectedSoFar() int {
	w.Mu.Lock()
	defer w.Mu.Unlock()
	return len(w.Plan.Injected) + w.APIs.Prevented
}

func (w *World) isProbing() bool {
	w.Mu.Lock()
	defer w.Mu.Unlock()
	return w.Probing
}

// ReadRandom fills the bytes with the next random values of the run.
func (w *World) ReadRandom(into []byte) {
	w.Mu.Lock()
	defer w.Mu.Unlock()
	_, _ = w.random.Read(into) // it never returns an error
}
