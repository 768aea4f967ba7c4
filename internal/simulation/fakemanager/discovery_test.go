package fakemanager

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	clientdiscovery "k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/memoryserver"
)

// An operator finds out by discovery which kinds are served, and may not watch CustomResourceDefinitions.
func TestDiscovery(t *testing.T) {
	server, err := memoryserver.New(scheme.Scheme)
	require.NoError(t, err)
	m := &Manager{cluster: cluster{options: Options{Server: server}}}
	c, err := clientdiscovery.NewDiscoveryClientForConfigAndClient(m.GetConfig(), m.GetHTTPClient())
	require.NoError(t, err)
	for groupVersion, want := range map[string]string{"v1": "configmaps", "apps/v1": "deployments"} {
		list, err := c.ServerResourcesForGroupVersionWithContext(t.Context(), groupVersion)
		require.NoError(t, err)
		var names []string
		for _, resource := range list.APIResources {
			names = append(names, resource.Name)
			require.Subset(t, resource.Verbs, []string{"create", "list", "watch"})
		}
		require.Contains(t, names, want)
	}
	_, err = c.ServerResourcesForGroupVersionWithContext(t.Context(), "monitoring.coreos.com/v1")
	require.True(t, apierrors.IsNotFound(err))

	err = c.RESTClient().Get().AbsPath("/apis/apiextensions.k8s.io/v1/customresourcedefinitions").Do(t.Context()).Error()
	require.True(t, apierrors.IsForbidden(err))

	others, err := client.New(m.GetConfig(), client.Options{HTTPClient: m.GetHTTPClient(), Mapper: server.Client().RESTMapper()})
	require.NoError(t, err)
	require.ErrorContains(t, others.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "a"}, &corev1.ConfigMap{}), "use the manager's client")
}
