package apply

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/owned"
	"github.com/opblocks/opblocks/internal/owned/feature"
	"github.com/opblocks/opblocks/internal/owned/report"
	"github.com/opblocks/opblocks/internal/owned/write"
	"github.com/opblocks/opblocks/internal/record"
)

// expandVolumes deletes a live StatefulSet whose claim templates have to grow, so that a new one replaces it, and returns a
// [*owned.WaitingError]. If no template has to grow, or if the API server would refuse other changes of the StatefulSet, it returns nil.
func (a *Applier) expandVolumes(ctx context.Context, d *owned.Desired, live client.Object) error {
	if grown, err := feature.Growth(d, live); err != nil || len(grown) == 0 {
		return err
	}
	tree, err := d.ReadTree(ctx) // the cache may be behind, and no StatefulSet must be deleted because of an old version
	if err != nil {
		return fmt.Errorf("read %s: %w", d, err)
	}
	if err := d.Owner.MayWrite(d, tree); err != nil {
		return err
	}
	grown, err := feature.Growth(d, tree)
	if err != nil {
		return err
	}
	if len(grown) == 0 {
		return apierrors.NewConflict(schema.GroupResource{Group: appsv1.GroupName, Resource: "statefulsets"}, d.Object.GetName(),
			errors.New("its claim templates have changed, and the cache does not show that yet"))
	}
	accepted, err := write.AcceptsRest(ctx, d, tree, grown)
	if err != nil || !accepted {
		return err
	}
	if _, err := write.TryCreation(ctx, d); err != nil {
		return fmt.Errorf("%s is not replaced by one with larger volumes, since that would be refused: %w", d, err)
	}
	set, err := feature.AsStatefulSet(tree)
	if err != nil {
		return err
	}
	if err := write.GrowClaims(ctx, d.Owner, set, grown); err != nil {
		return err
	}
	return a.replaceStatefulSet(ctx, d, set, tree)
}

// replaceStatefulSet deletes a StatefulSet and keeps its pods. The event of the deletion triggers the reconcile that creates the new
// StatefulSet.
func (a *Applier) replaceStatefulSet(ctx context.Context, d *owned.Desired, set *appsv1.StatefulSet, live client.Object) error {
	value, err := json.Marshal(record.Expansion{Set: d.Owner.Set, Namespace: set.Namespace, Name: set.Name, Replicas: set.Spec.Replicas})
	if err != nil {
		return err
	}
	key := record.Key(record.ExpansionPrefix, d.Owner.Namespace, d.Object)
	if d.Owner.Object.GetAnnotations()[key] == string(value) { // an earlier attempt has already written this value
		err = d.Owner.RequireCurrent(ctx)
	} else {
		err = write.SetRecord(ctx, d.Owner, key, string(value))
	}
	if err != nil {
		return err
	}
	if err := write.MarkPods(ctx, d.Owner, set, key, string(value)); err != nil {
		return err
	}
	if err := write.DeleteExactly(ctx, d.Owner.Client, live, metav1.DeletePropagationOrphan); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete %s without its pods, to replace it by one with larger volumes: %w", d, err)
	}
	a.Report(ctx, d.Owner, d.Kind, live, report.OutcomeRecreated, "")
	a.Writes.Forget(d.Kind.Empty(), d.Key())
	return owned.NewWaiting(ReasonRecreating, 0, fmt.Sprintf("%s is replaced by one with larger volumes; its pods keep running", d))
}
