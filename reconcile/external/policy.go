package external

import "sigs.k8s.io/controller-runtime/pkg/client"

// policy says which calls that change something an object forbids. A pass may come to rest only under the policy that it had.
type policy struct{ observeOnly, createOnly, mustExist bool }

func (r *Resource[T, S]) policyOf(obj T) policy {
	return policy{holdsFor(r.ObserveOnly, obj), holdsFor(r.CreateOnly, obj), holdsFor(r.MustExist, obj)}
}

func holdsFor[T client.Object](optional func(obj T) bool, obj T) bool {
	return optional != nil && optional(obj)
}

func (p *pass[T, S]) policy() policy { return p.policyOf(p.obj) }

func (p *pass[T, S]) observesOnly() bool { return holdsFor(p.ObserveOnly, p.obj) }

// mayCreate reports whether the thing is created if it does not exist.
func (p *pass[T, S]) mayCreate() bool { return !p.observesOnly() && !holdsFor(p.MustExist, p.obj) }

// mayUpdate reports whether the thing is updated if it differs.
func (p *pass[T, S]) mayUpdate() bool { return !p.observesOnly() && !holdsFor(p.CreateOnly, p.obj) }

// retains reports whether nothing is deleted.
func (p *pass[T, S]) retains() bool { return p.observesOnly() || holdsFor(p.Retain, p.obj) }
