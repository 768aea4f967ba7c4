package ownedresources

import (
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/opblocks/opblocks/internal/owned"
	"github.com/opblocks/opblocks/internal/owned/apply"
	"github.com/opblocks/opblocks/internal/owned/testkinds"
)

// The API server compares the parameters of an immutable ResourceClaimTemplate byte by byte, also when a label changes.
func TestLabelBesideImmutableRawJSON(t *testing.T) {
	tests := map[string]struct{ reason, raw string }{
		"Order":      {"Fields are in the order of a struct.", `{"kind":"Sharing","apiVersion":"gpu.example.com/v1"}`},
		"WhiteSpace": {"It was embedded from a file.", "{\n  \"kind\": \"Sharing\"\n}"},
		"Escapes":    {"Go escapes some characters, and its author did not.", `{"limit":"<4 & >2"}`},
		"Numbers":    {"A whole number was written as a float.", `{"limit":4.0,"share":1e3}`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			env := newServerEnv(t)
			template := func(tier string) *resourcev1.ResourceClaimTemplate {
				claim := &resourcev1.ResourceClaimTemplate{ObjectMeta: metav1.ObjectMeta{Name: "gpu", Labels: map[string]string{"tier": tier}}}
				claim.Spec.Spec.Devices = resourcev1.DeviceClaim{
					Requests: []resourcev1.DeviceRequest{{Name: "gpu", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: "gpu.example.com"}}},
					Config: []resourcev1.DeviceClaimConfiguration{{DeviceConfiguration: resourcev1.DeviceConfiguration{
						Opaque: &resourcev1.OpaqueDeviceConfiguration{Driver: "gpu.example.com", Parameters: runtime.RawExtension{Raw: []byte(test.raw)}},
					}}},
				}
				return claim
			}
			_, err := env.apply(t, template("batch"))
			require.NoError(t, err)
			_, err = env.apply(t, template("web"))
			require.NoError(t, err, test.reason)
			result, err := env.apply(t, template("web"))
			require.NoError(t, err)
			require.Equal(t, apply.Unchanged, result.Operation)
			require.Equal(t, "web", result.Object.GetLabels()["tier"])
		})
	}
}

func TestWithSortedJSON(t *testing.T) {
	raw := func(text string) runtime.RawExtension { return runtime.RawExtension{Raw: []byte(text)} }
	got := &testkinds.Widget{Spec: testkinds.WidgetSpec{Template: &runtime.RawExtension{Raw: []byte(`{"b": 1, "a": 9007199254740993}`)}}}
	owned.WithSortedJSON(got)
	want := &testkinds.Widget{Spec: testkinds.WidgetSpec{Template: &runtime.RawExtension{Raw: []byte(`{"a":9007199254740993,"b":1}`)}}}
	if d := cmp.Diff(want.Spec.Template, got.Spec.Template); d != "" {
		t.Errorf("behind a pointer (-want, +got)\n%s", d)
	}
	gotMap := &struct {
		Many map[string][]runtime.RawExtension
		None *runtime.RawExtension
	}{Many: map[string][]runtime.RawExtension{"x": {raw(`{"b":1, "a":2}`), raw(`{`), raw(``)}}}
	wantMap := map[string][]runtime.RawExtension{"x": {raw(`{"a":2,"b":1}`), raw(`{`), raw(``)}}
	owned.SortJSON(reflect.ValueOf(gotMap).Elem())
	if d := cmp.Diff(wantMap, gotMap.Many); d != "" {
		t.Errorf("in a map; what is no JSON stays (-want, +got)\n%s", d)
	}
}
