package builtin

import (
	"iter"

	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/memoryserver/kind"
)

// behaviour has the functions in which built-in kinds differ. If a function is nil, the kind needs none.
type behaviour struct {
	validateName validation.ValidateNameFunc // nil: a DNS subdomain
	// anyFinalizer allows finalizers without a domain. Nearly all built-in kinds require one.
	anyFinalizer bool

	// setDefaults sets fields that the client has not set. They belong to the client's field manager.
	setDefaults func(client.Object)
	// allocate sets values that must be unique in the cluster: see [kind.Strategy.Allocate].
	allocate func(k *kind.Kind, others iter.Seq[client.Object], obj, live client.Object) error
	// prepareForCreate, prepareForUpdate and prepareForStatusUpdate set the fields that clients cannot set.
	prepareForCreate       func(obj client.Object)
	prepareForUpdate       func(obj, live client.Object)
	prepareForStatusUpdate func(obj, live client.Object)
	// defaultOnRead sets fields that clients read although they are not stored. The next write of the object stores them too.
	defaultOnRead func(client.Object)
	// inJSON returns an object with the fields that JSON has and protobuf lacks. nil: the kind has none.
	inJSON func(client.Object) client.Object
	// changesGeneration reports whether an update increases the generation although it does not change the spec.
	changesGeneration func(obj, live client.Object) bool
	// gracePeriod returns how many seconds a deletion waits. requested is the period that the request asks for, nil if it asks for none.
	gracePeriod func(live client.Object, requested *int64) int64
	// holdDeletion marks an object as deleted. It is set for kinds whose deleted objects stay even without finalizers.
	holdDeletion func(obj client.Object)

	validate       func(obj client.Object) field.ErrorList
	validateUpdate func(obj, live client.Object) field.ErrorList // rejects changes that an update may not make
	validateStatus func(obj client.Object) field.ErrorList
}

// The functions below adapt functions for a kind's Go type to the fields of behaviour.

func forObject[T client.Object](f func(T)) func(client.Object) {
	return func(object client.Object) { f(object.(T)) }
}

func forUpdate[T client.Object](f func(obj, live T)) func(obj, live client.Object) {
	return func(obj, live client.Object) { f(obj.(T), live.(T)) }
}

func forComparison[T client.Object](f func(obj, live T) bool) func(obj, live client.Object) bool {
	return func(obj, live client.Object) bool { return f(obj.(T), live.(T)) }
}

func forValidation[T client.Object](f func(T) field.ErrorList) func(client.Object) field.ErrorList {
	return func(object client.Object) field.ErrorList { return f(object.(T)) }
}

func forUpdateValidation[T client.Object](f func(obj, live T) field.ErrorList) func(obj, live client.Object) field.ErrorList {
	return func(obj, live client.Object) field.ErrorList { return f(obj.(T), live.(T)) }
}

// setIfNil points p to value if it is nil.
func setIfNil[T any](p **T, value T) {
	if *p == nil {
		*p = &value
	}
}

// setIfZero sets *p to value if it is zero.
func setIfZero[T comparable](p *T, value T) {
	var zero T
	if *p == zero {
		*p = value
	}
}
