package ownedresources

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/step"
)

// Hooks is what package reconcile asks of a set that is a step. A reconciler of your own does not need it.
func (s *ChildSet[T]) Hooks() step.Hooks {
	return step.Hooks{
		Self: s,
		Settled: func(ctx context.Context, c client.Client, obj client.Object) bool {
			owner, ok := obj.(T)
			return ok && s.settled(ctx, c, owner)
		},
		Watch:          s.watchChildren,
		References:     s.references,
		Served:         func() servedWatches { return s.served },
		ConditionTypes: s.conditionTypes,
	}
}

// The contract with package reconcile.
var (
	_ step.Hooked            = &ChildSet[client.Object]{}
	_ step.Named             = &ChildSet[client.Object]{}
	_ step.Renamed           = &ChildSet[client.Object]{}
	_ step.Finalized         = &ChildSet[client.Object]{}
	_ step.FormerlyFinalized = &ChildSet[client.Object]{}
)
