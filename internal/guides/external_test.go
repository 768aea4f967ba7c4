//go:build !race

// An exploration runs one pass at a time, so the race detector finds nothing in it, and would take ten times as long.

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
	"github.com/opblocks/opblocks/reconcile/reconciletest"
)

// SetupAccounts adds the controller of the guide "I call an API outside" to a manager.
func SetupAccounts(mgr ctrl.Manager, api accounts) error {
	return reconcile.For(mgr,
		reconcile.Named("account", accountStep{api},
			reconcile.Finalizer("shop.example.com/account"),
			reconcile.Reads(&corev1.Secret{}, tokenSecret),
			reconcile.Reporting("AccountReady")),
	).Complete()
}

// tokenSecret returns the Secret that a Shop names. Its changes trigger a reconcile of that Shop.
func tokenSecret(s *Shop) []types.NamespacedName {
	return []types.NamespacedName{{Name: s.Spec.Token.Name}}
}

// accounts is your client of the API.
type accounts interface {
	Exists(ctx context.Context, name string) (bool, error)
	Put(ctx context.Context, name, token string) error // creates or changes it
	Delete(ctx context.Context, name string) error     // succeeds if it is gone already
}

type accountStep struct{ api accounts }

func (a accountStep) Reconcile(ctx context.Context, c client.Client, s *Shop) error {
	version, err := reconcile.SecretVersion(ctx, c, s.Namespace, s.Spec.Token) // from the cache
	if err != nil {
		return err
	}
	if version == s.Status.TokenVersion {
		return nil // the API has this token: no request at all
	}
	token, version, err := reconcile.ReadSecret(ctx, c, s.Namespace, s.Spec.Token)
	if err != nil {
		return err // a wait, if the Secret or its key is missing
	}
	if s.Status.Account == "" {
		name := s.Namespace + "/" + s.Name
		taken, err := a.api.Exists(ctx, name)
		switch {
		case err != nil:
			return explain(err)
		case taken:
			return reconcile.Stalled("AccountExists", fmt.Errorf("account %s exists and was not created for this Shop: delete it", name))
		}
		s.Status.Account = name
	}
	if err := reconcile.Checkpoint(ctx); err != nil { // the status has the account before it exists
		return err
	}
	if err := a.api.Put(ctx, s.Status.Account, string(token)); err != nil {
		return explain(err)
	}
	s.Status.TokenVersion = version
	return nil
}

func (a accountStep) Finalize(ctx context.Context, _ client.Client, s *Shop) error {
	if s.Status.Account == "" {
		return nil
	}
	if err := reconcile.Checkpoint(ctx); err != nil {
		return err
	}
	return explain(a.api.Delete(ctx, s.Status.Account))
}

// apiError is how your client returns what the API answers.
type apiError struct {
	Status     int
	RetryAfter time.Duration
}

func (e *apiError) Error() string { return fmt.Sprintf("the API answers %d", e.Status) }

// explain returns what an error of the API means for the pass.
func explain(err error) error {
	answer, ok := errors.AsType[*apiError](err)
	switch {
	case ok && answer.Status == http.StatusTooManyRequests:
		return reconcile.Wait("RateLimited", answer.RetryAfter, "the API asks to wait")
	case ok && answer.Status >= 400 && answer.Status < 500:
		return reconcile.Stalled("Refused", err) // the same request would be refused again
	}
	return err // tried again with backoff
}

// directory is a fake of the API for explorations. It survives the operator's process.
type directory struct{ Tokens map[string]string }

func (d *directory) State() any { return d.Tokens }

// directoryClient is the client of a directory in one process: faults happen at its calls.
type directoryClient struct {
	*directory
	process *reconciletest.Process
}

func (c directoryClient) Exists(ctx context.Context, name string) (exists bool, err error) {
	err = c.process.Query(ctx, "look for "+name, func() error { _, exists = c.Tokens[name]; return nil })
	return exists, err
}

func (c directoryClient) Put(ctx context.Context, name, token string) error {
	return c.process.Effect(ctx, "put "+name, func() error { c.Tokens[name] = token; return nil })
}

func (c directoryClient) Delete(ctx context.Context, name string) error {
	return c.process.Effect(ctx, "delete "+name, func() error { delete(c.Tokens, name); return nil })
}

func TestAccountsSurviveEveryFault(t *testing.T) {
	token := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "token"},
		Data:       map[string][]byte{"token": []byte("first-token")},
	}
	account := shop(func(s *ShopSpec) {
		s.Token = corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "token"}, Key: "token"}
	})
	reconciletest.Explore(t, reconciletest.Scenario{
		Scheme: scheme, CRDs: []string{"testdata"},
		External: func() reconciletest.External { return &directory{Tokens: map[string]string{}} },
		Start: func(p *reconciletest.Process) error {
			return SetupAccounts(p.Manager(), directoryClient{p.External().(*directory), p})
		},
		Actions: []reconciletest.Action{
			reconciletest.Create(account),
			reconciletest.Create(token),
			reconciletest.Change(token, func(s *corev1.Secret) { s.Data["token"] = []byte("second-token") }),
			reconciletest.Delete(account),
		},
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
