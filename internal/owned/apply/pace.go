package apply

import (
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/owned"
	"github.com/opblocks/opblocks/internal/owned/memory"
	"github.com/opblocks/opblocks/internal/record"
)

// slowDown returns an [owned.WaitingError] while the next write of the object has to wait because another writer undoes our writes. It
// returns nil if the write may be sent now.
func (a *Applier) slowDown(d *owned.Desired, live client.Object, paths string) error {
	wait, begins := a.Children.DelayWrite(d, live.GetUID(), paths, a.Clock.Now())
	if wait == 0 {
		return nil
	}
	message := fmt.Sprintf("%s is changed back again and again by another writer, so it is applied less often: %s", d, paths)
	return a.Delayed(d.Owner, live, message, wait, begins)
}

// SlowDownByName returns an [owned.WaitingError] while the next creation, deletion or recreation of a child has to wait because another
// writer undoes it. It returns nil if the write may be sent now. s is the hash of the desired child, or zero if the child is not desired.
func (a *Applier) SlowDownByName(o *owned.Owner, k *owned.Kind, obj client.Object, write memory.Undone, s owned.Sum) error {
	wait, begins := a.Loops.Delay(memory.NameLoopKey{Owner: o.Reference.UID, Child: record.NameOf(k.GVK.GroupKind(), obj), Write: write}, s, k.GVK.Kind, a.Clock.Now())
	if wait == 0 {
		return nil
	}
	return a.Delayed(o, nil, fmt.Sprintf(memory.UndoneMessages[write], k.Describe(obj)), wait, begins)
}

// CountByName counts a creation, deletion or recreation of a child, so that SlowDownByName can delay the next one.
func (a *Applier) CountByName(o *owned.Owner, k *owned.Kind, obj client.Object, write memory.Undone, s owned.Sum) {
	a.Loops.Add(memory.NameLoopKey{Owner: o.Reference.UID, Child: record.NameOf(k.GVK.GroupKind(), obj), Write: write}, s, obj.GetUID(), a.Clock.Now())
}
