// Package ownedresources creates, applies and prunes the objects that another object owns. It sends no request if they are
// already as desired.
//
// [Apply] is a plain function for an existing reconciler. [Ensure] returns a step for package reconcile, with its watches.
// [NewDeployment], [NewService] and the other builders return objects with good defaults; [ObjectMeta] and [PodTemplate]
// serve kinds that have no builder. [ValidateServiceName] and the functions beside it find what the API server would
// refuse. [Diff] shows what Apply would do.
//
// # What can be owned
//
// A [Child] is a pure function of its owner and of declared inputs:
//
//   - [Build] builds one object or none, [BuildEach] a list, [BuildApply] an apply configuration, [BuildUnstructured] a kind
//     without a Go type.
//   - [BuildFrom] builds from an [Input] too: objects that [From] reads, their versions ([VersionHash]) or contents ([ContentHash]), live objects of other
//     children ([Live], [LiveEach]), or two of these ([Both]). [KeepWhileMissing] applies the child while one is missing.
//   - [Child.After] sets an order, and [ChildSet.RemoveInOrder] keeps it when the owner is deleted. [ReadyWhen] names the
//     condition that makes a child ready.
//   - [IfServed] is for kinds that the API server may not serve.
//   - [Anywhere] is for objects in other namespaces, and for cluster-scoped ones.
//   - [Retain] keeps objects when the owner is deleted.
//   - [Generate] fills keys of a Secret with random values, once.
//   - [RunOnce] runs a Job once for each content.
//   - [ExpandVolumes] lets the volumes of a StatefulSet grow.
//
// [Adopt], [AdoptRetained], [Recreate], [CreateOnly] and [FormerManagers] change how a child is written.
//
// # What happens to one object
//
//   - It is absent: it is created by POST. Creating it by server-side apply would take over an object of that name which
//     the cache does not show.
//   - It is ours, which means that its controller reference has the owner's UID: it is applied by server-side apply if it
//     differs, with preconditions on its UID and its resource version. Before the first apply after a POST, the fields that
//     the POST's entry in managedFields owns are moved to the apply's entry. Otherwise fields that are no longer desired
//     would stay for ever.
//   - It has another controller, or none: it is left alone, unless it has none and the option [Adopt] or [AdoptRetained]
//     allows it. The error is an [OwnershipError], which names the controller.
//   - It is being deleted, or belongs to a deleted object that had the owner's name: the error is a [WaitingError], and the
//     event of its deletion triggers the next reconcile. If the garbage collector has not deleted the object of the deleted
//     owner after a minute, and it has no other owner, a [ChildSet] deletes it.
//   - It is a child with the option [Anywhere] or [Retain]: it has no owner reference. It is ours if its annotations name the
//     object itself, and the owner with its UID. What is left of a deleted object that had the owner's name is deleted, unless
//     it is retained.
//
// # When an object is applied
//
// An object is applied if the hash in its annotation opblocks.dev/applied is not the hash of what would be sent, or if the
// live object does not cover what is desired. Both are checked with the object in the cache, without a dry run or a read.
// Fields that others set and fields that the API server defaults are no difference. Items of lists are matched by the keys
// in the API's own schema. A change of a child's status sends no request.
//
// The API server or an admission plug-in may rewrite what is sent. Then the answer to the last write has the same
// difference, and the difference is tolerated. The metric opblocks_settled_differences counts such children. The annotation
// records a hash of the differences, so that neither a restart nor Apply, which remembers nothing, sends the same again.
//
// The record is written after the answer, by a second write, since no rule could replace it: what the API server makes of a
// zero depends on the field's type, on defaults that no schema shows, and on its plug-ins. A write starts with the record of
// the write before, so a second one is sent only if the record changes. One rule spares most records: a zero that is stored
// as absent, because the API server's Go type has no pointer there, is no difference.
//
// # When an apply is refused
//
// Defaults and fields of others may contradict what is desired: the parameters of another strategy, the former source of a
// volume, an item that has our node port. They are found by dry runs and removed in one write, with the live resource version
// as precondition. Other fields of others stay. Only if that is refused too does [Recreate] delete the object.
//
// # What is sent
//
// Everything in the object is sent, by POST and by apply alike, except its status, the metadata that the API server owns, nulls,
// and empty structs that are not behind a pointer. Nulls are sent in raw JSON, and in the fields of an unstructured custom
// resource that are nullable or have no schema, since null may be a value there. A field that is a nil pointer is not sent: if replicas are unset, an autoscaler may set them.
//
// The field manager of every write is the kind and the group of the owner in lower case, such as
// memcached.cache.example.com.
package ownedresources
