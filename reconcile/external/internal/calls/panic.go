package calls

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"

	"sigs.k8s.io/controller-runtime/pkg/log"
)

// recovered calls a function, and turns a panic into an error.
func recovered[A any](ctx context.Context, f Function, do func(ctx context.Context) (A, error)) (answer A, err error) {
	defer Recover(ctx, string(f), &err)
	return do(ctx)
}

// Recover turns a panic into an error. It has to be deferred. The error does not show the value of the panic, which may be
// sensitive. If the value is an error of the Go runtime, such as an index out of range, the error shows it.
func Recover(ctx context.Context, what string, err *error) {
	value := recover()
	if value == nil {
		return
	}
	kind := fmt.Sprintf("a value of type %T", value)
	if own, ok := value.(runtime.Error); ok {
		kind = own.Error()
	}
	log.FromContext(ctx).Info("A function panicked", "function", what, "panic", kind, "stack", string(debug.Stack()))
	*err = &panicError{fmt.Errorf("%s panicked; the log has the stack", what)}
}
