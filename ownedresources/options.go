package ownedresources

import "github.com/opblocks/opblocks/internal/owned/set"

// FormerManagers takes over the fields of a child that an older operator wrote with Create and Update, under one of these
// field managers. The next apply then removes fields that the older operator set and that are not desired any more.
// Without this option such fields stay for ever.
//
// client-go's default field manager is the name of the binary: "manager" in the images of kubebuilder and operator-sdk,
// "main" or "__debug_bin" of an operator that was run from its sources.
func (c *Child[T, C]) FormerManagers(names ...string) *Child[T, C] {
	return c.change("FormerManagers", func(c *set.Child) { c.Options.FormerManagers = append(c.Options.FormerManagers, names...) })
}

// Adopt takes over an object that has the child's name and no controller. Without this option such an object is not changed, and
// the error is an [*OwnershipError]. An object that has another controller is not changed, with one exception: if that controller
// is a former owner (a deleted owner of the same name), the garbage collector deletes the object, or [Ensure] does after a minute.
// An object that names its owner by a label and annotations instead of an owner reference ([Child.Anywhere], [Child.Retain]) is
// taken over if that owner has the same kind, and the API server shows that it is gone.
//
// Adopt is for migrations. It takes over whatever has the name, so a user who may only choose the owner's name can make the
// operator change, and later delete, an object of somebody else. [Child.AdoptRetained] takes over only objects that [Child.Retain]
// has kept.
func (c *Child[T, C]) Adopt() *Child[T, C] {
	return c.change("Adopt", func(c *set.Child) { c.Options.Adopt = true })
}

// AdoptRetained takes over an object that [Child.Retain] has kept when a former owner (a deleted owner of the same
// name) was deleted. The object has no controller, and the annotation opblocks.dev/retained. Its annotations name the
// object itself, this set (opblocks.dev/set), and an owner with the kind, the namespace and the name of the present
// owner. The object is taken over only if the API server shows that the former owner is gone. Any other object is not
// changed, and the error is an [*OwnershipError].
//
// Whoever may write the object can also write such annotations. They gain nothing by that: they can already change or
// delete what the operator keeps under this name.
func (c *Child[T, C]) AdoptRetained() *Child[T, C] {
	return c.change("AdoptRetained", func(c *set.Child) { c.Options.AdoptRetained = true })
}

// AdoptRestored takes back an object of the child's name that was restored from a backup, together with its owner or before it. The
// restored owner has a new UID, which the object does not name. The object is taken back if all of these hold:
//
//   - It has no controller, or its controller is the former owner: an object with the kind, the namespace and the name of the present
//     owner, and another UID.
//   - If a label and annotations name its owner instead ([Child.Anywhere], [Child.Retain]), they name the former owner.
//   - If it names the former owner in one of these ways, the API server shows that the former owner is gone.
//   - Its annotations say that this set has written it (opblocks.dev/set and opblocks.dev/applied), for an owner of this kind, namespace and
//     name (opblocks.dev/owner-name). Old versions of this module did not write opblocks.dev/owner-name. An object without this annotation
//     is taken back because of the set's name alone.
//   - It is not being deleted.
//
// Each write has the UID and the resource version as preconditions. Any other object is not changed, and the error is an [*OwnershipError].
//
// As soon as the garbage collector sees an object with a reference to an owner that is gone, it deletes the object. Such an object is taken
// back only if the operator is faster, so restore the owner first, or restore without owner references.
//
// This option also has an effect without a backup. Suppose that an owner is deleted and created again under its name. If the operator is
// faster than the garbage collector, the new owner may also get the children of the former one. See the guide "Backup and restore".
//
// Whoever may write the object can also write such annotations: see [Child.AdoptRetained].
func (c *Child[T, C]) AdoptRestored() *Child[T, C] {
	return c.change("AdoptRestored", func(c *set.Child) { c.Options.AdoptRestored = true })
}

// Recreate deletes the child and creates it again if the API server refuses a change, as it does for immutable fields. All contents of the
// deleted child are lost. Until the old child is gone, the error is a [*WaitingError].
//
// You do not need Recreate if fields that others have set in the live object contradict the desired fields: such fields are removed in any
// case.
//
// Before the deletion, a dry run checks whether the API server would accept the new object. The new object may still differ from what is
// desired, and the API server may refuse to change it too. Then the new object stays, and the error is the refusal. As long as the desired
// content stays the same, a process does not delete an object that it has created in this way. If another writer deletes the new object and
// creates another object in its place, Recreate deletes that object too, but with longer and longer delays: see [ChildSet].
func (c *Child[T, C]) Recreate() *Child[T, C] {
	return c.change("Recreate", func(c *set.Child) { c.Options.Recreate = true })
}

