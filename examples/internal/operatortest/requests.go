package operatortest

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
)

// Requests are those that an operator sends for its objects, counted at the transport. Lists and watches, events, leases
// and the discovery of kinds do not count.
type Requests struct {
	mu     sync.Mutex
	counts map[string]int
	denied []string
}

// Count gives a config whose requests are counted.
func (r *Requests) Count(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return transport{r, next} })
	return config
}

// Take gives the counts, such as "POST deployments" and "PATCH memcacheds/status", and starts anew.
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

// Denied gives all requests that were answered by 403, but for those to create something in a namespace that is being
// deleted: whoever may create it is answered so too.
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
	t.requests.count(request) // before a test can see what comes of it
	response, err := t.next.RoundTrip(request)
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

// WrappedRoundTripper lets client-go find the connections to close.
func (t transport) WrappedRoundTripper() http.RoundTripper { return t.next }

// resourceOf gives the resource of a request that counts, with its subresource.
func resourceOf(request *http.Request) string {
	_, path, namespaced := strings.Cut(request.URL.Path, "/namespaces/")
	if !namespaced {
		return ""
	}
	parts := strings.Split(path, "/") // namespace, resource, name, subresource
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
