package reconciletest

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/simulation/request"
)

// Request is one call of the operator: a request to the API server, a read of its cache, or an effect or query
// outside of the cluster.
type Request struct {
	Process int // 1 is the first process of the run
	Pass    int // 1 is the first of the run; 0 is outside of any pass

	// Verb is get, list, create, update, patch, apply, delete or deletecollection. Outside of the cluster it is effect or
	// query.
	Verb        string
	Kind        schema.GroupVersionKind // the kind of the object; empty outside of the cluster
	Object      client.ObjectKey        // for a creation with a generated name: the prefix and "*"
	Subresource string                  // such as status, "" for the object itself
	External    string                  // the name of an effect or a query, "" for all other requests

	Body    []byte // a patch or an apply as it is sent, the object of a create or an update as JSON, else nil
	Cached  bool   // a read that did not go to the API server
	Behind  int    // how many changes of the kind the cache did not show at a read of it
	Changed bool   // the request changed something, on the API server or outside of the cluster
	Err     error  // the answer that the operator got
	Fault   string // the kind of fault that happened at the request, "" for none
}

// String returns the request as assertions and faults name it, such as "patch Memcached/status default/sample" or
// "effect create user ann".
func (r *Request) String() string { return (*request.Request)(r).String() }

// IsWrite reports whether the request may change something: all but get, list and query.
func (r *Request) IsWrite() bool { return (*request.Request)(r).IsWrite() }
