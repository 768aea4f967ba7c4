// Package ownedresources creates, applies and prunes the objects that another object owns, its children. A function
// builds each child from the owner. If the live children are as the functions build them, no request is sent.
//
//	reconcile.For[*cachev1.Memcached](mgr,
//		reconcile.Named("workload", ownedresources.Ensure(
//			ownedresources.Build(deployment),
//			ownedresources.Build(service),
//		)),
//	).Complete()
//
//	func deployment(m *cachev1.Memcached) *appsv1.Deployment {
//		d := ownedresources.NewDeployment(m, nil, corev1.Container{Name: "memcached", Image: m.Spec.Image})
//		d.Spec.Replicas = &m.Spec.Size
//		return d
//	}
//
// [Ensure] returns a step for package reconcile, with its watches. [Apply] is a plain function for an existing
// reconciler. [Diff] shows what Apply would do. [NewDeployment], [NewService] and the other builders return objects
// with good defaults. [ObjectMeta] and [PodTemplate] serve kinds that have no builder. [ValidateName] and
// [ValidateServicePorts] find what the API server would refuse.
//
// # What can be owned
//
// A [Child] is a pure function of its owner and of declared inputs:
//
//   - [Build] builds one object or none, [BuildEach] a list, and [BuildApply] an apply configuration. [Child.Kind] is for a kind
//     without a Go type.
//   - [BuildFrom] also builds from an [Input]: from objects that [From] reads, from their versions ([VersionHash]) or
//     contents ([ContentHash]), from live objects of other children ([Child.Live], [Child.LiveEach]), or from several of these
//     ([Combine]). [Child.KeepWhileMissing] applies the child while one of these objects is missing.
//   - [Child.After] sets an order, and [ChildSet.RemoveInOrder] keeps it when the owner is deleted. [Child.ReadyWhen] names
//     the condition that makes a child ready.
//   - [Child.IfServed] is for kinds that the API server may not serve.
//   - [Child.Anywhere] is for objects in other namespaces, and for cluster-scoped ones.
//   - [Child.Retain] keeps objects when the owner is deleted.
//   - [Child.Generate] fills keys of a Secret with random values, once.
//   - [Child.RunOnce] runs a Job once for each content.
//   - [Child.ExpandVolumes] enlarges the volumes of a StatefulSet.
//
// [Child.Adopt], [Child.AdoptRetained], [Child.Recreate], [Child.CreateOnly] and [Child.FormerManagers] change how a child is written.
//
// # What happens to one object
//
//   - An object that is absent is created by POST. A server-side apply could create it too, but would take over an
//     object of that name which the cache does not show.
//   - An object whose controller reference has the owner's UID is ours. If it is not as desired, it is applied by
//     server-side apply, with preconditions on its UID and its resource version. Before the first apply after a POST,
//     the fields that the POST's entry in managedFields owns are moved to the apply's entry. Otherwise fields that are
//     no longer desired would stay for ever.
//   - An object that has another controller, or none, is not touched, and the error is an [OwnershipError], which names
//     the controller. The options [Child.Adopt] and [Child.AdoptRetained] allow the operator to take over an object without a controller.
//   - While an object is being deleted, the error is a [WaitingError]. The event of its deletion triggers the next
//     reconcile.
//   - While the controller of an object is a former owner, the error is a [WaitingError] too: the garbage collector
//     deletes the object. If it has not done so after a minute, and the object has no other owner, a [ChildSet] deletes
//     it.
//   - A child with the option [Child.Anywhere] or [Child.Retain] has no owner reference. Instead it has a mark: a label and annotations that
//     name the object itself, and the owner with its UID. An object with such a mark is ours. Objects that a former owner has left are
//     deleted, unless they are retained.
//
// # When an object is applied
//
// An object is applied if the hash in its annotation opblocks.dev/applied is not the hash of what would be sent, or if
// the live object does not cover what is desired. Both are checked with the object in the cache, without a dry run or a
// read. Fields that others set and fields that the API server defaults are not a difference. Items of lists are matched
// by the keys in the API's own schema. A change of a child's status sends no request.
//
// After a write, the API server's answer may differ from what was sent: the API server or an admission plug-in has
// rewritten some fields. Such a rewritten difference is not a reason to send the same again. The metric
// opblocks_settled_differences counts children that have one.
//
// The process remembers rewritten differences. A new process does not, and Apply does not. So a hash of these
// differences is stored in the annotation by a second write. The differences are known only after the first write: no
// schema shows all defaults, nor what a plug-in does. The second write is sent only if the hash has changed. A zero that the API server
// drops, because its Go type has no pointer there, is not a difference. So most objects never need a second write.
//
// # When an apply is refused
//
// Defaults and fields of others may contradict what is desired: the parameters of another strategy, the previous source of a volume, an
// item that has our node port. Dry runs find these fields, and one write removes them, with the live resource version as precondition.
// Other fields of others stay. Only if that write is refused too does [Child.Recreate] delete the object.
//
// # What is sent
//
// POST and apply send everything in the object, except its status, the metadata that the API server owns, nulls, and
// empty structs that are not behind a pointer. Nulls are sent in raw JSON, and in the fields of an unstructured custom
// resource that are nullable or have no schema, since null may be a value there. A field that is a nil pointer is not
// sent: if replicas are unset, an autoscaler may set them.
//
// The field manager of every write is the kind and the group of the owner in lower case, such as
// memcached.cache.example.com.
//
// # Words
//
//   - The mark of a child is a label and annotations that name its owner, instead of an owner reference.
//   - A record is an annotation in which this package stores something, such as opblocks.dev/applied.
//   - A trigger is the text that the function rotateOn of [Child.Generate] returns. If it changes and is not empty, a new value is generated.
//   - A rewritten difference is one that the API server or an admission plug-in made.
//   - An owner is settled if all its children are as desired, so that nothing has to be done for it.
//   - A former owner is a deleted owner of the same name.
package ownedresources
