package ownedresources

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// creations is a client that records the order in which objects are created.
type creations struct {
	client.Client
	mu    sync.Mutex
	names []string
}

// newCreations returns a client that calls before, the given function, at each creation.
func newCreations(before func()) *creations {
	c := &creations{}
	c.Client = fake.NewClientBuilder().WithScheme(scheme.Scheme).WithReturnManagedFields().WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, to client.WithWatch, obj client.Object, options ...client.CreateOption) error {
			before()
			c.mu.Lock()
			defer c.mu.Unlock()
			c.names = append(c.names, obj.GetName())
			return to.Create(ctx, obj, options...)
		},
	}).Build()
	return c
}

func namedBuilder(name string) func(*corev1.Namespace) *corev1.ConfigMap {
	return func(*corev1.Namespace) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "made", Name: name}}
	}
}

// clusterOwner returns a cluster-scoped owner, which may own objects in every namespace.
func clusterOwner() *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "owner", UID: "o"}}
}

// TestCreatesAtOnce creates three objects. Each creation waits until the others have begun, so the test hangs unless
// they are sent concurrently.
func TestCreatesAtOnce(t *testing.T) {
	objects := func() (all []client.Object) {
		for _, name := range []string{"a", "b", "c"} {
			all = append(all, namedBuilder(name)(nil))
		}
		return all
	}
	tests := map[string]struct {
		reason string
		do     func(ctx context.Context, c client.Client) error
	}{
		"Set": {"No child comes after another one.", func(ctx context.Context, c client.Client) error {
			set := Ensure(Build(namedBuilder("a")), Build(namedBuilder("b")), Build(namedBuilder("c")))
			return set.Reconcile(ctx, c, clusterOwner())
		}},
		"Apply": {"The function sends its objects at once too.", func(ctx context.Context, c client.Client) error {
			_, err := Apply(ctx, c, clusterOwner(), objects()...)
			return err
		}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { // if the creations wait for ever, synctest fails
				var all sync.WaitGroup
				all.Add(3)
				c := newCreations(func() {
					all.Done()
					all.Wait()
				})
				require.NoError(t, tc.do(t.Context(), c), tc.reason)
				require.ElementsMatch(t, []string{"a", "b", "c"}, c.names)
			})
		})
	}
}

func TestOrderOfCreation(t *testing.T) {
	namespace := func(*corev1.Namespace) *corev1.Namespace {
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "made"}}
	}
	tests := map[string]struct {
		reason string
		set    func() *ChildSet[*corev1.Namespace]
		before []string // the objects that are created before the last one
		last   string
	}{
		"After": {
			reason: "What comes after others is sent when they exist.",
			set: func() *ChildSet[*corev1.Namespace] {
				a, b := Build(namedBuilder("a")), Build(namedBuilder("b"))
				return Ensure(Build(namedBuilder("last")).After(a, b), a, b)
			},
			before: []string{"a", "b"}, last: "last",
		},
		"Namespace": {
			reason: "Other children may be in the namespace, wherever it is declared.",
			set: func() *ChildSet[*corev1.Namespace] {
				return Ensure(Build(namedBuilder("last")), Build(namespace))
			},
			before: []string{"made"}, last: "last",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c := newCreations(func() {})
			require.NoError(t, client.IgnoreNotFound(tc.set().Reconcile(t.Context(), c, clusterOwner())))
			require.Len(t, c.names, len(tc.before)+1)
			require.Equal(t, tc.last, c.names[len(tc.before)], tc.reason)
			slices.Sort(c.names[:len(tc.before)])
			require.Equal(t, tc.before, c.names[:len(tc.before)], tc.reason)
		})
	}
}
