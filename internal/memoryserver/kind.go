package memoryserver

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// kind is what the server knows of a kind. All servers of a process share it, so it never changes.
type kind struct {
	gvk            schema.GroupVersionKind
	resource       schema.GroupVersionResource
	singular       string
	namespaced     bool
	status         bool // has a status subresource
	scaled         bool // has a scale subresource
	lock           bool // an update must name the resource version
	orphans        bool // a deletion leaves its dependents alone unless it says otherwise
	createOnUpdate bool // an update creates what is not there

	rules  rules
	fields map[string]*managedfields.FieldManager // by subresource; "" is the object itself
}

// rules is how one kind is decoded, defaulted and validated.
type rules interface {
	// empty is an object with apiVersion and kind only.
	empty() client.Object
	// decode reads JSON as the server does: unknown fields are dropped, and with strict an error.
	decode(content []byte, strict bool) (client.Object, error)
	// fromMap is decode for values that were decoded already; it takes them over.
	fromMap(content map[string]any, strict bool) (client.Object, error)
	// encode is the reverse of decode.
	encode(client.Object) ([]byte, error)
	setDefaults(client.Object)

	// assign gives what the server keeps a stock of. There is no live object at a creation.
	assign(t *table, made, live client.Object) error
	prepareCreate(made client.Object)
	prepareUpdate(made, live client.Object)
	prepareStatus(made, live client.Object)

	// grace is how long a deletion waits, in seconds.
	grace(live client.Object, requested *int64) int64
	// holds reports whether an object that is deleted stays, though it has no finalizers, and marks
	// it as being deleted.
	holds(made client.Object) bool

	validate(made client.Object) field.ErrorList
	validateUpdate(made, live client.Object) field.ErrorList
	validateStatus(made, live client.Object) field.ErrorList

	// settle gives what is read of a valid object when it is stored, and what is written.
	settle(made client.Object, applied bool) (read, stored client.Object, err error)
	equal(a, b client.Object) bool
}

func (k *kind) groupResource() schema.GroupResource { return k.resource.GroupResource() }

// key is where an object of the kind is stored: a cluster-scoped one has no namespace.
func (k *kind) key(namespace, name string) client.ObjectKey {
	if !k.namespaced {
		namespace = ""
	}
	return client.ObjectKey{Namespace: namespace, Name: name}
}
