package ownedresources

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/csaupgrade"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// migrate turns what was written by Create and Update, by us or by a former manager, into
// what our server-side apply owns. Without it, fields that we stop wanting would be held by
// the entry of the POST for ever.
//
// It reads past the cache, which may lack managedFields; the patch carries the version read.
func (a *applier) migrate(ctx context.Context, w wanted) (client.Object, error) {
	live, err := a.readLive(ctx, w)
	if err != nil {
		return nil, fmt.Errorf("read %s to take over its fields: %w", &w, err)
	}
	if err := w.owner.owns(&w, live); err != nil {
		return nil, err
	}
	manager := string(w.owner.fieldManager)
	former := sets.New(w.options.formerManagers...).Insert(manager)
	patch, err := csaupgrade.UpgradeManagedFieldsPatch(live, former, manager)
	if err != nil {
		return nil, fmt.Errorf("take over the fields of %s: %w", &w, err)
	}
	if patch == nil {
		return live, nil
	}
	if err := w.owner.client.Patch(ctx, live, client.RawPatch(types.JSONPatchType, patch), w.owner.fieldManager); err != nil {
		return nil, fmt.Errorf("take over the fields of %s: %w", &w, withoutValues(err))
	}
	return live, nil
}
