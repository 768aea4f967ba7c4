package external

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// MaxCircle is the largest number of objects that wait for each other in a circle and for which the step resolves the
// circle. Each of them reads all others.
const MaxCircle = 16

// place says whether an object is the oldest one in a circle of objects that wait for each other.
type place int

const (
	notFirst      place = iota // the object is not in a circle, or an older object is in it
	firstOfCircle              // the object is the oldest one of a circle
	unknownPlace               // more than MaxCircle objects wait, so it is not known whether they are a circle
)

// circle looks for a circle of objects that wait for each other, starting at the object of a claimant. In a circle, each object waits
// for a key that the next object has and does not want any more.
type circle[T client.Object, S any] struct {
	from     *claimant[T, S]
	seen     map[types.UID]bool
	waiting  []T // objects that were not looked at yet
	isClosed bool
	isOldest bool
}

func (c *circle[T, S]) place(ctx context.Context) (place, error) {
	for c.waiting = []T{c.from.obj}; len(c.waiting) > 0; c.waiting = c.waiting[1:] {
		next := c.waiting[0]
		for _, group := range c.from.groups(next) {
			others, err := c.from.others(ctx, next, group)
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

// follow looks at the objects for which next waits, because they have a key of the group. If such an object still wants the group,
// it keeps the group. Then it would not help to delete things of other groups, and isKnown is true.
func (c *circle[T, S]) follow(next T, group string, others []T) (at place, isKnown bool) {
	for _, other := range others {
		uid := other.GetUID()
		switch {
		case c.seen[uid] || c.from.hasOf(other, group) <= c.from.hasOf(next, group):
			continue
		case c.from.wants(other, group):
			return notFirst, true
		case len(c.seen) == MaxCircle:
			return unknownPlace, true
		case uid == c.from.obj.GetUID():
			c.isClosed = true
		case other.GetDeletionTimestamp() == nil:
			c.isOldest = c.isOldest && isOlder(c.from.obj, other)
			c.waiting = append(c.waiting, other)
		}
		c.seen[uid] = true
	}
	return notFirst, false
}
