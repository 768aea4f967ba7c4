package ownedresources

import "github.com/opblocks/opblocks/internal/owned"

// OwnershipError is returned if an object has the desired name, and another controller or no controller. The object was not changed.
// Find the error with errors.As:
//
//	if foreign, ok := errors.AsType[*ownedresources.OwnershipError](err); ok { … }
//
// Kind and Name are the kind and the name of the object. Owner is its controller reference, or nil if it has none.
//
// An object may name another owner by a label and annotations instead (see [Child.Anywhere]). Then Owner has the kind, the name and
// the UID of that owner, and OwnerNamespace has its namespace. Retained is true if [Child.Retain] has kept the object of a former
// owner (a deleted owner of the same name).
//
// Reason returns OwnedByAnother, the reason for a condition that shows the error.
type OwnershipError = owned.OwnershipError

// NotCachedError is returned if the cache does not contain an object, or would not contain it after its creation. Find it with
// errors.As. There are two cases:
//
//   - The cache still does not contain a child that is as desired, or an object that an input reads ([From]), a minute after the object was
//     created. Each reconcile then costs one or two requests, and a change of the object triggers none.
//   - A child is not created, because its labels do not match the selector of the cache.
//
// Its fields are the Kind and the Name of the object, and in the second case the Selector of the cache. Reason returns NotInCache.
type NotCachedError = owned.NotCachedError

// FailedError is returned for a child that kstatus reports as failed: it does not become ready unless something changes. Examples are a
// Job that has failed, and a Deployment that has exceeded its progress deadline. Find it with errors.As.
//
// It wraps a controller-runtime TerminalError, so controller-runtime retries neither it nor any error that is joined with it. An
// event of the child triggers the next reconcile. (Package reconcile retries the joined errors.)
//
// Reason returns the reason of the child's own condition. Without such a reason it is Failed, or JobFailed for a Job of [Child.RunOnce].
type FailedError = owned.FailedError

// WaitingError is returned if the reconcile can only wait: a child is not ready yet, is being deleted, belongs to a former
// owner (a deleted owner of the same name), or has been written too often (see [ChildSet]). Find it with errors.As. Nothing has
// failed, so log it as information at most.
//
// Its reason is one of these:
//
//   - ChildTerminating, until an object is deleted;
//   - DependencyNotReady, while a child waits for another one ([Child.After]);
//   - ReferenceNotFound, while an object that an input reads does not exist ([From]);
//   - Recreating, after an object was deleted to be created again ([Child.Recreate], [Child.RunOnce], [Child.ExpandVolumes]);
//   - WriteLoop, while a write is delayed;
//   - KindNotServed and SchemaNotServed, for a moment while a kind ceases or begins to be served ([Child.IfServed]);
//   - JobRunning and FormerPodsRunning, for a Job of [Child.RunOnce];
//   - ClaimNotBound, for a StatefulSet of [Child.ExpandVolumes];
//   - the reason why a child is not ready, by its condition ([Child.ReadyWhen]) or by the rules of kstatus.
//
// If several children wait, the reason of the first one is returned. ReferenceNotFound precedes the other reasons.
//
// Waiting returns the reason, and the delay after which to reconcile again. The delay is zero if an event of the child triggers
// the next reconcile.
type WaitingError = owned.WaitingError
