package servedkinds

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestObserve(t *testing.T) {
	cases := map[string]struct {
		reason    string
		resources []metav1.APIResource
		want      observation
	}{
		"None": {reason: "the version is not served"},
		"OtherKind": {
			reason:    "the version is served for other kinds",
			resources: []metav1.APIResource{{Name: "rules", Kind: "Rule", Verbs: allVerbs}},
		},
		"Namespaced": {
			reason:    "it is served",
			resources: []metav1.APIResource{{Name: "rules", Kind: "Rule", Verbs: allVerbs}, {Name: "monitors", Kind: "Monitor", Namespaced: true, Verbs: allVerbs}},
			want:      observation{resource: "monitors", namespaced: true},
		},
		"Subresource": {
			reason:    "a subresource is no resource, though it has the same kind",
			resources: []metav1.APIResource{{Name: "monitors/status", Kind: "Monitor", Verbs: allVerbs}, {Name: "monitors", Kind: "Monitor", Verbs: allVerbs}},
			want:      observation{resource: "monitors"},
		},
		"Terminating": {
			reason:    "these are the verbs while the CustomResourceDefinition is being deleted",
			resources: []metav1.APIResource{{Name: "monitors", Kind: "Monitor", Verbs: metav1.Verbs{"delete", "deletecollection", "get", "list", "watch"}}},
		},
		"NoWatch": {
			reason:    "an aggregated API server may serve a kind without watches, which no informer can have",
			resources: []metav1.APIResource{{Name: "monitors", Kind: "Monitor", Verbs: metav1.Verbs{"create", "get", "list"}}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, tc.want, observe("Monitor", tc.resources), tc.reason)
		})
	}
}

// cachingMapper has no mapping until it is reset, like a RESTMapper of client-go with a cached discovery client.
type cachingMapper struct {
	meta.RESTMapper
	fresh meta.RESTMapper
}

func (m *cachingMapper) Reset() { m.RESTMapper = m.fresh }

func TestCheckMapping(t *testing.T) {
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.AddSpecific(monitorGVK, monitorGVK.GroupVersion().WithResource("monitors"), monitorGVK.GroupVersion().WithResource("monitor"), meta.RESTScopeNamespace)
	namespaced := observation{resource: "monitors", namespaced: true}
	require.NoError(t, checkMapping(mapper, monitorGVK, namespaced))
	require.ErrorContains(t, checkMapping(mapper, monitorGVK, observation{resource: "monitors"}), "restart the operator")
	require.ErrorContains(t, checkMapping(mapper, monitorGVK, observation{resource: "probes", namespaced: true}), "restart the operator")

	empty := meta.NewDefaultRESTMapper(nil)
	assert.True(t, meta.IsNoMatchError(checkMapping(empty, monitorGVK, namespaced)))
	caching := &cachingMapper{RESTMapper: empty, fresh: mapper}
	require.NoError(t, checkMapping(caching, monitorGVK, namespaced), "the mapper must not hide a new kind")
}
