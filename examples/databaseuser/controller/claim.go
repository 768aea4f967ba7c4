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

// enqueueSameUser enqueues all other DatabaseUsers of the same user name: they may wait for the account of this one.
func enqueueSameUser(ctx context.Context, r client.Reader, u *userv1alpha1.DatabaseUser) []ctrl.Request {
	var requests []ctrl.Request
	for _, name := range IndexUsers(u) {
		others, err := usersNamed(ctx, r, name)
		if err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "Cannot list the DatabaseUsers of a user name")
		}
		for i := range others {
			if key := client.ObjectKeyFromObject(&others[i]); key != client.ObjectKeyFromObject(u) {
				requests = append(requests, ctrl.Request{NamespacedName: key})
			}
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
func (a *account) others(ctx context.Context, r client.Reader, u *userv1alpha1.DatabaseUser, name string) ([]*userv1alpha1.DatabaseUser, error) {
	all, err := usersNamed(ctx, r, name)
	var others []*userv1alpha1.DatabaseUser
	for i := range all {
		if other := &all[i]; other.UID != u.UID && a.Serves(other) {
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
		if err := a.yield(ctx, c, u, want); err != nil {
			return err
		}
		return a.wait(reasonClaimed, claimed, other)
	}
	if other := a.claims.take(u, want, a.remains(ctx, c)); other != nil {
		return reconcile.Wait(reasonClaimed, time.Second, claimed, other) // soon the cache shows why
	}
	return nil
}

const claimed = "DatabaseUser %s has the better claim to the account"

// betterClaim returns the DatabaseUser that precedes u for one of the accounts, or nil. First comes the one whose account is
// confirmed, then the one whose account is pending, then the older one, then the first by name.
func (a *account) betterClaim(ctx context.Context, r client.Reader, u *userv1alpha1.DatabaseUser, want []accounts.Account) (*types.NamespacedName, error) {
	others, err := a.others(ctx, r, u, u.Spec.User)
	for _, other := range others {
		for _, w := range want {
			own, theirs := a.ownershipOf(u, w), a.ownershipOf(other, w)
			if theirs > own || theirs == own && specifies(other, w) && isOlder(other, u) {
				return &types.NamespacedName{Namespace: other.Namespace, Name: other.Name}, nil
			}
		}
	}
	return nil, err
}

// yield drops the accounts of u that its spec no longer wants, before u gets others, if DatabaseUsers wait for each other in a
// circle and u is the first of the circle. Such a circle is there after two names were swapped: each DatabaseUser waits for an
// account that the other one no longer wants.
func (a *account) yield(ctx context.Context, c client.Client, u *userv1alpha1.DatabaseUser, want []accounts.Account) error {
	if first, err := a.isFirstInCircle(ctx, c, u); err != nil || !first {
		return err
	}
	if err := a.dropUnwanted(ctx, c, u, want); err != nil {
		return err
	}
	unrecordUnwanted(u, want)
	return a.letGo(ctx, u)
}

// letGo writes the status, which does not record the dropped accounts any more, and lets others have these.
func (a *account) letGo(ctx context.Context, u *userv1alpha1.DatabaseUser) error {
	if err := reconcile.Checkpoint(ctx); err != nil {
		return err
	}
	a.claims.keep(u, recordedAccounts(u))
	return nil
}

// isFirstInCircle reports whether u is the oldest DatabaseUser of a circle. In a circle, each DatabaseUser waits for accounts that the next
// one has and no longer wants. If a DatabaseUser of the circle still wants such an account, it keeps the account, and dropping others
// would not help.
func (a *account) isFirstInCircle(ctx context.Context, r client.Reader, u *userv1alpha1.DatabaseUser) (bool, error) {
	isCircle, seen := false, map[types.UID]bool{}
	for queue := []*userv1alpha1.DatabaseUser{u}; len(queue) > 0; queue = queue[1:] {
		waiting := queue[0]
		others, err := a.others(ctx, r, waiting, waiting.Spec.User)
		if err != nil {
			return false, err
		}
		for _, other := range others {
			switch has, keeps := a.blocks(other, waiting); {
			case !has || seen[other.UID]:
				continue
			case keeps, other.UID != u.UID && isOlder(other, u):
				return false, nil
			case other.UID == u.UID:
				isCircle = true
			default:
				queue = append(queue, other)
			}
			seen[other.UID] = true
		}
	}
	return isCircle, nil
}

// blocks reports whether a DatabaseUser has an account that the waiting one specifies, and whether it keeps one of them.
func (a *account) blocks(other, waiting *userv1alpha1.DatabaseUser) (has, keeps bool) {
	for _, w := range recordedAccounts(other) {
		if specifies(waiting, w) && a.ownershipOf(other, w) > a.ownershipOf(waiting, w) {
			has, keeps = true, keeps || specifies(other, w)
		}
	}
	return has, keeps
}

// specifies reports whether the spec of u asks for the account.
func specifies(u *userv1alpha1.DatabaseUser, w accounts.Account) bool {
	return u.DeletionTimestamp == nil && u.Spec.User == w.User &&
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
