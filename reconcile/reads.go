package reconcile

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/references"
)

// Reads declares which objects of a kind, such as a Secret with a password, a T references without owning them. A
// change of such an object, its deletion and its re-creation trigger a reconcile of the T.
//
// obj is an empty object, such as &corev1.Secret{}. names returns the names of the objects that a T references. An
// empty namespace means the namespace of the T. names must only read, and always return the same names for the same T.
//
// The cache holds only the metadata of these objects, and the client of the step reads a whole object from the API server,
// with one request. To save it, read the object's *metav1.PartialObjectMetadata, which comes from the cache, compare its
// [VersionOf] with the version that you recorded, and read the whole object only if it differs. Lists of whole objects are
// refused. None of this holds if a step also declares the kind by [NamedStep.ReadsCached], or whole objects of it by [Watching], or
// builds objects of it: then the cache holds the whole objects, and they and their metadata are read there.
//
// What a step reads is never older than the event that triggered the pass: see [Watching].
//
// The operator needs the verbs get, list and watch on the kind. RBAC cannot tell a watch of metadata from a watch of whole
// objects: where that matters, limit the permission by namespace.
func (n NamedStep[T]) Reads(obj client.Object, names func(T) []types.NamespacedName) NamedStep[T] {
	return n.referencing(false, obj, names)
}

// ReadsCached is [NamedStep.Reads] for objects that the steps read in every pass and that contain no secrets, such as a
// Deployment whose status is observed. The cache holds the whole objects, and the client of the step reads and lists them
// there.
func (n NamedStep[T]) ReadsCached(obj client.Object, names func(T) []types.NamespacedName) NamedStep[T] {
	return n.referencing(true, obj, names)
}

func (n NamedStep[T]) referencing(cached bool, obj client.Object, names func(T) []types.NamespacedName) NamedStep[T] {
	n.references = append(slices.Clip(n.references), references.New(cached, obj, names))
	return n
}

// VersionOf returns a string that changes whenever the object is changed, or deleted and created again: its UID and its
// resource version.
func VersionOf(obj metav1.Object) string {
	return string(obj.GetUID()) + "/" + obj.GetResourceVersion()
}
