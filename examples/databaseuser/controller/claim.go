package controller

import (
	"context"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"

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

// sameUser brings the passes of all who may wait for what a DatabaseUser has.
func sameUser(cache client.Reader) handler.MapFunc {
	return func(ctx context.Context, obj client.Object) []ctrl.Request {
		var requests []ctrl.Request
		for _, name := range IndexUsers(obj) {
			others, err := usersNamed(ctx, cache, name)
			if err != nil {
				ctrl.LoggerFrom(ctx).Error(err, "Cannot find the DatabaseUsers of a name")
			}
			for i := range others {
				if key := client.ObjectKeyFromObject(&others[i]); key != client.ObjectKeyFromObject(obj) {
					requests = append(requests, ctrl.Request{NamespacedName: key})
				}
			}
		}
		return requests
	}
}

func usersNamed(ctx context.Context, cache client.Reader, name string) ([]userv1alpha1.DatabaseUser, error) {
	if name == "" {
		return nil, nil
	}
	var list userv1alpha1.DatabaseUserList
	err := cache.List(ctx, &list, client.MatchingFields{UserIndex: name}, client.UnsafeDisableDeepCopy)
	return list.Items, err
}

// claim gives who has a better claim to the accounts that u wants: who made them, else the older, else the first by name.
func (a *account) claim(ctx context.Context, u *userv1alpha1.DatabaseUser, want []accounts.Account) (*types.NamespacedName, error) {
	all, err := usersNamed(ctx, a.cache, u.Spec.User)
	if err != nil {
		return nil, err
	}
	for i := range all {
		other := &all[i]
		if other.UID == u.UID || !a.serves(other) {
			continue
		}
		for _, w := range want {
			made, theirs := has(u, w), has(other, w)
			if theirs && !made || theirs == made && wants(other, w) && before(other, u) {
				return &types.NamespacedName{Namespace: other.Namespace, Name: other.Name}, nil
			}
		}
	}
	return nil, nil
}

// has says whether the account was made for u.
func has(u *userv1alpha1.DatabaseUser, w accounts.Account) bool {
	return u.Status.User == w.User && slices.Contains(u.Status.Hosts, w.Host)
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
