package ownedresources

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/fieldmanager"
)

// handOver lets go of fields without changing them: what was sent once and is not sent any
// more would otherwise go, or fall back to its default, with the next apply. A second manager
// applies just these, with their live values, and so holds them until somebody else does.
//
// These are the fields that were set for creation only, and replicas that go from set to
// unset, which would scale down to 1 what an autoscaler is to have.
func (a *applier) handOver(ctx context.Context, w wanted, live client.Object) error {
	dropped, err := w.dropped(live)
	if err != nil || dropped == nil {
		return err
	}
	metadata, _ := dropped["metadata"].(map[string]any)
	if metadata == nil {
		metadata = map[string]any{}
	}
	metadata["name"] = live.GetName()
	if uid := live.GetUID(); uid != "" {
		metadata["uid"] = uid
	}
	dropped["metadata"] = metadata
	dropped["apiVersion"], dropped["kind"] = w.kind.gvk.GroupVersion().String(), w.kind.gvk.Kind
	data, err := json.Marshal(dropped)
	if err != nil {
		return fmt.Errorf("let go of fields of %s: %w", &w, err)
	}
	answer := w.kind.empty()
	answer.SetNamespace(live.GetNamespace())
	answer.SetName(live.GetName())
	manager := fieldmanager.Released(w.owner.fieldManager)
	if err := w.owner.client.Patch(ctx, answer, client.RawPatch(types.ApplyPatchType, data), manager, client.ForceOwnership); err != nil {
		return fmt.Errorf("let go of fields of %s: %w", &w, withoutValues(raced(err)))
	}
	return nil
}

// dropped gives the live values of what we sent and do not send any more, or nil.
func (w *wanted) dropped(live client.Object) (map[string]any, error) {
	var trees [3]map[string]any
	for i, obj := range []client.Object{w.full, w.object, live} {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
		if err != nil {
			return nil, fmt.Errorf("fields of %s: %w", w, err)
		}
		trees[i] = content
	}
	dropped, _ := onlyIn(trees[0], trees[1], trees[2]).(map[string]any)
	if holdsList(dropped) {
		return nil, fmt.Errorf("%s: CreateOnly unsets a field in a list, of which other items and fields would be held too: leave lists out", w)
	}
	if spec, ok := trees[2]["spec"].(map[string]any); ok && !setsReplicas(w.object) && spec["replicas"] != nil {
		if dropped == nil {
			dropped = map[string]any{}
		}
		released, _ := dropped["spec"].(map[string]any)
		if released == nil {
			released = map[string]any{}
		}
		released["replicas"] = spec["replicas"]
		dropped["spec"] = released
	}
	return dropped, nil
}

// onlyIn gives live's values where full says something that part does not; nil if nowhere.
func onlyIn(full, part, live any) any {
	f, fOK := full.(map[string]any)
	p, pOK := part.(map[string]any)
	l, lOK := live.(map[string]any)
	if !fOK || !pOK || !lOK {
		if reflect.DeepEqual(full, part) {
			return nil
		}
		return live
	}
	found := map[string]any{}
	for k, v := range f {
		if d := onlyIn(v, p[k], l[k]); d != nil {
			found[k] = d
		}
	}
	if len(found) == 0 {
		return nil
	}
	return found
}

func holdsList(v any) bool {
	switch v := v.(type) {
	case []any:
		return true
	case map[string]any:
		for _, e := range v {
			if holdsList(e) {
				return true
			}
		}
	}
	return false
}
