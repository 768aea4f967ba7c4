package reconcile_test

import (
	"context"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"

	"github.com/opblocks/opblocks/reconcile"
	"github.com/opblocks/opblocks/reconcile/reconciletest/controlplane"
)

// TestReadiness delays the list of a controller's kind, and sends a request to the readiness endpoint in that time.
func TestReadiness(t *testing.T) {
	tests := map[string]struct {
		reason      string
		warmup      bool
		other       bool // another replica is the leader
		replaced    bool // the readiness check is replaced by one that always succeeds
		readyBefore bool
	}{
		"Alone":             {reason: "the controller starts its watches at once"},
		"AloneWithWarmup":   {reason: "the warm-up waits for the same caches", warmup: true},
		"StandbyWithWarmup": {reason: "a replica that waits to lead fills its caches", warmup: true, other: true},
		"Replaced":          {reason: "the operator serves the conversion webhook without which its cache cannot sync", replaced: true, readyBefore: true},
		"Standby":           {reason: "without the warm-up it has no caches to wait for", other: true, readyBefore: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			namespace := controlplane.Namespace(t, controlPlane(t))
			hold := &heldRequest{path: "/poddisruptionbudgets", reached: make(chan struct{}), released: make(chan struct{})}
			user := controlPlane(t).Config()
			user.Wrap(hold.wrap)
			o := options(namespace)
			o.HealthProbeBindAddress = freeAddress(t)
			o.Controller.EnableWarmup = new(tc.warmup)
			if tc.other {
				o.LeaderElection, o.LeaderElectionNamespace, o.LeaderElectionID = true, namespace, "operator"
				holdLease(t, namespace, o.LeaderElectionID)
			}
			mgr, err := reconcile.NewManager(user, o)
			require.NoError(t, err)
			if tc.replaced {
				require.NoError(t, mgr.AddReadyzCheck("caches", healthz.Ping))
			}
			require.NoError(t, reconcile.For[*budget](mgr, reconcile.Named("one", step(nil))).Complete())
			ctx, stop := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() { done <- mgr.Start(ctx) }()
			t.Cleanup(func() {
				stop()
				require.NoError(t, <-done)
			})

			ready := func() bool { return isServed(t, "http://"+o.HealthProbeBindAddress+"/readyz") }
			if tc.readyBefore {
				require.Eventually(t, ready, eventually, often, tc.reason)
				return
			}
			<-hold.reached
			assert.False(t, ready(), tc.reason)
			close(hold.released)
			require.Eventually(t, ready, eventually, often, tc.reason)
		})
	}
}

// heldRequest delays the requests to a path until it is released.
type heldRequest struct {
	path     string
	once     sync.Once
	reached  chan struct{}
	released chan struct{}
}

func (h *heldRequest) wrap(next http.RoundTripper) http.RoundTripper {
	return transport(func(r *http.Request) (*http.Response, error) {
		if strings.HasSuffix(r.URL.Path, h.path) {
			h.once.Do(func() { close(h.reached) })
			select {
			case <-h.released:
			case <-r.Context().Done():
				return nil, r.Context().Err()
			}
		}
		return next.RoundTrip(r)
	})
}

// holdLease creates a lease that another replica holds.
func holdLease(t *testing.T, namespace, name string) {
	t.Helper()
	c, err := client.New(controlPlane(t).Config(), client.Options{})
	require.NoError(t, err)
	now := metav1.NewMicroTime(time.Now())
	require.NoError(t, c.Create(t.Context(), &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity: new("another"), LeaseDurationSeconds: new(int32(3600)), AcquireTime: &now, RenewTime: &now,
		},
	}))
}

// freeAddress returns an address on which nobody listens.
func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, listener.Close())
	return listener.Addr().String()
}

// isServed reports whether a request to the URL returns status 200.
func isServed(t *testing.T, url string) bool {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	require.NoError(t, err)
	request.Close = true
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return false
	}
	defer response.Body.Close()
	return response.StatusCode == http.StatusOK
}
