package ownedresources

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"github.com/opblocks/opblocks/internal/applyschema"
	"github.com/opblocks/opblocks/internal/record"
)

// The API server refuses every apply of an object that has an item without the keys of its list, such as a secret without a
// name in a ServiceAccount. Anybody can write such an item, and it makes the API server drop all managed fields.
//
// Such an object is written by a patch of what an apply would have made of it. As it has no managed fields, nobody
// knows what else is ours: fields that are not desired are removed, see [applier.reclaim]. Items without keys stay.

// isLiveUntypable reports whether the API server refused an apply because the live object does not fit its schema.
func isLiveUntypable(err error) bool {
	if err == nil {
		return false
	}
	text := err.Error()
	return strings.Contains(text, "failed to create typed live object") ||
		strings.Contains(text, "failed to create manager for existing fields") // without managed fields
}

// writeByPatch writes an object that cannot be applied. It returns the refusal of the apply if it cannot write the object either.
func (a *applier) writeByPatch(ctx context.Context, d *desired, last record.LastApplied, refusal error, options ...client.PatchOption) (client.Object, error) {
	live, err := a.readTree(ctx, d)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", d, err)
	}
	if err := errors.Join(d.owner.mayWrite(d, live), d.checkGenerated(live)); err != nil {
		return nil, err
	}
	want, err := d.tree(record.ByApply)
	if err != nil {
		return nil, err
	}
	schema, keyed := d.kind.comparer.Schema(), live.DeepCopy()
	keyless := schema.Keyless(live.Object)
	keyed.Object, _ = applyschema.Without(live.Object, keyless).(map[string]any)
	merged, _, err := d.mergeInto(keyed, want)
	if err != nil {
		return nil, refusal
	}
	schema.FillEmpty(want, merged)
	removes := d.ourEntry(live) < 0 && last.Method != record.ByOthers && last.Hash != string(d.sum[:])
	for _, withSpec := range []bool{true, false} {
		tree := merged
		if removes {
			if tree, err = d.withoutUndesired(merged, want, withSpec); err != nil {
				return nil, err
			}
		}
		if !putBack(tree, live.Object, keyless) {
			return nil, refusal
		}
		patch, err := replacePatch(d, live, tree, nil, record.ByCreate)
		if err != nil {
			return nil, fmt.Errorf("fields of %s: %w", d, err)
		}
		answer, err := a.replace(ctx, d, patch, options...)
		switch {
		case err == nil || !isInvalid(err) || !withSpec || !removes:
			return answer, err
		}
	}
	return nil, refusal
}

// putBack appends items of a live tree to the same lists of another tree. It returns false if a list is in an item of
// another list, or if the tree has nothing that can hold it.
func putBack(tree, live map[string]any, items [][]applyschema.Step) bool {
	for _, path := range items {
		holder, isMap := applyschema.At(tree, path[:len(path)-2]).(map[string]any)
		name, isField := path[len(path)-2].(string)
		if !isMap || !isField || slices.ContainsFunc(path[:len(path)-1], func(step applyschema.Step) bool { _, isItem := step.(int); return isItem }) {
			return false
		}
		list, _ := holder[name].([]any)
		holder[name] = append(slices.Clip(list), applyschema.At(live, path))
	}
	return true
}

// withoutUndesired returns a tree without the fields that are not desired, except those that surely belong to others.
func (d *desired) withoutUndesired(tree, want map[string]any, withSpec bool) (map[string]any, error) {
	var sets [2]*fieldpath.Set
	for i, object := range []map[string]any{tree, want} {
		value, err := d.kind.comparer.Schema().Type().FromUnstructured(object, typed.AllowDuplicates)
		if err == nil {
			sets[i], err = value.ToFieldSet()
		}
		if err != nil {
			return nil, fmt.Errorf("fields of %s: %w", d, err)
		}
	}
	removed, err := d.removable(sets[0].Difference(sets[1]), sets[1], withSpec)
	if err != nil {
		return nil, err
	}
	return d.without(tree, removed)
}
