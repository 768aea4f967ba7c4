package feature

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/owned"
)

func TestIsGrownClaim(t *testing.T) {
	cases := map[string]struct {
		reason     string
		kind       schema.GroupVersionKind
		want, live string // the storage requests; empty for none
		grown      bool
	}{
		"Grown":       {"Somebody else has let it grow.", ClaimKind, "1Gi", "2Gi", true},
		"Same":        {"Sizes are compared by value.", ClaimKind, "1Gi", "1024Mi", false},
		"Grows":       {"The builder lets it grow.", ClaimKind, "2Gi", "1Gi", false},
		"NoRequest":   {"There is no request to leave out.", ClaimKind, "", "2Gi", false},
		"NoneLive":    {"The API server decides what becomes of it.", ClaimKind, "1Gi", "", false},
		"AnotherKind": {"Only a claim can grow.", corev1.SchemeGroupVersion.WithKind("ConfigMap"), "1Gi", "2Gi", false},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			want, live := &claimTemplates("data", test.want)[0], &claimTemplates("data", test.live)[0]
			fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(want)
			require.NoError(t, err)
			for _, desired := range []client.Object{want, &unstructured.Unstructured{Object: fields}} {
				grown, err := IsGrownClaim(&owned.Desired{Kind: &owned.Kind{GVK: test.kind}, Object: desired}, live)
				require.NoError(t, err)
				require.Equal(t, test.grown, grown, test.reason)
			}
		})
	}
	_, err := IsGrownClaim(&owned.Desired{Kind: &owned.Kind{GVK: ClaimKind}, Object: &corev1.ConfigMap{}}, &corev1.PersistentVolumeClaim{})
	require.EqualError(t, err, "*v1.ConfigMap is not a PersistentVolumeClaim")
}
