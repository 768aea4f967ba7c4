package controller_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	cachev1 "github.com/opblocks/opblocks/examples/memcached/api/v1"
)

// TestMemory checks that the Deployment of a v1alpha1 Memcached is the same in v1: memoryMB was the number that memcached got.
func TestMemory(t *testing.T) {
	tests := map[string]struct {
		memory          string
		option, request string
		reason          string
	}{
		"unset":           {"", "-m=64", "96Mi", "the default of v1alpha1"},
		"whole megabytes": {"100Mi", "-m=100", "132Mi", "memoryMB: 100"},
		"gigabytes":       {"1Gi", "-m=1024", "1056Mi", "memoryMB: 1024"},
		"a fraction":      {"100M", "-m=95", "127Mi", "memcached takes whole megabytes"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			m := sample(1)
			if tc.memory != "" {
				m.Spec.Memory = &cachev1.Quantity{Quantity: resource.MustParse(tc.memory)}
			}
			h := newHarness(t, m)
			h.reconcile(t)
			var d appsv1.Deployment
			require.NoError(t, h.Get(t.Context(), client.ObjectKeyFromObject(m), &d))
			container := d.Spec.Template.Spec.Containers[0]
			assert.Equal(t, tc.option, container.Command[1], tc.reason)
			assert.Equal(t, tc.request, container.Resources.Requests.Memory().String(), tc.reason)
		})
	}
}
