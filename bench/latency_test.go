package bench

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

// latency measures how long the requests that write objects take, until their answer begins.
type latency struct {
	mu    sync.Mutex
	total map[string]time.Duration
	count map[string]int
}

// wrap returns a copy of the configuration whose clients are measured.
func (l *latency) wrap(config *rest.Config) *rest.Config {
	l.total, l.count = map[string]time.Duration{}, map[string]int{}
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return &timedTransport{next, l}
	})
	return config
}

type timedTransport struct {
	next http.RoundTripper
	*latency
}

func (t *timedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	start := time.Now()
	response, err := t.next.RoundTrip(r)
	took := time.Since(start)
	kind := r.Method
	switch {
	case kind == http.MethodGet || strings.Contains(r.URL.Path, "/events"):
		return response, err
	case strings.HasSuffix(r.URL.Path, "/status"):
		kind = "status"
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.total[kind] += took
	t.count[kind]++
	return response, err
}

// report reports the mean of each kind of request in milliseconds.
func (l *latency) report(b *testing.B) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for kind, n := range l.count {
		b.ReportMetric(l.total[kind].Seconds()*1e3/float64(n), "ms/"+kind)
	}
}
