package memoryserver

import (
	"cmp"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// collector is the name under which the garbage collector writes.
var collector = writeOptions{manager: "kube-controller-manager"}

// CollectGarbage does all that the garbage collector and the namespace controller would do by now,
// and reports whether they wrote anything: dependents whose owners are gone are deleted, owners that
// wait for dependents are released, dependents of orphaning owners are cut loose, and namespaces that
// are being deleted are emptied. What has finalizers of its own stays until these are removed.
//
// The server never does this by itself.
func (s *Server) CollectGarbage() (changed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.collect() {
		changed = true
	}
	return changed
}

// collect does one round over all objects, kind by kind in the order of their names, so that runs
// are alike.
func (s *Server) collect() bool {
	before := s.revision()
	dependents := s.dependents()
	for _, item := range s.all() {
		s.collectItem(item, dependents)
	}
	s.finishNamespaces()
	return s.revision() != before
}

// item is an object with where it lies.
type item struct {
	kind   *kind
	key    client.ObjectKey
	object client.Object
}

// all lists every object.
func (s *Server) all() (items []item) {
	for _, gvk := range slices.SortedFunc(maps.Keys(s.tables), compareKinds) {
		t := s.tables[gvk]
		for _, r := range t.order {
			if v := r.latest(); v != nil {
				items = append(items, item{t.kind, r.key, v.object})
			}
		}
	}
	return items
}

func compareKinds(a, b schema.GroupVersionKind) int { return cmp.Compare(a.String(), b.String()) }

// dependents lists the objects that name an owner, by the owner's UID.
func (s *Server) dependents() map[types.UID][]item {
	by := map[types.UID][]item{}
	for _, i := range s.all() {
		for _, ref := range i.object.GetOwnerReferences() {
			by[ref.UID] = append(by[ref.UID], i)
		}
	}
	return by
}

func (s *Server) collectItem(i item, dependents map[types.UID][]item) {
	v := s.table(i.kind).find(i.key)
	if v == nil || v.object.GetUID() != i.object.GetUID() {
		return // an earlier item of this round took it along
	}
	i.object = v.object
	uid := i.object.GetUID()
	switch {
	case deletes(i.object, metav1.FinalizerOrphanDependents):
		for _, d := range dependents[uid] {
			s.dropOwners(d, func(ref metav1.OwnerReference) bool { return ref.UID == uid })
		}
		s.dropFinalizer(i, metav1.FinalizerOrphanDependents)
	case deletes(i.object, metav1.FinalizerDeleteDependents):
		if !slices.ContainsFunc(dependents[uid], func(d item) bool { return s.blocks(d, uid) }) {
			s.dropFinalizer(i, metav1.FinalizerDeleteDependents)
		}
	case i.object.GetDeletionTimestamp() == nil && len(i.object.GetOwnerReferences()) > 0:
		s.collectDependent(i, len(dependents[uid]) > 0)
	}
}

// deletes reports whether an object is being deleted and waits for the collector.
func deletes(object client.Object, finalizer string) bool {
	return object.GetDeletionTimestamp() != nil && slices.Contains(object.GetFinalizers(), finalizer)
}

// blocks reports whether a dependent is still there and keeps its owner from going.
func (s *Server) blocks(d item, owner types.UID) bool {
	v := s.table(d.kind).find(d.key)
	return v != nil && v.object.GetUID() == d.object.GetUID() && slices.ContainsFunc(v.object.GetOwnerReferences(),
		func(ref metav1.OwnerReference) bool {
			return ref.UID == owner && ptr.Deref(ref.BlockOwnerDeletion, false)
		})
}

type ownerState int

const (
	ownerThere ownerState = iota
	ownerGone
	ownerWaiting // it is being deleted in the foreground, after its dependents
)

// collectDependent deletes an object if none of its owners stays. If one does, the references to
// the others are removed.
func (s *Server) collectDependent(i item, owns bool) {
	stays, waits, leaves := false, false, map[types.UID]bool{}
	for _, ref := range i.object.GetOwnerReferences() {
		switch s.ownerState(i, ref) {
		case ownerThere:
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
		s.dropOwners(i, func(ref metav1.OwnerReference) bool { return leaves[ref.UID] })
	case waits && owns:
		s.collectObject(i, metav1.DeletePropagationForeground)
	default:
		s.collectObject(i, metav1.DeletePropagationBackground)
	}
}

// ownerState looks for an owner. One of a kind that the server does not have counts as there: the
// collector, too, touches nothing that it does not understand.
func (s *Server) ownerState(i item, ref metav1.OwnerReference) ownerState {
	gv, err := schema.ParseGroupVersion(ref.APIVersion)
	if err != nil {
		return ownerThere
	}
	k := s.kinds.find(gv.WithKind(ref.Kind))
	if k == nil || k.namespaced && i.key.Namespace == "" {
		return ownerThere
	}
	owner := s.table(k).find(k.key(i.key.Namespace, ref.Name))
	switch {
	case owner == nil || owner.object.GetUID() != ref.UID:
		return ownerGone
	case deletes(owner.object, metav1.FinalizerDeleteDependents):
		return ownerWaiting
	}
	return ownerThere
}

// collectObject deletes unless the object's own finalizers say how.
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

func (s *Server) dropOwners(i item, leaves func(metav1.OwnerReference) bool) {
	s.rewrite(i, func(made client.Object) {
		made.SetOwnerReferences(slices.DeleteFunc(made.GetOwnerReferences(), leaves))
	})
}

func (s *Server) dropFinalizer(i item, finalizer string) {
	s.rewrite(i, func(made client.Object) {
		made.SetFinalizers(slices.DeleteFunc(made.GetFinalizers(), func(f string) bool { return f == finalizer }))
	})
}

// rewrite changes an object if it is still there.
func (s *Server) rewrite(i item, change func(client.Object)) {
	if s.table(i.kind).find(i.key) == nil {
		return
	}
	_, err := s.modify(i.kind, i.key, "", i.object.GetUID(), collector, func(live client.Object) (client.Object, error) {
		made := live.DeepCopyObject().(client.Object)
		change(made)
		return i.kind.fields[""].UpdateNoErrors(live, made, collector.manager).(client.Object), nil
	})
	s.must(err)
}

// must is for writes that cannot fail: they only remove what was valid. A real collector would try
// again for ever.
func (s *Server) must(err error) {
	if err != nil {
		panic("the garbage collector of the server in memory cannot write: " + err.Error())
	}
}
