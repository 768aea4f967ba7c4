package bench

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/opblocks/opblocks/bench/api"
	"github.com/opblocks/opblocks/ownedresources"
	"github.com/opblocks/opblocks/reconcile"
)

// Operators whose objects have ten ConfigMaps: as many as they have replicas.
const (
	tenOfOpblocks = "opblocks-ten-children"
	tenOfCareful  = "create-or-update-ten-children"
)

// requestDelay is how long a request takes in addition, as between an operator and the API server of a cluster.
const requestDelay = 5 * time.Millisecond

// BenchmarkFirstPass measures the same as BenchmarkConvergence, when each request of the operator takes 5 ms in addition. Its
// objects have two children, or ten.
func BenchmarkFirstPass(b *testing.B) {
	b.Run(fmt.Sprintf("objects=%d", firstPassSize), func(b *testing.B) {
		inTurns(b, []string{opblocks, careful, tenOfOpblocks, tenOfCareful}, func(b *testing.B, variant string) {
			for b.Loop() {
				c := newConvergence(b, firstPassSize, variant)
				c.delay = requestDelay
				c.measure(b)
			}
		})
	})
}

// firstPassSize is the number of objects of BenchmarkFirstPass.
const firstPassSize = 200

// delayed returns a copy of the configuration whose requests take longer. Lists and watches of the cache do not: they take
// place before the first pass, or beside it.
func delayed(config *rest.Config, delay time.Duration) *rest.Config {
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return delayingTransport{next, delay} })
	return config
}

type delayingTransport struct {
	next  http.RoundTripper
	delay time.Duration
}

func (t delayingTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodGet {
		time.Sleep(t.delay)
	}
	return t.next.RoundTrip(r)
}

func hasTenChildren(variant string) bool { return variant == tenOfOpblocks || variant == tenOfCareful }

func tenChildren() reconcile.NamedStep[*api.Site] {
	return reconcile.Named("children", ownedresources.Ensure(ownedresources.BuildEach(parts)))
}

// upsertingTen writes the ten children by controllerutil.CreateOrUpdate, one after the other.
type upsertingTen struct{ client.Client }

func (r *upsertingTen) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var s api.Site
	if err := r.Get(ctx, req.NamespacedName, &s); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	all, err := parts(&s)
	if err != nil {
		return ctrl.Result{}, err
	}
	for _, desired := range all {
		live := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: desired.Name}}
		if _, err := controllerutil.CreateOrUpdate(ctx, r.Client, live, func() error {
			live.Labels, live.Data = desired.Labels, desired.Data
			return ctrl.SetControllerReference(&s, live, r.Scheme())
		}); err != nil {
			return ctrl.Result{}, err
		}
	}
	if setCondition(&s, metav1.ConditionTrue) {
		return ctrl.Result{}, r.Status().Update(ctx, &s)
	}
	return ctrl.Result{}, nil
}
