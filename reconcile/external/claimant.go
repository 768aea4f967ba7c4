package external

import (
	"context"
	"slices"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// claimant compares the object of a pass with the other objects that have or want the same keys, to decide to which
// object a key belongs.
type claimant[T client.Object, S any] struct {
	resource *Resource[T, S]
	reader   client.Reader
	obj      T
}

// groups returns the groups of an object's desired keys.
func (c *claimant[T, S]) groups(obj T) (groups []string) {
	for _, key := range c.resource.keysOf(obj) {
		groups = append(groups, c.resource.group(key))
	}
	slices.Sort(groups)
	return slices.Compact(groups)
}

// others returns the other objects that have or want a key of a group.
func (c *claimant[T, S]) others(ctx context.Context, obj T, group string) ([]T, error) {
	all, err := c.resource.Others(ctx, c.reader, obj, group)
	return slices.DeleteFunc(all, func(other T) bool { return other.GetUID() == obj.GetUID() }), err
}

// claimed says whether the record of an object has a thing with some key, and whether that thing is known to exist.
type claimed int

const (
	nothing   claimed = iota
	pending           // the thing may exist
	confirmed         // the thing exists
)

// has returns the best result for the recorded keys for which the function is returns true.
func (c *claimant[T, S]) has(obj T, is func(key string) bool) claimed {
	most := nothing
	for _, ref := range c.resource.Record(obj).all() {
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
	return c.has(obj, func(key string) bool { return c.resource.group(key) == group })
}

// wants reports whether an object wants a key of a group. An object that only observes does not want any. An object that waits until
// somebody else creates the thing does not want any either.
func (c *claimant[T, S]) wants(obj T, group string) bool {
	p := c.resource.policyOf(obj)
	waits := p.observesOnly() || !p.mayCreate() && c.hasOf(obj, group) == nothing
	return obj.GetDeletionTimestamp() == nil && !waits && slices.Contains(c.groups(obj), group)
}

// betterClaim returns the object that comes before the object of the pass, or nil. If several objects come before it, betterClaim
// returns the first of them, so that the condition is the same in each pass.
func (c *claimant[T, S]) betterClaim(others []T, group string, acquires bool) (first *T) {
	for _, other := range others {
		if c.precedes(other, group, acquires) && (first == nil || c.isBefore(other, *first, group)) {
			first = &other
		}
	}
	return first
}

// precedes reports whether another object comes before the object of the pass, which then waits. A group belongs to the object that has a
// confirmed thing with a key of the group. Otherwise it belongs to the object with a pending thing, then to the older object, then to the
// first by name. acquires is false if all things of the object of the pass are confirmed. Then it waits only for an older object that has
// the same key.
func (c *claimant[T, S]) precedes(other T, group string, acquires bool) bool {
	if !acquires {
		return isOlder(other, c.obj) && slices.ContainsFunc(c.resource.keysOf(c.obj), func(key string) bool { return c.keeps(other, key) })
	}
	own, theirs := c.hasOf(c.obj, group), c.hasOf(other, group)
	return theirs == confirmed || theirs > own || theirs == own && c.wants(other, group) && isOlder(other, c.obj)
}

// keeps reports whether an object has a confirmed thing with this key, and still wants the key.
func (c *claimant[T, S]) keeps(obj T, key string) bool {
	return c.wants(obj, c.resource.group(key)) && slices.Contains(c.resource.keysOf(obj), key) &&
		c.has(obj, func(other string) bool { return other == key }) == confirmed
}

// isBefore reports whether one comes before other for a group: because of its things, or because it is older.
func (c *claimant[T, S]) isBefore(one, other T, group string) bool {
	if has, otherHas := c.hasOf(one, group), c.hasOf(other, group); has != otherHas {
		return has > otherHas
	}
	return isOlder(one, other)
}

// isShared reports whether another object has the same thing, and still wants it. Such a thing is not deleted.
func (c *claimant[T, S]) isShared(ctx context.Context, ref Reference) (bool, error) {
	if c.resource.Others == nil {
		return false, nil
	}
	isSame := func(theirs Reference) bool {
		return theirs.Key == ref.Key && (c.resource.Identity == ByKey || theirs.ID == ref.ID)
	}
	others, err := c.others(ctx, c.obj, c.resource.group(ref.Key))
	return slices.ContainsFunc(others, func(other T) bool {
		return c.keeps(other, ref.Key) && slices.ContainsFunc(c.resource.Record(other).all(), isSame)
	}), err
}

// isOlder compares the creation times, and if they are equal, the namespaces and names.
func isOlder(a, b client.Object) bool {
	at, bt := a.GetCreationTimestamp(), b.GetCreationTimestamp()
	if !at.Equal(&bt) {
		return at.Before(&bt)
	}
	return client.ObjectKeyFromObject(a).String() < client.ObjectKeyFromObject(b).String()
}

// waiting returns the objects that may continue because the object of the pass has changed or is gone: see [Step.Waiting].
func (c *claimant[T, S]) waiting(ctx context.Context) []ctrl.Request {
	groups := c.groups(c.obj)
	for _, ref := range c.resource.Record(c.obj).all() {
		groups = append(groups, c.resource.group(ref.Key))
	}
	slices.Sort(groups)
	var requests []ctrl.Request
	for _, group := range slices.Compact(groups) {
		others, err := c.others(ctx, c.obj, group)
		if err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "Cannot list the objects that may wait")
		}
		var next client.Object
		for _, other := range others {
			switch {
			case c.hasOf(other, group) != nothing:
				requests = append(requests, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(other)})
			case c.wants(other, group) && (next == nil || isOlder(other, next)):
				next = other
			}
		}
		if next != nil {
			requests = append(requests, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(next)})
		}
	}
	return requests
}
