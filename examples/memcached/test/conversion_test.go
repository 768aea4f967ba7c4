package test

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/opblocks/opblocks/examples/internal/operatortest"
	cachev1 "github.com/opblocks/opblocks/examples/memcached/api/v1"
	cachev1alpha1 "github.com/opblocks/opblocks/examples/memcached/api/v1alpha1"
	"github.com/opblocks/opblocks/reconcile/reconciletest/controlplane"
)

// TestConversion runs the program with its permissions. The API server calls its conversion, for users who write v1alpha1 and users who write v1.
func TestConversion(t *testing.T) {
	cp := controlplane.New(t, controlplane.Options{CRDs: []string{"../config/crd/bases"}})
	u := &user{operatortest.NewUser(t, cp, operatortest.NewScheme(cachev1.AddToScheme, cachev1alpha1.AddToScheme))}
	program := operatortest.Install(t, u.User, "memcached").Build(t)
	webhooks := controlplane.NewWebhooks(t, cp, controlplane.WebhookOptions{CRDs: []string{"../config/crd/bases"}})
	alpha := func() *cachev1alpha1.Memcached {
		return operatortest.Live(t, u, &cachev1alpha1.Memcached{ObjectMeta: u.Meta("cache")})
	}
	manifest := filepath.Join(t.TempDir(), "cache.yaml")
	require.NoError(t, os.WriteFile(manifest, []byte("apiVersion: cache.example.com/v1alpha1\nkind: Memcached\nmetadata: {name: cache}\nspec: {size: 0, memoryMB: 128}\n"), 0o600))

	_, err := cp.Kubectl(t.Context(), "apply", "--namespace="+u.Namespace, "-f", manifest)
	require.Error(t, err, "nobody converts it")
	served := webhooks.Options()
	program.Start(t, "-webhook-cert-dir="+served.CertDir, "-webhook-bind-address="+served.Host+":"+strconv.Itoa(served.Port))
	operatortest.Eventually(t, "the conversion is served", func(c *assert.CollectT) {
		_, err := cp.Kubectl(t.Context(), "apply", "--namespace="+u.Namespace, "-f", manifest)
		require.NoError(c, err)
	})
	u.settled(t, "cache", metav1.ConditionFalse) // no other controllers run
	assert.Equal(t, "-m=128", operatortest.Live(t, u, u.Deployment("cache")).Spec.Template.Spec.Containers[0].Command[1])
	m := operatortest.Live(t, u, u.memcached("cache", 0))
	assert.Equal(t, "128Mi", m.Spec.Memory.String())
	u.Kubectl(t, "apply", "-f", manifest)
	assert.EqualValues(t, 1, alpha().Generation, "the same manifest is not a change: the size 0 is stored")

	u.set(t, "cache", func(s *cachev1.MemcachedSpec) { s.Memory = &cachev1.Quantity{Quantity: resource.MustParse("100M")} })
	assert.EqualValues(t, 95, alpha().Spec.MemoryMB)
	u.Kubectl(t, "scale", "memcacheds.v1alpha1.cache.example.com/cache", "--replicas=1")
	operatortest.Live(t, u, m)
	assert.EqualValues(t, 1, m.Spec.Size)
	assert.Equal(t, "100M", m.Spec.Memory.String(), "a user of v1alpha1 has changed something else")
	assert.Empty(t, m.Annotations["cache.example.com/memory"])

	operatortest.Change(t, u, alpha(), func(m *cachev1alpha1.Memcached) { m.Spec.MemoryMB = 96 })
	assert.Equal(t, "96Mi", operatortest.Live(t, u, m).Spec.Memory.String(), "a user of v1alpha1 has changed the memory")
	u.settled(t, "cache", metav1.ConditionFalse)
	assert.Equal(t, "-m=96", operatortest.Live(t, u, u.Deployment("cache")).Spec.Template.Spec.Containers[0].Command[1])
}
