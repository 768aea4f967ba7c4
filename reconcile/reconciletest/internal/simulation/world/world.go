// Package world is what is around the operator in a run. A [World] has the API server, the log of the requests, the trace and the plan of
// the faults. history.go has the objects that exist, failures.go what has failed, and count.go counts what the operator did. cluster.go
// lets the simulated controllers, the other writer and the garbage collector work, and controller.go has one simulated controller.
// secrets.go looks for values of Secrets where they must not appear. otherwriter.go is the other writer of the operator's objects, and
// apis.go has the APIs outside of the cluster.
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

// World is everything in a run except the operator: the API server, the simulated controllers, the other writer, and the things outside of
// the cluster. It records what has happened there, and which faults are planned.
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
	Probing       bool // the engine checks whether one more pass changes something
	Failures      Failures
	random        *rand.ChaCha8 // the random numbers that follow from the seed
	changed       int64         // see lastChange
	beatsUntil    int64         // the revision up to which lastChange has searched
	RealTime      string        // says how the operator has used a time of the real clock; "": it has not
	passedOver    []string      // the objects that PassOver has noted
	externalSteps int           // how often what is outside of the cluster has changed by itself
	externalCalls int           // how many calls have gone outside of the cluster
	APIs          APIs
}

// Options are what a world is made from.
type Options struct {
	Scheme      *runtime.Scheme
	Server      *memoryserver.Server
	External    External                                           // nil: the scenario has none
	Controllers []func(ctx context.Context, c client.Client) error // the steps of the simulated controllers
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

// Version identifies the contents of the cluster and of what is outside. If two versions are equal, nothing has changed between them.
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

// Moment returns the present moment, without the number of the user's actions. The caller holds the lock.
func (w *World) Moment() request.Moment {
	return request.Moment{Revision: w.Server.Revision(), Time: time.Now(), Calls: w.externalCalls, Steps: w.externalSteps, Probe: w.Probing}
}

// SetProbing notes whether the engine checks that one more pass changes nothing.
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
