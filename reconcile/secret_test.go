package reconcile

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/opblocks/opblocks/internal/references"
)

func TestReadSecret(t *testing.T) {
	boom := errors.New("boom")
	tests := map[string]struct {
		reason   string
		selector corev1.SecretKeySelector
		err      error
		waits    string // its reason
		says     string
		value    string
	}{
		"There":      {reason: "the value and the version of the Secret are returned", selector: selector("db", "password"), value: "s3cr3t"},
		"NoSecret":   {reason: "the creation of the Secret triggers the next pass", selector: selector("other", "password"), waits: secretNotFound, says: "Secret ns/other does not exist"},
		"NoKey":      {reason: "the message names the key, which may have a typing mistake", selector: selector("db", "pasword"), waits: secretKeyNotFound, says: `Secret ns/db has no key "pasword"`},
		"EmptyValue": {reason: "an empty value counts as missing", selector: selector("db", "empty"), waits: secretValueEmpty, says: `the value of key "empty" in Secret ns/db is empty`},
		"NoName":     {reason: "a selector that was not filled in", selector: selector("", "password"), waits: secretNotFound, says: "lacks its name or its key"},
		"NoKeysName": {reason: "a selector that was not filled in", selector: selector("db", ""), waits: secretNotFound, says: "lacks its name or its key"},
		"Optional": {
			reason:   "the field Optional is ignored: a step that needs no Secret does not read it",
			selector: corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "other"}, Key: "password", Optional: new(true)},
			waits:    secretNotFound, says: "does not exist",
		},
		"OtherError": {reason: "other errors of the reader are wrapped, and retried", selector: selector("db", "password"), err: boom, says: "read Secret ns/db: boom"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c := fake.NewClientBuilder().WithObjects(databaseSecret()).WithInterceptorFuncs(interceptor.Funcs{
				Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
					if tc.err != nil {
						return tc.err
					}
					return c.Get(ctx, key, obj, opts...)
				},
			}).Build()
			value, version, err := ReadSecret(t.Context(), c, "ns", tc.selector)
			if tc.value != "" {
				require.NoError(t, err)
				require.Equal(t, tc.value, string(value))
				require.Equal(t, "s/999", version)
				return
			}
			require.ErrorContains(t, err, tc.says, tc.reason)
			require.Empty(t, value)
			require.Empty(t, version)
			missing, ok := errors.AsType[*SecretError](err)
			require.Equal(t, tc.waits != "", ok)
			if ok {
				reason, after := missing.Waiting()
				require.Equal(t, tc.waits, reason)
				require.Zero(t, after, "an event triggers the next pass")
			}
		})
	}
}

// SecretVersion returns the same errors as ReadSecret.
func TestSecretVersionErrors(t *testing.T) {
	tests := map[string]corev1.SecretKeySelector{
		"NoSecret":   selector("other", "password"),
		"NoName":     selector("", "password"),
		"NoKeysName": selector("db", ""),
	}
	for name, selector := range tests {
		t.Run(name, func(t *testing.T) {
			c := fake.NewClientBuilder().WithObjects(databaseSecret()).Build()
			_, err := SecretVersion(t.Context(), c, "ns", selector)
			_, _, whenRead := ReadSecret(t.Context(), c, "ns", selector)
			require.EqualError(t, err, whenRead.Error())
			require.IsType(t, &SecretError{}, err)
		})
	}
}

// TestSecretThatTheCacheLeavesOut reads a Secret that the API server has, and the cache does not show.
func TestSecretThatTheCacheLeavesOut(t *testing.T) {
	const leftOut = "Secret ns/db is not in the cache, although it exists: the cache's selector or namespaces leave it out; " +
		"give it the labels that the selector asks for, or widen the cache"
	tests := map[string]struct {
		reason string
		age    time.Duration // the age of the Secret; 0 without a Secret
		waits  string
		after  time.Duration
		says   string
	}{
		"None":  {"its creation triggers the next pass", 0, secretNotFound, 0, "Secret ns/db does not exist"},
		"Young": {"the cache may only be behind, and no event comes if it is not", 10 * time.Second, secretNotFound, time.Minute, "Secret ns/db does not exist"},
		"Old":   {"no change of it would trigger a pass", 10 * time.Minute, secretNotInCache, time.Minute, leftOut},
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
			_, err = SecretVersion(t.Context(), c, "ns", selector("db", "password"))
			var missing *SecretError
			require.ErrorAs(t, err, &missing)
			waits, after := missing.Waiting()
			require.Equal(t, tc.waits, waits, tc.reason)
			require.Equal(t, tc.after, after, tc.reason)
			require.EqualError(t, err, tc.says)
		})
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

func TestSensitive(t *testing.T) {
	value := Sensitive("s3cr3t")
	type holder struct{ Password Sensitive }
	var out strings.Builder
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%o", "%b", "%c", "%U", "%t"} {
		fmt.Fprintf(&out, verb+" ", value)
		fmt.Fprintf(&out, verb+" ", &value)
		fmt.Fprintf(&out, verb+" ", holder{value})
		fmt.Fprintf(&out, verb+" ", []Sensitive{value})
	}
	for _, v := range []any{value, &value, holder{value}, map[string]Sensitive{"a": value}} {
		data, err := json.Marshal(v)
		require.NoError(t, err)
		out.Write(data)
	}
	logger := funcr.New(func(_, args string) { out.WriteString(args) }, funcr.Options{})
	logger.Info("x", "a", value, "b", holder{value}, "c", &value)
	slog.New(slog.NewJSONHandler(&out, nil)).Info("x", "a", value, "b", holder{value})
	slog.New(slog.NewTextHandler(&out, nil)).Info("x", "a", value, "b", holder{value})
	out.WriteString(fmt.Errorf("login with %v: %w", value, errors.New("refused")).Error())
	requireHidden(t, out.String())
	require.Contains(t, out.String(), hidden)
}

// requireHidden looks for the value in the forms in which it may be printed.
func requireHidden(t *testing.T, text string) {
	t.Helper()
	for _, form := range []string{"s3cr3t", "733363723374", "czNjcjN0", "115 51 99", "0x73, 0x33", "163 63", "U+0073"} {
		require.NotContains(t, strings.ToLower(text), strings.ToLower(form))
	}
}

// A step waits for a Secret that does not exist yet.
func TestReadSecretInAPass(t *testing.T) {
	h := newHarness(t, interceptor.Funcs{}, Named("account", Func(func(ctx context.Context, c client.Client, b *budget) error {
		_, version, err := ReadSecret(ctx, c, b.Namespace, selector("db", "password"))
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

// The values of Secrets in a pass that goes wrong in every way: they are in no condition, log, event or metric.
func TestSecretValueStaysHidden(t *testing.T) {
	recorder, log := &recorder{}, &logs{}
	var b strings.Builder
	way := 0
	ways := []func(value Sensitive) error{
		func(value Sensitive) error { return errors.Join(errors.New("login: " + value.String())) },
		func(value Sensitive) error { return Wait("X", 0, "login with %s", value) },
		func(value Sensitive) error {
			return Wait("X", 0, "login with %+v %x %d", []Sensitive{value}, value, value)
		},
		func(value Sensitive) error { panic(value) },
		func(value Sensitive) error { panic(struct{ Password Sensitive }{value}) },
		func(Sensitive) error { return nil },
	}
	h := newHarness(t, interceptor.Funcs{}, Named("account", Func(func(ctx context.Context, c client.Client, b *budget) error {
		value, _, err := ReadSecret(ctx, c, b.Namespace, selector("db", "password"))
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
	require.Contains(t, b.String(), hidden)
	requireHidden(t, b.String())
}
