package controller

import (
	"context"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/examples/databaseuser/accounts"
	userv1alpha1 "github.com/opblocks/opblocks/examples/databaseuser/api/v1alpha1"
	"github.com/opblocks/opblocks/reconcile"
)

// IndexUsers returns the values of a DatabaseUser in [UserIndex]: the specified user name and the recorded one.
func IndexUsers(obj client.Object) []string {
	u, ok := obj.(*userv1alpha1.DatabaseUser)
	if !ok {
		return nil
	}
	return slices.Compact([]string{u.Spec.User, u.Status.User})
}

// enqueueSameUser enqueues the DatabaseUsers that may go on because of a change of u. For each user name of u, it
// enqueues the DatabaseUsers that have the name, and the oldest DatabaseUser that wants it. The others that want it
// would only wait for that one, however many there are.
func (o *Operator) enqueueSameUser(ctx context.Context, r client.Reader, u *userv1alpha1.DatabaseUser) []ctrl.Request {
	var requests []ctrl.Request
	for _, name := range IndexUsers(u) {
		others, err := usersNamed(ctx, r, name)
		if err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "Cannot list the DatabaseUsers of a user name")
		}
		var next *userv1alpha1.DatabaseUser
		for i := range others {
			switch other := &others[i]; {
			case client.ObjectKeyFromObject(other) == client.ObjectKeyFromObject(u):
			case other.Status.User == name && len(other.Status.Hosts) > 0:
				requests = append(requests, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(other)})
			case o.isTarget(other) && wants(other, name) && (next == nil || isOlder(other, next)):
				next = other
			}
		}
		if next != nil {
			requests = append(requests, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(next)})
		}
	}
	return requests
}

func usersNamed(ctx context.Context, r client.Reader, name string) ([]userv1alpha1.DatabaseUser, error) {
	if name == "" {
		return nil, nil
	}
	var list userv1alpha1.DatabaseUserList
	err := r.List(ctx, &list, client.MatchingFields{UserIndex: name}, client.UnsafeDisableDeepCopy)
	return list.Items, err
}

// others returns the DatabaseUsers of a user name that this operator serves, without u.
func (o *Operator) others(ctx context.Context, r client.Reader, u *userv1alpha1.DatabaseUser, name string) ([]*userv1alpha1.DatabaseUser, error) {
	all, err := usersNamed(ctx, r, name)
	var others []*userv1alpha1.DatabaseUser
	for i := range all {
		if other := &all[i]; other.UID != u.UID && o.Serves(other) {
			others = append(others, other)
		}
	}
	return others, err
}

// claim makes u hold the accounts, in the memory of this process, or returns a wait for the DatabaseUser that precedes it.
func (a *account) claim(ctx context.Context, c client.Client, u *userv1alpha1.DatabaseUser, want []accounts.Account) error {
	other, err := a.betterClaim(ctx, c, u, want)
	if err != nil {
		return err
	}
	if other != nil {
		return a.yield(ctx, c, u, want, other)
	}
	if other := a.claims.take(u, want, a.acquires(u, want), a.remains(ctx, c)); other != nil {
		return reconcile.Wait(reasonClaimed, time.Second, claimed, other) // soon the cache shows why
	}
	return nil
}

const claimed = "DatabaseUser %s has the better claim to the user name"

// betterClaim returns the DatabaseUser that precedes u, or nil. If several do, it returns the one that precedes the others, so that
// the condition does not change from pass to pass.
func (o *Operator) betterClaim(ctx context.Context, r client.Reader, u *userv1alpha1.DatabaseUser, want []accounts.Account) (*types.NamespacedName, error) {
	others, err := o.others(ctx, r, u, u.Spec.User)
	var first *userv1alpha1.DatabaseUser
	for _, other := range others {
		if o.precedes(other, u, want) && (first == nil || o.isBefore(other, first, u.Spec.User)) {
			first = other
		}
	}
	if first == nil {
		return nil, err
	}
	return &types.NamespacedName{Namespace: first.Namespace, Name: first.Name}, err
}

// precedes reports whether u waits for another DatabaseUser. The user name belongs to the one that has a confirmed account of this
// name, on whatever host, then to the one that has a pending account, then to the older one, then to the first by name. If all
// accounts of u are confirmed, u acquires none, and waits only for an older one that has the same account.
func (o *Operator) precedes(other, u *userv1alpha1.DatabaseUser, want []accounts.Account) bool {
	if !o.acquires(u, want) {
		return slices.ContainsFunc(want, func(w accounts.Account) bool {
			return o.ownershipOf(other, w) == confirmed && specifies(other, w) && isOlder(other, u)
		})
	}
	own, theirs := o.ownershipOfName(u, u.Spec.User), o.ownershipOfName(other, u.Spec.User)
	return theirs == confirmed || theirs > own || theirs == own && wants(other, u.Spec.User) && isOlder(other, u)
}

