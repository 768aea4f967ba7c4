package external

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// MaxCircle is the largest number of objects in a circle that the step resolves. Each object of a circle reads all others.
const MaxCircle = 16

// place says where an object stands among the objects that wait for each other.
type place int

const (
	notFirst      place = iota // there is not a circle, or an older object is in it
	firstOfCircle              // the object is the oldest of a circle
	unknownPlace               // more than MaxCircle objects wait, so the circle is not known
)

// circle follows the objects that wait for each other, starting at the object of a claimant. In a circle, each object waits for a key
// that the next object has and does not want any more.
type circle[T client.Object, S any] struct {
	from     *claimant[T, S]
	seen     map[types.UID]bool
	waiting  []T // still to be followed
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

// follow looks at the objects for which next waits, to get the group. If such an object still wants the group, it keeps the group.
// Deleting things of other groups would not help then.
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
