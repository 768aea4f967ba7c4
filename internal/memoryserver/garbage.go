package memoryserver

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/memoryserver/kind"
)

// collector has the field manager of the garbage collector.
var collector = writeOptions{manager: "kube-controller-manager"}

// CollectGarbage does all the work that the garbage collector and the namespace controller have at this moment, and
// reports whether it wrote anything. It deletes dependents whose owners are gone, releases owners that waited for their
// dependents, removes the references to owners that orphan their dependents, and empties namespaces that are being
// deleted. Objects with other finalizers stay until these are removed.
//
// The server never does this by itself.
func (s *Server) CollectGarbage() (changed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.collected != s.revision() && s.collect() {
		changed = true
	}
	s.collected = s.revision()
	return changed
}

// collect does one round over all objects, by kind and by name, so that a run can be repeated.
func (s *Server) collect() bool {
	before := s.revision()
	objects := s.objects()
	dependents := dependentsOf(objects)
	for _, item := range objects {
		s.collectItem(item, dependents)
	}
	s.finishNamespaces()
	return s.revision() != before
}

// item is a stored object with its kind and its key.
type item struct {
	kind   *kind.Kind
	key    client.ObjectKey
	object client.Object
}

// objects returns every object, by kind and by name.
func (s *Server) objects() (items []item) {
	for _, t := range s.order {
		for _, r := range t.order {
			if v := r.latest(); v != nil {
				items = append(items, item{t.kind, r.key, v.object})
			}
		}
	}
	return items
}

func compareKinds(a, b *table) int { return cmp.Compare(a.kind.GVK.String(), b.kind.GVK.String()) }

// dependentsOf returns the objects that have owner references, by the owner's UID.
func dependentsOf(objects []item) map[types.UID][]item {
	by := map[types.UID][]item{}
	for _, i := range objects {
		for _, ref := range i.object.GetOwnerReferences() {
			by[ref.UID] = append(by[ref.UID], i)
		}
	}
	return by
}

func (s *Server) collectItem(i item, dependents map[types.UID][]item) {
	v := s.table(i.kind).find(i.key)
	if v == nil || v.object.GetUID() != i.object.GetUID() {
		return // deleted earlier in this round
	}
	i.object = v.object
	uid := i.object.GetUID()
	switch {
	case awaitsCollector(i.object, metav1.FinalizerOrphanDependents):
		for _, d := range dependents[uid] {
			s.removeOwnerReferences(d, func(ref metav1.OwnerReference) bool { return ref.UID == uid })
		}
		s.removeFinalizer(i, metav1.FinalizerOrphanDependents)
	case awaitsCollector(i.object, metav1.FinalizerDeleteDependents):
		if !slices.ContainsFunc(dependents[uid], func(d item) bool { return s.blocksOwner(d, uid) }) {
			s.removeFinalizer(i, metav1.FinalizerDeleteDependents)
		}
	case i.object.GetDeletionTimestamp() == nil && len(i.object.GetOwnerReferences()) > 0:
		s.collectDependent(i, len(dependents[uid]) > 0)
	}
}

// awaitsCollector reports whether an object is being deleted and has the finalizer, which the collector removes.
func awaitsCollector(object client.Object, finalizer string) bool {
	return object.GetDeletionTimestamp() != nil && slices.Contains(object.GetFinalizers(), finalizer)
}

// blocksOwner reports whether a dependent still exists and blocks the deletion of its owner.
func (s *Server) blocksOwner(d item, owner types.UID) bool {
	v := s.table(d.kind).find(d.key)
	return v != nil && v.object.GetUID() == d.object.GetUID() && slices.ContainsFunc(v.object.GetOwnerReferences(),
		func(ref metav1.OwnerReference) bool {
			return ref.UID == owner && ptr.Deref(ref.BlockOwnerDeletion, false)
		})
}

type ownerState int

const (
	ownerPresent ownerState = iota
	ownerGone
	ownerWaiting // is being deleted in the foreground, after its dependents
)

// collectDependent deletes an object if none of its owners stays. If one stays, it removes the references to the
// others. owns reports whether the object has dependents itself.
func (s *Server) collectDependent(i item, owns bool) {
	stays, waits, leaves := false, false, map[types.UID]bool{}
	for _, ref := range i.object.GetOwnerReferences() {
		switch s.ownerState(i, ref) {
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
		s.removeOwnerReferences(i, func(ref metav1.OwnerReference) bool { return leaves[ref.UID] })
	case waits && owns:
		s.collectObject(i, metav1.DeletePropagationForeground)
	default:
		s.collectObject(i, metav1.DeletePropagationBackground)
	}
}

// ownerState returns the state of an owner. An owner of a kind that the server does not have counts as present: the
// real collector does not delete its dependents either.
func (s *Server) ownerState(i item, ref metav1.OwnerReference) ownerState {
	gv, err := schema.ParseGroupVersion(ref.APIVersion)
	if err != nil {
		return ownerPresent
	}
	k := s.kinds.find(gv.WithKind(ref.Kind))
	if k == nil || k.Namespaced && i.key.Namespace == "" {
		return ownerPresent
	}
	owner := s.table(k).find(k.Key(i.key.Namespace, ref.Name))
	switch {
	case owner == nil || owner.object.GetUID() != ref.UID:
		return ownerGone
	case awaitsCollector(owner.object, metav1.FinalizerDeleteDependents):
		return ownerWaiting
	}
	return ownerPresent
}

// collectObject deletes an object. Its own finalizers overrule the propagation policy.
func (s *Server) collectObject(i item, policy metav1.DeletionPropagation) {
	for _, f := range i.object.GetFinalizers() {
		switch f {
		case metav1.FinalizerOrphanDependents:
			policy = metav1.DeletePropagationOrphan
		case metav1.FinalizerDeleteDependents:
			policy = metav1.DeletePropagationForeground
		}
	}
	uid := i.object.GetUID()
	s.must(s.delete(i.kind, i.key, &metav1.DeleteOptions{
		PropagationPolicy: &policy, Preconditions: &metav1.Preconditions{UID: &uid},
	}))
}

func (s *Server) removeOwnerReferences(i item, leaves func(metav1.OwnerReference) bool) {
	s.rewrite(i, func(obj client.Object) {
		obj.SetOwnerReferences(slices.DeleteFunc(obj.GetOwnerReferences(), leaves))
	})
}

func (s *Server) removeFinalizer(i item, finalizer string) {
	s.rewrite(i, func(obj client.Object) {
		obj.SetFinalizers(slices.DeleteFunc(obj.GetFinalizers(), func(f string) bool { return f == finalizer }))
	})
}

// rewrite changes an object if it still exists.
func (s *Server) rewrite(i item, change func(client.Object)) {
	if s.table(i.kind).find(i.key) == nil {
		return
	}
	_, err := s.modify(i.kind, i.key, "", i.object.GetUID(), collector, nil, func(live client.Object) (client.Object, error) {
		obj := live.DeepCopyObject().(client.Object)
		change(obj)
		return i.kind.FieldManagers[""].UpdateNoErrors(live, obj, collector.manager).(client.Object), nil
	})
	s.must(err)
}

// must panics if a write of the collector fails. They cannot: they only remove what was valid. A real collector would
// retry for ever.
func (s *Server) must(err error) {
	if err != nil {
		panic("the garbage collector of the server in memory cannot write: " + err.Error())
	}
}