// acquires reports whether u wants an account that is not confirmed.
func (o *Operator) acquires(u *userv1alpha1.DatabaseUser, want []accounts.Account) bool {
	return slices.ContainsFunc(want, func(w accounts.Account) bool { return o.ownershipOf(u, w) != confirmed })
}

// isBefore orders by what the DatabaseUsers have of a user name, then by age.
func (o *Operator) isBefore(one, other *userv1alpha1.DatabaseUser, name string) bool {
	if has, otherHas := o.ownershipOfName(one, name), o.ownershipOfName(other, name); has != otherHas {
		return has > otherHas
	}
	return isOlder(one, other)
}

// yield returns the wait of u for another DatabaseUser. Before that, it drops the accounts of u that its spec no longer wants, if
// DatabaseUsers wait for each other in a circle and u is the first of the circle. Such a circle is there after two names were
// swapped: each DatabaseUser waits for a name that the other one no longer wants.
func (a *account) yield(ctx context.Context, c client.Client, u *userv1alpha1.DatabaseUser, want []accounts.Account, other *types.NamespacedName) error {
	at, err := a.placeInCircle(ctx, c, u)
	switch {
	case err != nil:
		return err
	case at == unknownPlace:
		return a.wait(reasonClaimed, claimed+"; more than %d DatabaseUsers wait for each other: if they do so in a circle, give one of them a name that nobody has", other, maxCircle)
	case at == firstOfCircle:
		if err := a.dropUnwanted(ctx, c, u, want); err != nil {
			return err
		}
		unrecordUnwanted(u, want)
		if err := a.letGo(ctx, u); err != nil {
			return err
		}
	}
	return a.wait(reasonClaimed, claimed, other)
}

// letGo writes the status, which does not record the dropped accounts any more, and lets others have these.
func (a *account) letGo(ctx context.Context, u *userv1alpha1.DatabaseUser) error {
	if err := reconcile.Checkpoint(ctx); err != nil {
		return err
	}
	a.claims.keep(u, recordedAccounts(u))
	return nil
}

// place is the place of a DatabaseUser among those that wait for each other.
type place int

const (
	notFirst      place = iota // there is not a circle, or an older DatabaseUser is in it
	firstOfCircle              // the DatabaseUser is the oldest of a circle
	unknownPlace               // more DatabaseUsers wait than are looked at
)

// maxCircle is the largest number of DatabaseUsers in a circle that is resolved. Each of them looks at all of them.
const maxCircle = 16

// placeInCircle returns the place of u. In a circle, each DatabaseUser waits for a user name that the next one has and no longer
// wants. If a DatabaseUser of the circle still wants such a name, it keeps the name, and dropping others would not help.
func (o *Operator) placeInCircle(ctx context.Context, r client.Reader, u *userv1alpha1.DatabaseUser) (place, error) {
	found, isOldest, seen := notFirst, true, map[types.UID]bool{}
	for queue := []*userv1alpha1.DatabaseUser{u}; len(queue) > 0; queue = queue[1:] {
		waiting := queue[0]
		others, err := o.others(ctx, r, waiting, waiting.Spec.User)
		if err != nil {
			return notFirst, err
		}
		for _, other := range others {
			switch {
			case seen[other.UID] || o.ownershipOfName(other, waiting.Spec.User) <= o.ownershipOfName(waiting, waiting.Spec.User):
				continue
			case wants(other, waiting.Spec.User):
				return notFirst, nil
			case len(seen) == maxCircle:
				return unknownPlace, nil
			case other.UID == u.UID:
				found = firstOfCircle
			default:
				isOldest = isOldest && isOlder(u, other)
				queue = append(queue, other)
			}
			seen[other.UID] = true
		}
	}
	if !isOldest {
		return notFirst, nil
	}
	return found, nil
}

// wants reports whether the spec of u asks for accounts of a user name.
func wants(u *userv1alpha1.DatabaseUser, name string) bool {
	return u.DeletionTimestamp == nil && u.Spec.User == name
}

// specifies reports whether the spec of u asks for the account.
func specifies(u *userv1alpha1.DatabaseUser, w accounts.Account) bool {
	return wants(u, w.User) &&
		slices.ContainsFunc(hosts(u), func(host string) bool {
			canonical, err := accounts.CanonicalHost(host)
			return err == nil && canonical == w.Host
		})
}

// isOlder orders by creation time, then by namespace and name.
func isOlder(a, b *userv1alpha1.DatabaseUser) bool {
	if !a.CreationTimestamp.Equal(&b.CreationTimestamp) {
		return a.CreationTimestamp.Before(&b.CreationTimestamp)
	}
	return strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name) < 0
}
