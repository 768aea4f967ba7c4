package scheduledjobs

import (
	"context"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// Watched returns an empty Job, so that package reconcile allows steps to read Jobs.
func (s *Jobs[T]) Watched() []client.Object { return []client.Object{&batchv1.Job{}} }

// SetupWithBuilder watches Jobs: the start, the end and the deletion of a Job enqueue its owner. If another step of the
// same kind has the same suffix ([Jobs.WithNameSuffix]), SetupWithBuilder returns an error. Package reconcile calls it.
func (s *Jobs[T]) SetupWithBuilder(mgr ctrl.Manager, b *ctrl.Builder) error {
	kind, err := apiutil.GVKForObject(emptyOf[T](), mgr.GetScheme())
	if err != nil {
		return fmt.Errorf("kind of %T: %w: add its types to the manager's scheme", emptyOf[T](), err)
	}
	s.live = mgr.GetAPIReader()
	s.index = fmt.Sprintf("opblocks.dev/jobs-of-%s/%s", kind.GroupKind(), s.suffix)
	err = mgr.GetFieldIndexer().IndexField(context.Background(), &batchv1.Job{}, s.index, func(obj client.Object) []string {
		job, ok := obj.(*batchv1.Job)
		if !ok {
			return nil
		}
		ref := metav1.GetControllerOfNoCopy(job)
		if _, isRun := runOf(job, s.suffix); !isRun || ref.Kind != kind.Kind {
			return nil
		}
		return []string{string(ref.UID)}
	})
	switch {
	case err != nil && isIndexConflict(err):
		return fmt.Errorf("two steps would create Jobs of the same names for a %s: give one of them WithNameSuffix", kind.Kind)
	case err != nil:
		return fmt.Errorf("index of Jobs by their %s: %w", kind.Kind, err)
	}
	b.Owns(&batchv1.Job{}, builder.WithPredicates(s.observe()))
	return nil
}

// jobState has the parts of a Job that a reconcile reads.
type jobState struct {
	state    runState
	deleting bool
	owner    types.UID
}

func jobStateOf(obj client.Object) jobState {
	job, ok := obj.(*batchv1.Job)
	if !ok {
		return jobState{}
	}
	s := jobState{state: stateOf(job), deleting: job.DeletionTimestamp != nil}
	if ref := metav1.GetControllerOfNoCopy(job); ref != nil {
		s.owner = ref.UID
	}
	return s
}

// observe passes creations, deletions, and updates that change a jobState. It drops other updates, which happen for
// each pod of a Job. It also removes our own writes from the memory of the step once the cache shows them.
func (s *Jobs[T]) observe() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { s.writes.Observe(e.Object); return true },
		UpdateFunc: func(e event.UpdateEvent) bool {
			s.writes.Observe(e.ObjectNew)
			return jobStateOf(e.ObjectOld) != jobStateOf(e.ObjectNew)
		},
		DeleteFunc: func(e event.DeleteEvent) bool { s.writes.Observe(e.Object); return true },
	}
}
