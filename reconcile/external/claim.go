package external

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/reconcile/external/internal/claims"
)

// ClaimedError is the error of an object that waits because a key of its things belongs to another object.
type ClaimedError struct {
	Group string               // the key or its group, see [Resource.Group]
	By    types.NamespacedName // the object to which it belongs
	// Endless is true if more than [MaxCircle] objects wait for each other, perhaps in a circle.
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

// claim stores in the memory of this process that the object holds its keys. If another object comes first, claim returns the error
// that waits for that object.
func (p *pass[T, S]) claim(ctx context.Context) error {
	if p.resource.Others == nil {
		return nil
	}
	acquires := slices.ContainsFunc(p.ledger.keys, p.ledger.isMissing)
	for _, group := range p.claimant.groups(p.obj) {
		others, err := p.claimant.others(ctx, p.obj, group)
		if err != nil {
			return err
		}
		if other := p.claimant.betterClaim(others, group, acquires); other != nil {
			return p.yield(ctx, &ClaimedError{Group: group, By: client.ObjectKeyFromObject(*other)})
		}
		isRival := func(key string, h claims.Holder) bool {
			return (acquires || slices.Contains(p.ledger.keys, key)) &&
				slices.ContainsFunc(others, func(other T) bool { return other.GetUID() == h.UID }) // an object that Others does not return any more is gone
		}
		keys := slices.DeleteFunc(slices.Clone(p.ledger.keys), func(key string) bool { return p.resource.group(key) != group })
		if h := p.ledger.claims.Take(p.obj, group, keys, isRival); h != nil {
			return &ClaimedError{Group: group, By: h.NamespacedName}
		}
	}
	return nil
}

// yield returns the error with which the step waits for another object. Objects may wait for each other in a circle: after two keys were
// swapped, each object waits for a key that the other one has and does not want any more. If this object is the oldest of such a circle,
// yield first deletes the things that the object does not want any more.
func (p *pass[T, S]) yield(ctx context.Context, wait *ClaimedError) error {
	if _, err := p.dropper().settle(ctx); err != nil {
		return err
	}
	c := circle[T, S]{from: &p.claimant, isOldest: true, seen: map[types.UID]bool{}}
	at, err := c.place(ctx)
	switch {
	case err != nil:
		return err
	case at == firstOfCircle:
		if _, err := p.outside.desired(ctx); err != nil { // if Desired fails, the object could not create its new thing
			return err
		}
		if err := p.dropper().dropFormer(ctx); err != nil {
			return err
		}
		if err := p.ledger.checkpoint(ctx); err != nil {
			return err
		}
	}
	wait.Endless = at == unknownPlace
	return wait
}
