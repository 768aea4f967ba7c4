package reconciletest

import (
	"context"
	"net/http"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/operator"
)

// Process is one process of the operator, from its start to its death. When it dies, its context is cancelled, and from
// then on all its requests, effects and queries return an error that wraps [context.Canceled].
//
// It uses package time, whose clock is virtual: time moves on only when nothing else is left to do.
type Process struct {
	process *operator.Process
}

// Context returns a context that is cancelled when the process dies.
func (p *Process) Context() context.Context { return p.process.Context() }

// Client returns the client of the process's manager. It writes to the API server. It reads objects from the cache, except
// unstructured ones, which it reads from the API server: see [Process.CacheUnstructured].
func (p *Process) Client() client.Client { return p.process.Client() }

// CacheUnstructured makes [Process.Client] and the manager's client read unstructured objects from the cache too. Call it first in Start if
// main sets the option Client.Cache.Unstructured of [manager.Options].
func (p *Process) CacheUnstructured() { p.process.CacheUnstructured() }

// HashLargeValues makes the cache hold only hashes of Secrets and ConfigMaps of more than bound bytes, like the option of this name of
// reconcile.NewManager. Call it first in Start if main sets that option. A bound that is less than the values of the scenario shows what
// the operator does with hashed objects.
func (p *Process) HashLargeValues(bound int) { p.process.HashLargeValues(bound) }

// APIReader returns a reader that reads from the API server, not from the cache.
func (p *Process) APIReader() client.Reader { return p.process.APIReader() }

// Config returns a config for clients that the operator builds itself: clientsets, dynamic clients, metadata clients, discovery
// clients, and the clients of controller-runtime. The manager's GetConfig and GetHTTPClient reach the API server in the same way. There is
// no socket: the config has a transport, and a copy of it must keep that. Each call returns another config.
//
// The requests of such a client have the same names and the same faults as the requests of [Process.Client], but every read goes to the API
// server. The watches of its informers show each change when the manager's cache does.
func (p *Process) Config() *rest.Config { return p.process.Config() }

// FieldIndexer returns the indexer of the cache.
func (p *Process) FieldIndexer() client.FieldIndexer { return p.process.FieldIndexer() }

// EventRecorder returns a recorder that records events in the trace.
func (p *Process) EventRecorder() events.EventRecorder { return p.process.EventRecorder() }

// LegacyEventRecorder returns a recorder of the legacy events API. It records events in the trace too.
func (p *Process) LegacyEventRecorder() record.EventRecorder { return p.process.LegacyEventRecorder() }

// External returns what [Scenario.External] returned for the run, nil if the scenario has none.
func (p *Process) External() External { return p.process.External() }

// Manager returns the process's manager. Controllers are set up with it as in production, with their watches, so that a
// missing watch is found. Its cache holds only the namespaces and labels of the options, and applies their transform
// functions. All other options are ignored. If several options are given, the last one applies.
//
// Do not start the manager: the run does so. It serves no metrics, and is always elected as the leader. Its webhook server never listens:
// the API server in memory calls the handlers that are registered with it. A controller whose requests are not of type
// [ctrlreconcile.Request] is refused when it is added.
func (p *Process) Manager(options ...cache.Options) manager.Manager {
	return p.process.Manager(options...)
}

// Reconcile registers a reconciler without a controller. It is called for every object of the kind whenever any
// object of any kind changes, so a missing watch is not found. The kind's Go types must be in the scheme.
func (p *Process) Reconcile(kind client.Object, reconciler ctrlreconcile.Reconciler) {
	p.process.Reconcile(kind, reconciler)
}

// Effect calls do, which changes something outside of the cluster, and returns the error of do, or the error of a
// fault. The fake of an external system calls Effect for each change that the operator asks for. The name describes the
// change, such as "create user ann", and must be the same in each run. A fault may prevent the call of do, or lose its
// result, as with a write to the API server.
func (p *Process) Effect(ctx context.Context, name string, do func() error) error {
	return p.process.Effect(ctx, name, do)
}

// Query calls do, which reads something outside of the cluster and changes nothing there. It returns the error of do,
// or the error of a fault. The name describes what is read, and must be the same in each run.
func (p *Process) Query(ctx context.Context, name string, do func() error) error {
	return p.process.Query(ctx, name, do)
}

// RoundTripper returns the transport of an HTTP client, for an operator that uses HTTP outside of the cluster. The peer
// answers the requests. GET and HEAD are queries, and all other methods are effects, named by method and path. A fault
// may answer a request with status 429 or 503, or return a network error.
func (p *Process) RoundTripper(peer http.Handler) http.RoundTripper {
	return p.process.RoundTripper(peer)
}
