package bench

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/opblocks/opblocks/bench/api"
)

// TestRequestBudget checks how many requests an object costs, from its creation to its deletion. No other controller runs, so
// the Deployments never become ready.
func TestRequestBudget(t *testing.T) {
	tests := map[string]struct {
		reason, variant    string
		creation, deletion map[string]int
	}{
		"WithoutFinalizer": {
			reason:   "the garbage collector deletes the children",
			variant:  opblocks,
			creation: map[string]int{"POST deployments": 1, "POST services": 1, "PATCH sites/status": 1},
			deletion: map[string]int{},
		},
		"Finalizer": {
			reason:   "one request adds the finalizer, and one removes it after the cleanup",
			variant:  withFinalizer,
			creation: map[string]int{"PATCH sites": 1, "POST deployments": 1, "POST services": 1, "PATCH sites/status": 1},
			deletion: map[string]int{"PATCH sites": 1},
		},
		"PodsListed": {
			reason:   "lists are served by the cache",
			variant:  podsOfOpblocks,
			creation: map[string]int{"POST deployments": 1, "POST services": 1, "PATCH sites/status": 1},
			deletion: map[string]int{},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			cp := controlPlane(t)
			f := newSites(t, cp, 5)
			expect := func(step string, want map[string]int) {
				t.Helper()
				if diff := cmp.Diff(want, f.sent(t, tc.variant)); diff != "" {
					t.Errorf("%s: requests an object (-want +got); %s:\n%s", step, tc.reason, diff)
				}
			}
			setImage := func(image string) {
				f.each(t, "set the image of", func(name types.NamespacedName) {
					var s api.Site
					must(t, f.direct.Get(t.Context(), name, &s))
					s.Spec.Image = image
					must(t, f.direct.Update(t.Context(), &s))
				})
			}

			expect("creation", tc.creation)
			expect("steady state", map[string]int{})
			f.each(t, "change the status of the Service of", func(name types.NamespacedName) {
				var svc corev1.Service
				must(t, f.direct.Get(t.Context(), name, &svc))
				svc.Status.Conditions = []metav1.Condition{{
					Type: "Example", Status: metav1.ConditionTrue, Reason: "Example", LastTransitionTime: metav1.Now(),
				}}
				must(t, f.direct.Status().Update(t.Context(), &svc))
			})
			expect("a status of a child that is not shown", map[string]int{})
			f.start(t, cp)
			expect("restart", map[string]int{})
			setImage("nginx:1.28")
			expect("the first change since the creation", map[string]int{
				"GET deployments": 1, "PATCH deployments": 2, "PATCH sites/status": 1,
			})
			setImage("nginx:1.29")
			expect("a change of one field", map[string]int{"PATCH deployments": 1, "PATCH sites/status": 1})
			f.each(t, "make ready", func(name types.NamespacedName) {
				var d appsv1.Deployment
				must(t, f.direct.Get(t.Context(), name, &d))
				setReplicasReady(&d)
				must(t, f.direct.Status().Update(t.Context(), &d))
			})
			expect("a status of a child that is shown", map[string]int{"PATCH sites/status": 1})
			f.each(t, "delete", func(name types.NamespacedName) {
				must(t, f.direct.Delete(t.Context(), newSite(name.Namespace, name.Name)))
			})
			expect("deletion", tc.deletion)
		})
	}
}

// sent reconciles all sites until nothing is left to do, and returns the requests that were sent by the site.
func (f *fleet) sent(t *testing.T, variant string) map[string]int {
	t.Helper()
	total := map[string]int{}
	for quiet := 0; quiet < 2; {
		f.waitForCache(t, f.names)
		for _, name := range f.names {
			f.pass(t, variant, name)
		}
		requests := f.count.Sent()
		for _, request := range requests {
			total[request]++
		}
		if quiet++; len(requests) > 0 {
			quiet = 0
		}
	}
	for request, n := range total {
		require.Zero(t, n%len(f.names), "%s: as often for each object", request)
		total[request] = n / len(f.names)
	}
	return total
}

// TestAllocationBudget checks what a pass with nothing to do costs: no request, and few allocations. There are fewer than the
// budget without the race detector; with it objects that are kept for the next pass are dropped at random.
func TestAllocationBudget(t *testing.T) {
	f := newFleet(t, 20)
	f.createPods(t)
	for variant, budget := range map[string]int{opblocks: 15, podsOfOpblocks: 50} {
		t.Run(variant, func(t *testing.T) {
			f.settle(t, variant)
			f.count.Sent()
			i := 0
			allocations := math.Inf(1)
			for range 5 { // the lowest counts: other goroutines, such as the cache's, allocate as well
				allocations = min(allocations, testing.AllocsPerRun(200, func() {
					f.pass(t, variant, f.names[i%len(f.names)])
					i++
				}))
			}
			t.Logf("%v allocations a pass", allocations)
			require.Empty(t, f.count.Sent())
			require.LessOrEqual(t, int(allocations), budget)
		})
	}
}
