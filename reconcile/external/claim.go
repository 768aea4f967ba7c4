package external

import (
	"context"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/reconcile"
)

// maxCircle is the largest number of objects that wait for each other in a circle and are looked at.
const maxCircle = 16

// await returns a wait while another object has the key, also if it is about to drop it. If objects wait for each other in a circle, as
// after two keys were swapped, the oldest one first drops what it does not want any more.
func (p *pass[T, S]) await(ctx context.Context) error {
	if p.Others == nil || p.Key == nil || !p.record.isEmpty() {
		return nil
	}
	holder, err := p.holder(ctx, p.obj)
	if err != nil || holder == nil {
		return err
	}
	first, err := p.isFirstOfCircle(ctx, *holder)
	if err != nil {
		return err
	}
	if first {
		if err := p.dropFormer(ctx); err != nil {
			return err
		}
	}
	return reconcile.Wait(ReasonClaimed, firstLook, "%s belongs to %s", p.key, client.ObjectKeyFromObject(*holder))
}

// holder returns the object that has what obj wants, or nil. If several do, it returns the oldest.
func (p *pass[T, S]) holder(ctx context.Context, obj T) (*T, error) {
	key := p.Key(obj)
	others, err := p.Others(ctx, p.client, obj, key)
	if err != nil {
		return nil, err
	}
	var oldest *T
	for _, other := range others {
		if other.GetUID() != obj.GetUID() && holds(p.Record(other), key) && (oldest == nil || isOlder(other, *oldest)) {
			oldest = &other
		}
	}
	return oldest, nil
}

func holds(r *Record, key string) bool {
	return !r.isEmpty() && r.Key == key || slices.ContainsFunc(r.Former, func(f Reference) bool { return f.Key == key })
}

// isFirstOfCircle follows the objects that wait for each other. It reports whether they lead back to the object of the pass, and none of them
// is older.
func (p *pass[T, S]) isFirstOfCircle(ctx context.Context, next T) (bool, error) {
	for range maxCircle {
		switch {
		case next.GetUID() == p.obj.GetUID():
			return true, nil
		case isOlder(next, p.obj), next.GetDeletionTimestamp() != nil:
			return false, nil
		case holds(&Record{Reference: p.Record(next).Reference}, p.Key(next)): // it waits for nobody
			return false, nil
		}
		holder, err := p.holder(ctx, next)
		if err != nil || holder == nil {
			return false, err
		}
		next = *holder
	}
	return false, nil
}

// isOlder orders by creation time, then by namespace and name.
func isOlder(a, b client.Object) bool {
	at, bt := a.GetCreationTimestamp(), b.GetCreationTimestamp()
	if !at.Equal(&bt) {
		return at.Before(&bt)
	}
	return client.ObjectKeyFromObject(a).String() < client.ObjectKeyFromObject(b).String()
}
