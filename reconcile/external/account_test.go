package external_test

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/reconcile"
	"github.com/opblocks/opblocks/reconcile/external"
)

// Account is the custom resource of the tests.
type Account struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              AccountSpec   `json:"spec"`
	Status            AccountStatus `json:"status,omitzero"`
}

type AccountSpec struct {
	Login  string `json:"login"`
	Quota  int    `json:"quota"`
	Adopt  bool   `json:"adopt,omitempty"`
	Retain bool   `json:"retain,omitempty"`
	Secret string `json:"secret,omitempty"`
}

type AccountStatus struct {
	Account    external.Record    `json:"account,omitzero"`
	Login      string             `json:"login,omitempty"`
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

type AccountList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`
	Items           []Account `json:"items"`
}

func (a *Account) DeepCopyObject() runtime.Object {
	out := *a
	a.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	out.Status.Account = *a.Status.Account.DeepCopy()
	out.Status.Conditions = slices.Clone(a.Status.Conditions)
	return &out
}

func (l *AccountList) DeepCopyObject() runtime.Object {
	out := &AccountList{TypeMeta: l.TypeMeta, ListMeta: *l.ListMeta.DeepCopy()}
	for i := range l.Items {
		out.Items = append(out.Items, *l.Items[i].DeepCopyObject().(*Account))
	}
	return out
}

var scheme = newScheme()

// newScheme returns a scheme with the kinds of the tests only: at each patch, the fake client goes through all kinds of its scheme.
func newScheme() *runtime.Scheme {
	s := runtime.NewScheme()
	if err := corev1.AddToScheme(s); err != nil {
		panic(err)
	}
	version := schema.GroupVersion{Group: "test.opblocks.dev", Version: "v1"}
	s.AddKnownTypes(version, &Account{}, &AccountList{})
	metav1.AddToGroupVersion(s, version)
	return s
}

func newAccount(edit ...func(*AccountSpec)) *Account {
	a := &Account{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "alice"}, Spec: AccountSpec{Login: "alice", Quota: 1}}
	for _, e := range edit {
		e(&a.Spec)
	}
	return a
}

// api is the API outside of the cluster that the step calls in the tests.
type api interface {
	get(ctx context.Context, ref external.Reference) (entry, error)
	create(ctx context.Context, owner string, ref external.Reference, quota int) (id string, err error)
	update(ctx context.Context, ref external.Reference, quota int) error
	remove(ctx context.Context, ref external.Reference) error
}

// entry is an account, as the API returns it.
type entry struct {
	ID, Login, Owner, Token string
	Quota                   int
}

// resource returns a Resource for the API, as a user of the package would write it.
func resource(api api, identity external.Identity) external.Resource[*Account, entry] {
	return external.Resource[*Account, entry]{
		Identity: identity,
		Record:   func(a *Account) *external.Record { return &a.Status.Account },
		Key:      func(a *Account) string { return a.Spec.Login },
		Observe: func(ctx context.Context, _ client.Client, _ *Account, ref external.Reference) (entry, error) {
			return api.get(ctx, ref)
		},
		Desired: func(_ context.Context, _ client.Client, a *Account) (entry, error) {
			return entry{Quota: a.Spec.Quota}, nil
		},
		Differs: func(_ external.Reference, observed, desired entry) bool { return observed.Quota != desired.Quota },
		Create: func(ctx context.Context, _ client.Client, a *Account, ref external.Reference, desired entry) (string, error) {
			return api.create(ctx, a.Namespace+"/"+a.Name, ref, desired.Quota)
		},
		Update: func(ctx context.Context, _ client.Client, _ *Account, ref external.Reference, _, desired entry) error {
			return api.update(ctx, ref, desired.Quota)
		},
		Delete: func(ctx context.Context, _ client.Client, _ *Account, ref external.Reference) error {
			return api.remove(ctx, ref)
		},
		IsOurs: func(a *Account, _ external.Reference, observed entry) bool {
			return observed.Owner == a.Namespace+"/"+a.Name
		},
		Adopt: func(a *Account, _ entry) error {
			if !a.Spec.Adopt {
				return external.ErrExists
			}
			return nil
		},
		Others: func(ctx context.Context, c client.Reader, _ *Account, key string) (found []*Account, err error) {
			var all AccountList
			if err := c.List(ctx, &all); err != nil {
				return nil, err
			}
			for i := range all.Items {
				found = append(found, &all.Items[i])
			}
			return found, nil
		},
		Retain: func(a *Account) bool { return a.Spec.Retain },
	}
}

func setUp(mgr ctrl.Manager, r external.Resource[*Account, entry]) error {
	return newReconciler(mgr, r).Complete()
}

func newReconciler(mgr ctrl.Manager, r external.Resource[*Account, entry]) *reconcile.Reconciler[*Account] {
	return reconcile.For(mgr, reconcile.Named("account", external.New(r)).
		Finalizer("test.opblocks.dev/account").Reporting("AccountReady"))
}
