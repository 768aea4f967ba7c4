package ownedresources

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/opblocks/opblocks/internal/owned"
	"github.com/opblocks/opblocks/internal/owned/apply"
)

// Result is what [Apply] did to one object.
type Result struct {
	// Object is the live object. It may be shared with the cache: do not modify it.
	Object client.Object
	// Operation is what was done: OperationResultNone if the live object is as desired, and no request was sent;
	// OperationResultCreated if it was absent; OperationResultUpdated if it was not as desired, and was applied.
	Operation controllerutil.OperationResult
}

// Apply creates or applies the desired objects, with owner as their controller. It sends no request for an object that
// is already as desired. It sets the owner's namespace on an object without one, in place.
//
// Apply returns one result per object, in the same order. An object that fails does not stop the others. The result of
// an object that failed has a nil Object, except with a [*NotCachedError].
//
// The error joins the errors of all objects. Use errors.As to find an [*OwnershipError], a [*WaitingError] or a
// [*NotCachedError]. The errors of the API server are found by the functions of k8s.io/apimachinery/pkg/api/errors:
// IsConflict means that another writer was faster, and IsInvalid that the object was refused.
//
// Before any request, Apply returns an error if
//   - the owner is nil or has no UID;
//   - an object is nil, has no name, or is desired twice;
//   - the scheme of c does not have the type of the owner or of an object;
//   - the owner is cluster-scoped, and a namespaced object has no namespace;
//   - the garbage collector would delete an object at once: its owner is namespaced, and the object is cluster-scoped
//     or in another namespace.
//
// Apply reads the objects from c. With a manager's client that is the cache, so the kinds should be watched, as with
// controller-runtime's Owns. Apply remembers nothing between calls. An object that another writer changes back is
// therefore applied in every call. [Ensure] remembers its own writes, does not repeat one that the cache does not show
// yet, and slows down where another writer changes a child back again and again. If the API server or an admission
// plug-in changes what was sent, Apply and Ensure record the difference in an annotation, and do not apply the
// object again because of it.
//
// If two items of a list in an object have the same key, the error satisfies IsInvalid and names them, and the object
// is neither created nor applied.
func Apply(ctx context.Context, c client.Client, owner client.Object, desired ...client.Object) ([]Result, error) {
	o, err := owned.NewOwner(owner, c, nil)
	if err != nil {
		return nil, err
	}
	a := apply.New()
	all, err := a.Declare(&o, desired)
	if err != nil {
		return nil, err
	}
	applied, err := apply.All(ctx, a, &o, all)
	results := make([]Result, len(applied))
	for i, one := range applied {
		results[i] = Result{Object: one.Object, Operation: one.Operation}
	}
	return results, err
}
