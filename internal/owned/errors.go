package owned

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/opblocks/opblocks/internal/record"
)

// Reasons of a [WaitingError].
const (
	ReasonTerminating        = "ChildTerminating"   // an object is being deleted
	ReasonDependencyNotReady = "DependencyNotReady" // a child that this child comes after is not ready
	ReasonReferenceNotFound  = "ReferenceNotFound"  // an object that an input reads does not exist
)

// OwnershipError is returned for an object that this owner must not write, because it belongs to another owner or to none.
type OwnershipError struct {
	// Kind of the object.
	Kind string
	// Name of the object.
	Name types.NamespacedName
	// Owner is the object's controller reference, or nil if it has none. If the object has annotations that name another owner instead (see
	// [ownedresources.Child.Anywhere]), Owner has the kind, the name and the UID of that owner.
	Owner *metav1.OwnerReference
	// OwnerNamespace is the namespace of the owner that these annotations name. It is empty if that owner is cluster-scoped. It is also empty
	// for a controller reference, whose owner is in the namespace of the object or cluster-scoped.
	OwnerNamespace string
	// Retained is whether the object belonged to a former owner (a deleted owner of the same name), and
	// [ownedresources.Child.Retain] has kept it.
	Retained bool

	history string // what the annotations of an object without a controller say about its past; empty if they say nothing
	remedy  string // what the user can do about it
}

// uncontrolled returns the error for a live object that has no controller. Anybody may have forged the object's annotations. So they change
// only the text of the error, and not the decision.
func (o *Owner) uncontrolled(k *Kind, live client.Object) *OwnershipError {
	e := &OwnershipError{Kind: k.GVK.Kind, Name: client.ObjectKeyFromObject(live)}
	annotations := live.GetAnnotations()
	switch writtenFor := annotations[record.OwnerName]; {
	case annotations[record.Retained] == "true":
		e.history = "was retained when a former owner was deleted, and was copied or restored since, so it may be the only copy of what it holds"
		e.remedy = "let the operator take it over with Adopt, or choose another name"
	case o.hasWritten(live):
		e.history = "is not controlled by anything, and was written for an owner of this name: it was restored from a backup, or somebody has removed its owner reference"
		e.remedy = "let the operator take it back with AdoptRestored, or choose another name"
	case writtenFor != "" && writtenFor != o.ObjectName().String():
		e.history = "is not controlled by anything, and was written for " + writtenFor
		e.remedy = "let the operator take it over with Adopt, or choose another name"
	}
	return e
}

func (e *OwnershipError) Error() string {
	if e.history != "" {
		return fmt.Sprintf("%s %s %s: it is left alone; %s", e.Kind, e.Name, e.history, e.remedy)
	}
	if e.Owner == nil {
		return fmt.Sprintf("%s %s exists and is not controlled by anything: it is left alone; choose another name, or let the operator take it over with Adopt", e.Kind, e.Name)
	}
	name := types.NamespacedName{Namespace: e.OwnerNamespace, Name: e.Owner.Name}
	owner := e.Owner.Kind + " " + strings.TrimPrefix(name.String(), "/")
	if e.Retained {
		return fmt.Sprintf("%s %s was retained when a former %s was deleted, so it may be the only copy of what it holds: it is left alone; let the operator take it over with AdoptRetained, or choose another name", e.Kind, e.Name, owner)
	}
	return fmt.Sprintf("%s %s belongs to %s: it is left alone; choose another name", e.Kind, e.Name, owner)
}

// Reason returns the reason for a condition that reports the error: OwnedByAnother.
func (*OwnershipError) Reason() string { return "OwnedByAnother" }

// NotCachedError is returned for an object that exists, but that the manager's cache does not show. It is also returned for an object that
// is not created because the cache would not show it.
type NotCachedError struct {
	// Kind of the object.
	Kind string
	// Name of the object.
	Name types.NamespacedName
	// Selector is the selector of the cache, if the object was not created because the selector leaves it out. Otherwise it is empty.
	Selector string
}

func (e *NotCachedError) Error() string {
	if e.Selector != "" {
		return fmt.Sprintf("%s %s is not created: the cache would never show it, since its labels do not match %q, which is asked for by the option "+
			"Cache.ByObject or Cache.DefaultLabelSelector of the manager; set these labels in the function that builds it, or widen the option", e.Kind, e.Name, e.Selector)
	}
	return fmt.Sprintf("%s %s is not in the cache, although it exists: the cache's selector or namespaces leave it out; "+
		"set the labels that the selector asks for, or widen the cache", e.Kind, e.Name)
}

// Reason returns the reason for a condition that reports the error: NotInCache.
func (*NotCachedError) Reason() string { return "NotInCache" }

// FailedError is returned for a child that does not become ready unless something changes.
type FailedError struct{ reason, message string }

// NewFailed returns a [*FailedError] with the reason for a condition.
func NewFailed(reason, message string) *FailedError {
	return &FailedError{reason: reason, message: message}
}

func (e *FailedError) Error() string { return e.message }

// Reason returns the reason for a condition that reports the error. It is the reason of the child's own condition. If the child has no such
// reason, it is Failed, or JobFailed for a Job of [ownedresources.Child.RunOnce].
func (e *FailedError) Reason() string { return e.reason }

// Unwrap returns a controller-runtime TerminalError.
func (*FailedError) Unwrap() error { return ctrlreconcile.TerminalError(nil) }

// WaitingError is returned if the operator can only wait.
type WaitingError struct {
	reason, message string
	after           time.Duration
}

// NewWaiting returns a [*WaitingError]. after is the delay before the next reconcile. It is 0 if an event triggers the next reconcile.
func NewWaiting(reason string, after time.Duration, message string) *WaitingError {
	return &WaitingError{reason: reason, message: message, after: after}
}

// WithDelay returns the error with another delay.
func WithDelay(wait *WaitingError, after time.Duration) *WaitingError {
	return NewWaiting(wait.reason, after, wait.message)
}

func (e *WaitingError) Error() string { return e.message }

// Waiting returns the reason for a condition that reports the error, and the delay before the next reconcile. The delay is 0 if an event of
// the child triggers the next reconcile.
func (e *WaitingError) Waiting() (reason string, after time.Duration) { return e.reason, e.after }
