package reconcile_test

import (
	"context"
	"errors"
	"net/http"
	"path"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/reconcile"
	"github.com/opblocks/opblocks/reconcile/secrets"
)

func TestWatching(t *testing.T) {
	w := newEnv(t)
	byLabel := func(_ context.Context, _ client.Reader, cm *corev1.ConfigMap) []ctrl.Request {
		return []ctrl.Request{{NamespacedName: client.ObjectKey{Namespace: cm.GetNamespace(), Name: cm.GetLabels()["budget"]}}}
	}
	count := func(ctx context.Context, c client.Client, b *budget) error {
		var list corev1.ConfigMapList
		if err := c.List(ctx, &list, client.InNamespace(b.Namespace), client.MatchingLabels{"budget": b.Name}); err != nil {
			return err
		}
		b.Status.CurrentHealthy = int32(len(list.Items))
		return nil
	}
	require.NoError(t, reconcile.For[*budget](w.mgr,
		reconcile.Named("count", reconcile.Func(count), reconcile.Watching(&corev1.ConfigMap{}, byLabel)),
	).Complete())
	w.run(t)
	b := w.create(t, "a")
	w.waitFor(t, b, "none", func(b *budget) bool { return b.Status.ObservedGeneration == 1 })
	require.NoError(t, w.client.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: w.namespace, Name: "one", Labels: map[string]string{"budget": "a"},
	}}))
	w.waitFor(t, b, "one", func(b *budget) bool { return b.Status.CurrentHealthy == 1 })
}

// secretReads records the requests for Secrets: reads by name, and lists and watches, with the media type that was asked
// for.
type secretReads struct {
	mu     sync.Mutex
	byName []string
	many   []string
}

func (s *secretReads) wrap(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return transport(func(r *http.Request) (*http.Response, error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			switch {
			case strings.HasSuffix(r.URL.Path, "/secrets"):
				s.many = append(s.many, r.Header.Get("Accept"))
			case strings.Contains(r.URL.Path, "/secrets/"):
				s.byName = append(s.byName, path.Base(r.URL.Path))
			}
			return next.RoundTrip(r)
		})
	})
	return config
}

func (s *secretReads) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.byName)
}

func (s *secretReads) take() (byName []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	byName, s.byName = s.byName, nil
	return byName
}

