package memoryserver

import (
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// behaviour is what is particular to a built-in kind. Functions that are nil do nothing.
type behaviour struct {
	validName validation.ValidateNameFunc // nil: a DNS subdomain
	// anyFinalizer says that finalizers need no domain. Those of nearly all built-in kinds do.
	anyFinalizer bool

	// defaults fills in what a client left out. Whoever sends the object owns these fields.
	defaults func(client.Object)
	// assign gives values of which the server keeps a stock, such as addresses.
	assign func(t *table, made, live client.Object) error
	// create and update set what clients cannot.
	create func(made client.Object)
	update func(made, live client.Object)
	status func(made, live client.Object)
	// read fills in what was not stored. The next write stores it, whatever else it changes.
	read func(client.Object)
	// counts is whether a change other than of the spec counts in the generation.
	counts func(made, live client.Object) bool
	// grace is how long a deletion waits, in seconds, unless the request says; nil for not at all.
	grace func(live client.Object, requested *int64) int64
	// holds marks an object that stays when it is deleted, though it has no finalizers.
	holds func(made client.Object)

	check       func(made client.Object) field.ErrorList
	compare     func(made, live client.Object) field.ErrorList // what an update may change
	checkStatus func(made client.Object) field.ErrorList
}

// The functions below let a kind's functions take the kind's Go type.

func on[T client.Object](f func(T)) func(client.Object) {
	return func(object client.Object) { f(object.(T)) }
}

func onBoth[T client.Object](f func(made, live T)) func(made, live client.Object) {
	return func(made, live client.Object) { f(made.(T), live.(T)) }
}

func checked[T client.Object](f func(T) field.ErrorList) func(client.Object) field.ErrorList {
	return func(object client.Object) field.ErrorList { return f(object.(T)) }
}

func compared[T client.Object](f func(made, live T) field.ErrorList) func(made, live client.Object) field.ErrorList {
	return func(made, live client.Object) field.ErrorList { return f(made.(T), live.(T)) }
}

// absent sets a pointer that is nil.
func absent[T any](p **T, value T) {
	if *p == nil {
		*p = &value
	}
}

// unset sets a value that is zero.
func unset[T comparable](p *T, value T) {
	var zero T
	if *p == zero {
		*p = value
	}
}
