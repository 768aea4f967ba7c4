package reconcile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
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

// Another writer is faster than the checkpoint: then the pass does not write its status.
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
	h.pass(t) // a first status is always written with a lock
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

// The pass continues from the answer of the checkpoint: it writes only what has changed since, and keeps the fields that
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

// Right after its start a process may read an object from the cache that has changed long ago. If the status needs no write,
// only a read from the API server shows that.
func TestCheckpointWithStaleCache(t *testing.T) {
	unreachable := errors.New("connection refused")
	for name, tc := range map[string]struct {
		change func(t *testing.T, h *harness)
		live   error  // of the read past the cache
		reason string // why the step must not act
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
			var old *budget // that the cache shows
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

// A step does everything that finds out how fresh the object is, in every order, and ignores the errors. The status write at
// the end of the pass depends on the errors alone: none after a conflict, with a lock after another error, and else without
// one. So what a failed checkpoint was to write is never written later without a lock.
func TestStatusWriteByFreshness(t *testing.T) {
	timeout := errors.New("timeout")
	actions := map[string]freshnessAction{
		"metadata":                    {reason: "a write with a lock confirms the object", metadata: true},
		"checkpoint":                  {reason: "so does this"},
		"checkpoint meets a conflict": {reason: "nothing is stored", err: apierrors.NewConflict(resource, "a", errors.New("modified"))},
		"checkpoint is lost":          {reason: "nothing is stored, which the step cannot know", err: timeout},
		"checkpoint loses its answer": {reason: "it is stored, which the step cannot know", err: timeout, stored: true},
		"confirm":                     {reason: "a read confirms the object", confirm: true},
		"confirm finds nothing":       {reason: "a deletion counts as a conflict", confirm: true, err: apierrors.NewNotFound(resource, "a")},
		"confirm fails":               {reason: "the object may be another version", confirm: true, err: timeout},
	}
	names := slices.Sorted(maps.Keys(actions))
	sequences := [][]string{nil}
	for i := 0; len(sequences[i]) < 3; i++ {
		for _, name := range names {
			sequences = append(sequences, append(slices.Clone(sequences[i]), name))
		}
	}
	for _, sequence := range sequences {
		t.Run(strings.Join(sequence, ", "), func(t *testing.T) {
			run := &freshnessRun{}
			for _, name := range sequence {
				run.actions = append(run.actions, actions[name])
			}
			run.test(t)
		})
	}
}

// freshnessAction is something that a step does and that may change how fresh the object is known to be. It is a checkpoint
// unless metadata or confirm is set.
type freshnessAction struct {
	reason   string
	metadata bool
	confirm  bool
	err      error // the answer to its request
	stored   bool  // the request is carried out nevertheless
}

// freshnessRun is one pass of a process that has just started, whose step does some actions.
type freshnessRun struct {
	actions []freshnessAction
	started bool            // the step does the actions
	now     freshnessAction // the zero value before the first and after the last one
	ended   bool            // the step has done all actions

	conflicted, failed bool // an action has returned a conflict, or another error
	written            bool // the metadata was written, and nothing has failed since
	confirmed          bool // a checkpoint or a confirmation has succeeded, which holds for the whole process
	reads              int
	final              []string // the status patches after the step
}

func (r *freshnessRun) test(t *testing.T) {
	h := newHarness(t, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			if _, cached := obj.(*budget); !cached {
				r.reads++
				if r.now.err != nil {
					return r.now.err
				}
			}
			return c.Get(ctx, key, obj, opts...)
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			data, err := p.Data(obj)
			require.NoError(t, err)
			if r.ended {
				r.final = append(r.final, string(data))
			}
			if r.failed {
				require.Contains(t, string(data), `"resourceVersion"`, "a status write after a failure has a lock")
			}
			if r.now.err == nil || r.now.stored {
				err = c.SubResource(sub).Patch(ctx, obj, p, opts...)
			}
			return cmp.Or(r.now.err, err)
		},
	}, Named("one", Func(r.step(t))))
	h.pass(t) // the first status has conditions, which are a list, and so always has a lock
	r.started = true

	again := New(h.client, h.steps...).WithClock(h.clock)
	result, err := again.Reconcile(t.Context(), request)
	require.NoError(t, err)
	if r.conflicted {
		require.Empty(t, r.final, "after a conflict the status is not written")
		require.NotZero(t, result.RequeueAfter, "the next pass writes it")
		return
	}
	require.Len(t, r.final, 1)
	require.Contains(t, r.final[0], `"currentHealthy":9`)
	require.Equal(t, r.failed, strings.Contains(r.final[0], `"resourceVersion"`), "a lock exactly if something failed: %s", r.final[0])
}

// step does the actions, and changes a field of the status that is no list, so that its write alone needs no lock.
func (r *freshnessRun) step(t *testing.T) StepFunc[*budget] {
	return func(ctx context.Context, c client.Client, b *budget) error {
		if !r.started {
			return nil
		}
		for i, action := range r.actions {
			r.now = action
			before := r.reads
			var err error
			switch {
			case action.metadata:
				_, err = PatchAnnotations(ctx, c, b, map[string]string{"example.com/action": fmt.Sprint(i)})
				r.written = r.written || err == nil && !r.failed && !r.conflicted
				continue // the outcome of the step shows its error: the status may be written
			case action.confirm:
				_, err = passFrom(ctx).ConfirmCurrent(ctx, b)
				known := r.confirmed || r.written
				require.Equal(t, !known, r.reads == before+1, "a request exactly if the object is not known to be current")
				require.False(t, !known && action.err != nil && err == nil, "the error is returned")
			default:
				b.Status.ExpectedPods = int32(10 + i)
				err = Checkpoint(ctx)
				require.False(t, action.err != nil && err == nil, "the error is returned")
			}
			r.confirmed = r.confirmed || err == nil
			r.conflicted = r.conflicted || err != nil && isConflict(err)
			r.failed = r.failed || err != nil && !isConflict(err)
			r.written = r.written && err == nil
		}
		r.now, r.ended = freshnessAction{}, true
		b.Status.CurrentHealthy = 9
		return nil
	}
}

func with(b *budget, effect string) *budget {
	b.Labels = map[string]string{"effect": effect}
	return b
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

// The panic of a step does not undo what was recorded.
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

// Another process has finished the deletion, which the cache does not show yet. The removal of the last finalizer finds
// nothing to remove, so it does not confirm that the object is current.
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
		}}, Finalizer("example.com/first")),
		Named("second", cleaning{returning(nil), returning(nil)}, Finalizer("example.com/second")))
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
