package reconcile

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

func TestCheckpoint(t *testing.T) {
	var h *harness
	h = newHarness(t, interceptor.Funcs{}, Named("one", Func(func(ctx context.Context, _ client.Client, b *budget) error {
		b.Status.ExpectedPods = 7
		if err := Checkpoint(ctx); err != nil {
			return err
		}
		stored := h.status(t)
		require.EqualValues(t, 7, stored.ExpectedPods, "the status is stored before the step acts")
		if b.Status.ObservedGeneration == 0 {
			require.Empty(t, stored.Conditions, "the pass is not over")
			require.Zero(t, stored.ObservedGeneration)
		}
		require.NoError(t, Checkpoint(ctx), "nothing has changed since")
		b.Status.CurrentHealthy = 8
		return nil
	})))
	h.pass(t)
	require.Equal(t, 2, h.writes, "one for the checkpoint, one for the status")
	require.EqualValues(t, 8, h.status(t).CurrentHealthy)
	h.pass(t)
	require.Equal(t, 2, h.writes, "what is recorded is not recorded again")
}

// Another writer writes the object before the checkpoint. The pass must not write its status.
func TestCheckpointConflict(t *testing.T) {
	effects, begins, interfere := 0, false, true
	var h *harness
	h = newHarness(t, interceptor.Funcs{}, Named("one", Func(func(ctx context.Context, c client.Client, b *budget) error {
		if !begins {
			return nil
		}
		if interfere {
			interfere = false
			theirs := &budget{}
			if err := h.client.Get(ctx, request.NamespacedName, theirs); err != nil {
				return err
			}
			theirs.Status.ExpectedPods = 99
			if err := h.client.Status().Update(ctx, theirs); err != nil {
				return err
			}
		}
		if b.Status.ExpectedPods == 99 {
			return Wait("Theirs", 0, "it belongs to them")
		}
		b.Status.ExpectedPods = 7
		if err := Checkpoint(ctx); err != nil {
			return err
		}
		effects++
		return nil
	})))
	h.pass(t) // the first status write always carries the resource version
	begins = true
	require.NotZero(t, h.pass(t).RequeueAfter, "a conflict is retried quietly")
	require.Zero(t, effects)
	require.EqualValues(t, 99, h.status(t).ExpectedPods, "a merge patch without a lock would have overwritten it")
	require.Equal(t, "Succeeded", conditionsOf(h.status(t))[0].Reason, "the conditions stay")
	h.pass(t)
	require.Zero(t, effects)
	require.EqualValues(t, 99, h.status(t).ExpectedPods)
	require.Equal(t, "Theirs", conditionsOf(h.status(t))[0].Reason)
}

// After a checkpoint, the pass continues with its answer. It writes only later changes, and keeps the fields that
// another writer has set in between.
func TestWriteOfOthersAfterCheckpoint(t *testing.T) {
	var h *harness
	h = newHarness(t, interceptor.Funcs{}, Named("one", Func(func(ctx context.Context, _ client.Client, b *budget) error {
		b.Status.ExpectedPods = 7
		if err := Checkpoint(ctx); err != nil {
			return err
		}
		theirs := &budget{}
		if err := h.client.Get(ctx, request.NamespacedName, theirs); err != nil {
			return err
		}
		if theirs.Status.DesiredHealthy == 0 {
			theirs.Status.DesiredHealthy, theirs.Status.ExpectedPods = 5, 6
			return h.client.Status().Update(ctx, theirs)
		}
		return nil
	})))
	h.pass(t)
	require.EqualValues(t, 5, h.status(t).DesiredHealthy)
	require.EqualValues(t, 6, h.status(t).ExpectedPods, "the pass, which wrote 7 before, does not write it again")
	require.Empty(t, h.status(t).Conditions, "the conditions are a list, which is not written over the change of another writer")
	h.pass(t)
	require.EqualValues(t, 5, h.status(t).DesiredHealthy)
	require.EqualValues(t, 7, h.status(t).ExpectedPods, "the next pass has read the other writer's value, and replaces it")
}

// A process that has just started may read an old version of an object from the cache. If the status needs no write, only a
// read from the API server shows that.
func TestCheckpointWithStaleCache(t *testing.T) {
	unreachable := errors.New("connection refused")
	for name, tc := range map[string]struct {
		change func(t *testing.T, h *harness)
		live   error  // the error of the read from the API server
		reason string // why the step must not change anything
	}{
		"Changed": {func(t *testing.T, h *harness) {
			require.NoError(t, h.client.Update(t.Context(), with(h.stored(t), "b")))
		}, nil, "the spec may be another one"},
		"Deleted": {func(t *testing.T, h *harness) {
			require.NoError(t, h.client.Delete(t.Context(), newBudget()))
		}, nil, "nobody would clean up what the step makes"},
		"NotReachable": {func(*testing.T, *harness) {}, unreachable, "the object may have been changed or deleted"},
	} {
		t.Run(name, func(t *testing.T) {
			effects, reads := 0, 0
			var old *budget // the object in the cache
			var live error
			h := newHarness(t, interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
				if b, cached := obj.(*budget); cached && old != nil {
					old.DeepCopyInto(b)
					return nil
				} else if !cached {
					reads++
					if live != nil {
						return live
					}
				}
				return c.Get(ctx, key, obj, opts...)
			}}, Named("one", Func(func(ctx context.Context, _ client.Client, b *budget) error {
				if b.Labels["effect"] == "" {
					return nil
				}
				b.Status.ExpectedPods = 7
				if err := Checkpoint(ctx); err != nil {
					return err
				}
				effects++
				return nil
			})))
			require.NoError(t, h.client.Update(t.Context(), with(h.stored(t), "a")))
			h.pass(t)
			require.Equal(t, 1, effects, "the status was written, and so the object confirmed")
			require.Zero(t, reads)

			again := New(h.client, h.steps...).WithClock(h.clock) // another process
			stale := h.stored(t)
			tc.change(t, h)
			old, live = stale, tc.live
			result, err := again.Reconcile(t.Context(), request)
			require.NoError(t, err)
			require.NotZero(t, result.RequeueAfter, "it is tried again")
			require.Equal(t, 1, effects, tc.reason)
			require.Equal(t, 1, reads)
			old, live = nil, nil
			if name == "Deleted" {
				return
			}
			for range 3 {
				_, err = again.Reconcile(t.Context(), request)
				require.NoError(t, err)
			}
			require.Equal(t, 4, effects)
			require.LessOrEqual(t, reads, 2, "what was current once can only become newer")
		})
	}
}

