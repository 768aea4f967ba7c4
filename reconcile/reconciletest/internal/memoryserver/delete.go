package memoryserver

import (
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/memoryserver/kind"
)

// deleteAdmitted deletes an object for a client's request. Unlike delete, it calls the webhooks first.
func (s *Server) deleteAdmitted(k *kind.Kind, key client.ObjectKey, options *metav1.DeleteOptions) error {
	for range maxAttempts {
		current := s.store.find(k, key)
		if current == nil || len(s.hooks) == 0 {
			break
		}
		live, err := s.objectIn(k, current)
		if err != nil {
			return err
		}
		if err := checkPreconditions(k, live, options.Preconditions); err != nil {
			return err
		}
		w := &write{kind: k, key: key, operation: admission.Delete, options: writeOptions{dryRun: slices.Contains(options.DryRun, metav1.DryRunAll)}}
		if _, err := s.mutate(w, nil, live); err != nil {
			return err
		}
		if err := s.validate(w, nil, live); err != nil {
			return err
		}
		if s.store.find(k, key) == current {
			break
		}
	}
	return s.delete(k, key, options)
}

// delete removes an object. If the object has finalizers, delete only marks it as deleted. The caller holds the lock.
func (s *Server) delete(k *kind.Kind, key client.ObjectKey, options *metav1.DeleteOptions) error {
	current := s.store.find(k, key)
	if current == nil {
		return apierrors.NewNotFound(k.GroupResource(), key.Name)
	}
	if errs := validation.ValidateDeleteOptions(options); len(errs) > 0 {
		return apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: "DeleteOptions"}, "", errs)
	}
	live, err := s.objectIn(k, current)
	if err != nil {
		return err
	}
	if err := checkPreconditions(k, live, options.Preconditions); err != nil {
		return err
	}
	obj, gone := markDeleted(k, live, options)
	switch {
	case slices.Contains(options.DryRun, metav1.DryRunAll):
	case gone:
		s.store.remove(k, key)
	case k == k.Storage():
		if !k.Strategy.Equal(obj, live) {
			s.store.commit(k, key, obj, obj)
		}
	default: // as on the real server, fields that the version of the request lacks are lost
		stored, err := s.convertTo(k.Storage(), obj)
		if err != nil {
			return err
		}
		if !k.Storage().Strategy.Equal(stored, current.stored) {
			s.store.commit(k, key, readOf(k.Storage(), stored), stored)
		}
	}
	return nil
}

// markDeleted returns the object after a deletion. gone is true if nothing keeps the object.
func markDeleted(k *kind.Kind, live client.Object, options *metav1.DeleteOptions) (obj client.Object, gone bool) {
	grace := k.Strategy.GracePeriod(live, options.GracePeriodSeconds)
	if pending := live.GetDeletionGracePeriodSeconds(); live.GetDeletionTimestamp() != nil && ptr.Deref(pending, 0) > 0 {
		if options.GracePeriodSeconds == nil || grace >= *pending {
			return live, false // a second deletion can only shorten the grace period
		}
	} else if live.GetDeletionTimestamp() != nil {
		grace = 0
	}
	obj = live.DeepCopyObject().(client.Object)
	obj.SetFinalizers(collectorFinalizers(k, live.GetFinalizers(), options))
	if grace == 0 && len(obj.GetFinalizers()) == 0 && !k.Strategy.HoldDeletion(obj) {
		return nil, true
	}
	if live.GetDeletionTimestamp() == nil && obj.GetGeneration() > 0 {
		obj.SetGeneration(obj.GetGeneration() + 1) // a deletion increases the generation, like a change of the spec
	}
	end := now().Add(time.Duration(grace) * time.Second)
	if live.GetDeletionTimestamp() == nil || live.GetDeletionTimestamp().After(end) {
		obj.SetDeletionTimestamp(new(metav1.NewTime(end)))
	}
	obj.SetDeletionGracePeriodSeconds(&grace)
	return obj, false
}

func checkPreconditions(k *kind.Kind, live client.Object, want *metav1.Preconditions) error {
	gr := schema.GroupResource{Group: k.GVK.Group, Resource: k.GVK.Kind}
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

// collectorFinalizers returns an object's finalizers after a deletion. If the propagation policy needs the garbage collector, its finalizer
// is among them.
func collectorFinalizers(k *kind.Kind, finalizers []string, options *metav1.DeleteOptions) []string {
	wanted := ""
	switch policy := options.PropagationPolicy; {
	case uncollected[k.GVK.GroupKind()]:
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
		if wanted == "" && k.OrphanDependents {
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

// uncollected are kinds of owners whose dependents the garbage collector ignores.
var uncollected = map[schema.GroupKind]bool{
	{Kind: "Event"}: true, {Group: "events.k8s.io", Kind: "Event"}: true,
}
