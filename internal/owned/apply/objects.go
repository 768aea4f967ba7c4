package apply

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/owned"
	"github.com/opblocks/opblocks/internal/owned/feature"
)

// Declare looks up the kinds of the objects that [ownedresources.Apply] got, and validates the objects.
func (a *Applier) Declare(o *owned.Owner, objs []client.Object) ([]owned.Declared, error) {
	all := make([]owned.Declared, len(objs))
	for i, obj := range objs {
		if owned.IsNil(obj) {
			return nil, fmt.Errorf("desired object %d: it is nil", i+1)
		}
		k, err := a.Kinds.Of(obj, o.Client.Scheme())
		if err != nil {
			return nil, fmt.Errorf("desired object %d: %w", i+1, err)
		}
		all[i] = owned.Declared{Kind: k, Object: obj, Options: &owned.Options{}}
	}
	return all, a.Validate(o, all)
}

// Desire normalizes an object, so that it can be compared with the live one and sent.
func (a *Applier) Desire(o *owned.Owner, obj client.Object, options *owned.Options) (*owned.Desired, error) {
	k, err := a.Kinds.Of(obj, o.Client.Scheme())
	if err != nil {
		return nil, err
	}
	return desire(o, k, obj, options)
}

// desire does the same as Desire for an object whose kind is known.
func desire(o *owned.Owner, k *owned.Kind, obj client.Object, options *owned.Options) (*owned.Desired, error) {
	object, full, err := k.Normalize(obj, options)
	if err != nil {
		return nil, err
	}
	object, generate := feature.WithoutGenerated(o, object, options.Generate)
	full, _ = feature.WithoutGenerated(o, full, generate)
	encoded, err := k.Comparer.AppendJSON(nil, object)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", k.Describe(object), err)
	}
	return &owned.Desired{Kind: k, Object: object, Full: full, Sum: owned.SumOf(encoded), Owner: o, Options: options, Generate: generate}, nil
}

// All creates or applies the objects. It returns one result per object, and the errors of all objects.
func All(ctx context.Context, a *Applier, o *owned.Owner, all []owned.Declared) ([]Result, error) {
	results, errs := make([]Result, len(all)), make([]error, len(all))
	for rank := range owned.Ranks {
		creations := map[int]*Creation{}
		for i, d := range all {
			if owned.RankOf(d.Kind.GVK.Kind) == rank {
				results[i], creations[i], errs[i] = a.Begin(ctx, o, d)
			}
		}
		maps.DeleteFunc(creations, func(_ int, c *Creation) bool { return c == nil })
		indices := slices.Sorted(maps.Keys(creations))
		pending := make([]*Creation, len(indices))
		for j, i := range indices {
			pending[j] = creations[i]
		}
		Send(ctx, pending...)
		for _, i := range indices {
			results[i], errs[i] = a.FinishCreation(ctx, creations[i])
		}
	}
	return results, errors.Join(errs...)
}
