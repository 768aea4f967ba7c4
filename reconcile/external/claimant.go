package external

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// claimant compares an object with the others that have the same keys, or want them.
type claimant[T client.Object, S any] struct {
	*Step[T, S]
	reader client.Reader
	obj    T
}

func (c *claimant[T, S]) group(key string) string {
	if c.Group == nil {
		return key
	}
	return c.Group(key)
}

// groups returns the groups of the keys that are desired of an object.
func (c *claimant[T, S]) groups(obj T) (groups []string) {
	for _, key := range c.keysOf(obj) {
		groups = append(groups, c.group(key))
	}
	slices.Sort(groups)
	return slices.Compact(groups)
}

// others returns the other objects that have something of a group, or want it.
func (c *claimant[T, S]) others(ctx context.Context, obj T, group string) ([]T, error) {
	all, err := c.Others(ctx, c.reader, obj, group)
	return slices.DeleteFunc(all, func(other T) bool { return other.GetUID() == obj.GetUID() }), err
}

// claimed is what the record of an object says of a key or a group.
type claimed int

const (
	nothing   claimed = iota
	pending           // it is perhaps not the object's
	confirmed         // it is the object's
)

// has returns the most that the record of an object says of the keys for which is returns true.
func (c *claimant[T, S]) has(obj T, is func(key string) bool) claimed {
	most := nothing
	for _, ref := range c.Record(obj).all() {
		switch {
		case !is(ref.Key):
		case ref.Pending:
			most = max(most, pending)
		default:
			most = confirmed
		}
	}
	return most
}

func (c *claimant[T, S]) hasOf(obj T, group string) claimed {
	return c.has(obj, func(key string) bool { return c.group(key) == group })
}

// wants reports whether an object asks for a key of a group. One that only observes does not.
func (c *claimant[T, S]) wants(obj T, group string) bool {
	onlyObserves := c.ObserveOnly != nil && c.ObserveOnly(obj)
	return obj.GetDeletionTimestamp() == nil && !onlyObserves && slices.Contains(c.groups(obj), group)
}

// betterClaim returns the object that precedes the object of the pass, or nil. If several do, it returns the one that precedes the others,
// so that the condition does not change from pass to pass.
func (c *claimant[T, S]) betterClaim(others []T, group string, acquires bool) (first *T) {
	for _, other := range others {
		if c.precedes(other, group, acquires) && (first == nil || c.isBefore(other, *first, group)) {
			first = &other
		}
	}
	return first
}

// precedes reports whether the object of the pass waits for another one. A group belongs to the object that has a confirmed key of it, then to
// the one that has a pending key, then to the older one, then to the first by name. If all keys of an object are confirmed, it acquires none,
// and waits only for an older one that has the same key.
func (c *claimant[T, S]) precedes(other T, group string, acquires bool) bool {
	if !acquires {
		return isOlder(other, c.obj) && slices.ContainsFunc(c.keysOf(c.obj), func(key string) bool { return c.keeps(other, key) })
	}
	own, theirs := c.hasOf(c.obj, group), c.hasOf(other, group)
	return theirs == confirmed || theirs > own || theirs == own && c.wants(other, group) && isOlder(other, c.obj)
}

// keeps reports whether an object has a key and wants it.
func (c *claimant[T, S]) keeps(obj T, key string) bool {
	return c.wants(obj, c.group(key)) && slices.Contains(c.keysOf(obj), key) &&
		c.has(obj, func(other string) bool { return other == key }) == confirmed
}

// isBefore orders by what the objects have of a group, then by age.
func (c *claimant[T, S]) isBefore(one, other T, group string) bool {
	if has, otherHas := c.hasOf(one, group), c.hasOf(other, group); has != otherHas {
		return has > otherHas
	}
	return isOlder(one, other)
}

// isShared reports whether another object has a key too, and wants it. Such a thing is not deleted.
func (c *claimant[T, S]) isShared(ctx context.Context, key string) (bool, error) {
	if c.Others == nil {
		return false, nil
	}
	others, err := c.others(ctx, c.obj, c.group(key))
	return slices.ContainsFunc(others, func(other T) bool { return c.keeps(other, key) }), err
}

// isOlder orders by creation time, then by namespace and name.
func isOlder(a, b client.Object) bool {
	at, bt := a.GetCreationTimestamp(), b.GetCreationTimestamp()
	if !at.Equal(&bt) {
		return at.Before(&bt)
	}
	return client.ObjectKeyFromObject(a).String() < client.ObjectKeyFromObject(b).String()
}

// MaxCircle is the largest number of objects that wait for each other in a circle that is resolved. Each of them looks at all of them.
const MaxCircle = 16

// yield returns the wait for another object. Before that, it deletes what the object does not want any more, if objects wait for each
// other in a circle and this one is the first of the circle. Such a circle is there after two keys were swapped: each object waits
// for a key that the other one does not want any more.
func (p *pass[T, S]) yield(ctx context.Context, wait *ClaimedError) error {
	c := circle[T, S]{pass: p, isOldest: true, seen: map[types.UID]bool{}}
	at, err := c.place(ctx)
	switch {
	case err != nil:
		return err
	case at == firstOfCircle:
		if err := p.dropFormer(ctx); err != nil {
			return err
		}
		if err := p.checkpoint(ctx); err != nil {
			return err
		}
	}
	wait.Endless = at == unknownPlace
	return wait
}

// place is the place of an object among those that wait for each other.
type place int

const (
	notFirst      place = iota // there is not a circle, or an older object is in it
	firstOfCircle              // the object is the oldest of a circle
	unknownPlace               // more objects wait than are looked at
)

// circle follows the objects that wait for each other, from the object of the pass. In a circle, each object waits for a key that the
// next one has and does not want any more.
type circle[T client.Object, S any] struct {
	*pass[T, S]
	seen     map[types.UID]bool
	waiting  []T // still to be followed
	isClosed bool
	isOldest bool
}

func (c *circle[T, S]) place(ctx context.Context) (place, error) {
	for c.waiting = []T{c.obj}; len(c.waiting) > 0; c.waiting = c.waiting[1:] {
		next := c.waiting[0]
		for _, group := range c.groups(next) {
			others, err := c.others(ctx, next, group)
			if err != nil {
				return notFirst, err
			}
			if at, isKnown := c.follow(next, group, others); isKnown {
				return at, nil
			}
		}
	}
	if c.isClosed && c.isOldest {
		return firstOfCircle, nil
	}
	return notFirst, nil
}

// follow looks at the objects that one of the circle waits for. If such an object still wants the group, it keeps the group, and dropping
// others would not help.
func (c *circle[T, S]) follow(next T, group string, others []T) (at place, isKnown bool) {
	for _, other := range others {
		uid := other.GetUID()
		switch {
		case c.seen[uid] || c.hasOf(other, group) <= c.hasOf(next, group):
			continue
		case c.wants(other, group):
			return notFirst, true
		case len(c.seen) == MaxCircle:
			return unknownPlace, true
		case uid == c.obj.GetUID():
			c.isClosed = true
		case other.GetDeletionTimestamp() == nil:
			c.isOldest = c.isOldest && isOlder(c.obj, other)
			c.waiting = append(c.waiting, other)
		}
		c.seen[uid] = true
	}
	return notFirst, false
}