// One step of object a references the Secret "a-password", and another step references the Secret "a-token".
func TestReads(t *testing.T) {
	var reads secretReads
	w := newEnvWith(t, reads.wrap)
	secretOf := func(suffix string) func(*budget) []types.NamespacedName {
		return func(b *budget) []types.NamespacedName { return []types.NamespacedName{{Name: b.Name + suffix}} }
	}
	var mu sync.Mutex
	applied := map[string]string{}
	of := func(key string) string {
		mu.Lock()
		defer mu.Unlock()
		return applied[key]
	}
	read := func(suffix string) reconcile.Step[*budget] {
		return reconcile.Func(func(ctx context.Context, c client.Client, b *budget) error {
			name := b.Name + suffix
			if err := c.List(ctx, &corev1.SecretList{}); err == nil {
				return errors.New("the contents of all Secrets can be listed")
			}
			value, version, err := secrets.Read(ctx, c, b.Namespace, corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: name}, Key: "value"})
			mu.Lock()
			defer mu.Unlock()
			delete(applied, name)
			if err != nil {
				return err
			}
			if cached := metadata("Secret"); c.Get(ctx, client.ObjectKey{Namespace: b.Namespace, Name: name}, cached) == nil && reconcile.VersionOf(cached) != version {
				return reconcile.Wait("CacheBehind", 0, "the cache is behind")
			}
			applied[name] = string(value)
			return nil
		})
	}
	require.NoError(t, reconcile.For[*budget](w.mgr,
		reconcile.Named("password", read("-password")).Reads(&corev1.Secret{}, secretOf("-password")).Reporting("Password"),
		reconcile.Named("token", read("-token")).Reads(&corev1.Secret{}, secretOf("-token")).Reporting("Token"),
	).Complete())
	w.run(t)
	a, b := w.create(t, "a"), w.create(t, "b")
	missing := func(b *budget) bool {
		return len(b.Status.Conditions) > 2 && b.Status.Conditions[0].Reason == "SecretNotFound" && b.Status.Conditions[1].Reason == "SecretNotFound"
	}
	w.waitFor(t, a, "missing", missing)
	w.waitFor(t, b, "missing", missing)
	require.Eventually(t, func() bool { return reads.count() == 2*2*2 }, eventually, often,
		"two Secrets of two objects, in the first pass and in the one that its status write triggers")
	reads.take()

	secret := func(name, value string) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}, StringData: map[string]string{"value": value}}
	}
	has := func(name, value string) {
		t.Helper()
		require.Eventually(t, func() bool { return of(name) == value }, eventually, often, "%s is %q", name, value)
	}
	onlyOf := func(reason, object string) {
		t.Helper()
		for _, name := range reads.take() {
			require.True(t, strings.HasPrefix(name, object+"-"), "%s, and nothing reads %s", reason, name)
		}
	}
	password := secret("a-password", "one")
	require.NoError(t, w.client.Create(t.Context(), password))
	has("a-password", "one")
	require.NoError(t, w.client.Create(t.Context(), secret("a-token", "t")))
	has("a-token", "t")
	w.waitFor(t, a, "ready", isReady)
	onlyOf("only the object that references the Secret is reconciled", "a")

	password.StringData = map[string]string{"value": "two"}
	require.NoError(t, w.client.Update(t.Context(), password))
	has("a-password", "two")
	require.NoError(t, w.client.Delete(t.Context(), password))
	has("a-password", "")
	w.waitFor(t, a, "the condition shows the deletion", func(b *budget) bool { return b.Status.Conditions[0].Reason == "SecretNotFound" })
	require.NoError(t, w.client.Create(t.Context(), secret("a-password", "three")))
	has("a-password", "three")
	w.waitFor(t, a, "ready", isReady)
	onlyOf("the change, the deletion and the re-creation trigger only a", "a")

	require.NoError(t, w.client.Create(t.Context(), secret("b-token", "tb")))
	has("b-token", "tb")

	reads.mu.Lock()
	defer reads.mu.Unlock()
	require.NotEmpty(t, reads.many)
	for _, accept := range reads.many {
		require.Contains(t, accept, "as=PartialObjectMetadata", "no list or watch asks for contents")
	}
}

// Two reconcilers of one kind reference different Secrets. A change of a Secret triggers only the reconciler that references
// it.
func TestReferencingOfTwoReconcilers(t *testing.T) {
	w := newEnvWith(t, func(config *rest.Config) *rest.Config { return config })
	passes := make(chan string, 100)
	for _, name := range []string{"password", "token"} {
		r := reconcile.New(w.mgr.GetClient(), reconcile.Named(name, reconcile.Func(func(_ context.Context, _ client.Client, b *budget) error {
			passes <- name
			return nil
		})).
			Reads(&corev1.Secret{}, func(b *budget) []types.NamespacedName {
				return []types.NamespacedName{{Name: b.Name + "-" + name}}
			})).WithoutStatus()
		builder := ctrl.NewControllerManagedBy(w.mgr).For(&budget{}).Named(name)
		require.NoError(t, r.SetupWithBuilder(w.mgr, builder))
		require.NoError(t, builder.Complete(r))
	}
	w.run(t)
	w.create(t, "a")
	require.ElementsMatch(t, []string{"password", "token"}, []string{<-passes, <-passes}, "the object is new to both")
	for _, name := range []string{"token", "password"} {
		require.NoError(t, w.client.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "a-" + name}}))
		require.Equal(t, name, <-passes)
	}
}
