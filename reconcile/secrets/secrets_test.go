package secrets

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

func TestReadSecret(t *testing.T) {
	boom := errors.New("boom")
	tests := map[string]struct {
		reason   string
		selector corev1.SecretKeySelector
		err      error
		waits    string // the expected reason
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
			value, version, err := Read(t.Context(), c, "ns", tc.selector)
			if tc.value != "" {
				require.NoError(t, err)
				require.Equal(t, tc.value, string(value))
				require.Equal(t, "s/999", version)
				return
			}
			require.ErrorContains(t, err, tc.says, tc.reason)
			require.Empty(t, value)
			require.Empty(t, version)
			missing, ok := errors.AsType[*Error](err)
			require.Equal(t, tc.waits != "", ok)
			if ok {
				reason, after := missing.Waiting()
				require.Equal(t, tc.waits, reason)
				require.Zero(t, after, "an event triggers the next pass")
			}
		})
	}
}

// Version returns the same errors as Read.
func TestVersionErrors(t *testing.T) {
	tests := map[string]corev1.SecretKeySelector{
		"NoSecret":   selector("other", "password"),
		"NoName":     selector("", "password"),
		"NoKeysName": selector("db", ""),
	}
	for name, selector := range tests {
		t.Run(name, func(t *testing.T) {
			c := fake.NewClientBuilder().WithObjects(databaseSecret()).Build()
			_, err := Version(t.Context(), c, "ns", selector)
			_, _, whenRead := Read(t.Context(), c, "ns", selector)
			require.EqualError(t, err, whenRead.Error())
			require.IsType(t, &Error{}, err)
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

// requireHidden proves that a text does not contain the value, in any of the forms in which it may be printed.
func requireHidden(t *testing.T, text string) {
	t.Helper()
	for _, form := range []string{"s3cr3t", "733363723374", "czNjcjN0", "115 51 99", "0x73, 0x33", "163 63", "U+0073"} {
		require.NotContains(t, strings.ToLower(text), strings.ToLower(form))
	}
}
