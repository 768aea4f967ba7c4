package passcontext

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// PassEnd describes how a pass (one reconcile of one object by package reconcile) has ended.
type PassEnd struct {
	Kind    schema.GroupVersionKind
	UID     types.UID // empty if the object could not be read
	Cleanup bool      // the object is being deleted, and Steps has only the cleanup that has not finished
	Steps   []StepEnd // empty if no step has run, because the object is paused or filtered out

	FilteredOut bool // the filter of the reconciler leaves out the object
	Gone        bool // the object does not exist, and nothing else is known
}

// StepEnd describes how a step has ended in a pass.
type StepEnd struct {
	Step            string
	State           string // "succeeded", "skipped", "waiting", "conflicted", "failed" or "stalled"
	Reason, Message string // as in the condition; after a panic, the message also has the value of the panic
}

type passEndKey struct{}

// WithPassEnds returns a context in which passes of package reconcile call report at their end. A pass in which nothing had to be done does
// not call it. Explorations of package reconciletest use it to see failures: a step that fails is retried after a delay, and the pass
// returns no error.
func WithPassEnds(ctx context.Context, report func(PassEnd)) context.Context {
	return context.WithValue(ctx, passEndKey{}, report)
}

// PassEnds returns the function given to [WithPassEnds], or nil.
func PassEnds(ctx context.Context) (report func(PassEnd)) {
	report, _ = ctx.Value(passEndKey{}).(func(PassEnd))
	return report
}