func TestFreshnessAfter(t *testing.T) {
	timeout, conflict := errors.New("timeout"), apierrors.NewConflict(resource, "a", errors.New("modified"))
	tests := map[string]struct {
		reason string
		from   freshness
		err    error
		want   freshness
	}{
		"Confirmed":             {"the API server has just said so", fromCache, nil, current},
		"ConfirmedAgain":        {"nothing new", current, nil, current},
		"SuccessAfterFailure":   {"the failed checkpoint may be stored nevertheless", uncertain, nil, uncertain},
		"SuccessAfterConflict":  {"the pass still works on an old version", outdated, nil, outdated},
		"Failure":               {"the API server may have another version", fromCache, timeout, uncertain},
		"FailureOfCurrent":      {"the write may have changed the version", current, timeout, uncertain},
		"FailureAgain":          {"nothing new", uncertain, timeout, uncertain},
		"FailureAfterConflict":  {"a failure does not make the version newer", outdated, timeout, outdated},
		"Conflict":              {"another writer was faster", fromCache, conflict, outdated},
		"ConflictOfCurrent":     {"another writer was faster, after the confirmation", current, conflict, outdated},
		"ConflictAfterFailure":  {"the failed checkpoint was stored, or another writer was faster", uncertain, conflict, outdated},
		"ConflictAfterConflict": {"nothing new", outdated, conflict, outdated},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, tc.want, tc.from.after(tc.err), tc.reason)
		})
	}
}

func TestCheckpointMisplaced(t *testing.T) {
	require.ErrorContains(t, Checkpoint(t.Context()), "outside of a pass")

	var err error
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a"}}
	r := New(fake.NewClientBuilder().WithObjects(cm).Build(), Named("one", Func(func(ctx context.Context, _ client.Client, _ *corev1.ConfigMap) error {
		err = Checkpoint(ctx)
		return nil
	})))
	_, _ = r.Reconcile(t.Context(), request)
	require.ErrorContains(t, err, "whose status is not written", "without a status there is nothing to record in")
}

func TestCheckpointErrors(t *testing.T) {
	for name, err := range map[string]error{
		"Forbidden": apierrors.NewForbidden(resource, "a", errors.New("no")), "Timeout": context.DeadlineExceeded, "Gone": apierrors.NewNotFound(resource, "a"),
	} {
		t.Run(name, func(t *testing.T) {
			effects, fails := 0, true
			h := newHarness(t, interceptor.Funcs{SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
				if fails {
					fails = false
					return err
				}
				return c.SubResource(sub).Patch(ctx, obj, p, opts...)
			}}, Named("one", Func(func(ctx context.Context, _ client.Client, b *budget) error {
				b.Status.ExpectedPods = 7
				if err := Checkpoint(ctx); err != nil {
					return err
				}
				effects++
				return nil
			})))
			require.NotZero(t, h.pass(t).RequeueAfter)
			require.Zero(t, effects, "no effect without its record")
			h.pass(t)
			require.Equal(t, 1, effects)
		})
	}
}

// If a step panics after its checkpoint, the status keeps what the checkpoint has written.
func TestCheckpointBeforePanic(t *testing.T) {
	h := newHarness(t, interceptor.Funcs{}, Named("one", Func(func(ctx context.Context, _ client.Client, b *budget) error {
		b.Status.ExpectedPods = 7
		if err := Checkpoint(ctx); err != nil {
			return err
		}
		panic("ouch")
	})))
	h.pass(t)
	require.EqualValues(t, 7, h.status(t).ExpectedPods)
}

// Another process has finished the deletion, and the cache still has the object. The last finalizer is gone already,
// so no request removes it, and no such request confirms that the object is current.
func TestCheckpointInFinalizeOfDeletedObject(t *testing.T) {
	effects := 0
	var old *budget
	h := newHarness(t, interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
		if b, cached := obj.(*budget); cached && old != nil {
			old.DeepCopyInto(b)
			return nil
		}
		return c.Get(ctx, key, obj, opts...)
	}},
		Named("first", cleaning{returning(nil), func(ctx context.Context, _ client.Client, _ *budget) error {
			err := Checkpoint(ctx)
			if err == nil {
				effects++
			}
			return err
		}}).Finalizer("example.com/first"),
		Named("second", cleaning{returning(nil), returning(nil)}).Finalizer("example.com/second"))
	h.pass(t)
	h.delete(t)
	stale := h.stored(t)
	gone := h.stored(t)
	gone.Finalizers = nil
	require.NoError(t, h.client.Update(t.Context(), gone))
	old = stale
	again := New(h.client, h.steps...).WithClock(h.clock)
	result, err := again.Reconcile(t.Context(), request)
	require.NoError(t, err)
	require.NotZero(t, result.RequeueAfter)
	require.Zero(t, effects)
}

func with(b *budget, effect string) *budget {
	b.Labels = map[string]string{"effect": effect}
	return b
}
