package request

import (
	"cmp"
	"encoding/json"
	"maps"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/memoryserver"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/text"
)

// Right is what a rule of a role must allow for a request. Type Right of package reconciletest has the same fields, and documents them.
type Right struct {
	Verb      string
	Group     string
	Resource  string
	Namespace string
	Name      string
	Enforced  bool
}

// Rights are what the operator asked for in a run. Its methods may be called by several goroutines.
type Rights struct {
	mapper meta.RESTMapper

	mu    sync.Mutex
	asked map[Right]string // each right, with the first request that needed it
}

// NewRights returns an empty Rights. The mapper returns the resource of a kind.
func NewRights(mapper meta.RESTMapper) *Rights {
	return &Rights{mapper: mapper, asked: map[Right]string{}}
}

// All returns each right, with the first request that needed it.
func (r *Rights) All() map[Right]string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.asked)
}

func (r *Rights) add(right Right, request string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, known := r.asked[right]; !known {
		r.asked[right] = request
	}
}

// AddWatch adds the rights that the cache needs to show a kind: list and watch.
func (r *Rights) AddWatch(gvk schema.GroupVersionKind, namespaces []string) {
	mapping, err := r.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return // the server does not serve the kind: the read itself returns an error
	}
	for _, namespace := range namespaces {
		if mapping.Scope.Name() == meta.RESTScopeNameRoot {
			namespace = ""
		}
		for _, verb := range []string{"list", "watch"} {
			r.add(Right{Verb: verb, Group: gvk.Group, Resource: mapping.Resource.Resource, Namespace: namespace}, "the cache of "+gvk.Kind)
		}
	}
}

// AddEvent adds the rights to record an event about an object: client-go creates the event, and patches it if it is repeated.
func (r *Rights) AddEvent(group string, regarding runtime.Object) {
	namespace := metav1.NamespaceDefault // the namespace of events about cluster-scoped objects
	if obj, ok := regarding.(client.Object); ok {
		namespace = cmp.Or(obj.GetNamespace(), namespace)
	}
	for _, verb := range []string{"create", "patch"} {
		r.add(Right{Verb: verb, Group: group, Resource: "events", Namespace: namespace}, "an event"+text.ObjectOf(regarding))
	}
}

// AddRequest adds what a request to the API server needs. A read of the cache needs nothing beyond what AddWatch adds.
func (r *Rights) AddRequest(c *Call) {
	if c.External != "" || c.Cached {
		return
	}
	mapping, err := r.mapper.RESTMapping(c.Kind.GroupKind(), c.Kind.Version)
	if err != nil {
		return
	}
	right := Right{Verb: c.Verb, Group: c.Kind.Group, Resource: mapping.Resource.Resource, Namespace: c.Object.Namespace, Name: c.Object.Name}
	if c.Subresource != "" {
		right.Resource += "/" + c.Subresource
	}
	if c.Verb == "apply" {
		right.Verb = "patch"
	}
	if right.hasNoName() {
		right.Name = ""
	}
	r.add(right, c.String())
	r.addOwners(c)
}

// AddChange adds the rights that a request needs because of what it has changed. If an apply creates an object, the API server also asks
// for the verb create. If the owner references change, the admission plug-in OwnerReferencesPermissionEnforcement asks for the verb delete,
// since the garbage collector deletes an object whose owners are gone.
func (r *Rights) AddChange(c *Call, change *memoryserver.Change) {
	mapping, err := r.mapper.RESTMapping(c.Kind.GroupKind(), c.Kind.Version)
	if err != nil {
		return
	}
	right := Right{Group: c.Kind.Group, Resource: mapping.Resource.Resource, Namespace: c.Object.Namespace}
	switch {
	case change.Type == watch.Added && c.Verb == "apply":
		right.Verb = "create"
		r.add(right, c.String())
	case change.Type == watch.Modified && !equality.Semantic.DeepEqual(change.Old.GetOwnerReferences(), change.New.GetOwnerReferences()):
		right.Verb, right.Name, right.Enforced = "delete", c.Object.Name, true
		r.add(right, c.String()+", which changes the owner references")
	}
}

// hasNoName reports whether the API server authorizes the verb without a name, so that resourceNames of a rule never match.
func (r *Right) hasNoName() bool {
	switch r.Verb {
	case "create":
		return !strings.Contains(r.Resource, "/")
	case "list", "watch", "deletecollection":
		return true
	}
	return false
}

// addOwners adds the right to set an owner reference that blocks the owner's deletion. The admission plug-in
// OwnerReferencesPermissionEnforcement, which OpenShift enables, asks for the verb update on the owner's subresource finalizers.
func (r *Rights) addOwners(c *Call) {
	var body metav1.PartialObjectMetadata
	if len(c.Body) == 0 || !strings.Contains(string(c.Body), "blockOwnerDeletion") || json.Unmarshal(c.Body, &body) != nil {
		return
	}
	for _, owner := range body.OwnerReferences {
		if owner.BlockOwnerDeletion == nil || !*owner.BlockOwnerDeletion {
			continue
		}
		gvk := schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind)
		mapping, err := r.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
		if err != nil {
			continue
		}
		namespace := c.Object.Namespace
		if mapping.Scope.Name() == meta.RESTScopeNameRoot {
			namespace = ""
		}
		r.add(Right{Verb: "update", Group: gvk.Group, Resource: mapping.Resource.Resource + "/finalizers", Namespace: namespace, Name: owner.Name},
			c.String()+", whose owner reference has blockOwnerDeletion")
	}
}
