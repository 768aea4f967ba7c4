package kind

import (
	"fmt"
	"iter"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Strategy decodes, defaults and validates the objects of one kind. It has the role of the RESTCreateStrategy and RESTUpdateStrategy of
// k8s.io/apiserver/pkg/registry/rest. In its methods obj is the object that a request would store. live is the stored object, which must
// not be changed.
type Strategy interface {
	// New returns an object with apiVersion and kind only.
	New() client.Object
	// Decode decodes JSON as the API server does. Unknown fields are dropped. If strict is true, they are an error.
	Decode(content []byte, strict bool) (client.Object, error)
	// FromMap is like Decode, for values that are decoded already. The caller must not use content afterwards.
	FromMap(content map[string]any, strict bool) (client.Object, error)
	// FromObject is like Decode, for an object of the Go type in which the server holds the kind. It returns false for any other type. The
	// caller then has to encode the object as JSON and call Decode.
	FromObject(object client.Object) (client.Object, bool, error)
	// Encode is the reverse of Decode.
	Encode(object client.Object) ([]byte, error)
	SetDefaults(obj client.Object)

	// Allocate sets values that must be unique in the cluster, such as addresses. others are all stored objects of the kind, including
	// live. At a creation, live is nil.
	Allocate(k *Kind, others iter.Seq[client.Object], obj, live client.Object) error
	// The Prepare methods reset the fields that the client may not write by the request.
	PrepareForCreate(obj client.Object)
	PrepareForUpdate(obj, live client.Object)
	PrepareForStatusUpdate(obj, live client.Object)

	// GracePeriod returns how long a deletion waits, in seconds.
	GracePeriod(live client.Object, requested *int64) int64
	// HoldDeletion reports whether a deleted object stays even without finalizers. If it stays, HoldDeletion marks it.
	HoldDeletion(obj client.Object) bool

	Validate(obj client.Object) field.ErrorList
	ValidateUpdate(obj, live client.Object) field.ErrorList
	ValidateStatus(obj, live client.Object) field.ErrorList

	// Normalize returns a valid object in two forms: as the API server stores it, and as clients read it afterwards. applied is true if the
	// object comes from a server-side apply.
	Normalize(obj client.Object, applied bool) (read, stored client.Object, err error)
	Equal(a, b client.Object) bool
}

// Scaler is implemented by the strategies of kinds with a scale subresource.
type Scaler interface {
	// ReplicasPath returns the path of the field that holds the wanted replicas.
	ReplicasPath() []string
	// Scale returns the spec and the status of the object's scale.
	Scale(object client.Object) autoscalingv1.Scale
	// SetScale sets the wanted replicas.
	SetScale(obj client.Object, scale *autoscalingv1.Scale) error
}

// UIDMismatch returns the API server's error for a request that names the UID of another object.
func UIDMismatch(want, have types.UID) error {
	return fmt.Errorf("Precondition failed: UID in precondition: %s, UID in object meta: %s", want, have) //nolint:staticcheck // The server's words.
}
