package apply_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/opblocks/opblocks/internal/owned/apply"
)

// The keys of the ConfigMap are as long as their values, and managed fields repeat the keys, so they double the object's size. The API
// server creates the object without managed fields, and refuses to apply it afterwards.
func TestApplyOfALargeObject(t *testing.T) {
	env := newRealServer(t)
	want := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "large"}, Data: map[string]string{}}
	for i := range 2_500 {
		want.Data[fmt.Sprintf("%05d%s", i, strings.Repeat("k", 240))] = strings.Repeat("x", 140)
	}
	env.Expect(t, want, apply.Created, "POST configmaps")
	env.Settled(t, want)
	want = want.DeepCopy()
	want.Data["another"] = "x"
	_, err := env.Apply(t, want)
	require.ErrorContains(t, err, "split the object")

	small := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "large"}, Data: map[string]string{"a": "b"}}
	_, err = env.Apply(t, small)
	require.ErrorContains(t, err, "delete the live object", "the API server adds the managed fields of the live object first")
	require.NoError(t, env.Other.Delete(t.Context(), small.DeepCopy()))
	env.Expect(t, small, apply.Created, "POST configmaps")
}

// The API server compares the raw JSON in an immutable ResourceClaimTemplate byte by byte, even if only a label changes.
func TestLabelBesideImmutableRawJSON(t *testing.T) {
	tests := map[string]struct{ reason, raw string }{
		"Order":      {"Fields are in the order of a struct.", `{"kind":"Sharing","apiVersion":"gpu.example.com/v1"}`},
		"WhiteSpace": {"It was embedded from a file.", "{\n  \"kind\": \"Sharing\"\n}"},
		"Escapes":    {"Go escapes some characters, and its author did not.", `{"limit":"<4 & >2"}`},
		"Numbers":    {"A whole number was written as a float.", `{"limit":4.0,"share":1e3}`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			env := newRealServer(t)
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
			env.MustApply(t, template("batch"))
			env.MustApply(t, template("web"))
			result := env.MustApply(t, template("web"))
			require.Equal(t, apply.Unchanged, result.Operation)
			require.Equal(t, "web", result.Object.GetLabels()["tier"])
		})
	}
}
