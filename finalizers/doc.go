// Package finalizers runs cleanup before an object goes.
//
// [Ensure] puts a finalizer on an object, [Finalize] runs the cleanup of an object that is being deleted and then takes the
// finalizer away, [Remove] takes it away without cleanup. [Ordered] is several finalizers of one object in an order.
// They are plain functions over a client.Client, for any reconciler:
//
//	outcome, err := finalizers.Finalize(ctx, c, user, "example.com/account", func(ctx context.Context) error {
//		return r.accounts.Drop(ctx, user.Status.Account)
//	})
//	if err != nil || outcome != finalizers.NotDeleted {
//		return ctrl.Result{}, err
//	}
//	if _, err := finalizers.Ensure(ctx, c, user, "example.com/account"); err != nil {
//		return ctrl.Result{}, err
//	}
//	// From here on the reconciler may create what only the cleanup can remove.
//
// The facts:
//   - The finalizer has to be on the object before the first effect outside of the cluster. Added afterwards, an object
//     that is deleted in between is gone at once, and what was created for it stays for ever.
//   - The API server refuses new finalizers on an object that is being deleted; so does Ensure ([ErrBeingDeleted]), without
//     asking it. Nothing outside may be created for such an object.
//   - No request is sent when nothing has to change. Otherwise it is one patch that holds the UID and the resource version
//     that were read: it never touches a namesake that was created since, and never another finalizer. Whoever loses a
//     race gets a conflict (apierrors.IsConflict): read again and retry.
//   - Cleanup has to be idempotent, and what is already gone has to be success for it. It runs again after a crash, after
//     a conflict, and when the cache still shows what is done.
//   - Other finalizers of the object may go before or after ours: the API server keeps no order, and any client may
//     rearrange the list.
//   - Removing is success when the finalizer or the whole object is gone.
package finalizers
