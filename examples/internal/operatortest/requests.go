package operatortest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"path"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Requests counts the requests that an operator sends for its objects, at the transport. It does not count lists and watches,
// events, leases, discovery, and what conflicts with [Operator.Pass], which changes the objects itself.
type Requests struct {
	mu      sync.Mutex
	counts  map[string]int
	passing bool // Pass is under way
	denied  []string
	read    map[string]bool // names of objects that were read from the API server
}

// Count returns a config whose requests are counted.
func (r *Requests) Count(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return transport{r, next} })
	return config
}

// Take returns the counts since its last call, by keys such as "POST deployments" and "PATCH memcacheds/status".
func (r *Requests) Take() map[string]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	counts := r.counts
	r.counts = nil
	if counts == nil {
		counts = map[string]int{}
	}
	return counts
}

// Denied returns all requests that were answered with 403 because a permission is missing. It leaves out those to create an
// object in a namespace that is being deleted: everybody gets this answer.
func (r *Requests) Denied() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.denied
}

type transport struct {
	requests *Requests
	next     http.RoundTripper
}

func (t transport) RoundTrip(request *http.Request) (*http.Response, error) {
	t.requests.count(request) // before the test can see its effect
	defer t.requests.countRead(request)
	response, err := t.next.RoundTrip(request)
	if err == nil && response.StatusCode == http.StatusConflict {
		t.requests.discount(request)
	}
	if err != nil || response.StatusCode != http.StatusForbidden {
		return response, err
	}
	answer, err := io.ReadAll(response.Body)
	if err = errors.Join(err, response.Body.Close()); err != nil {
		return nil, err
	}
	response.Body = io.NopCloser(bytes.NewReader(answer))
	if !bytes.Contains(answer, []byte(corev1.NamespaceTerminatingCause)) {
		t.requests.mu.Lock()
		defer t.requests.mu.Unlock()
		t.requests.denied = append(t.requests.denied, request.Method+" "+request.URL.Path)
	}
	return response, nil
}

func (r *Requests) count(request *http.Request) {
	resource := resourceOf(request)
	if resource == "" {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.counts == nil {
		r.counts = map[string]int{}
	}
	r.counts[request.Method+" "+resource]++
}

// discount undoes count if Pass is under way: the request is sent again.
func (r *Requests) discount(request *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	what := request.Method + " " + resourceOf(request)
	if !r.passing || r.counts[what] == 0 {
		return
	}
	if r.counts[what]--; r.counts[what] == 0 {
		delete(r.counts, what)
	}
}

func (r *Requests) setPassing(passing bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.passing = passing
}

// countRead records a read of one object, after its answer.
func (r *Requests) countRead(request *http.Request) {
	if request.Method != http.MethodGet || resourceOf(request) == "" {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.read == nil {
		r.read = map[string]bool{}
	}
	r.read[path.Base(request.URL.Path)] = true
}

// IsRead reports whether the operator has read an object of this name from the API server, and has the answer.
func (r *Requests) IsRead(name string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.read[name]
}

// WrappedRoundTripper lets client-go find the connections to close.
func (t transport) WrappedRoundTripper() http.RoundTripper { return t.next }

// resourceOf returns the resource and subresource of a request, or "" if the request does not count.
func resourceOf(request *http.Request) string {
	_, below, namespaced := strings.Cut(request.URL.Path, "/namespaces/")
	if !namespaced {
		return ""
	}
	parts := strings.Split(below, "/") // namespace, resource, name, subresource
	switch {
	case len(parts) < 2, parts[1] == "events", parts[1] == "leases":
		return ""
	case len(parts) == 2 && request.Method == http.MethodGet:
		return ""
	case len(parts) > 3:
		return parts[1] + "/" + parts[3]
	}
	return parts[1]
}

// PerObject waits until the operator has reconciled the objects, and returns the requests for each of them since the last
// call. The test must have done the same with all of them.
func (o *Operator) PerObject(t *testing.T, c client.Client, objects ...client.Object) map[string]int {
	t.Helper()
	o.Pass(t, c, objects...)
	counts := o.Requests.Take()
	for what, n := range maps.All(counts) {
		assert.Zero(t, n%len(objects), "%d %s for %d objects", n, what, len(objects))
		counts[what] = n / len(objects)
	}
	return counts
}

// Batch is a number of objects with which a test does the same, to count the requests for each.
type Batch struct {
	names   []string
	objects []client.Object
}

// NewBatch returns a batch of n objects, whose names are the prefix and a number.
func NewBatch(n int, prefix string, object func(name string) client.Object) *Batch {
	b := &Batch{}
	for i := range n {
		name := fmt.Sprintf("%s-%d", prefix, i)
		b.names, b.objects = append(b.names, name), append(b.objects, object(name))
	}
	return b
}

// Each calls a function with the name of each object.
func (b *Batch) Each(do func(name string)) {
	for _, name := range b.names {
		do(name)
	}
}

// Sent returns the requests that the operator has sent for each object since the last call.
func (b *Batch) Sent(t *testing.T, o *Operator, c client.Client) map[string]int {
	t.Helper()
	return o.PerObject(t, c, b.objects...)
}
