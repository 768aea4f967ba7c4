package external

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ClaimedError is the wait of an object for another one that has the better claim to a key.
type ClaimedError struct {
	Group string               // the answer of [Resource.Group]
	By    types.NamespacedName // the other object
	// Endless reports that more than [MaxCircle] objects wait for each other, perhaps in a circle.
	Endless bool
}

// Error implements error.
func (e *ClaimedError) Error() string {
	message := fmt.Sprintf("%s belongs to %s", e.Group, e.By)
	if e.Endless {
		message += fmt.Sprintf("; more than %d objects wait for each other: if they do so in a circle, give one of them a name that nobody has", MaxCircle)
	}
	return message
}

// Waiting implements [reconcile.Waiter].
func (e *ClaimedError) Waiting() (reason string, after time.Duration) {
	return ReasonClaimed, firstLook
}

// claim makes the object hold its keys in the memory of this process, or returns a wait for the object that precedes it.
func (p *pass[T, S]) claim(ctx context.Context) error {
	if p.Others == nil {
		return nil
	}
	acquires := slices.ContainsFunc(p.keys, p.isMissing)
	for _, group := range p.groups(p.obj) {
		others, err := p.others(ctx, p.client, p.obj, group)
		if err != nil {
			return err
		}
		if other := p.betterClaim(others, group, acquires); other != nil {
			return p.yield(ctx, &ClaimedError{Group: group, By: client.ObjectKeyFromObject(*other)})
		}
		isRival := func(key string, h holder) bool {
			return (acquires || slices.Contains(p.keys, key)) &&
				slices.ContainsFunc(others, func(other T) bool { return other.GetUID() == h.uid }) // else it is gone
		}
		keys := slices.DeleteFunc(slices.Clone(p.keys), func(key string) bool { return p.group(key) != group })
		if h := p.claims.take(p.obj, group, keys, isRival); h != nil {
			return &ClaimedError{Group: group, By: h.NamespacedName}
		}
	}
	return nil
}

// unclaim lets others have the keys that are neither recorded nor among these.
func (p *pass[T, S]) unclaim(keys ...string) {
	if p.Others != nil {
		p.claims.keep(p.obj.GetUID(), append(keys, keysOf(p.all)...))
	}
}

// letGo writes the record if others may wait for a key that it does not have any more.
func (p *pass[T, S]) letGo(ctx context.Context) error {
	if p.Others == nil {
		return nil
	}
	return p.checkpoint(ctx)
}

func (p *pass[T, S]) group(key string) string {
	if p.Group == nil {
		return key
	}
	return p.Group(key)
}

// groups returns the groups of the keys that are desired of an object.
func (p *pass[T, S]) groups(obj T) (groups []string) {
	for _, key := range p.keysOf(obj) {
		groups = append(groups, p.group(key))
	}
	slices.Sort(groups)
	return slices.Compact(groups)
}

// others returns the other objects that have something of a group, or want it.
func (p *pass[T, S]) others(ctx context.Context, c client.Reader, obj T, group string) ([]T, error) {
	all, err := p.Others(ctx, c, obj, group)
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
func (p *pass[T, S]) has(obj T, is func(key string) bool) claimed {
	most := nothing
	for _, ref := range p.Record(obj).all() {
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

func (p *pass[T, S]) hasOf(obj T, group string) claimed {
	return p.has(obj, func(key string) bool { return p.group(key) == group })
}

// wants reports whether an object asks for a key of a group.
func (p *pass[T, S]) wants(obj T, group string) bool {
	return obj.GetDeletionTimestamp() == nil && slices.Contains(p.groups(obj), group)
}

// betterClaim returns the object that precedes the object of the pass, or nil. If several do, it returns the one that precedes the others,
// so that the condition does not change from pass to pass.
func (p *pass[T, S]) betterClaim(others []T, group string, acquires bool) (first *T) {
	for _, other := range others {
		if p.precedes(other, group, acquires) && (first == nil || p.isBefore(other, *first, group)) {
			first = &other
		}
	}
	return first
}

// precedes reports whether the object of the pass waits for another one. A group belongs to the object that has a confirmed key of it, then to
// the one that has a pending key, then to the older one, then to the first by name. If all keys of an object are confirmed, it acquires none,
// and waits only for an older one that has the same key.
func (p *pass[T, S]) precedes(other T, group string, acquires bool) bool {
	if !acquires {
		return isOlder(other, p.obj) && slices.ContainsFunc(p.keys, func(key string) bool { return p.keeps(other, key) })
	}
	own, theirs := p.hasOf(p.obj, group), p.hasOf(other, group)
	return theirs == confirmed || theirs > own || theirs == own && p.wants(other, group) && isOlder(other, p.obj)
}

// keeps reports whether an object has a key and wants it.
func (p *pass[T, S]) keeps(obj T, key string) bool {
	return p.wants(obj, p.group(key)) && slices.Contains(p.keysOf(obj), key) &&
		p.has(obj, func(other string) bool { return other == key }) == confirmed
}

// isBefore orders by what the objects have of a group, then by age.
func (p *pass[T, S]) isBefore(one, other T, group string) bool {
	if has, otherHas := p.hasOf(one, group), p.hasOf(other, group); has != otherHas {
		return has > otherHas
	}
	return isOlder(one, other)
}

// Waiting returns the objects that may go on because obj has changed or is gone: those that have a key of its groups, and the oldest one that
// wants each group. The others that want it would only wait for that one, however many there are. Give it to [reconcile.Watching].
func (s *Step[T, S]) Waiting(ctx context.Context, c client.Reader, obj T) []ctrl.Request {
	p := &pass[T, S]{Step: s, obj: obj}
	groups := p.groups(obj)
	for _, ref := range s.Record(obj).all() {
		groups = append(groups, p.group(ref.Key))
	}
	slices.Sort(groups)
	var requests []ctrl.Request
	for _, group := range slices.Compact(groups) {
		others, err := p.others(ctx, c, obj, group)
		if err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "Cannot list the objects that may wait")
		}
		var next client.Object
		for _, other := range others {
			switch {
			case p.hasOf(other, group) != nothing:
				requests = append(requests, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(other)})
			case p.wants(other, group) && (next == nil || isOlder(other, next)):
				next = other
			}
		}
		if next != nil {
			requests = append(requests, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(next)})
		}
	}
	return requests
}

// isShared reports whether another object has a key too, and wants it. Such a thing is not deleted.
func (p *pass[T, S]) isShared(ctx context.Context, key string) (bool, error) {
	if p.Others == nil {
		return false, nil
	}
	others, err := p.others(ctx, p.client, p.obj, p.group(key))
	return slices.ContainsFunc(others, func(other T) bool { return p.keeps(other, key) }), err
}

// isOlder orders by creation time, then by namespace and name.
func isOlder(a, b client.Object) bool {
	at, bt := a.GetCreationTimestamp(), b.GetCreationTimestamp()
	if !at.Equal(&bt) {
		return at.Before(&bt)
	}
	return client.ObjectKeyFromObject(a).String() < client.ObjectKeyFromObject(b).String()
}
