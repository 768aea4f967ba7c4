package httpapi

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/memoryserver/kind"
)

// target is what a request is about: an object, a subresource of it, or all objects of a kind.
type target struct {
	gvk         schema.GroupVersionKind
	resource    schema.GroupVersionResource
	namespaced  bool
	namespace   string // "": all namespaces, or the kind has none
	name        string // "": the collection
	subresource string
}

// targetOf returns what a request is about. It returns an error for a path that is not served.
func (t *Transport) targetOf(r *http.Request) (*target, error) {
	gv, rest, ok := splitPath(r.URL.Path)
	if !ok || len(rest) == 0 {
		return nil, notServed(r.URL.Path, "only resources, their discovery and /version are served")
	}
	if gv.Group == "apiextensions.k8s.io" {
		return nil, apierrors.NewForbidden(schema.GroupResource{Group: gv.Group, Resource: rest[0]}, "", fmt.Errorf("reconciletest serves no CustomResourceDefinitions"))
	}
	to := &target{}
	if rest[0] == "namespaces" && len(rest) > 2 && !isNamespaceSubresource(rest) {
		to.namespace, rest = rest[1], rest[2:]
	}
	resources := t.Server.Resources(gv)
	i := slices.IndexFunc(resources, func(one metav1.APIResource) bool { return one.Name == rest[0] })
	switch {
	case i < 0 && len(resources) == 0:
		return nil, notServed(r.URL.Path, fmt.Sprintf("it has no group and version %s: add the custom resource definition to the CRDs of the scenario", gv))
	case i < 0:
		return nil, notServed(r.URL.Path, fmt.Sprintf("%s has no resource %s", gv, rest[0]))
	case len(rest) > 3:
		return nil, notServed(r.URL.Path, "no resource has such a path")
	}
	to.gvk, to.resource, to.namespaced = gv.WithKind(resources[i].Kind), gv.WithResource(rest[0]), resources[i].Namespaced
	rest = append(rest, "", "")
	to.name, to.subresource = rest[1], rest[2]
	if to.name != "" && to.namespaced != (to.namespace != "") || to.namespace != "" && !to.namespaced {
		return nil, notServed(r.URL.Path, "objects of the kind "+scopeOf(to.namespaced))
	}
	return to, nil
}

func scopeOf(namespaced bool) string {
	if namespaced {
		return "have a namespace"
	}
	return "have no namespace"
}

// splitPath splits a path into a group and version, and the rest of the path.
func splitPath(path string) (gv schema.GroupVersion, rest []string, ok bool) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	switch {
	case len(parts) >= 2 && parts[0] == "api":
		return schema.GroupVersion{Version: parts[1]}, parts[2:], true
	case len(parts) >= 3 && parts[0] == "apis":
		return schema.GroupVersion{Group: parts[1], Version: parts[2]}, parts[3:], true
	}
	return gv, nil, false
}

// isNamespaceSubresource reports whether a path below namespaces names a subresource of a namespace, and not a resource in it.
func isNamespaceSubresource(rest []string) bool {
	return len(rest) == 3 && (rest[2] == kind.StatusSubresource || rest[2] == "finalize")
}

func (t *target) isStatus() bool { return t.subresource == kind.StatusSubresource }

// lacksNamespace reports whether the path names no namespace, though the kind has one.
func (t *target) lacksNamespace() bool { return t.namespaced && t.namespace == "" }

// object returns an empty object of the target's kind and name, for the whole object or for its metadata.
func (t *target) object(metadata bool) client.Object {
	var obj client.Object = &unstructured.Unstructured{}
	if metadata {
		obj = &metav1.PartialObjectMetadata{}
	}
	obj.GetObjectKind().SetGroupVersionKind(t.gvk)
	obj.SetNamespace(t.namespace)
	obj.SetName(t.name)
	return obj
}

func (t *target) key() client.ObjectKey {
	return client.ObjectKey{Namespace: t.namespace, Name: t.name}
}

func isTrue(query url.Values, parameter string) bool {
	set, err := strconv.ParseBool(query.Get(parameter))
	return err == nil && set
}
