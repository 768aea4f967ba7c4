package ownedresources

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/owned/set"
	"github.com/opblocks/opblocks/internal/servedkinds"
	"github.com/opblocks/opblocks/internal/step"
)

// Hooks is for package reconcile, which calls it when a set is a step. A reconciler of your own does not need it.
func (s *ChildSet[T]) Hooks() step.Hooks {
	return step.Hooks{
		Self: s,
		Settled: func(ctx context.Context, c client.Client, obj client.Object) bool {
			owner, ok := obj.(T)
			return ok && s.set.Settled(ctx, c, owner)
		},
		Watch:          s.set.WatchChildren,
		References:     s.set.References,
		Served:         func() map[schema.GroupVersionKind]*servedkinds.Watch { return s.set.Served },
		ConditionTypes: s.set.ConditionTypes,
		Builds: func(ctx context.Context, c client.Client, obj client.Object, kind schema.GroupKind, name types.NamespacedName) bool {
			return set.Builds(ctx, s.set, c, obj, kind, name)
		},
		Preview: s.set.Preview,
	}
}

// ChildSet implements what package reconcile expects of a step.
var (
	_ step.Hooked            = &ChildSet[client.Object]{}
	_ step.Named             = &ChildSet[client.Object]{}
	_ step.Renamed           = &ChildSet[client.Object]{}
	_ step.Finalized         = &ChildSet[client.Object]{}
	_ step.FormerlyFinalized = &ChildSet[client.Object]{}
)
