package reconciletest

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/request"
)

// Right is a permission that the operator needed: what a request asked the API server's authorizer for. A read of the cache
// needs the verbs list and watch of its kind. Server-side apply needs patch, and create if it creates the object. An event
// needs create and patch. If the admission plug-in OwnerReferencesPermissionEnforcement is enabled, as in OpenShift, an owner
// reference with blockOwnerDeletion needs update on the owner's subresource finalizers, and a change of the owner references of an
// object that exists needs delete.
type Right struct {
	Verb      string // such as "get"
	Group     string // the API group, "" for the core group
	Resource  string // such as "deployments", or "deployments/status"
	Namespace string // "" if all namespaces were asked for, or the object is cluster-scoped
	Name      string // the name of the object; "" for the verbs create, list, watch and deletecollection

	// Enforced is set if the right is needed only where OwnerReferencesPermissionEnforcement is enabled, to change the owner references of
	// an object. It also allows the object's deletion, so a role need not grant it on other clusters.
	Enforced bool
}

// String returns verb, resource and group, such as "get deployments.apps", then the namespace and the name.
func (r Right) String() string {
	text := r.Verb + " " + resourceName(r.Group, r.Resource)
	switch {
	case r.Name != "":
		text += " " + strings.TrimPrefix(r.Namespace+"/"+r.Name, "/")
	case r.Namespace != "":
		text += " in " + r.Namespace
	}
	return text
}

// resourceName returns a resource as kubectl names it, such as "deployments.apps" or "deployments.apps/status".
func resourceName(group, resource string) string {
	if group == "" {
		return resource
	}
	name, subresource, has := strings.Cut(resource, "/")
	name += "." + group
	if has {
		name += "/" + subresource
	}
	return name
}

// addRights adds what the operator asked for in the runs of the engine.
func (r *Report) addRights(asked map[request.Right]string) {
	r.requestOf = map[Right]string{}
	for right, request := range asked {
		r.requestOf[Right(right)] = request
	}
	r.Rights = slices.SortedFunc(maps.Keys(r.requestOf), compareRights)
}

func compareRights(a, b Right) int {
	return cmp.Or(
		strings.Compare(a.Group, b.Group), strings.Compare(a.Resource, b.Resource), strings.Compare(a.Verb, b.Verb),
		strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
}

// marker returns the marker from which controller-gen generates a rule.
func marker(group, resource, namespace string, verbs []string) string {
	text := fmt.Sprintf("// +kubebuilder:rbac:groups=%s,", cmp.Or(group, `""`))
	if namespace != "" {
		text += "namespace=" + namespace + ","
	}
	return text + "resources=" + resource + ",verbs=" + strings.Join(verbs, ";")
}
