package startqueue_test

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/opblocks/opblocks/reconcile"
	"github.com/opblocks/opblocks/reconcile/startqueue"
)

// ConfigMaps stand for a custom resource here. At most one object runs at a time, and the runs of two are due.
func ExampleQueue() {
	queue := startqueue.Queue[*corev1.ConfigMap]{
		Limit: 1, Clock: clocktesting.NewFakePassiveClock(two.Add(time.Hour)), List: &corev1.ConfigMapList{}, Candidate: candidate,
	}
	step := reconcile.Named("run", reconcile.Func(func(ctx context.Context, c client.Client, m *corev1.ConfigMap) error {
		may, err := queue.MayStart(ctx, c, m)
		if err != nil {
			return err
		}
		if !may {
			return reconcile.Wait("WaitingForTurn", time.Minute, "others run or come first")
		}
		return nil // here the step would start the run
	}), queue.Watching())
	fmt.Printf("%T\n", step)

	first, second := waits("first", 0), waits("second", 1)
	c := fake.NewFakeClient(first, second)
	for _, m := range []*corev1.ConfigMap{first, second} {
		fmt.Println(queue.MayStart(context.Background(), c, m))
	}
	// Output:
	// reconcile.NamedStep[*k8s.io/api/core/v1.ConfigMap]
	// true <nil>
	// false <nil>
}
