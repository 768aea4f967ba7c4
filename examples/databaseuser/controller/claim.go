package controller

import (
	"context"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/examples/databaseuser/accounts"
	userv1alpha1 "github.com/opblocks/opblocks/examples/databaseuser/api/v1alpha1"
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
