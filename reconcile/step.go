package reconcile

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Step is one part of a pass. It may change obj's status in memory; the pass writes it. Other
// changes of obj are lost. obj lacks its managed fields. The step must not keep obj, nor write it: the pass, which has read it before,
// would lose against that write, and start again.
//
// A nil error is success. Others are told apart by [Wait], [Halt] and [Stalled], and by the
// interfaces [Waiter] and [Reasoner], which errors of any package may have.
type Step[T client.Object] interface {
	Reconcile(ctx context.Context, c client.Client, obj T) error
}

// StepFunc is a function as a [Step].
type StepFunc[T client.Object] func(ctx context.Context, c client.Client, obj T) error

var _ Step[client.Object] = StepFunc[client.Object](nil)

// Reconcile calls f.
func (f StepFunc[T]) Reconcile(ctx context.Context, c client.Client, obj T) error {
	return f(ctx, c, obj)
}

// Func makes a function a step.
func Func[T client.Object](f func(ctx context.Context, c client.Client, obj T) error) StepFunc[T] {
	return f
}

// FinalizingStep is a step that has to clean up before its object goes, because it made something that
// Kubernetes does not collect. It needs the option [Finalizer]. Finalize is called in place of
// all steps once the object is being deleted, also when it is paused, the last step's first;
// when it gives nil, the finalizer goes. Its errors are those of Reconcile, and shown alike.
//
// It has to be idempotent, and to count what is already gone as success: it runs again after a
// crash, and also where Reconcile never ran to its end.
type FinalizingStep[T client.Object] interface {
	Step[T]
	Finalize(ctx context.Context, c client.Client, obj T) error
}

// Watcher is a step that watches what it reads.
type Watcher interface {
	// Watched gives an empty object of each kind that the step reads.
	Watched() []client.Object
	// SetupWithBuilder adds the watches.
	SetupWithBuilder(mgr ctrl.Manager, b *ctrl.Builder) error
}
