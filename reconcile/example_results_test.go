package reconcile_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/reconcile"
)

// A step polls something outside of the cluster at an interval. Up to a tenth is added to the interval.
func ExampleSuccess() {
	run(reconcile.Named("account", step(reconcile.Success("Provisioned", 10*time.Minute, "the account exists"))))
	// Output:
	// again after 10m0s <nil>
	// Ready True Provisioned "the account exists"
}

// A step has something to do at a certain time. Nothing is added to the delay.
func ExampleSuccessUntil() {
	run(reconcile.Named("report", step(reconcile.SuccessUntil("Scheduled", 90*time.Minute, "waits for its time"))))
	// Output:
	// again after 1h30m0s <nil>
	// Ready True Scheduled "waits for its time"
}

// A step polls something outside of the cluster. Objects that people have changed are reconciled first.
func ExampleLowPriority() {
	run(reconcile.Named("account", step(reconcile.LowPriority(reconcile.Success("Provisioned", 10*time.Minute, "the account exists")))))
	// Output:
	// again after 10m0s <nil>
	// Ready True Provisioned "the account exists"
}

// A step makes one call for each of many grants. Yield lets other objects be reconciled in between.
func ExampleYield() {
	run(reconcile.Named("grants", reconcile.Func(func(ctx context.Context, _ client.Client, _ *budget) error {
		for range 1000 {
			if err := reconcile.Yield(ctx); err != nil {
				return err // the next pass finds out which grants are left
			}
		}
		return nil
	})))
	// Output:
	// again after 0s <nil>
	// Ready False Yielded "there is more to do, and it goes on in turns with other objects"
	// Reconciling True Yielded "there is more to do, and it goes on in turns with other objects"
}

// The error is still a failure, which is retried with backoff. Only the reason of the condition changes.
func ExampleWithReason() {
	run(reconcile.Named("account", step(reconcile.WithReason("NoAnswer", errors.New("the directory does not answer")))))
	// Output:
	// again after 0s <nil>
	// Ready False NoAnswer "the directory does not answer"
	// Reconciling True NoAnswer "the directory does not answer"
}

// Another operator sets the conditions of the object, so this operator does not change them.
func ExampleKeepConditions() {
	run(reconcile.Named("account", step(reconcile.KeepConditions(reconcile.Wait("WaitingForRelease", time.Minute, "another operator has the account")))))
	// Output: again after 1m0s <nil>
}

// notIssuedError is an error of a package that does not import package reconcile.
type notIssuedError struct{ after time.Duration }

func (e *notIssuedError) Error() string                    { return "the certificate is not issued yet" }
func (e *notIssuedError) Waiting() (string, time.Duration) { return "Issuing", e.after }

var _ reconcile.Waiter = &notIssuedError{}

func ExampleWaiter() {
	run(reconcile.Named("certificate", step(fmt.Errorf("shop/web: %w", &notIssuedError{2 * time.Minute}))))
	// Output:
	// again after 2m0s <nil>
	// Ready False Issuing "shop/web: the certificate is not issued yet"
	// Reconciling True Issuing "shop/web: the certificate is not issued yet"
}

// quotaError is an error of a package that does not import package reconcile.
type quotaError struct{ limit int }

func (e *quotaError) Error() string  { return fmt.Sprintf("no more than %d accounts", e.limit) }
func (e *quotaError) Reason() string { return "QuotaExceeded" }

// If an error has a method Reason, the condition gets that reason.
func ExampleStep_reason() {
	run(reconcile.Named("account", step(reconcile.Stalled("", &quotaError{10}))))
	// Output:
	// again after 10m0s <nil>
	// Ready False QuotaExceeded "no more than 10 accounts"
	// Stalled True QuotaExceeded "no more than 10 accounts"
}

// Errors of the API server need no wrapping. After a conflict, no condition changes, and the pass is repeated soon.
func ExampleStep() {
	pods := schema.GroupResource{Resource: "pods"}
	run(reconcile.Named("pods", step(apierrors.NewConflict(pods, "web", errors.New("it was changed")))))
	run(reconcile.Named("pods", step(apierrors.NewForbidden(pods, "web", errors.New("the role lacks the verb delete")))))
	// Output:
	// again after 0s <nil>
	// again after 0s <nil>
	// Ready False Forbidden "pods \"web\" is forbidden: the role lacks the verb delete"
	// Stalled True Forbidden "pods \"web\" is forbidden: the role lacks the verb delete"
}
