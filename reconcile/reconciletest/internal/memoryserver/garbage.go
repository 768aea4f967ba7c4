package memoryserver

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/memoryserver/kind"
)

// collectorOptions are the options of the garbage collector's writes.
var collectorOptions = writeOptions{manager: "kube-controller-manager", internal: true}

// CollectGarbage does all the work that the garbage collector and the namespace controller have at this moment, and reports whether it
// wrote anything. It deletes dependents whose owners are gone. It removes the finalizer of owners that waited for their dependents. If
// owners orphan their dependents, it removes the references to them. It empties namespaces that are being deleted. Objects with other
// finalizers stay until these are removed.
//
// The server never does this by itself.
func (s *Server) CollectGarbage() (changed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.collected != s.store.revision() && newCollector(s).collect() {
		changed = true
	}
	s.collected = s.store.revision()
	return changed
}

// collector does one round of the garbage collector over all objects.
type collector struct {
	server     *Server
	store      *store
	objects    []item               // the objects when the round began, sorted by kind and name, so that a run can be repeated
	dependents map[types.UID][]item // the objects that have owner references, by the owner's UID
}

func newCollector(s *Server) *collector {
	c := &collector{server: s, store: &s.store, objects: s.store.objects(), dependents: map[types.UID][]item{}}
	for _, i := range c.objects {
		for _, ref := range i.object.GetOwnerReferences() {
			c.dependents[ref.UID] = append(c.dependents[ref.UID], i)
		}
	}
	return c
}

// collect does the round, and reports whether it wrote anything.
func (c *collector) collect() bool {
	before := c.store.revision()
	for _, item := range c.objects {
		c.collectItem(item)
	}
	c.finishNamespaces()
	return c.store.revision() != before
}

// item is a stored object with its kind and its key.
type item struct {
	kind   *kind.Kind
	key    client.ObjectKey
	object client.Object
}

// objects returns all objects, sorted by kind and name.
func (s *store) objects() (items []item) {
	for _, t := range s.order {
		for _, r := range t.order {
			if v := r.latest(); v != nil {
				items = append(items, item{t.kind, r.key, v.object})
			}
		}
	}
	return items
}

func (c *collector) collectItem(i item) {
	v := c.store.find(i.kind, i.key)
	if v == nil || v.object.GetUID() != i.object.GetUID() {
		return // the round has deleted it already
	}
	i.object = v.object
	uid := i.object.GetUID()
	switch {
	case awaitsCollector(i.object, metav1.FinalizerOrphanDependents):
		for _, d := range c.dependents[uid] {
			c.removeOwnerReferences(d, func(ref metav1.OwnerReference) bool { return ref.UID == uid })
		}
		c.removeFinalizer(i, metav1.FinalizerOrphanDependents)
	case awaitsCollector(i.object, metav1.FinalizerDeleteDependents):
		if !slices.ContainsFunc(c.dependents[uid], func(d item) bool { return c.blocksOwner(d, uid) }) {
			c.removeFinalizer(i, metav1.FinalizerDeleteDependents)
		}
	case i.object.GetDeletionTimestamp() == nil && len(i.object.GetOwnerReferences()) > 0:
		c.collectDependent(i, len(c.dependents[uid]) > 0)
	}
}

// awaitsCollector reports whether an object is being deleted and has the given finalizer, which only the garbage collector removes.
func awaitsCollector(object client.Object, finalizer string) bool {
	return object.GetDeletionTimestamp() != nil && slices.Contains(object.GetFinalizers(), finalizer)
}

// blocksOwner reports whether a dependent still exists and blocks the deletion of its owner.
func (c *collector) blocksOwner(d item, owner types.UID) bool {
	v := c.store.find(d.kind, d.key)
	return v != nil && v.object.GetUID() == d.object.GetUID() && slices.ContainsFunc(v.object.GetOwnerReferences(),
		func(ref metav1.OwnerReference) bool {
			return ref.UID == owner && ptr.Deref(ref.BlockOwnerDeletion, false)
		})
}

type ownerState int

