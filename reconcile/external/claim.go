package external

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/reconcile/external/internal/claims"
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
	return reasonClaimed, firstLook
}

// claim makes the object hold its keys in the memory of this process, or returns a wait for the object that precedes it.
func (p *pass[T, S]) claim(ctx context.Context) error {
	if p.Others == nil {
		return nil
	}
	acquires := slices.ContainsFunc(p.keys, p.isMissing)
	for _, group := range p.groups(p.obj) {
		others, err := p.others(ctx, p.obj, group)
		if err != nil {
			return err
		}
		if other := p.betterClaim(others, group, acquires); other != nil {
			return p.yield(ctx, &ClaimedError{Group: group, By: client.ObjectKeyFromObject(*other)})
		}
		isRival := func(key string, h claims.Holder) bool {
			return (acquires || slices.Contains(p.keys, key)) &&
				slices.ContainsFunc(others, func(other T) bool { return other.GetUID() == h.UID }) // else it is gone
		}
		keys := slices.DeleteFunc(slices.Clone(p.keys), func(key string) bool { return p.group(key) != group })
		if h := p.claims.Take(p.obj, group, keys, isRival); h != nil {
			return &ClaimedError{Group: group, By: h.NamespacedName}
		}
	}
	return nil
}

// unclaim lets others have the keys that are neither recorded nor among these.
func (p *pass[T, S]) unclaim(keys ...string) {
	if p.Others != nil {
		p.claims.Keep(client.ObjectKeyFromObject(p.obj), append(keys, keysOf(p.all)...))
	}
}

// letGo writes the record if others may wait for a key that it does not have any more.
func (p *pass[T, S]) letGo(ctx context.Context) error {
	if p.Others == nil {
		return nil
	}
	return p.checkpoint(ctx)
}

// Waiting returns the objects that may go on because obj has changed or is gone: those that have a key of its groups, and the oldest one that
// wants each group. The others that want it would only wait for that one, however many there are. If Others returns an error, it is logged. Give it to [reconcile.Watching].
func (s *Step[T, S]) Waiting(ctx context.Context, c client.Reader, obj T) []ctrl.Request {
	p := claimant[T, S]{Step: s, reader: c, obj: obj}
	groups := p.groups(obj)
	for _, ref := range s.Record(obj).all() {
		groups = append(groups, p.group(ref.Key))
	}
	slices.Sort(groups)
	var requests []ctrl.Request
	for _, group := range slices.Compact(groups) {
		others, err := p.others(ctx, obj, group)
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
