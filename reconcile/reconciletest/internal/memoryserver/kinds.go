package memoryserver

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiversion "k8s.io/apimachinery/pkg/version"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/memoryserver/builtin"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/memoryserver/crd"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/memoryserver/kind"
)

// kinds are the kinds of a server. Servers with the same custom resource definitions share one kinds.
type kinds struct {
	custom    map[schema.GroupVersionKind]*kind.Kind
	documents func() map[schema.GroupVersion]any
	mapper    meta.RESTMapper
}

func (ks *kinds) find(gvk schema.GroupVersionKind) *kind.Kind {
	if k := builtin.Kinds()[gvk]; k != nil {
		return k
	}
	return ks.custom[gvk]
}

var known struct {
	sync.Mutex
	kinds map[string]*kinds // by the IDs of the definitions, in order
}

func kindsWith(definitions []*crd.Definition) (*kinds, error) {
	var id strings.Builder
	for _, d := range definitions {
		id.WriteString(d.ID)
	}
	known.Lock()
	defer known.Unlock()
	if ks := known.kinds[id.String()]; ks != nil {
		return ks, nil
	}
	ks := &kinds{custom: map[schema.GroupVersionKind]*kind.Kind{}}
	for _, d := range definitions {
		for _, k := range d.Kinds {
			if ks.find(k.GVK) != nil {
				return nil, fmt.Errorf("custom resource definition of %s: the kind is built in, or there are two definitions of it: remove one", k.GVK)
			}
			ks.custom[k.GVK] = k
		}
	}
	ks.mapper, ks.documents = ks.newMapper(), sync.OnceValue(ks.newDocuments)
	if known.kinds == nil {
		known.kinds = map[string]*kinds{}
	}
	known.kinds[id.String()] = ks
	return ks, nil
}

// Resources returns what discovery lists for a group and version. If the server has no kind in them, it returns none.
func (s *Server) Resources(gv schema.GroupVersion) (resources []metav1.APIResource) {
	for _, all := range []map[schema.GroupVersionKind]*kind.Kind{builtin.Kinds(), s.kinds.custom} {
		for gvk, k := range all {
			if gvk.GroupVersion() == gv {
				resources = append(resources, resourcesOf(k)...)
			}
		}
	}
	slices.SortFunc(resources, func(a, b metav1.APIResource) int { return strings.Compare(a.Name, b.Name) })
	return resources
}

// OpenAPI returns the OpenAPI documents of custom kinds as JSON values, by group and version. There are none for built-in kinds.
func (s *Server) OpenAPI() map[schema.GroupVersion]any { return s.kinds.documents() }

func (ks *kinds) newDocuments() map[schema.GroupVersion]any {
	byVersion := map[schema.GroupVersion][]*kind.Kind{}
	for gvk, k := range ks.custom {
		byVersion[gvk.GroupVersion()] = append(byVersion[gvk.GroupVersion()], k)
	}
	documents := map[schema.GroupVersion]any{}
	for gv, kinds := range byVersion {
		documents[gv] = crd.OpenAPI(kinds)
	}
	return documents
}

// resourcesOf returns what discovery lists for a kind: its resource, and the subresources.
func resourcesOf(k *kind.Kind) []metav1.APIResource {
	all := []metav1.APIResource{{
		Name: k.Resource.Resource, SingularName: k.Singular, Namespaced: k.Namespaced, Kind: k.GVK.Kind,
		Verbs: metav1.Verbs{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"},
	}}
	add := func(name string, gvk schema.GroupVersionKind, verbs ...string) {
		one := metav1.APIResource{Name: k.Resource.Resource + "/" + name, Namespaced: k.Namespaced, Kind: gvk.Kind, Verbs: verbs}
		if gvk.GroupVersion() != k.GVK.GroupVersion() {
			one.Group, one.Version = gvk.Group, gvk.Version
		}
		all = append(all, one)
	}
	if k.HasStatus {
		add(kind.StatusSubresource, k.GVK, "get", "patch", "update")
	}
	if k.HasScale {
		add(kind.ScaleSubresource, autoscalingv1.SchemeGroupVersion.WithKind("Scale"), "get", "patch", "update")
	}
	if k.GVK == corev1.SchemeGroupVersion.WithKind("Pod") {
		add(evictionSubresource, policyv1.SchemeGroupVersion.WithKind("Eviction"), "create")
	}
	return all
}

// Versions returns the groups with their versions, in order. In each group the preferred version comes first.
func (s *Server) Versions() []schema.GroupVersion { return s.kinds.preferredVersions() }

// newMapper returns a mapper of the kinds. If no version is given, it returns the preferred one.
func (ks *kinds) newMapper() meta.RESTMapper {
	mapper := meta.NewDefaultRESTMapper(ks.preferredVersions())
	for _, all := range []map[schema.GroupVersionKind]*kind.Kind{builtin.Kinds(), ks.custom} {
		for _, k := range all {
			scope := meta.RESTScopeRoot
			if k.Namespaced {
				scope = meta.RESTScopeNamespace
			}
			mapper.AddSpecific(k.GVK, k.Resource, k.Resource.GroupVersion().WithResource(k.Singular), scope)
		}
	}
	return mapper
}

// preferredVersions returns the versions of all groups. In each group the preferred one comes first: v2 before v1, and v1 before
// v1beta1.
func (ks *kinds) preferredVersions() (all []schema.GroupVersion) {
	for _, kinds := range []map[schema.GroupVersionKind]*kind.Kind{builtin.Kinds(), ks.custom} {
		for gvk := range kinds {
			if !slices.Contains(all, gvk.GroupVersion()) {
				all = append(all, gvk.GroupVersion())
			}
		}
	}
	slices.SortFunc(all, func(a, b schema.GroupVersion) int {
		return cmp.Or(strings.Compare(a.Group, b.Group), apiversion.CompareKubeAwareVersionStrings(b.Version, a.Version))
	})
	return all
}
