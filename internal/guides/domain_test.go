//go:build !race

// An exploration runs one pass at a time, so the race detector finds nothing in it. With it, the exploration would take ten times as long.

package guides

import (
	"context"
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/reconcile"
	"github.com/opblocks/opblocks/reconcile/external"
	"github.com/opblocks/opblocks/reconcile/reconciletest"
	"github.com/opblocks/opblocks/reconcile/reconciletest/fakeapi"
	"github.com/opblocks/opblocks/reconcile/secrets"
)

// SetupDomains adds a controller to a manager whose API needs a token from a Secret in each call, and whose objects may want the same domain.
func SetupDomains(mgr ctrl.Manager, connect func(token secrets.Sensitive) domains) error {
	api := func(ctx context.Context, c client.Client, s *Shop) (domains, error) {
		token, _, err := secrets.Read(ctx, c, s.Namespace, s.Spec.Token) // a wait, if it is missing
		if err != nil {
			return nil, err
		}
		return connect(token), nil
	}
	step := external.New(external.Resource[*Shop, domain]{
		Record: func(s *Shop) *external.Record { return &s.Status.Domain },
		Key:    func(s *Shop) string { return s.Spec.Domain },
		Observe: func(ctx context.Context, c client.Client, s *Shop, ref external.Reference) (found domain, err error) {
			d, err := api(ctx, c, s)
			if err == nil {
				found, err = d.Get(ctx, ref.Key)
			}
			return found, explain(err)
		},
		Desired: func(_ context.Context, _ client.Client, s *Shop) (domain, error) {
			return domain{Owner: ownerOf(s), Target: s.Name}, nil
		},
		Differs: func(_ external.Reference, observed, desired domain) bool { return observed != desired },
		Create: func(ctx context.Context, c client.Client, s *Shop, ref external.Reference, desired domain) (string, error) {
			d, err := api(ctx, c, s)
			if err == nil {
				err = d.Create(ctx, ref.Key, desired)
			}
			return "", explain(err)
		},
		Update: func(ctx context.Context, c client.Client, s *Shop, ref external.Reference, _, desired domain) error {
			d, err := api(ctx, c, s)
			if err == nil {
				err = d.Update(ctx, ref.Key, desired)
			}
			return explain(err)
		},
		Delete: func(ctx context.Context, c client.Client, s *Shop, ref external.Reference) error {
			d, err := api(ctx, c, s)
			if err == nil {
				err = d.Delete(ctx, ref.Key)
			}
			return explain(err)
		},
		IsOurs: func(s *Shop, _ external.Reference, observed domain) bool { return observed.Owner == ownerOf(s) },
		Others: func(ctx context.Context, c client.Reader, _ *Shop, domain string) (others []*Shop, err error) {
			var all ShopList
			err = c.List(ctx, &all, client.MatchingFields{"domain": domain})
			for i := range all.Items {
				others = append(others, &all.Items[i])
			}
			return others, err
		},
	})
	// What an object wants, and what it has.
	err := mgr.GetFieldIndexer().IndexField(context.Background(), &Shop{}, "domain", func(obj client.Object) []string {
		s := obj.(*Shop)
		return append(s.Status.Domain.Keys(), s.Spec.Domain)
	})
	if err != nil {
		return err
	}
	return reconcile.For(mgr,
		reconcile.Named("domain", step, reconcile.Watching(&Shop{}, step.Waiting)).
			Finalizer("shop.example.com/domain").
			Reads(&corev1.Secret{}, tokenSecret),
	).Complete()
}

// domain is what the API stores.
type domain struct{ Owner, Target string }

// domains is a client of the API.
type domains interface {
	Get(ctx context.Context, name string) (domain, error)
	Create(ctx context.Context, name string, d domain) error
	Update(ctx context.Context, name string, d domain) error
	Delete(ctx context.Context, name string) error
}

// registry is the operator's client of the fake in one process.
type registry struct{ api *fakeapi.Client[string] }

func (r registry) Get(ctx context.Context, name string) (domain, error) {
	found, err := r.api.Get(ctx, name)
	return domain{found.Owner, found.Fields}, asAnswer(err)
}

func (r registry) Create(ctx context.Context, name string, d domain) error {
	_, err := r.api.Create(ctx, fakeapi.Thing[string]{Name: name, Owner: d.Owner, Fields: d.Target})
	return asAnswer(err)
}

func (r registry) Update(ctx context.Context, name string, d domain) error {
	return asAnswer(r.api.Update(ctx, fakeapi.Thing[string]{Name: name, Owner: d.Owner, Fields: d.Target}))
}

func (r registry) Delete(ctx context.Context, name string) error {
	return asAnswer(r.api.Delete(ctx, name))
}

func TestDomainsAreExchanged(t *testing.T) {
	token := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "token"}, Data: map[string][]byte{"token": []byte("hunter2")}}
	shopWith := func(name, domain string) *Shop {
		s := shop(func(s *ShopSpec) {
			s.Domain = domain
			s.Token = corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "token"}, Key: "token"}
		})
		s.Name = name
		return s
	}
	has := func(want ...string) func(*reconciletest.Env) error {
		return func(env *reconciletest.Env) error {
			var got []string
			for _, d := range env.External.(*fakeapi.API[string]).Things() {
				got = append(got, d.Name+" "+d.Fields)
			}
			if !slices.Equal(got, want) {
				return fmt.Errorf("there is %q, and not %q", got, want)
			}
			return nil
		}
	}
	ann, bob := shopWith("ann", "ann.example.com"), shopWith("bob", "bob.example.com")
	reconciletest.Explore(t, reconciletest.Scenario{
		Scheme: scheme, CRDs: []string{"testdata"},
		External: func() reconciletest.External { return &fakeapi.API[string]{Kind: "domain"} },
		Start: func(p *reconciletest.Process) error {
			return SetupDomains(p.Manager(), func(token secrets.Sensitive) domains {
				if string(token) != "hunter2" {
					t.Error("another token")
				}
				return registry{p.External().(*fakeapi.API[string]).Client(p)}
			})
		},
		Actions: []reconciletest.Action{
			reconciletest.Create(token).WithoutFaults(), reconciletest.Create(ann), reconciletest.Create(bob).WithoutFaults(), // as the creation of ann
			reconciletest.Change(ann, func(s *Shop) { s.Spec.Domain = "bob.example.com" }),
			reconciletest.Change(bob, func(s *Shop) { s.Spec.Domain = "ann.example.com" }).Then(has("ann.example.com bob", "bob.example.com ann")),
			reconciletest.Delete(ann), reconciletest.Delete(bob).WithoutFaults().Then(has()),
		},
	})
}
