package reconciletest

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Request is one call of the operator: a request to the API server, a read of its cache, or an
// effect outside of the cluster.
type Request struct {
	Process int // 1 is the first; each crash begins another one
	Pass    int // 1 is the first of the run; 0 is outside of any pass

	// Verb is get, list, create, update, patch, apply, delete or deletecollection, and for what is
	// outside of the cluster effect or query.
	Verb        string
	Kind        schema.GroupVersionKind
	Object      client.ObjectKey // for a creation without a name the name is the prefix and a star
	Subresource string
	External    string // what an effect or a query does

	Body    []byte // of a patch as it is sent, of a create or an update as JSON
	Cached  bool   // a read that did not go to the API server
	Behind  int    // changes of the kind that the cache did not show
	Changed bool   // something is different on the API server, or outside, than before
	Err     error  // the answer that the operator got
	Fault   string // what was done to it

	made  bool // the object is the operator's own work
	http  bool // to a peer of a RoundTripper
	probe bool // it is of the check that all is quiet
}

// String gives the request as the ledger's assertions and the faults name it, such as
// "patch Memcached/status default/sample" or "effect create user ann".
func (r *Request) String() string {
	var b strings.Builder
	b.WriteString(r.Verb)
	b.WriteByte(' ')
	if r.External != "" {
		b.WriteString(r.External)
		return b.String()
	}
	b.WriteString(r.Kind.Kind)
	if r.Subresource != "" {
		b.WriteByte('/')
		b.WriteString(r.Subresource)
	}
	if name := r.Object.String(); name != "/" {
		b.WriteByte(' ')
		b.WriteString(strings.TrimPrefix(name, "/"))
	}
	return b.String()
}

// IsWrite reports whether the request may change something.
func (r *Request) IsWrite() bool {
	switch r.Verb {
	case "get", "list", "query":
		return false
	}
	return true
}

// answer gives the outcome in a few words.
func (r *Request) answer() string {
	switch {
	case r.Err != nil:
		return strings.ReplaceAll(r.Err.Error(), "\n", " ")
	case r.Behind > 0:
		return fmt.Sprintf("from the cache, which is %s behind", plural(r.Behind, "change"))
	case r.Cached:
		return "from the cache"
	case r.IsWrite() && !r.Changed:
		return "no change"
	}
	return "ok"
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
