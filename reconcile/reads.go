package reconcile

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/references"
)

// Reads declares that a T references objects of a kind without owning them, such as a Secret with a password. A change, the
// deletion or the re-creation of such an object triggers a reconcile of the T.
//
// obj is an empty object, such as &corev1.Secret{}. names returns the names of the objects that a T references. An
// empty namespace means the namespace of the T. names must only read, and must always return the same names for the
// same T.
//
// The cache holds only the metadata of these objects, and the client of the step reads a whole object from the API server, with one
// request. To save the request, read the object's *metav1.PartialObjectMetadata, which comes from the cache, and compare its
// [VersionOf] with the version that you recorded. Read the whole object only if the two differ. Lists of whole objects are refused.
//
// It is different if a step also declares the kind by [NamedStep.ReadsCached], declares whole objects of it by [Watching], or
// builds objects of it. Then the cache holds the whole objects, and the client of the step reads objects and metadata from the
// cache.
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
// from the cache.
func (n NamedStep[T]) ReadsCached(obj client.Object, names func(T) []types.NamespacedName) NamedStep[T] {
	return n.referencing(true, obj, names)
}

func (n NamedStep[T]) referencing(cached bool, obj client.Object, names func(T) []types.NamespacedName) NamedStep[T] {
	n.references = append(slices.Clip(n.references), references.New(cached, obj, names))
	return n
}

// VersionOf returns the UID and the resource version of an object as one string. The string changes whenever the object
// is changed, or deleted and created again.
func VersionOf(obj metav1.Object) string {
	return string(obj.GetUID()) + "/" + obj.GetResourceVersion()
}
