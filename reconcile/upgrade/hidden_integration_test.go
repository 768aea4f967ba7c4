package upgrade_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/opblocks/opblocks/ownedresources"
	"github.com/opblocks/opblocks/reconcile/upgrade"
)

// A plan must not show a value of a Secret or of an environment variable, even if the API server refuses the value
// and quotes it.
func TestPlanHidesValues(t *testing.T) {
	untyped := func(kind schema.GroupVersionKind, field string, value any) ownedresources.AnyChild[*budget] {
		return ownedresources.Build(func(o *budget) *unstructured.Unstructured {
			return &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": o.Name}, field: value}}
		}).Kind(kind)
	}
	secretKind := corev1.SchemeGroupVersion.WithKind("Secret")
	data := func(value any) ownedresources.AnyChild[*budget] {
		return untyped(secretKind, "data", map[string]any{"password": value})
	}
	variable := func(value any) ownedresources.AnyChild[*budget] {
		return untyped(gadgetKind, "spec", map[string]any{"env": []any{map[string]any{"name": "PASSWORD", "value": value}}})
	}
	immutable := func(value string) ownedresources.AnyChild[*budget] {
		return ownedresources.Build(func(o *budget) *corev1.Secret {
			return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: o.Name}, Immutable: new(true), StringData: map[string]string{"password": value}}
		})
	}
	newEnv(t).install(t, gadgetKind)
	const encoded = "Y2FuYXJ5" // canary
	for name, tc := range map[string]struct {
		reason        string
		before, after ownedresources.AnyChild[*budget]
		err           error
		says          string
	}{
		"an unstructured Secret":      {"its kind counts, not its type", data(encoded), data("Y2FuYXJ5LTI="), upgrade.ErrChanges, "data.password"},
		"a text that is not encoded":  {"the API server cannot decode it", data(encoded), data("canary!"), upgrade.ErrIncomplete, "illegal base64"},
		"a number in a Secret":        {"the API server quotes it", data(encoded), data(int64(424242)), upgrade.ErrIncomplete, ".data.password: expected string"},
		"an object in a Secret":       {"the API server quotes it", data(encoded), data(map[string]any{"a": "canary"}), upgrade.ErrIncomplete, ".data.password: expected string"},
		"stringData":                  {"it is the same as data", data(encoded), untyped(secretKind, "stringData", map[string]any{"password": "canary-2"}), upgrade.ErrChanges, "data.password"},
		"a Secret that cannot change": {"the API server says so", immutable("canary"), immutable("canary-2"), upgrade.ErrIncomplete, "field is immutable"},
		"a custom resource":           {"its variables are hidden too", variable("canary"), variable("canary-b"), upgrade.ErrChanges, "spec.env[0].value"},
		"a variable that is refused":  {"the API server quotes it", variable("canary"), variable("canary 2"), upgrade.ErrIncomplete, `spec.env[0].value: Invalid value: "(hidden)"`},
		"a variable of a wrong type":  {"the API server quotes it", variable("canary"), variable(int64(424242)), upgrade.ErrIncomplete, ".spec.env[0].value: expected string"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newEnv(t)
			e.create(t, newBudget("web"))
			e.run(t, "web", children(tc.before))
			for _, format := range []string{"text", "json", "markdown"} {
				got, err := e.plan(t, t.Context(), format, children(tc.after))
				require.ErrorIs(t, err, tc.err, tc.reason)
				if format == "text" {
					require.Contains(t, got, tc.says, tc.reason)
				}
				for _, value := range []string{"canary", "424242", encoded} {
					require.NotContains(t, got+err.Error(), value, tc.reason)
				}
			}
		})
	}
}
