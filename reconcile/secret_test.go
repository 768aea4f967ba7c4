package reconcile

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/opblocks/opblocks/internal/references"
	"github.com/opblocks/opblocks/reconcile/secrets"
)

// TestSecretThatTheCacheLeavesOut reads a Secret that exists on the API server and is not in the cache.
func TestSecretThatTheCacheLeavesOut(t *testing.T) {
	const leftOut = "Secret ns/db is not in the cache, although it exists: the cache's selector or namespaces leave it out; " +
		"give it the labels that the selector asks for, or widen the cache"
	tests := map[string]struct {
		reason string
		age    time.Duration // the age of the Secret; 0 if it does not exist
		waits  string
		after  time.Duration
		says   string
	}{
		"None":  {"its creation triggers the next pass", 0, "SecretNotFound", 0, "Secret ns/db does not exist"},
		"Young": {"the cache may only be behind, and no event comes if it is not", 10 * time.Second, "SecretNotFound", time.Minute, "Secret ns/db does not exist"},
		"Old":   {"no change of it would trigger a pass", 10 * time.Minute, "SecretNotInCache", time.Minute, leftOut},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c, err := newStepClient(fake.NewClientBuilder().Build(), nil, []references.Reference{{Object: &corev1.Secret{}}})
			require.NoError(t, err)
			live := fake.NewClientBuilder().WithIndex(&corev1.Secret{}, "metadata.name", func(obj client.Object) []string { return []string{obj.GetName()} })
			if tc.age > 0 {
				secret := databaseSecret()
				secret.CreationTimestamp = metav1.NewTime(time.Now().Add(-tc.age))
				live = live.WithObjects(secret)
			}
			c.reader.Live = live.Build()
			_, err = secrets.Version(t.Context(), c, "ns", selector("db", "password"))
			var missing *secrets.Error
			require.ErrorAs(t, err, &missing)
			waits, after := missing.Waiting()
			require.Equal(t, tc.waits, waits, tc.reason)
			require.Equal(t, tc.after, after, tc.reason)
			require.EqualError(t, err, tc.says)
		})
	}
}

// If the API server does not answer, it is unknown whether the Secret exists. Then the pass fails and is repeated, instead of waiting for
// an event.
func TestSecretThatCannotBeLookedFor(t *testing.T) {
	c, err := newStepClient(fake.NewClientBuilder().Build(), nil, []references.Reference{{Object: &corev1.Secret{}, Cached: true}})
	require.NoError(t, err)
	c.reader.Live = interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
			return apierrors.NewServiceUnavailable("etcd is away")
		},
	})
	for name, read := range map[string]func() error{
		"Version": func() error { _, err := secrets.Version(t.Context(), c, "ns", selector("db", "password")); return err },
		"Read":    func() error { _, _, err := secrets.Read(t.Context(), c, "ns", selector("db", "password")); return err },
	} {
		err := read()
		require.EqualError(t, err, "look for Secret ns/db, which the cache does not show, on the API server: etcd is away", name)
		_, waits := errors.AsType[*secrets.Error](err)
		require.False(t, waits, name)
	}
}

func selector(name, key string) corev1.SecretKeySelector {
	return corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: name}, Key: key}
}

func databaseSecret() *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "db", UID: "s"},
		Data:       map[string][]byte{"password": []byte("s3cr3t"), "empty": {}},
	}
}

// requireHidden proves that a text does not contain the value of the Secret, in any of the forms in which it may be
// printed.
func requireHidden(t *testing.T, text string) {
	t.Helper()
	for _, form := range []string{"s3cr3t", "733363723374", "czNjcjN0", "115 51 99", "0x73, 0x33", "163 63", "U+0073"} {
		require.NotContains(t, strings.ToLower(text), strings.ToLower(form))
	}
}

// A step waits for a Secret that does not exist yet.
func TestReadSecretInAPass(t *testing.T) {
	h := newHarness(t, interceptor.Funcs{}, Named("account", Func(func(ctx context.Context, c client.Client, b *budget) error {
		_, version, err := secrets.Read(ctx, c, b.Namespace, selector("db", "password"))
		if err != nil {
			return err
		}
		return Wait("Read", time.Minute, "version %s", version)
	})).Reads(&corev1.Secret{}, nothing))
	h.pass(t)
	require.Equal(t, condition{"Ready", "False", "SecretNotFound", "Secret ns/db does not exist"}, conditionsOf(h.status(t))[0])
	require.NoError(t, h.client.Create(t.Context(), databaseSecret()))
	h.pass(t)
	require.Equal(t, condition{"Ready", "False", "Read", "version s/1"}, conditionsOf(h.status(t))[0])
}

// A step reads a Secret and then fails in all possible ways. No condition, log, event or metric contains the value.
func TestSecretValueStaysHidden(t *testing.T) {
	recorder, log := &recorder{}, &logs{}
	var b strings.Builder
	way := 0
	ways := []func(value secrets.Sensitive) error{
		func(value secrets.Sensitive) error { return errors.Join(errors.New("login: " + value.String())) },
		func(value secrets.Sensitive) error { return Wait("X", 0, "login with %s", value) },
		func(value secrets.Sensitive) error {
			return Wait("X", 0, "login with %+v %x %d", []secrets.Sensitive{value}, value, value)
		},
		func(value secrets.Sensitive) error { panic(value) },
		func(value secrets.Sensitive) error { panic(struct{ Password secrets.Sensitive }{value}) },
		func(secrets.Sensitive) error { return nil },
	}
	h := newHarness(t, interceptor.Funcs{}, Named("account", Func(func(ctx context.Context, c client.Client, b *budget) error {
		value, _, err := secrets.Read(ctx, c, b.Namespace, selector("db", "password"))
		if err != nil {
			return err
		}
		return ways[way](value)
	})).Reporting("Account").Reads(&corev1.Secret{}, nothing))
	registry := h.withMetrics(t)
	h.recorder = recorder
	require.NoError(t, h.client.Create(t.Context(), databaseSecret()))
	for ; way < len(ways); way++ {
		_, err := h.Reconcile(log.into(t.Context()), request)
		require.NoError(t, err)
		for _, c := range conditionsOf(h.status(t)) {
			b.WriteString(c.Message + c.Reason)
		}
	}
	for _, e := range recorder.take() {
		b.WriteString(e.Note + e.Reason)
	}
	b.WriteString(strings.Join(log.lines, "\n"))
	b.WriteString(registry.text(t))
	require.Contains(t, b.String(), "(hidden)")
	requireHidden(t, b.String())
}