// ReadyWhen names a condition, such as "Available", and returns the child. An object of the child is ready when its status has this
// condition and the condition is True. If the condition has an observedGeneration, it must be the object's generation. By default the
// rules of kstatus decide.
func (c *Child[T, C]) ReadyWhen(conditionType string) *Child[T, C] {
	return c.change("ReadyWhen", func(c *set.Child) { c.Options.ReadyCondition = conditionType })
}

// Anywhere allows the child's objects to be in other namespaces than the owner, and to be cluster-scoped. The garbage collector deletes
// such objects at once if they have an owner reference to a namespaced owner. So they have no owner reference. Instead they are marked as
// children by the label opblocks.dev/owner-uid and by annotations that name the owner. This also holds for objects in the owner's own
// namespace. The events of all these objects trigger a reconcile of the owner.
//
// [ChildSet.Finalize] deletes the objects when the owner is deleted. The owner has a finalizer for that: see [ChildSet.FinalizerName]. That
// holds also if the owner is deleted while the operator is down. If somebody removed the finalizer from a deleted owner, the objects stay
// until an owner of the same name is created. Its set then deletes them, and waits until they are gone.
//
// An object is deleted only if its annotations name the object itself and an owner, and its managed fields name the operator's field
// manager. In addition, the API server has to show that this owner is deleted, or the owner does not desire the object any more. So a
// copy of an object is not deleted, for example a copy that a backup tool restored under another name. An object of another owner is not
// changed either, and the error is an [*OwnershipError].
//
// The operator's cache has to cover the namespaces (Cache.DefaultNamespaces of the manager's options), and its role needs the permissions
// there. For an object in any other namespace, an error is returned. If a namespace is being deleted, the set waits until it is gone.
//
// If the owner is deleted with orphan propagation (kubectl delete --cascade=orphan), the objects stay, and lose the label and the
// annotations. The API server shows the orphan propagation only until the garbage collector has finished, which takes milliseconds. An
// operator that is down at that time deletes the objects.
//
// Limits: if the operator is deleted together with the owners, nobody removes their finalizers, so delete the owners first. A release that
// does not use the option any more neither deletes such objects nor removes the finalizer: keep a [Build] with the option whose function
// returns nil, as long as owners exist that an earlier release reconciled.
func (c *Child[T, C]) Anywhere() *Child[T, C] {
	return c.change("Anywhere", func(c *set.Child) { c.Options.Anywhere = true })
}

// ExpandVolumes enlarges the volumes of a StatefulSet if its volumeClaimTemplates request more storage. Without this
// option the API server refuses any change of volumeClaimTemplates.
//
// If a claim template requests more storage than the live template, all PersistentVolumeClaims of the StatefulSet that
// request less are changed first, also the claims of pods that were removed by scaling down. Then the StatefulSet is
// deleted without its pods, and created again; the new one adopts the pods, which keep running. If the API server
// refuses a larger claim, because its StorageClass does not allow expansion, nothing is deleted, and the error contains
// the API server's message. While a claim is not bound, the error is a [*WaitingError] with the reason ClaimNotBound:
// only bound claims can be enlarged.
//
// A claim template that requests less than the live one is an error (apierrors.IsInvalid), and the StatefulSet stays as
// it is: volumes cannot shrink. Other changes of claim templates are refused by the API server, as without the option.
//
// If the builder leaves spec.replicas unset, because an autoscaler sets it, the new StatefulSet gets the replicas of the
// deleted one. Other fields that somebody else has set on the StatefulSet are lost, such as the annotation of kubectl
// rollout restart in its pod template. If such a field is in the pod template, the pods are replaced, by the update
// strategy.
//
// While the StatefulSet is missing, an annotation of the owner (expand-volumes.opblocks.dev/) names it. Its pods carry
// the same annotation, and the label and annotations of a child: opblocks.dev/owner-uid, opblocks.dev/owner and
// opblocks.dev/object. The set has a finalizer: see [ChildSet.FinalizerName]. If the owner is deleted while the
// StatefulSet is missing, the pods that carry all of these and have no controller are deleted. Claims are not deleted.
//
// The operator needs the verb patch on the owner; list and patch on persistentvolumeclaims; and list, patch and delete
// on pods.
func (c *Child[T, C]) ExpandVolumes() *Child[T, C] {
	return c.change("ExpandVolumes", func(c *set.Child) { c.Options.ExpandVolumes = true })
}

