package write

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/csaupgrade"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/fieldmanager"
	"github.com/opblocks/opblocks/internal/owned"
	"github.com/opblocks/opblocks/internal/owned/plan"
	"github.com/opblocks/opblocks/internal/record"
)

// TakeOver moves field ownership before an apply, so that the apply removes what is no longer desired, and keeps what other managers are to
// own. It returns the updated live object.
func TakeOver(ctx context.Context, d *owned.Desired, live client.Object) (client.Object, error) {
	last := record.LastAppliedOf(live)
	migrates, releases := plan.TakeOverSteps(d, last)
	var err error
	switch {
	case migrates:
		if live, err = migrate(ctx, d); err != nil {
			return nil, err
		}
	case releases:
		if live, err = d.ReadLive(ctx); err != nil {
			return nil, fmt.Errorf("read %s: %w", d, err)
		}
	}
	if !releases {
		return live, nil
	}
	return handOver(ctx, d, live)
}

// migrate moves the ownership of fields to our server-side apply: the fields that this operator, or a manager of
// [ownedresources.Child.FormerManagers], has written by Create and Update. Otherwise the managed fields entry of the POST would own fields
// that are not desired any more, and they would stay for ever.
//
// It reads the object from the API server, because the cache may be configured to drop managedFields. The patch has the version that was
// read as precondition.
func migrate(ctx context.Context, d *owned.Desired) (client.Object, error) {
	live, err := d.ReadLive(ctx)
	if err != nil {
		return nil, fmt.Errorf("read %s to take over its fields: %w", d, err)
	}
	if err := d.Owner.MayWrite(d, live); err != nil {
		return nil, err
	}
	if live.GetUID() == "" && len(live.GetManagedFields()) == 0 {
		return migrateHidden(ctx, d, live)
	}
	manager := string(d.Owner.FieldManager)
	former := sets.New(d.Options.FormerManagers...).Insert(manager)
	patch, err := csaupgrade.UpgradeManagedFieldsPatch(live, former, manager)
	if err != nil {
		return nil, fmt.Errorf("take over the fields of %s: %w", d, err)
	}
	if patch == nil {
		return live, nil
	}
	answer, err := jsonPatch(ctx, d, patch)
	if err != nil {
		return nil, fmt.Errorf("take over the fields of %s: %w", d, WithoutValues(err))
	}
	return answer, nil
}

// migrateHidden does the same as migrate for the fake client of controller-runtime, which tracks managed fields and does not return them by
// default. An object of the fake client has no UID, and an object of an API server has one. Missing managed fields alone do not show the
// fake client, because somebody may have cleared them on an API server.
//
// If nobody else has applied the object since the POST, the entry of the POST is the first of the managed fields.
func migrateHidden(ctx context.Context, d *owned.Desired, live client.Object) (client.Object, error) {
	const entry = "/metadata/managedFields/0/"
	last := record.LastAppliedOf(live)
	if last.Method == record.ByOthers && len(d.Options.FormerManagers) == 0 {
		return live, nil // this operator has written no field
	}
	err := errors.New("the fields of a former manager are not known")
	if last.Method == record.ByCreate {
		patch, encodeErr := json.Marshal([]plan.JSONPatchOperation{
			{Op: "test", Path: entry + "manager", Value: d.Owner.FieldManager},
			{Op: "test", Path: entry + "operation", Value: metav1.ManagedFieldsOperationUpdate},
			{Op: "replace", Path: entry + "operation", Value: metav1.ManagedFieldsOperationApply},
		})
		if encodeErr != nil {
			return nil, encodeErr
		}
		var answer client.Object
		if answer, err = jsonPatch(ctx, d, patch); err == nil {
			return answer, nil
		}
	}
	var refusal apierrors.APIStatus
	switch {
	case plan.IsInvalid(err): // the apply is refused too
		return live, nil
	case errors.As(err, &refusal):
		return nil, fmt.Errorf("take over the fields of %s: %w", d, WithoutValues(err))
	}
	return nil, fmt.Errorf("take over the fields of %s, since fields that are not desired any more would stay: the client returns no managed fields: "+
		"build a fake client with the option WithReturnManagedFields: %w", d, err)
}

// handOver gives fields to a second field manager that were sent before and are not sent any more, without changing them. Otherwise the
// next apply would remove them, or reset them to their defaults. The second manager applies just these fields with their live values, and
// so owns them until somebody else takes them.
//
// These are the fields of [ownedresources.Child.CreateOnly], and replicas if the desired object does not set them any more: replicas would
// fall to 1, although an autoscaler is to set them.
func handOver(ctx context.Context, d *owned.Desired, live client.Object) (client.Object, error) {
	fields, err := plan.HandedOverFields(d, live)
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
	fields["apiVersion"], fields["kind"] = d.Kind.GVK.GroupVersion().String(), d.Kind.GVK.Kind
	body, err := json.Marshal(fields)
	if err != nil {
		return nil, fmt.Errorf("release fields of %s: %w", d, err)
	}
	answer, err := applyPatch(ctx, d, body, fieldmanager.Released(d.Owner.FieldManager))
	if err != nil {
		return nil, fmt.Errorf("release fields of %s: %w", d, WithoutValues(lostRaceAsConflict(err)))
	}
	return answer, nil
}
