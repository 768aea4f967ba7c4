// Package ownedresources makes the API server hold what an object owns, with no
// request when it already does.
//
// [Apply] is the block on its own: a plain function for an existing reconciler.
// [Ensure] wraps it as a step of package reconcile, with the watches it needs.
// [NewDeployment] and [NewService] give objects to apply, with good defaults.
//
// # What happens to one object
//
//   - It is absent: it is created by POST. Creating by server-side apply would take
//     over an object of that name which the cache does not show.
//   - It is ours, that is, its controller reference has our owner's UID: it is applied
//     server-side, if needed, with a precondition on its UID. Before the first apply
//     after a POST the field manager's entry is migrated, or fields that are no longer
//     wanted would stay for ever.
//   - It is somebody else's, or nobody's: it is left alone, and the error
//     ([OwnershipError]) says whose it is.
//   - It is being deleted, or belongs to a deleted namesake of the owner: the error is
//     a [WaitingError], and the event of its deletion brings the next pass.
//
// # When an apply is needed
//
// When the hash in its annotation opblocks.dev/applied is not that of what we would
// send, or the live object does not cover what we want. Both are found out locally,
// from the cache: no dry run, no read. Fields that others set, and those that the API
// server defaults, are no difference; lists are compared by the keys of the API's own
// schema. A child's status costs nothing.
//
// Where an admission plug-in rewrites what we send, that difference stood in the answer
// to our last request, and is not fought over. This is remembered in memory: a restart
// costs one request for such a child.
//
// # What is sent
//
// All of the object but its status, what the API server owns, nulls, and empty structs
// that are not behind a pointer. A nil pointer means no opinion: with replicas unset, an
// autoscaler may have them.
package ownedresources
