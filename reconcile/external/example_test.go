package external_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/reconcile"
	"github.com/opblocks/opblocks/reconcile/external"
)

// The step keeps an account in an API in which the operator chooses the names.
func ExampleNew() {
	accounts := map[string]int{} // stands for the client of an API
	step := external.New(external.Resource[*Account, int]{
		Record: func(a *Account) *external.Record { return &a.Status.Account },
		Key:    func(a *Account) string { return a.Namespace + "/" + a.Name },
		Observe: func(_ context.Context, _ client.Client, _ *Account, ref external.Reference) (int, error) {
			quota, exists := accounts[ref.Key]
			if !exists {
				return 0, external.ErrNotFound
			}
			return quota, nil
		},
		Desired: func(_ context.Context, _ client.Client, a *Account) (int, error) { return a.Spec.Quota, nil },
		Differs: func(_ external.Reference, observed, desired int) bool { return observed != desired },
		Create: func(_ context.Context, _ client.Client, _ *Account, ref external.Reference, quota int) (string, error) {
			accounts[ref.Key] = quota
			return "", nil
		},
		Update: func(_ context.Context, _ client.Client, _ *Account, ref external.Reference, _, quota int) error {
			accounts[ref.Key] = quota
			return nil
		},
		Delete: func(_ context.Context, _ client.Client, _ *Account, ref external.Reference) error {
			delete(accounts, ref.Key)
			return nil
		},
		Every: 10 * time.Minute,
	})
	_ = func(mgr ctrl.Manager) error {
		return reconcile.For(mgr, reconcile.Named("account", step).Finalizer("shop.example.com/account")).Complete()
	}
	fmt.Println(step.Every)
	// Output: 10m0s
}

// A function that calls an HTTP API translates its answers.
func ExampleRefused() {
	explain := func(status int) error { return fmt.Errorf("the API answers %d", status) }
	err := external.Refused("InvalidLogin", explain(http.StatusBadRequest))
	fmt.Println(err)
	// Output: the API answers 400
}

// The API says how many seconds to wait.
func ExampleThrottled() {
	header := http.Header{"Retry-After": {"30"}}
	seconds, _ := strconv.Atoi(header.Get("Retry-After"))
	err := external.Throttled(time.Duration(seconds)*time.Second, errors.New("the API answers 429"))
	fmt.Println(err)
	// Output: the API asks to wait: the API answers 429
}
