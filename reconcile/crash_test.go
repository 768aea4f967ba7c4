package reconcile

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/opblocks/opblocks/internal/passcontext"
)

var errCrashed = errors.New("the operator is gone")

// outside is a service with an account, and a cluster. Both outlive the operator, which crashes at one of its actions:
// either right before the action, or after the action and before it gets the answer.
type outside struct {
	t        *testing.T
	cluster  client.Client
	account  bool
	actions  int
	crashAt  int
	answered bool // the crash comes after the action, and before the operator gets the answer
	dead     bool
	stale    *budget // the object in the cache; nil if the cache has the live object
	wrong    []string
}

func (o *outside) act(do func() error) error {
	if o.dead {
		return errCrashed
	}
	o.actions++
	crash := o.actions == o.crashAt
	o.dead = crash
	if crash && !o.answered {
		return errCrashed
	}
	err := do()
	o.check()
	if crash {
		return errCrashed
	}
	return err
}

// check records the mistakes in the present state.
func (o *outside) check() {
	if !o.account {
		return
	}
	var b budget
	err := o.cluster.Get(o.t.Context(), request.NamespacedName, &b)
	switch {
	case err != nil:
		o.wrong = append(o.wrong, "the account leaks: its object is gone")
	case len(b.Finalizers) == 0:
		o.wrong = append(o.wrong, "there is no finalizer for the account")
	case b.Status.ExpectedPods == 0:
		o.wrong = append(o.wrong, "the status does not record that the account is ours")
	}
}

func newOutside(t *testing.T) *outside {
	o := &outside{t: t}
	o.cluster = fake.NewClientBuilder().WithObjects(newBudget()).WithStatusSubresource(&budget{}).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			if b, ok := obj.(*budget); ok && o.stale != nil && passcontext.FromContext(ctx) == nil && len(opts) > 0 {
				o.stale.DeepCopyInto(b)
				return nil
			}
			return c.Get(ctx, key, obj, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, p client.Patch, opts ...client.PatchOption) error {
			return o.act(func() error { return c.Patch(ctx, obj, p, opts...) })
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			return o.act(func() error { return c.SubResource(sub).Patch(ctx, obj, p, opts...) })
		},
	}).Build()
	return o
}

// operator returns the operator as a new process, which remembers nothing.
func (o *outside) operator() *Reconciler[*budget] {
	o.dead = false
	ensure := func(ctx context.Context, _ client.Client, b *budget) error {
		if o.account && b.Status.ExpectedPods == 0 {
			return Stalled("AccountExists", errors.New("somebody else's account")) // if it is our account, nobody deletes it any more
		}
		b.Status.ExpectedPods = 1 // records that the account is ours
		if err := Checkpoint(ctx); err != nil {
			return err
		}
		if o.account {
			return nil
		}
		return o.act(func() error { o.account = true; return nil })
	}
	clean := func(context.Context, client.Client, *budget) error {
		if !o.account {
			return nil
		}
		return o.act(func() error { o.account = false; return nil })
	}
	return New(o.cluster, Named("account", cleaning{Func(ensure), clean}).Finalizer("example.com/account")).
		WithClock(clocktesting.NewFakePassiveClock(noon))
}

// settle reconciles until nothing is left to do. After a crash it starts a new process.
func (o *outside) settle() {
	r := o.operator()
	for range 20 {
		result, err := r.Reconcile(o.t.Context(), request)
		require.NoError(o.t, err)
		if o.dead {
			r = o.operator()
			continue
		}
		o.stale = nil // now the cache has the live object
		if result.RequeueAfter == 0 {
			return
		}
	}
	o.t.Fatal("it does not settle")
}

// The operator crashes at each of its actions in turn: finalizer, checkpoint, account, status, cleanup, removal of the
// finalizer. While the account exists, the object has its finalizer and the record in the status, and nothing of a deleted
// object is left. This also holds if the cache has the first state again after each crash.
func TestCrashAtEveryAction(t *testing.T) {
	for _, stale := range []bool{false, true} {
		for _, answered := range []bool{false, true} {
			for at := 1; ; at++ {
				o := newOutside(t)
				o.crashAt, o.answered = at, answered
				name := fmt.Sprintf("crash at action %d, done %v, stale cache %v", at, answered, stale)
				var first budget
				require.NoError(t, o.cluster.Get(t.Context(), request.NamespacedName, &first))
				if stale {
					o.stale = &first
				}
				o.settle()
				require.True(t, o.account, name)
				if stale {
					o.stale = &budget{}
					require.NoError(t, o.cluster.Get(t.Context(), request.NamespacedName, o.stale))
				}
				require.NoError(t, o.cluster.Delete(t.Context(), newBudget()))
				o.settle()
				o.settle() // now the cache shows the deletion
				require.False(t, o.account, name)
				err := o.cluster.Get(t.Context(), request.NamespacedName, &budget{})
				require.True(t, apierrors.IsNotFound(err), "%s: %v", name, err)
				require.Empty(t, o.wrong, name)
				if o.actions < at {
					require.GreaterOrEqual(t, at, 6, "all actions have been tried")
					break
				}
			}
		}
	}
}
