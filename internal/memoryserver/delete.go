package memoryserver

import (
	"fmt"
	"slices"

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
	finalizers := collectorFinalizers(k, live.GetFinalizers(), options)
	dryRun := slices.Contains(options.DryRun, metav1.DryRunAll)
	if len(finalizers) == 0 {
		if !dryRun {
			s.remove(k, key)
		}
		return nil
	}
	made := live.DeepCopyObject().(client.Object)
	made.SetFinalizers(finalizers)
	if made.GetDeletionTimestamp() == nil {
		made.SetDeletionTimestamp(ptr.To(now()))
		if made.GetGeneration() > 0 {
			made.SetGeneration(made.GetGeneration() + 1) // the deletion is a change of what is wanted
		}
	}
	made.SetDeletionGracePeriodSeconds(ptr.To[int64](0))
	if !dryRun && !k.rules.equal(made, live) {
		s.commit(k, key, made)
	}
	return nil
}

// remove ends an object.
func (s *Server) remove(k *kind, key client.ObjectKey) {
	s.free(k, s.table(k).find(key).object)
	s.commit(k, key, nil)
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
