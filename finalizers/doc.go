// Package finalizers runs cleanup before an object is deleted.
//
// [Ensure] adds a finalizer to an object. [Finalize] runs the cleanup of an object that is being deleted, and then
// removes the finalizer. If an object has several finalizers, their cleanups run in the reverse order of the list. [Replace] renames a
// finalizer. [Remove] removes a finalizer without cleanup. All are plain functions that take a client.Client, and work in any reconciler:
//
//	deleted, err := finalizers.Finalize(ctx, c, user, finalizers.Finalizer{
//		Name: "example.com/account", Cleanup: func(ctx context.Context) error { return r.accounts.Drop(ctx, user.Status.Account) },
//	})
//	if err != nil || deleted {
//		return ctrl.Result{}, err
//	}
//	if _, err := finalizers.Ensure(ctx, c, user, "example.com/account"); err != nil {
//		return ctrl.Result{}, err
//	}
//	// From here on the reconciler may create what the cleanup removes.
//
// Facts to know:
//   - Add the finalizer before the first effect outside of the cluster. If you add it later and the object is
//     deleted before that, the object disappears at once, and nobody removes what was created for it.
//   - The API server refuses new finalizers on an object that is being deleted. [Ensure] then returns [ErrBeingDeleted],
//     without a request. Create nothing outside of the cluster for such an object.
//   - If nothing has to change, no request is sent. Otherwise one merge patch is sent, which holds the UID and the
//     resource version that were read. It therefore never changes a later object with the same name, and never removes
//     another finalizer. If the object was changed since it was read, the error is a conflict (apierrors.IsConflict):
//     read the object again and retry.
//   - A cleanup must be idempotent. If the thing to remove is already gone, it must return nil. It runs again after a
//     crash, after a conflict, and if the cache still shows the object with the finalizer.
//   - Finalizers of other controllers may be removed before or after this one. The API server guarantees no order, and any
//     client may reorder the list.
//   - Removing a finalizer succeeds if the finalizer or the whole object is already gone.
//
// The client needs the permission to patch the object's kind. It needs no permission on the subresource finalizers.
package finalizers
