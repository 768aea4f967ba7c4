package memoryserver

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// followedRequests returns requests of all kinds, in order.
func followedRequests(t *testing.T, c client.Client, size int) []func() error {
	ctx := t.Context()
	update := func(obj client.Object, change func()) error {
		if err := c.Get(ctx, client.ObjectKeyFromObject(obj), obj); err != nil {
			return err
		}
		change()
		return c.Update(ctx, obj)
	}
	widget, d, s := testWidget(map[string]any{"size": int64(1)}), testDeployment(), testService()
	return []func() error{
		func() error { return c.Create(ctx, widget) },
		func() error { return c.Create(ctx, d) },
		func() error { return c.Create(ctx, s) },
		func() error {
			return update(d, func() { d.Spec.Replicas = new(int32(size)) })
		},
		func() error {
			return c.Patch(ctx, widget, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"size":2}}`)))
		},
		func() error {
			return c.Status().Patch(ctx, widget, client.RawPatch(types.MergePatchType, []byte(`{"status":{"phase":"Done"}}`)))
		},
		func() error { return update(s, func() { s.Spec.Type = corev1.ServiceTypeNodePort }) },
		func() error {
			return applied(ctx, c, "m", testWidget(map[string]any{"size": int64(3)}), client.ForceOwnership)
		},
		func() error {
			d.ManagedFields, d.ResourceVersion = nil, ""
			return update(d, func() { d.Labels = map[string]string{"l": "1"} })
		},
	}
}

// A server that reuses results of another one stores the same as without reuse, whatever differs between the requests.
func TestFollowing(t *testing.T) {
	tests := map[string]struct {
		reason  string
		size    int           // the number of replicas in an update in the middle; it is 3 on the earlier server
		late    time.Duration // the delay before the fourth request
		skip    int           // the request that is left out
		created int           // the number of creations that are reused
		reused  int           // the number of later versions that are reused
		repeats bool
	}{
		"SameRequests":    {"everything is reused", 2, 0, -1, 3, 6, true},
		"OtherRequest":    {"the object of the other request has other versions from then on, and the addresses of services depend on other objects", 4, 0, -1, 3, 3, false},
		"OtherTime":       {"managed fields have the time", 2, time.Minute, -1, 3, 0, false},
		"WithinTheSecond": {"times have whole seconds", 2, time.Millisecond, -1, 3, 6, true},
		"FewerRequests":   {"all resource versions differ from then on", 2, 0, 2, 2, 0, false},
	}
	play := func(t *testing.T, size int, late time.Duration, skip int, options ...Option) (s *Server) {
		synctest.Test(t, func(t *testing.T) {
			var err error
			s, err = New(testScheme, append(options, CRDs("testdata/widgets.yaml"))...)
			require.NoError(t, err)
			for i, request := range followedRequests(t, s.Client(), size) {
				if i == 3 {
					time.Sleep(late)
				}
				if i == skip {
					continue
				}
				if i == 8 {
					s.Advance(100)
				}
				_ = request() // the update of a Service that does not exist fails
			}
		})
		return s
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			earlier := play(t, 2, 0, -1)
			kept := earlier.Changes(0)
			want := play(t, tc.size, tc.late, tc.skip).Changes(0)
			following := play(t, tc.size, tc.late, tc.skip, Following(earlier))
			if diff := cmp.Diff(want, following.Changes(0)); diff != "" {
				t.Errorf("%s: -alone +following:\n%s", tc.reason, diff)
			}
			created, reused := 0, 0
			for _, c := range following.store.history {
				switch {
				case c == nil || c.key.Namespace == "" || c.after.origin == nil || c.after.request != nil: // a server keeps only requests whose results it has computed
				case c.before == nil:
					created++
				default:
					reused++
				}
			}
			require.Equal(t, tc.created, created, tc.reason)
			require.Equal(t, tc.reused, reused, tc.reason)
			require.Equal(t, tc.repeats, following.Repeats(), tc.reason)
			for _, c := range following.Changes(0) {
				c.New.SetLabels(map[string]string{"mine": "1"})
			}
			if diff := cmp.Diff(kept, earlier.Changes(0)); diff != "" {
				t.Errorf("the earlier server shares objects: %s", diff)
			}
		})
	}
}
