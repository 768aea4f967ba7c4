package external

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// MaxCircle is the largest number of objects that wait for each other in a circle that is resolved. Each of them looks at all of them.
const MaxCircle = 16

// yield returns the wait for another object. Before that, it deletes what the object does not want any more, if objects wait for each
// other in a circle and this one is the first of the circle. Such a circle is there after two keys were swapped: each object waits
// for a key that the other one does not want any more.
func (p *pass[T, S]) yield(ctx context.Context, wait *ClaimedError) error {
	if _, err := (dropping[T, S]{p}).settle(ctx); err != nil {
		return err
	}
	c := circle[T, S]{pass: p, isOldest: true, seen: map[types.UID]bool{}}
	at, err := c.place(ctx)
	switch {
	case err != nil:
		return err
	case at == firstOfCircle:
		if _, err := p.Desired(ctx, p.client, p.obj); err != nil { // then it would have nothing at all
			return err
		}
		if err := (dropping[T, S]{p}).dropFormer(ctx); err != nil {
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
