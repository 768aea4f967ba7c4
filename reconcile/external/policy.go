package external

import "sigs.k8s.io/controller-runtime/pkg/client"

// policy says which calls an object forbids. If the policy of an object changes, the next pass calls the API.
type policy struct{ observeOnly, createOnly, mustExist, retain bool }

// policyOf returns the policy of an object.
func (r *Resource[T, S]) policyOf(obj T) policy {
	return policy{forbids(r.ObserveOnly, obj), forbids(r.CreateOnly, obj), forbids(r.MustExist, obj), forbids(r.Retain, obj)}
}

func forbids[T client.Object](optional func(obj T) bool, obj T) bool {
	return optional != nil && optional(obj)
}

func (p policy) observesOnly() bool { return p.observeOnly }

// mayCreate reports whether the thing is created if it does not exist.
func (p policy) mayCreate() bool { return !p.observeOnly && !p.mustExist }

// mayUpdate reports whether the thing is updated if it differs.
func (p policy) mayUpdate() bool { return !p.observeOnly && !p.createOnly }

// retains reports whether things are kept when the object does not want them any more.
func (p policy) retains() bool { return p.observeOnly || p.retain }
