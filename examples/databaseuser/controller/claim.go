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

// IndexUsers gives a DatabaseUser's values in the [UserIndex]: the name that it wants and the one that it has.
func IndexUsers(obj client.Object) []string {
	u, ok := obj.(*userv1alpha1.DatabaseUser)
	if !ok {
		return nil
	}
	return slices.Compact([]string{u.Spec.User, u.Status.User})
}

// enqueueSameUser returns the requests of all other DatabaseUsers that may wait for what this one has.
func enqueueSameUser(ctx context.Context, r client.Reader, u *userv1alpha1.DatabaseUser) []ctrl.Request {
	var requests []ctrl.Request
	for _, name := range IndexUsers(u) {
		others, err := usersNamed(ctx, r, name)
		if err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "Cannot find the DatabaseUsers of a name")
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

// others gives those whose accounts of a name we make, but for u itself.
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

// claim gives who has a better claim to the accounts that u wants: who made them, else the older, else the first by name.
func (a *account) claim(ctx context.Context, r client.Reader, u *userv1alpha1.DatabaseUser, want []accounts.Account) (*types.NamespacedName, error) {
	others, err := a.others(ctx, r, u, u.Spec.User)
	for _, other := range others {
		for _, w := range want {
			made, theirs := a.has(u, w), a.has(other, w)
			if theirs && !made || theirs == made && wants(other, w) && before(other, u) {
				return &types.NamespacedName{Namespace: other.Namespace, Name: other.Name}, nil
			}
		}
	}
	return nil, err
}

// dropOne drops an account, unless another DatabaseUser has and wants it too: they may have taken it at the same time.
func (a *account) dropOne(ctx context.Context, r client.Reader, u *userv1alpha1.DatabaseUser, m accounts.Account) error {
	others, err := a.others(ctx, r, u, m.User)
	if err != nil {
		return err
	}
	for _, other := range others {
		if a.has(other, m) && a.wanted(other) && wants(other, m) {
			return nil
		}
	}
	return a.database.Drop(ctx, m)
}

// has says whether the account was made for u, in this database.
func (o *Operator) has(u *userv1alpha1.DatabaseUser, w accounts.Account) bool {
	return o.made(u) && u.Status.User == w.User && slices.Contains(u.Status.Hosts, w.Host)
}

func wants(u *userv1alpha1.DatabaseUser, w accounts.Account) bool {
	return u.DeletionTimestamp == nil && u.Spec.User == w.User &&
		slices.ContainsFunc(hosts(u), func(host string) bool {
			canonical, err := accounts.CanonicalHost(host)
			return err == nil && canonical == w.Host
		})
}

func before(a, b *userv1alpha1.DatabaseUser) bool {
	if !a.CreationTimestamp.Equal(&b.CreationTimestamp) {
		return a.CreationTimestamp.Before(&b.CreationTimestamp)
	}
	return strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name) < 0
}
