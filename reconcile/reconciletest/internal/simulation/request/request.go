// Package request has what an operator asked for: each [Request], their [Log], and the [Rights] that they need.
package request

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/state"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/text"
)

// Request is one call of the operator. Type Request of package reconciletest has the same fields, and documents them.
type Request struct {
	Process     int
	Pass        int
	Verb        string
	Kind        schema.GroupVersionKind
	Object      client.ObjectKey
	Subresource string
	External    string
	Body        []byte
	Cached      bool
	Behind      int
	Changed     bool
	Err         error
	Fault       string
}

// String returns the request as faults and assertions name it.
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

// IsDeletion reports whether the request deletes objects.
func (r *Request) IsDeletion() bool { return r.Verb == "delete" || r.Verb == "deletecollection" }

// IsRefused reports whether the API server rejected a write. NotFound and AlreadyExists do not count: operators expect
// them.
func (r *Request) IsRefused() bool {
	return r.External == "" && r.IsWrite() && r.Err != nil && !apierrors.IsNotFound(r.Err) && !apierrors.IsAlreadyExists(r.Err)
}

// Answer returns a short description of the answer, for the trace.
func (r *Request) Answer() string {
	switch {
	case r.Err != nil:
		return strings.ReplaceAll(r.Err.Error(), "\n", " ")
	case r.Behind > 0:
		return fmt.Sprintf("from the cache, which is %s behind", text.Plural(r.Behind, "change"))
	case r.Cached:
		return "from the cache"
	case r.IsWrite() && !r.Changed:
		return "no change"
	}
	return "ok"
}

// Call is a request with the fields that only the engine needs. It is recorded before its answer is set.
type Call struct {
	Request
	Owned bool // the operator created the object of the request
	HTTP  bool // the request goes to the handler of a RoundTripper
	API   bool // the request goes to an API of package fakeapi
	Probe bool // a pass sent the request while the engine checked that one more pass changes nothing

	Reviewed  bool // a webhook is called for the request; until the request is carried out: may be called
	Converted bool // a webhook converts the object of the request

	HasPast bool // the request reads an API that would answer otherwise if it showed the state before the last write

	Before, After Moment // the moments before and after the request; After is the zero value if a fault prevented the request

	DryRun bool // a dry run
	Past   bool // the process began with an old cache, and the cache still shows the past
}

// Moment is everything outside of the operator's process that decides how a run goes on. If two moments of a run are equal, nothing but
// reads has happened between them.
type Moment struct {
	Revision int64 // the API server's revision
	Time     time.Time
	Calls    int  // how many calls have gone outside of the cluster
	Steps    int  // how often something outside of the cluster has changed by itself
	Actions  int  // how many actions of the user have begun
	Probe    bool // the engine checks whether one more pass changes something
}

// IndentedBody returns the body of a write as indented JSON. It returns "" for a Secret.
func (r *Request) IndentedBody() string {
	var b bytes.Buffer
	if !r.IsWrite() || len(r.Body) == 0 || r.Kind.Kind == "Secret" || json.Indent(&b, r.Body, "", "  ") != nil {
		return ""
	}
	return b.String()
}

// ObjectID identifies an object.
type ObjectID struct {
	Kind schema.GroupVersionKind
	Name types.NamespacedName
}

// String returns kind, namespace and name.
func (o ObjectID) String() string { return o.Kind.Kind + " " + state.NameOf(o.Name) }

// IsCustom reports whether the kind is a custom one: its group is not a group of Kubernetes.
func (o ObjectID) IsCustom() bool {
	return strings.Contains(o.Kind.Group, ".") && !strings.HasSuffix(o.Kind.Group, ".k8s.io")
}
