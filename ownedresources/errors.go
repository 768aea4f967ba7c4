package ownedresources

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrlreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// OwnershipError is an object of a wanted name that is not ours. It was left alone.
type OwnershipError struct {
	// Kind and Name of the object.
	Kind string
	Name types.NamespacedName
	// Owner is its controller, or nil when nobody controls it.
	Owner *metav1.OwnerReference
}

func (e *OwnershipError) Error() string {
	if e.Owner == nil {
		return fmt.Sprintf("%s %s exists and is not controlled by anything: it is left alone; delete it, choose another name, or allow to Adopt it", e.Kind, e.Name)
	}
	return fmt.Sprintf("%s %s belongs to %s %s: it is left alone; choose another name", e.Kind, e.Name, e.Owner.Kind, e.Owner.Name)
}

// Reason is the reason of a condition that shows the error.
func (*OwnershipError) Reason() string { return "OwnedByAnother" }

// NotCachedError is an object of ours that the cache does not show, long after it was created. It is
// as wanted, but each pass costs two requests, and nobody is told when it changes.
type NotCachedError struct {
	Kind string
	Name types.NamespacedName
}

func (e *NotCachedError) Error() string {
	return fmt.Sprintf("%s %s is not in the cache, although it exists: the cache's selector or namespaces leave it out; "+
		"give the object what the selector asks for, or widen the cache", e.Kind, e.Name)
}

// Reason is the reason of a condition that shows the error.
func (*NotCachedError) Reason() string { return "NotInCache" }

// FailedError is a child that does not become ready unless something changes, as kstatus defines
// it: a Job that has failed, a Deployment that exceeded its deadline for progress.
type FailedError struct{ reason, message string }

func (e *FailedError) Error() string { return e.message }

// Reason is the reason of a condition that shows the error.
func (e *FailedError) Reason() string { return e.reason }

// Unwrap makes it an error that controller-runtime does not retry: an event of the child does.
func (*FailedError) Unwrap() error { return ctrlreconcile.TerminalError(nil) }

const reasonTerminating = "ChildTerminating"

// WaitingError says that nothing is to do now: an object is on its way, and an event of it
// brings the next pass, or it is written too often (see [ChildSet]).
type WaitingError struct {
	reason, message string
	after           time.Duration
}

func (e *WaitingError) Error() string { return e.message }

// Waiting gives the reason of a condition that shows the error. The delay is zero where an
// event tells when it is over.
func (e *WaitingError) Waiting() (reason string, after time.Duration) { return e.reason, e.after }
