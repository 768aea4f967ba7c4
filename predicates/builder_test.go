package predicates_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	ctrlreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/opblocks/opblocks/internal/controlplane/controlplanetest"
	"github.com/opblocks/opblocks/predicates"
)

// A controller of one of several operators that share a kind by a label gets the passes that it needs, and no others.
func TestRealBuilder(t *testing.T) {
	kind := gauge(t, "")
	cp := controlPlane(t)
	namespace := controlplanetest.Namespace(t, cp)
	c, err := client.New(cp.Config(), client.Options{})
	require.NoError(t, err)
	mgr, err := ctrl.NewManager(cp.Config(), ctrl.Options{
		Metrics:    metricsserver.Options{BindAddress: "0"},
		Cache:      cache.Options{DefaultNamespaces: map[string]cache.Config{namespace: {}}},
		Controller: config.Controller{SkipNameValidation: new(true)},
	})
	require.NoError(t, err)
	passes := make(chan string, 100)
	record := ctrlreconcile.Func(func(_ context.Context, r ctrl.Request) (ctrl.Result, error) {
		passes <- r.Name
		return ctrl.Result{}, nil
	})
	secrets := predicates.Typed[*corev1.Secret](predicates.SpecChanged(func(s *corev1.Secret) map[string][]byte { return s.Data }))
	require.NoError(t, ctrl.NewControllerManagedBy(mgr).Named("gauges").
		For(kind, builder.WithPredicates(
			predicates.Label("target", "blue", predicates.FoldCase()),
			predicate.Or(predicates.GenerationChanged(), predicates.LabelChanged("target")),
		)).
		WatchesRawSource(source.Kind(mgr.GetCache(), &corev1.Secret{}, &handler.TypedEnqueueRequestForObject[*corev1.Secret]{}, secrets)).
		Complete(record))
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		stop()
		require.NoError(t, <-ended)
	})

	brings := func(reason, want string) {
		t.Helper()
		select {
		case got := <-passes:
			require.Equal(t, want, got, reason)
		case <-time.After(eventually):
			t.Fatal("no pass: " + reason)
		}
	}
	create := func(name, target string) client.Object {
		obj := gauge(t, namespace)
		obj.SetName(name)
		obj.SetLabels(map[string]string{"target": target})
		require.NoError(t, c.Create(ctx, obj))
		return obj
	}
	merge := func(obj client.Object, patch string) {
		t.Helper()
		require.NoError(t, c.Patch(ctx, obj, client.RawPatch("application/merge-patch+json", []byte(patch))))
	}

	create("theirs", "green")
	ours := create("ours", "Blue")
	brings("a creation of ours", "ours") // by now the watch is there: what an initial list brings has no order
	marker := create("marker", "blue")
	brings("a creation of ours", "marker")
	require.NoError(t, c.Status().Patch(ctx, ours, client.RawPatch("application/merge-patch+json", []byte(`{"status":{"level":1}}`))))
	merge(marker, `{"spec":{"limit":1}}`)
	brings("our own status brings no pass", "marker")
	merge(ours, `{"metadata":{"labels":{"target":"green"}}}`)
	brings("it leaves", "ours")
	merge(ours, `{"spec":{"limit":1}}`)
	merge(marker, `{"spec":{"limit":2}}`)
	brings("it has left", "marker")

	secret := &corev1.Secret{}
	secret.Namespace, secret.Name = namespace, "password"
	require.NoError(t, c.Create(ctx, secret))
	brings("a typed source", "password")
	merge(secret, `{"metadata":{"labels":{"a":"b"}}}`)
	merge(secret, `{"data":{"a":"Yg=="}}`)
	brings("once, for the data", "password")
	merge(marker, `{"spec":{"limit":3}}`)
	brings("and not for the label", "marker")
}
