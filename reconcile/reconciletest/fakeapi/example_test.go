package fakeapi_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/opblocks/opblocks/reconcile/reconciletest"
	"github.com/opblocks/opblocks/reconcile/reconciletest/fakeapi"
)

// settings are the fields of a bucket.
type settings struct{ Versioned bool }

// The operator creates a bucket for each ConfigMap. In each pass it lists the buckets. If none has the ConfigMap as its owner, it creates
// one. The list may not show yet a bucket that was just created, and the operator sends no idempotency key. So it may create a second
// bucket.
func Example() {
	t := new(testing.T) // in a test it is the function's own
	report := reconciletest.ExploreQuietly(t, reconciletest.Scenario{
		Scheme:   clientgoscheme.Scheme,
		External: func() reconciletest.External { return &fakeapi.API[settings]{Kind: "bucket", GivesIDs: true} },
		Start: func(p *reconciletest.Process) error {
			buckets := p.External().(*fakeapi.API[settings]).Client(p)
			p.Reconcile(&corev1.ConfigMap{}, ctrlreconcile.Func(func(ctx context.Context, r ctrl.Request) (ctrl.Result, error) {
				all, err := buckets.List(ctx)
				if err != nil {
					return ctrl.Result{}, err
				}
				for _, bucket := range all {
					if bucket.Owner == r.String() {
						return ctrl.Result{}, nil
					}
				}
				_, err = buckets.Create(ctx, fakeapi.Thing[settings]{Owner: r.String()})
				return ctrl.Result{}, err
			}))
			return nil
		},
		Actions: []reconciletest.Action{
			reconciletest.Create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}}),
		},
		Options: reconciletest.Options{SkipFaults: []reconciletest.FaultKind{reconciletest.Faults.LeaderChange}},
	})
	fmt.Println(report.Failures[0].Faults, report.Failures[0].Kind)
	fmt.Println(report.Failures[0].Err)
	// Output:
	// [stale answer to: query list buckets #2] creates a duplicate
	// after "create ConfigMap default/web" the same thing exists twice outside:
	//   bucket default/web, for the owner default/web: created in pass 1 and in pass 2
	// Record what is to be created before it is created, and find it again by that: by its name, by a token, or by a tag
}

// An adapter translates the answers of the API into what the operator's own client returns.
func ExampleStatusOf() {
	exists := fmt.Errorf("create the bucket: %w", &fakeapi.Error{Status: http.StatusConflict, About: "bucket web exists"})
	lost := fmt.Errorf("create the bucket: %w", context.DeadlineExceeded)
	fmt.Println(fakeapi.StatusOf(exists), fakeapi.StatusOf(lost))
	// Output: 409 0
}
