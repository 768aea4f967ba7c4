package external_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/reconcile"
	"github.com/opblocks/opblocks/reconcile/external"
)

// TestManyAtOnce is for the race detector. It reconciles many objects at the same time. The functions of the resource use the pass,
// and return all kinds of answers. The metrics are read at the same time.
func TestManyAtOnce(t *testing.T) {
	const objects, rounds = 16, 6
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		n := 0
		answer := func(ctx context.Context, a *Account) error {
			mu.Lock()
			n++
			turn := n % 7
			mu.Unlock()
			a.Status.Account.Version += "." // an author may store something in the status
			switch turn {
			case 0:
				return external.Throttled(time.Millisecond, errors.New("429"))
			case 1:
				panic(secret)
			case 2:
				<-ctx.Done()
				return ctx.Err()
			case 3: // the function ignores its context
				time.Sleep(30 * time.Second)
				a.Status.Account.Version = "late"
				return reconcile.Checkpoint(ctx)
			}
			return reconcile.Checkpoint(ctx)
		}
		e, registry := newMeasuredEnv(t, func(r *external.Resource[*Account, entry]) {
			r.Concurrency, r.IsOurs, r.Others = 8, nil, nil
			r.Server = func(a *Account) string { return a.Name[len(a.Name)-1:] }
			r.Observe = func(ctx context.Context, _ client.Client, a *Account, _ external.Reference) (entry, error) {
				return entry{Quota: 1}, answer(ctx, a)
			}
			r.Adopt = func(*Account, entry) error { return nil }
			r.Update = func(ctx context.Context, _ client.Client, a *Account, _ external.Reference, _, _ entry) error {
				return answer(ctx, a)
			}
		})
		for i := range objects {
			a := newAccount()
			a.Name, a.Spec.Login = fmt.Sprint("account-", i), fmt.Sprint("login-", i)
			a.UID = types.UID(a.Name)
			require.NoError(t, e.Create(t.Context(), a))
		}
		for range rounds {
			var passes sync.WaitGroup
			for i := range objects {
				name := types.NamespacedName{Namespace: "default", Name: fmt.Sprint("account-", i)}
				passes.Go(func() {
					_, err := e.reconciler.Reconcile(t.Context(), ctrl.Request{NamespacedName: name})
					assert.NoError(t, err)
				})
			}
			passes.Go(func() { _ = series(t, registry, "") })
			passes.Wait()
			e.clock.SetTime(e.clock.Now().Add(20 * time.Second))
		}
		time.Sleep(time.Minute)
		require.Zero(t, e.step.Abandoned(), "all have returned by now")
		require.NotContains(t, strings.Join(series(t, registry, ""), "\n"), secret)
	})
}
