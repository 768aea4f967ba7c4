package memoryserver

import (
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// delete removes an object, or marks it if finalizers hold it. The caller holds the lock.
func (s *Server) delete(k *kind, key client.ObjectKey, options *metav1.DeleteOptions) error {
	current := s.table(k).find(key)
	if current == nil {
		return apierrors.NewNotFound(k.groupResource(), key.Name)
	}
	if errs := validation.ValidateDeleteOptions(options); len(errs) > 0 {
		return apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: "DeleteOptions"}, "", errs)
	}
	live := current.object
	if err := checkPreconditions(k, live, options.Preconditions); err != nil {
		return err
	}
	made, gone := k.marked(live, options)
	switch {
	case slices.Contains(options.DryRun, metav1.DryRunAll):
	case gone:
		s.remove(k, key)
	case !k.rules.equal(made, live):
		s.commit(k, key, made, made)
	}
	return nil
}

// marked is an object as a deletion leaves it, unless nothing holds it and it is gone.
func (k *kind) marked(live client.Object, options *metav1.DeleteOptions) (made client.Object, gone bool) {
	grace := k.rules.grace(live, options.GracePeriodSeconds)
	if pending := live.GetDeletionGracePeriodSeconds(); live.GetDeletionTimestamp() != nil && ptr.Deref(pending, 0) > 0 {
		if options.GracePeriodSeconds == nil || grace >= *pending {
			return live, false // it is on its way, and may only be hurried
		}
	} else if live.GetDeletionTimestamp() != nil {
		grace = 0
	}
	made = live.DeepCopyObject().(client.Object)
	made.SetFinalizers(collectorFinalizers(k, live.GetFinalizers(), options))
	if grace == 0 && len(made.GetFinalizers()) == 0 && !k.rules.holds(made) {
		return nil, true
	}
	if live.GetDeletionTimestamp() == nil && made.GetGeneration() > 0 {
		made.SetGeneration(made.GetGeneration() + 1) // the deletion is a change of what is wanted
	}
	end := now().Add(time.Duration(grace) * time.Second)
	if live.GetDeletionTimestamp() == nil || live.GetDeletionTimestamp().After(end) {
		made.SetDeletionTimestamp(new(metav1.NewTime(end)))
	}
	made.SetDeletionGracePeriodSeconds(&grace)
	return made, false
}

// remove ends an object.
func (s *Server) remove(k *kind, key client.ObjectKey) {
	s.commit(k, key, nil, nil)
}

func checkPreconditions(k *kind, live client.Object, want *metav1.Preconditions) error {
	gr := schema.GroupResource{Group: k.gvk.Group, Resource: k.gvk.Kind}
	if want != nil && want.UID != nil && *want.UID != live.GetUID() {
		return apierrors.NewConflict(gr, live.GetName(), fmt.Errorf("the UID in the precondition (%s) does not match the UID in record (%s). "+
			"The object might have been deleted and then recreated", *want.UID, live.GetUID()))
	}
	if want != nil && want.ResourceVersion != nil && *want.ResourceVersion != live.GetResourceVersion() {
		return apierrors.NewConflict(gr, live.GetName(), fmt.Errorf("the ResourceVersion in the precondition (%s) does not match the ResourceVersion "+
			"in record (%s). The object might have been modified", *want.ResourceVersion, live.GetResourceVersion()))
	}
	return nil
}

// collectorFinalizers gives an object's finalizers with the one by which the garbage collector holds
// it, if the propagation policy needs that.
func collectorFinalizers(k *kind, finalizers []string, options *metav1.DeleteOptions) []string {
	wanted := ""
	switch policy := options.PropagationPolicy; {
	case uncollected[k.gvk.GroupKind()]:
	case options.OrphanDependents != nil: //nolint:staticcheck // Deprecated, and still honoured.
		if *options.OrphanDependents { //nolint:staticcheck // As above.
			wanted = metav1.FinalizerOrphanDependents
		}
	case policy != nil:
		switch *policy {
		case metav1.DeletePropagationOrphan:
			wanted = metav1.FinalizerOrphanDependents
		case metav1.DeletePropagationForeground:
			wanted = metav1.FinalizerDeleteDependents
		}
	default:
		for _, f := range finalizers {
			if f == metav1.FinalizerOrphanDependents || f == metav1.FinalizerDeleteDependents {
				wanted = f
				break
			}
		}
		if wanted == "" && k.orphans {
			wanted = metav1.FinalizerOrphanDependents
		}
	}
	kept := slices.DeleteFunc(slices.Clone(finalizers), func(f string) bool {
		return f != wanted && (f == metav1.FinalizerOrphanDependents || f == metav1.FinalizerDeleteDependents)
	})
	if wanted != "" && !slices.Contains(kept, wanted) {
		kept = append(kept, wanted)
	}
	return kept
}

// uncollected are kinds that own nothing.
var uncollected = map[schema.GroupKind]bool{
	{Kind: "Event"}: true, {Group: "events.k8s.io", Kind: "Event"}: true,
}
