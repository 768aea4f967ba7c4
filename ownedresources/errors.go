package ownedresources

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrlreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Reasons of a [WaitingError].
const (
	reasonTerminating        = "ChildTerminating"   // an object is being deleted
	reasonDependencyNotReady = "DependencyNotReady" // what a child comes after is not ready
	reasonReferenceNotFound  = "ReferenceNotFound"  // an object that an input reads does not exist
)

// OwnershipError is returned for an object that has the desired name and another controller, or none. The object was left
// alone. Find it with errors.As:
//
//	if foreign, ok := errors.AsType[*ownedresources.OwnershipError](err); ok { … }
type OwnershipError struct {
	// Kind of the object.
	Kind string
	// Name of the object.
	Name types.NamespacedName
	// Owner is the object's controller reference, or nil if it has none. If the object has a mark of another owner
	// instead (see [Anywhere]), Owner has the kind, the name and the UID of that owner.
	Owner *metav1.OwnerReference
	// OwnerNamespace is the namespace of the owner that a mark names. It is empty if that owner is cluster-scoped. It
	// is also empty for a controller reference, whose owner is in the namespace of the object or cluster-scoped.
	OwnerNamespace string
	// Retained is whether the object belonged to a former owner (a deleted owner of the same name), and [Child.Retain] has
	// kept it.
	Retained bool
}

func (e *OwnershipError) Error() string {
	if e.Owner == nil {
		return fmt.Sprintf("%s %s exists and is not controlled by anything: it is left alone; delete it, choose another name, or allow to Adopt it", e.Kind, e.Name)
	}
	name := types.NamespacedName{Namespace: e.OwnerNamespace, Name: e.Owner.Name}
	owner := e.Owner.Kind + " " + strings.TrimPrefix(name.String(), "/")
	if e.Retained {
		return fmt.Sprintf("%s %s was retained when a former %s was deleted: it is left alone; delete it, choose another name, or allow to Adopt it", e.Kind, e.Name, owner)
	}
	return fmt.Sprintf("%s %s belongs to %s: it is left alone; choose another name", e.Kind, e.Name, owner)
}

// Reason returns the reason for a condition that shows the error: OwnedByAnother.
func (*OwnershipError) Reason() string { return "OwnedByAnother" }

// NotCachedError is returned for a child that is as desired, and for an object that an input reads ([From]), if the
// cache still does not show the object a minute after it was created. Each reconcile then costs one or two requests,
// and a change of the object triggers none. Find it with errors.As.
type NotCachedError struct {
	// Kind of the object.
	Kind string
	// Name of the object.
	Name types.NamespacedName
}

func (e *NotCachedError) Error() string {
	return fmt.Sprintf("%s %s is not in the cache, although it exists: the cache's selector or namespaces leave it out; "+
		"set the labels that the selector asks for, or widen the cache", e.Kind, e.Name)
}

// Reason returns the reason for a condition that shows the error: NotInCache.
func (*NotCachedError) Reason() string { return "NotInCache" }

// FailedError is returned for a child that does not become ready unless something changes, by the rules of kstatus: a Job
// that has failed, or a Deployment that has exceeded its progress deadline. Find it with errors.As.
//
// It wraps a controller-runtime TerminalError, so controller-runtime does not retry it, nor any error that is joined with
// it. An event of the child triggers the next reconcile. (Package reconcile retries the joined errors.)
type FailedError struct{ reason, message string }

func (e *FailedError) Error() string { return e.message }

// Reason returns the reason for a condition that shows the error. It is the reason of the child's own condition.
// Without such a reason it is Failed, or JobFailed for a Job of [RunOnce].
func (e *FailedError) Reason() string { return e.reason }

// Unwrap returns a controller-runtime TerminalError.
func (*FailedError) Unwrap() error { return ctrlreconcile.TerminalError(nil) }

// WaitingError is returned if there is nothing to do but to wait: a child is not ready yet, is being deleted, belongs
// to a former owner (a deleted owner of the same name), or has been written too often (see [ChildSet]). Find it with
// errors.As. Nothing has failed, so log it as information at most.
//
// Its reason is one of these:
//
//   - ChildTerminating, until an object is deleted;
//   - DependencyNotReady, while a child waits for another one ([Child.After]);
//   - ReferenceNotFound, while an object that an input reads does not exist ([From]);
//   - Recreating, after an object was deleted to be created again ([Recreate], [RunOnce], [ExpandVolumes]);
//   - WriteLoop, while a write is delayed;
//   - KindNotServed and SchemaNotServed, for a moment while a kind ceases or begins to be served ([IfServed]);
//   - JobRunning and FormerPodsRunning, for a Job of [RunOnce];
//   - ClaimNotBound, for a StatefulSet of [ExpandVolumes];
//   - the reason why a child is not ready, by its condition ([ReadyWhen]) or by the rules of kstatus.
//
// For several children it is the reason of the first one. ReferenceNotFound precedes the others.
type WaitingError struct {
	reason, message string
	after           time.Duration
}

func (e *WaitingError) Error() string { return e.message }

// Waiting returns the reason for a condition that shows the error, and the delay after which to reconcile again. The delay
// is zero if an event of the child triggers the next reconcile.
func (e *WaitingError) Waiting() (reason string, after time.Duration) { return e.reason, e.after }
