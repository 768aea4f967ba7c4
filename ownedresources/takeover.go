package ownedresources

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/csaupgrade"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/fieldmanager"
	"github.com/opblocks/opblocks/internal/record"
)

// takeOver moves field ownership before an apply, so that the apply removes what is no longer desired and keeps what
// others are to own. It returns the updated live object.
func (a *applier) takeOver(ctx context.Context, d *desired, live client.Object) (client.Object, error) {
	last := record.LastAppliedOf(live)
	migrates, releases := takeOverSteps(d, last)
	var err error
	switch {
	case migrates:
		if live, err = a.migrate(ctx, d); err != nil {
			return nil, err
		}
	case releases:
		if live, err = a.readLive(ctx, d); err != nil {
			return nil, fmt.Errorf("read %s: %w", d, err)
		}
	}
	if !releases {
		return live, nil
	}
	return a.handOver(ctx, d, live)
}

// takeOverSteps decides what has to be done before the next apply, from how the object was last written.
func takeOverSteps(d *desired, last record.LastApplied) (migrates, releases bool) {
	migrates = last.Method != record.ByApply
	releases = migrates && d.options.createOnly != nil || last.Replicas && !setsReplicas(d.object)
	return migrates, releases
}

// migrate turns the fields that this operator, or a manager of [FormerManagers], has written by Create and Update into
// fields that our server-side apply owns. Without it, the managed fields entry of the POST would own fields that are
// not desired any more, and they would stay for ever.
//
// It reads past the cache, which may be configured to drop managedFields. The patch carries the version read.
func (a *applier) migrate(ctx context.Context, d *desired) (client.Object, error) {
	live, err := a.readLive(ctx, d)
	if err != nil {
		return nil, fmt.Errorf("read %s to take over its fields: %w", d, err)
	}
	if err := d.owner.mayWrite(d, live); err != nil {
		return nil, err
	}
	if live.GetUID() == "" && len(live.GetManagedFields()) == 0 {
		return live, a.migrateHidden(ctx, d, live)
	}
	manager := string(d.owner.fieldManager)
	former := sets.New(d.options.formerManagers...).Insert(manager)
	patch, err := csaupgrade.UpgradeManagedFieldsPatch(live, former, manager)
	if err != nil {
		return nil, fmt.Errorf("take over the fields of %s: %w", d, err)
	}
	if patch == nil {
		return live, nil
	}
	if err := a.jsonPatch(ctx, d, live, patch); err != nil {
		return nil, fmt.Errorf("take over the fields of %s: %w", d, withoutValues(err))
	}
	return live, nil
}

// migrateHidden is migrate for the fake client of controller-runtime, which tracks managed fields and does not return them by
// default. Its objects are known by their missing UID: an API server sets one, and its objects may lack managed fields because
// somebody has cleared them.
//
// The entry of the POST is the first one, unless somebody else has applied the object since.
func (a *applier) migrateHidden(ctx context.Context, d *desired, live client.Object) error {
	const entry = "/metadata/managedFields/0/"
	last := record.LastAppliedOf(live)
	if last.Method == record.ByOthers && len(d.options.formerManagers) == 0 {
		return nil // no field is ours
	}
	err := errors.New("the fields of a former manager are not known")
	if last.Method == record.ByCreate {
		patch, encodeErr := json.Marshal([]jsonPatchOperation{
			{"test", entry + "manager", d.owner.fieldManager},
			{"test", entry + "operation", metav1.ManagedFieldsOperationUpdate},
			{"replace", entry + "operation", metav1.ManagedFieldsOperationApply},
		})
		if encodeErr != nil {
			return encodeErr
		}
		err = a.jsonPatch(ctx, d, live, patch)
	}
	var refusal apierrors.APIStatus
	switch {
	case err == nil, isInvalid(err): // the apply will be refused too
		return nil
	case errors.As(err, &refusal):
		return fmt.Errorf("take over the fields of %s: %w", d, withoutValues(err))
	}
	return fmt.Errorf("take over the fields of %s, since fields that are not desired any more would stay: the client returns no managed fields: "+
		"build a fake client with the option WithReturnManagedFields: %w", d, err)
}

// handOver hands over fields that were sent once and are not sent any more, without changing them: the next apply would
// remove them, or reset them to their defaults. A second field manager applies just these fields with their live
// values, and so holds them until somebody else takes them.
//
// They are the fields of [Child.CreateOnly], and replicas that go from set to unset: replicas would fall to 1, although an
// autoscaler is to set them.
func (a *applier) handOver(ctx context.Context, d *desired, live client.Object) (client.Object, error) {
	fields, err := d.handedOverFields(live)
	if err != nil || fields == nil {
		return live, err
	}
	metadata, _ := fields["metadata"].(map[string]any)
	if metadata == nil {
		metadata = map[string]any{}
	}
	metadata["name"] = live.GetName()
	if uid := live.GetUID(); uid != "" {
		metadata["uid"] = uid
	}
	fields["metadata"] = metadata
	fields["apiVersion"], fields["kind"] = d.kind.gvk.GroupVersion().String(), d.kind.gvk.Kind
	body, err := json.Marshal(fields)
	if err != nil {
		return nil, fmt.Errorf("release fields of %s: %w", d, err)
	}
	answer, err := a.applyPatch(ctx, d, body, fieldmanager.Released(d.owner.fieldManager))
	if err != nil {
		return nil, fmt.Errorf("release fields of %s: %w", d, withoutValues(lostRaceAsConflict(err)))
	}
	return answer, nil
}

// handedOverFields returns the live values of the fields that were sent and are not sent any more, or nil.
func (d *desired) handedOverFields(live client.Object) (map[string]any, error) {
	var trees [3]map[string]any
	for i, obj := range []client.Object{d.full, d.object, live} {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
		if err != nil {
			return nil, fmt.Errorf("fields of %s: %w", d, err)
		}
		trees[i] = content
	}
	fields, _ := onlyIn(trees[0], trees[1], trees[2]).(map[string]any)
	if holdsList(fields) {
		return nil, fmt.Errorf("%s: CreateOnly unsets a field in a list: the other fields and items of the list would be released too; leave lists as they are", d)
	}
	if spec, ok := trees[2]["spec"].(map[string]any); ok && !setsReplicas(d.object) && spec["replicas"] != nil {
		if fields == nil {
			fields = map[string]any{}
		}
		released, _ := fields["spec"].(map[string]any)
		if released == nil {
			released = map[string]any{}
		}
		released["replicas"] = spec["replicas"]
		fields["spec"] = released
	}
	return fields, nil
}

// onlyIn returns live's values of the fields in which full and part differ, nil if there are none.
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

// setsReplicas reports whether spec.replicas of a scalable object is set.
func setsReplicas(obj client.Object) bool {
	switch obj := obj.(type) {
	case *appsv1.Deployment:
		return obj.Spec.Replicas != nil
	case *appsv1.StatefulSet:
		return obj.Spec.Replicas != nil
	case *appsv1.ReplicaSet:
		return obj.Spec.Replicas != nil
	case *unstructured.Unstructured:
		replicas, found, err := unstructured.NestedFieldNoCopy(obj.Object, "spec", "replicas")
		return err == nil && found && replicas != nil
	}
	return false
}