// RunOnce runs a Job once for each content, also if the Job is deleted after its time to live or the operator crashes. The content is the
// spec of the Job without backoffLimit, activeDeadlineSeconds, parallelism, suspend and ttlSecondsAfterFinished. The child is ready when
// the Job is complete, and stays ready when the Job is gone. So other children can come after it ([Child.After]).
//
//	migration := ownedresources.Build(migrationJob).RunOnce()
//	ownedresources.Ensure(migration, ownedresources.Build(deployment).After(migration))
//
// If the content changes, the Job is deleted, also while it runs. When its pods are gone, the new Job is created, so two Jobs never exist
// at once. If the content changes back to an earlier one, the Job runs again.
//
// The new Job also waits for the pods if somebody has deleted the Job without them. These pods have the label
// batch.kubernetes.io/job-name of this Job, and no controller or one of this name. While such a pod runs, the error is a [*WaitingError]
// with the reason FormerPodsRunning, which names the pod. The set looks again after 10 seconds.
//
// If a Job fails, the error is a [*FailedError], and the Job is not repeated, not even after its time to live. It is repeated when the
// content changes or somebody deletes the failed Job. A Job that is deleted while it runs is created again. To repeat a Job that has
// completed, or that has failed and is gone, delete it if it is still there, and remove the owner's annotation run-once.opblocks.dev/ with
// the name of the Job.
//
// When the Job is not desired any more, it is deleted, and the annotation is removed. If it is desired again later, it runs again, also
// with the same content.
//
// The Job is created suspended. It is started when the annotation of the owner names it. The annotation is written with the owner's
// resource version as precondition. So a process that sees an old version of the owner, or a replica that is not the leader any more,
// cannot start it again. If the Job sets suspend itself, as a Job for a queue does, RunOnce does not change suspend.
//
// The Job has the finalizer opblocks.dev/run-once until the owner's annotation says how it has ended. The set has a finalizer on the
// owner, so that it can remove the Job's finalizer when the owner is deleted: see [ChildSet.FinalizerName]. The operator needs the verbs
// patch on the owner and list on pods.
//
// RunOnce decides when the child is ready and when the Job is replaced, so it cannot be combined with [Child.ReadyWhen] and
// [Child.Recreate].
func (c *Child[T, C]) RunOnce() *Child[T, C] {
	return c.change("RunOnce", func(c *set.Child) { c.Options.RunOnce = true })
}

// IfServed leaves the child out while the API server does not serve its kind, such as a ServiceMonitor where the Prometheus operator is not
// installed. While it is left out, the child is neither built nor read nor pruned, and counts as ready: it causes no error of
// [ChildSet.Reconcile], and children that come after it do not wait for it. When the kind becomes served or ceases to be, its watch starts
// or stops without a restart of the operator, and all owners are reconciled.
//
// If a conditionType is given, package reconcile sets a condition of this type, which shows whether the child is left out. Ready does not
// depend on the condition. While the child is left out, the condition is False with the reason KindNotServed. While the child is not ready,
// it is False with the reason NotReady. Otherwise it is True with the reason KindServed. Several children may have the same type. By
// default no condition is set.
//
// A kind is also not served while its CustomResourceDefinition is being deleted, and if its version is not served. With
// the permissions list and watch for customresourcedefinitions a change takes effect within seconds. Without them, and
// for kinds of aggregated API servers, it takes up to a minute. The permissions for the kind itself can be granted
// before it exists. If list or watch is missing when the kind appears, the child stays left out with the reason
// KindNotWatched, and a manager of package reconcile ends with an error, as for any kind.
//
// All children of a kind in one manager need this option if one has it, and no controller of that manager may watch the kind in another
// way: when the kind ceases to be served, that other watch would end for ever. The event filter of a builder does not apply to the kind.
//
// Without a manager the RESTMapper of the client decides. Once it knows a kind, it never forgets it.
func (c *Child[T, C]) IfServed(conditionType ...string) *Child[T, C] {
	return c.change("IfServed", func(c *set.Child) {
		c.Options.IfServed = true
		c.Options.ServedConditions = append(c.Options.ServedConditions, conditionType...)
	})
}
