//go:build !race

// An exploration runs one pass at a time, so the race detector finds nothing in it. With it, the exploration would take ten times as long.

package guides

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/opblocks/opblocks/conditions"
	"github.com/opblocks/opblocks/reconcile"
	"github.com/opblocks/opblocks/reconcile/external"
	"github.com/opblocks/opblocks/reconcile/reconciletest"
	"github.com/opblocks/opblocks/reconcile/reconciletest/fakeapi"
	"github.com/opblocks/opblocks/reconcile/secrets"
)

// SetupAccounts adds the controller of the guide "I call an API outside" to a manager.
func SetupAccounts(mgr ctrl.Manager, api accounts) error {
	step := external.New(external.Resource[*Shop, account]{
		Record: func(s *Shop) *external.Record { return &s.Status.Account },
		Key:    ownerOf,
		Observe: func(ctx context.Context, _ client.Client, _ *Shop, ref external.Reference) (account, error) {
			found, err := api.Get(ctx, ref.Key)
			return found, explain(err)
		},
		Desired: func(ctx context.Context, c client.Client, s *Shop) (account, error) {
			token, _, err := secrets.Read(ctx, c, s.Namespace, s.Spec.Token)
			return account{Owner: ownerOf(s), Token: token}, err // a wait, if the Secret or its key is missing
		},
		Version: func(ctx context.Context, c client.Client, s *Shop) (string, error) {
			return secrets.Version(ctx, c, s.Namespace, s.Spec.Token) // from the cache
		},
		Differs: func(_ external.Reference, observed, desired account) bool { return observed.Owner != desired.Owner },
		Create: func(ctx context.Context, _ client.Client, _ *Shop, ref external.Reference, desired account) (string, error) {
			return "", explain(api.Create(ctx, ref.Key, desired))
		},
		Update: func(ctx context.Context, _ client.Client, _ *Shop, ref external.Reference, _, desired account) error {
			return explain(api.Update(ctx, ref.Key, desired))
		},
		Delete: func(ctx context.Context, _ client.Client, _ *Shop, ref external.Reference) error {
			return explain(api.Delete(ctx, ref.Key))
		},
		IsOurs: func(s *Shop, _ external.Reference, observed account) bool { return observed.Owner == ownerOf(s) },
	})
	return reconcile.For(mgr,
		reconcile.Named("account", step).
			Finalizer("shop.example.com/account").
			Reads(&corev1.Secret{}, tokenSecret).
			Reporting("AccountReady"),
	).Complete()
}

// ownerOf returns the name of the account, which is also its mark.
func ownerOf(s *Shop) string { return s.Namespace + "/" + s.Name }

// tokenSecret returns the Secret that a Shop names. Its changes trigger a reconcile of that Shop.
func tokenSecret(s *Shop) []types.NamespacedName {
	return []types.NamespacedName{{Name: s.Spec.Token.Name}}
}

// account is what the API stores. The token can only be written.
type account struct {
	Owner string
	Token secrets.Sensitive
}

// accounts is your client of the API. An answer that is an error is an *apiError.
type accounts interface {
	Get(ctx context.Context, name string) (account, error)
	Create(ctx context.Context, name string, a account) error
	Update(ctx context.Context, name string, a account) error
	Delete(ctx context.Context, name string) error
}

// apiError is an answer of the API that is an error.
type apiError struct {
	Status     int
	RetryAfter time.Duration
}

func (e *apiError) Error() string { return fmt.Sprintf("the API answers %d", e.Status) }

// explain returns what an error of the API means for the pass.
func explain(err error) error {
	answer, ok := errors.AsType[*apiError](err)
	switch {
	case !ok:
		return err // nil, or an error of the network
	case answer.Status == http.StatusNotFound:
		return external.ErrNotFound
	case answer.Status == http.StatusConflict:
		return external.ErrExists
	case answer.Status == http.StatusTooManyRequests:
		return external.Throttled(answer.RetryAfter, err)
	case answer.Status >= 500:
		return external.Unreachable(err) // the server is spared for a while
	}
	return external.Refused("Refused", err) // the same request would be refused again
}