const (
	ownerPresent ownerState = iota
	ownerGone
	ownerWaiting // it is being deleted in the foreground, and waits for its dependents
)

// collectDependent deletes an object if all of its owners are gone or are being deleted in the foreground. If some owners stay, it removes
// the references to the others. owns reports whether the object has dependents itself.
func (c *collector) collectDependent(i item, owns bool) {
	stays, waits, leaves := false, false, map[types.UID]bool{}
	for _, ref := range i.object.GetOwnerReferences() {
		switch c.ownerState(i, ref) {
		case ownerPresent:
			stays = true
		case ownerWaiting:
			waits, leaves[ref.UID] = true, true
		case ownerGone:
			leaves[ref.UID] = true
		}
	}
	switch {
	case stays && len(leaves) == 0:
	case stays:
		c.removeOwnerReferences(i, func(ref metav1.OwnerReference) bool { return leaves[ref.UID] })
	case waits && owns:
		c.collectObject(i, metav1.DeletePropagationForeground)
	default:
		c.collectObject(i, metav1.DeletePropagationBackground)
	}
}

// ownerState returns the state of an owner. If the server does not have the owner's kind, the owner counts as present: the real collector
// does not delete its dependents either.
func (c *collector) ownerState(i item, ref metav1.OwnerReference) ownerState {
	gv, err := schema.ParseGroupVersion(ref.APIVersion)
	if err != nil {
		return ownerPresent
	}
	k := c.server.kinds.find(gv.WithKind(ref.Kind))
	if k == nil || k.Namespaced && i.key.Namespace == "" {
		return ownerPresent
	}
	owner := c.store.find(k, k.Key(i.key.Namespace, ref.Name))
	switch {
	case owner == nil || owner.object.GetUID() != ref.UID:
		return ownerGone
	case awaitsCollector(owner.object, metav1.FinalizerDeleteDependents):
		return ownerWaiting
	}
	return ownerPresent
}

// collectObject deletes an object by a policy. If the object has a finalizer of the garbage collector, the policy follows from the
// finalizer.
func (c *collector) collectObject(i item, policy metav1.DeletionPropagation) {
	for _, f := range i.object.GetFinalizers() {
		switch f {
		case metav1.FinalizerOrphanDependents:
			policy = metav1.DeletePropagationOrphan
		case metav1.FinalizerDeleteDependents:
			policy = metav1.DeletePropagationForeground
		}
	}
	uid := i.object.GetUID()
	must(c.server.delete(i.kind, i.key, &metav1.DeleteOptions{
		PropagationPolicy: &policy, Preconditions: &metav1.Preconditions{UID: &uid},
	}))
}

func (c *collector) removeOwnerReferences(i item, leaves func(metav1.OwnerReference) bool) {
	c.rewrite(i, func(obj client.Object) {
		obj.SetOwnerReferences(slices.DeleteFunc(obj.GetOwnerReferences(), leaves))
	})
}

func (c *collector) removeFinalizer(i item, finalizer string) {
	c.rewrite(i, func(obj client.Object) {
		obj.SetFinalizers(slices.DeleteFunc(obj.GetFinalizers(), func(f string) bool { return f == finalizer }))
	})
}

// rewrite updates an object by change, if the object still exists.
func (c *collector) rewrite(i item, change func(client.Object)) {
	if c.store.find(i.kind, i.key) == nil {
		return
	}
	_, err := c.server.modify(i.kind, i.key, "", i.object.GetUID(), collectorOptions, nil, func(live client.Object) (client.Object, error) {
		obj := live.DeepCopyObject().(client.Object)
		change(obj)
		return c.server.fieldManager(i.kind, "").UpdateNoErrors(live, obj, collectorOptions.manager).(client.Object), nil
	})
	must(err)
}

// must panics if a write of the collector fails. Such a write cannot fail, since it only removes something from a valid object. A real
// collector would retry for ever.
func must(err error) {
	if err != nil {
		panic("the garbage collector of the server in memory cannot write: " + err.Error())
	}
}