// stored is what the fake of the API keeps.
type stored struct{ Owner, Token string }

// fakeAccounts is the operator's client of the fake in one process.
type fakeAccounts struct{ api *fakeapi.Client[stored] }

func (f fakeAccounts) Get(ctx context.Context, name string) (account, error) {
	found, err := f.api.Get(ctx, name)
	return account{Owner: found.Fields.Owner}, asAnswer(err)
}

func (f fakeAccounts) Create(ctx context.Context, name string, a account) error {
	_, err := f.api.Create(ctx, fakeapi.Thing[stored]{Name: name, Fields: stored{a.Owner, string(a.Token)}})
	return asAnswer(err)
}

func (f fakeAccounts) Update(ctx context.Context, name string, a account) error {
	return asAnswer(f.api.Update(ctx, fakeapi.Thing[stored]{Name: name, Fields: stored{a.Owner, string(a.Token)}}))
}

func (f fakeAccounts) Delete(ctx context.Context, name string) error {
	return asAnswer(f.api.Delete(ctx, name))
}

// asAnswer returns an answer of the fake as the real client returns it.
func asAnswer(err error) error {
	if answer, ok := errors.AsType[*fakeapi.Error](err); ok {
		return &apiError{answer.Status, answer.RetryAfter}
	}
	return err // nil, or an error of the network
}

func TestAccountsSurviveEveryFault(t *testing.T) {
	token := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "token"},
		Data:       map[string][]byte{"token": []byte("first-token")},
	}
	shop := shop(func(s *ShopSpec) {
		s.Token = corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "token"}, Key: "token"}
	})
	reconciletest.Explore(t, reconciletest.Scenario{
		Scheme: scheme, CRDs: []string{"testdata"},
		External: func() reconciletest.External { return &fakeapi.API[stored]{Kind: "account"} },
		Start: func(p *reconciletest.Process) error {
			return SetupAccounts(p.Manager(), fakeAccounts{p.External().(*fakeapi.API[stored]).Client(p)})
		},
		Actions: []reconciletest.Action{
			reconciletest.Create(shop),
			reconciletest.Create(token),
			reconciletest.Change(token, func(s *corev1.Secret) { s.Data["token"] = []byte("second-token") }),
			reconciletest.Delete(shop),
		},
		Horizon: 5 * time.Minute, // shorter than Every: no poll repairs what a fault has broken
	})
}

// TestExplain checks which conditions the answers of an API lead to.
func TestExplain(t *testing.T) {
	tests := map[string]struct {
		reason  string
		err     error
		want    string // reason of Ready
		stalled bool
		atLeast time.Duration // until the next pass
	}{
		"TooManyRequests": {"the API says when", &apiError{http.StatusTooManyRequests, time.Minute}, "RateLimited", false, time.Minute},
		"NotFound":        {"only Observe and Delete expect it", &apiError{http.StatusNotFound, 0}, "Failed", false, 250 * time.Millisecond},
		"BadRequest":      {"it would be refused again", &apiError{http.StatusBadRequest, 0}, "Refused", true, 10 * time.Minute},
		"Unavailable":     {"it may work a moment later", &apiError{http.StatusServiceUnavailable, 0}, "Failed", false, 250 * time.Millisecond},
		"Network":         {"as above", errors.New("connection refused"), "Failed", false, 250 * time.Millisecond},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := shop()
			s.UID = "6d1f"
			c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(s).WithStatusSubresource(s).Build()
			step := reconcile.Func(func(context.Context, client.Client, *Shop) error { return explain(tc.err) })
			result, err := reconcile.New(c, reconcile.Named("account", step)).Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(s)})
			if err != nil {
				t.Fatal(err)
			}
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(s), s); err != nil {
				t.Fatal(err)
			}
			ready, _ := conditions.Get(s.Status.Conditions, conditions.Ready)
			if ready.Reason != tc.want || conditions.IsTrue(s.Status.Conditions, conditions.Stalled) != tc.stalled || result.RequeueAfter < tc.atLeast {
				t.Errorf("%s: got %s and %s", tc.reason, ready.Reason, result.RequeueAfter)
			}
		})
	}
}
