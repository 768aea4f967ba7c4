package reconcile

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/opblocks/opblocks/conditions"
)

func TestFinalizersAreAddedFirstAndRemovedInReverse(t *testing.T) {
	var notes []string
	var waits error
	requests := 0
	see := func(_ context.Context, _ client.Client, b *budget) error {
		require.Equal(t, []string{"example.com/one", "example.com/three"}, b.Finalizers, "they are there before any step runs")
		notes = append(notes, "step")
		return nil
	}
	h := newHarness(t, patches(&requests, nil),
		Named("one", cleaning{Func(see), noting(&notes, "clean one", nil)}).Finalizer("example.com/one"),
		Named("two", Func(see)),
		Named("three", cleaning{Func(see), noting(&notes, "clean three", &waits)}).Finalizer("example.com/three"))
	h.pass(t)
	require.Equal(t, []string{"step", "step", "step"}, notes)
	require.Equal(t, []int{1, 1}, []int{requests, h.writes}, "one request for both finalizers, one for the status")

	h.delete(t)
	notes, waits = nil, Wait("Dropping", time.Minute, "the database is being dropped")
	require.Equal(t, time.Minute, h.pass(t).RequeueAfter)
	require.Equal(t, []string{"clean three"}, notes, "the cleanup of an earlier step waits for that of the later one")
	want := []condition{
		{"Ready", "False", "Dropping", "the database is being dropped"}, {"Reconciling", "True", "Dropping", "the database is being dropped"},
	}
	if diff := cmp.Diff(want, conditionsOf(h.status(t))); diff != "" {
		t.Errorf("the conditions show why the object is not removed yet (-want +got)\n%s", diff)
	}

	notes, waits, requests = nil, nil, 0
	require.Zero(t, h.pass(t))
	require.Equal(t, []string{"clean three", "clean one"}, notes)
	require.Equal(t, []string{"the object is gone"}, h.finalizers(t))
	require.Equal(t, []int{2, 2}, []int{requests, h.writes}, "one request for each finalizer, and none for the status of an object that is removed")
}

func TestFinalize(t *testing.T) {
	boom := errors.New("boom")
	tests := map[string]struct {
		reason string
		err    error
		panics bool
		ready  string // the reason of Ready; empty if the object is gone
		after  time.Duration
	}{
		"Nothing":       {reason: "a cleanup without an error has succeeded"},
		"HaltAlone":     {reason: "a halt without an error is a success, and nothing comes after it", err: Halt(nil)},
		"Wait":          {reason: "a wait without a delay asks for no pass: an event triggers it", err: Wait("Dropping", 0, "w"), ready: "Dropping"},
		"WaitWithDelay": {reason: "the delay of the wait triggers the next attempt", err: Halt(Wait("Dropping", time.Minute, "w")), ready: "Dropping", after: time.Minute},
		"Failure":       {reason: "a failed cleanup is retried with backoff", err: boom, ready: "Failed", after: firstBackoff},
		"Stalled":       {reason: "a stalled cleanup is retried after ten minutes", err: Stalled("Locked", boom), ready: "Locked", after: stalledRetry},
		"Panic":         {reason: "a panic is a failure", panics: true, ready: "Failed", after: firstBackoff},
		"Joined":        {reason: "a success does not hide a failure", err: errors.Join(Halt(nil), boom), ready: "Failed", after: firstBackoff},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, interceptor.Funcs{}, Named("one", cleaning{returning(nil), func(context.Context, client.Client, *budget) error {
				if tc.panics {
					panic("ouch")
				}
				return tc.err
			}}).Finalizer("example.com/one").Reporting("Database"))
			h.pass(t)
			h.delete(t)
			after := h.pass(t).RequeueAfter
			require.GreaterOrEqual(t, after, tc.after, tc.reason)
			require.LessOrEqual(t, after, tc.after+tc.after/10, tc.reason)
			if tc.ready == "" {
				require.Equal(t, []string{"the object is gone"}, h.finalizers(t), tc.reason)
				return
			}
			require.Equal(t, []string{"example.com/one"}, h.finalizers(t), tc.reason)
			for _, c := range conditionsOf(h.status(t)) {
				require.Equal(t, tc.ready, c.Reason, "%s: %s", tc.reason, c.Type)
			}
			writes := h.writes
			h.pass(t)
			require.Equal(t, writes, h.writes, "the same outcome is not written again")
		})
	}
}

func TestFormerFinalizers(t *testing.T) {
	const data, files, storage, theirs = "children.opblocks.dev/data", "children.opblocks.dev/files", "children.opblocks.dev/storage", "example.com/theirs"
	tests := map[string]struct {
		reason   string
		have     []string
		after    []string // the finalizers after a pass; nil if the object is gone
		requests int
		cleanups []string
		left     string
	}{
		"Replaced": {
			reason: "one request replaces the former finalizers by the present one",
			have:   []string{data, theirs, files}, after: []string{theirs, storage}, requests: 1,
			cleanups: []string{theirs + " " + storage}, left: theirs,
		},
		"DeletedBefore": {
			reason: "the cleanup serves the former finalizer as its own",
			have:   []string{data, theirs}, cleanups: []string{data + " " + theirs}, left: theirs,
		},
		"AddedAgain": {
			reason: "a replica of the former release has added its own: the two must not add and remove it in turn",
			have:   []string{storage, data, theirs}, after: []string{storage, data, theirs},
			cleanups: []string{storage + " " + data + " " + theirs, data + " " + theirs}, left: theirs,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			requests, step := 0, &renamed{stepFunc: returning(nil)}
			h := newHarness(t, patches(&requests, nil), Named("storage", step).FormerNames("data", "files"))
			h.edit(t, func(b *budget) { b.Finalizers = tc.have })
			if tc.after != nil {
				h.pass(t)
				require.Equal(t, tc.after, h.finalizers(t), tc.reason)
				require.Equal(t, tc.requests, requests, tc.reason)
			}
			h.delete(t)
			h.pass(t)
			require.Equal(t, tc.cleanups, step.cleanups, tc.reason)
			require.Equal(t, []string{tc.left}, h.finalizers(t), tc.reason)
		})
	}
}

// A release renames a step, and its author forgets FormerNames. Then nobody removes the former finalizer.
func TestUnknownFinalizer(t *testing.T) {
	const data, theirs = "children.opblocks.dev/data", "example.com/theirs"
	for name, started := range map[string]bool{"CleanedUpByThisProcess": true, "AfterARestart": false} {
		t.Run(name, func(t *testing.T) {
			step := &renamed{stepFunc: returning(nil)}
			h := newHarness(t, interceptor.Funcs{}, Named("storage", step))
			recorder := events.NewFakeRecorder(10)
			h.recorder = recorder
			if started {
				h.edit(t, func(b *budget) { b.Finalizers = []string{data, theirs} })
				h.pass(t)
			} else {
				h.edit(t, func(b *budget) { b.Finalizers = []string{theirs, data} })
			}
			h.delete(t)
			for len(recorder.Events) > 0 {
				<-recorder.Events
			}
			h.clock.SetTime(h.stored(t).DeletionTimestamp.Time)
			writes := h.writes
			require.Equal(t, unknownFinalizerDelay, h.pass(t).RequeueAfter, "a second reconciler of the kind may remove it")
			require.Equal(t, writes, h.writes)
			h.clock.SetTime(h.clock.Now().Add(unknownFinalizerDelay))
			require.GreaterOrEqual(t, h.pass(t).RequeueAfter, stalledRetry)
			const message = `the finalizer "children.opblocks.dev/data" is that of a step "data", and no step of this operator has it: ` +
				`if a step was renamed, give the step its FormerNames("data"); if the step or its options were removed, add them again, and let its children return nil; ` +
				`if it is a step of another operator, that one has to remove it`
			var ready condition
			for _, c := range conditionsOf(h.status(t)) {
				if c.Type == conditions.Ready {
					ready = c
				}
			}
			require.Equal(t, condition{"Ready", "False", reasonUnknownFinalizer, message}, ready)
			require.Len(t, recorder.Events, 1)
			require.ElementsMatch(t, []string{data, theirs}, h.finalizers(t), "it is never removed")
			writes = h.writes
			h.pass(t)
			require.Equal(t, writes, h.writes, "it is written once")
			require.Len(t, recorder.Events, 1)
			require.Len(t, step.cleanups, map[bool]int{true: 1, false: 0}[started], "the cleanup does not run again")

			h.edit(t, func(b *budget) { b.Finalizers = nil })
			h.pass(t)
			require.Empty(t, h.memory.objects)
		})
	}
}

func TestGiveUpCleanupAfter(t *testing.T) {
	recorder := events.NewFakeRecorder(10)
	h := newHarness(t, interceptor.Funcs{}, Named("one", cleaning{returning(nil), returning(errors.New("no route to host"))}).
		Finalizer("example.com/one").GiveUpCleanupAfter(time.Hour))
	h.recorder = recorder
	h.pass(t)
	h.delete(t)
	var b budget
	require.NoError(t, h.client.Get(t.Context(), request.NamespacedName, &b))
	h.clock.SetTime(b.DeletionTimestamp.Add(time.Hour - time.Second))
	h.pass(t)
	require.Equal(t, []string{"example.com/one"}, h.finalizers(t))
	h.clock.SetTime(b.DeletionTimestamp.Add(time.Hour))
	require.Zero(t, h.pass(t))
	require.Equal(t, []string{"the object is gone"}, h.finalizers(t))
	var notes []string
	for range len(recorder.Events) {
		notes = append(notes, <-recorder.Events)
	}
	require.Contains(t, notes, "Warning CleanupGivenUp gave up example.com/one after 1h0m0s, what it had to remove may still be there: no route to host")
}

func TestNoStepRunsWithoutItsFinalizer(t *testing.T) {
	tests := map[string]struct {
		reason string
		err    error
		quiet  bool
		ready  string
	}{
		"Forbidden": {"a missing permission stalls the object", apierrors.NewForbidden(resource, "a", errors.New("cannot patch")), false, "Forbidden"},
		"Refused":   {"an admission webhook may refuse the finalizer", apierrors.NewInvalid(schema.GroupKind{Kind: "Thing"}, "a", nil), false, "Invalid"},
		"Conflict":  {"the cache is behind, so the pass is repeated without an event", apierrors.NewConflict(resource, "a", errors.New("modified")), true, ""},
		"Gone":      {"the object was deleted, which is not a failure", apierrors.NewNotFound(resource, "a"), true, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			ran, requests, err := 0, 0, tc.err
			recorder := events.NewFakeRecorder(10)
			h := newHarness(t, patches(&requests, func() error { return err }),
				Named("one", cleaning{counting(&ran), returning(nil)}).Finalizer("example.com/one"))
			h.recorder = recorder
			require.NotZero(t, h.pass(t).RequeueAfter, tc.reason)
			require.Zero(t, ran, tc.reason)
			require.Equal(t, tc.quiet, len(recorder.Events) == 0, tc.reason)
			ready := ""
			for _, c := range h.status(t).Conditions {
				ready = c.Reason
			}
			require.Equal(t, tc.ready, ready, tc.reason)

			err = nil
			h.pass(t)
			require.Equal(t, 1, ran)
			if tc.quiet {
				return
			}
			require.Len(t, recorder.Events, 2, "the warning, and the event Ready")
			h.edit(t, func(b *budget) { b.Finalizers = nil })
			err = tc.err
			h.pass(t)
			require.Len(t, recorder.Events, 3, "the same failure after a success is another event")
		})
	}
}

// Somebody else may remove our finalizer at any time.
func TestFinalizerRemovedByOthers(t *testing.T) {
	t.Run("from a living object", func(t *testing.T) {
		h := newHarness(t, interceptor.Funcs{}, Named("one", cleaning{returning(nil), returning(nil)}).Finalizer("example.com/one"))
		h.pass(t)
		h.edit(t, func(b *budget) { b.Finalizers = []string{"example.com/theirs"} })
		h.pass(t)
		require.Equal(t, []string{"example.com/theirs", "example.com/one"}, h.finalizers(t), "it is added again, and theirs stays")
	})
	t.Run("during the cleanup", func(t *testing.T) {
		var h *harness
		h = newHarness(t, interceptor.Funcs{}, Named("one", cleaning{returning(nil), func(ctx context.Context, _ client.Client, b *budget) error {
			theirs := b.DeepCopy()
			theirs.Finalizers = slices.DeleteFunc(theirs.Finalizers, func(f string) bool { return f == "example.com/one" })
			return h.client.Update(ctx, theirs)
		}}).Finalizer("example.com/one"))
		h.pass(t)
		h.delete(t)
		require.Zero(t, h.pass(t), "the finalizer is gone, so the cleanup is finished")
		require.Zero(t, h.pass(t))
	})
	t.Run("during the cleanup, and another one is left", func(t *testing.T) {
		var h *harness
		cleaned := 0
		h = newHarness(t, interceptor.Funcs{}, Named("one", cleaning{returning(nil), func(ctx context.Context, _ client.Client, b *budget) error {
			cleaned++
			theirs := b.DeepCopy()
			theirs.Finalizers = []string{"example.com/theirs"}
			return h.client.Update(ctx, theirs)
		}}).Finalizer("example.com/one"))
		h.pass(t)
		h.edit(t, func(b *budget) { b.Finalizers = append(b.Finalizers, "example.com/theirs") })
		h.delete(t)
		require.NotZero(t, h.pass(t).RequeueAfter, "a conflict repeats the pass")
		require.Zero(t, h.pass(t), "it is gone, so nothing is left to do")
		require.Equal(t, 1, cleaned)
		require.Equal(t, []string{"example.com/theirs"}, h.finalizers(t))
	})
}

// The cleanup has finished, and the cache still has the object with its finalizer.
func TestFinalizeWithStaleCache(t *testing.T) {
	for name, theirs := range map[string][]string{"Gone": nil, "HeldByOthers": {"example.com/theirs"}} {
		t.Run(name, func(t *testing.T) {
			var stale *budget
			cleaned, requests := 0, 0
			funcs := patches(&requests, nil)
			funcs.Get = func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
				if stale == nil {
					return c.Get(ctx, key, obj, opts...)
				}
				stale.DeepCopyInto(obj.(*budget))
				return nil
			}
			h := newHarness(t, funcs, Named("one", cleaning{returning(nil), counting(&cleaned)}).Finalizer("example.com/one"))
			h.pass(t)
			h.edit(t, func(b *budget) { b.Finalizers = append(b.Finalizers, theirs...) })
			h.delete(t)
			deleted := &budget{}
			require.NoError(t, h.client.Get(t.Context(), request.NamespacedName, deleted))
			requests = 0
			h.pass(t)
			stale = deleted
			require.Zero(t, h.pass(t))
			require.Equal(t, []int{1, 1}, []int{cleaned, requests})

			if theirs == nil { // an object of the same name that was created later needs its own cleanup
				stale = nil
				h.pass(t)
				require.NoError(t, h.client.Create(t.Context(), &budget{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a", UID: "v"}}))
				h.pass(t)
				h.delete(t)
				h.pass(t)
				require.Equal(t, 2, cleaned)
			}
		})
	}
}

// A cache that is far behind has the object without its deletion timestamp. A step must not create its account again,
// because nobody would clean it up any more.
func TestReconcileWithStaleCacheAfterFinalize(t *testing.T) {
	var stale *budget
	made := 0
	h := newHarness(t, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			if b, ok := obj.(*budget); ok && stale != nil {
				stale.DeepCopyInto(b)
				return nil
			}
			return c.Get(ctx, key, obj, opts...)
		},
	}, Named("one", cleaning{
		Func(func(context.Context, client.Client, *budget) error { made++; return nil }), returning(nil),
	}).Finalizer("example.com/one"))
	h.pass(t)
	require.Equal(t, 1, made)
	var before budget
	require.NoError(t, h.client.Get(t.Context(), request.NamespacedName, &before))
	require.NoError(t, h.client.Delete(t.Context(), before.DeepCopy()))
	h.pass(t)

	stale = &before
	require.Zero(t, h.pass(t))
	require.Equal(t, 1, made)

	stale = nil
	h.pass(t) // now the cache shows the deletion
	again := newBudget()
	again.UID = "another"
	require.NoError(t, h.client.Create(t.Context(), again))
	h.pass(t)
	require.Equal(t, 2, made, "an object of the same name with another UID is another object")
}

// A cleanup registers functions by AfterSteps. They run before the finalizer is removed.
func TestAfterStepsInFinalize(t *testing.T) {
	fail := errors.New("boom")
	done := 0
	h := newHarness(t, interceptor.Funcs{}, Named("one", cleaning{returning(nil), func(ctx context.Context, _ client.Client, _ *budget) error {
		return afterSteps(ctx, func(context.Context) error { done++; return fail })
	}}).Finalizer("example.com/one"))
	h.pass(t)
	h.delete(t)
	require.NotZero(t, h.pass(t).RequeueAfter)
	require.Equal(t, 1, done)
	require.Equal(t, []string{"example.com/one"}, h.finalizers(t))
	fail = nil
	h.pass(t)
	require.Equal(t, 2, done)
	require.Equal(t, []string{"the object is gone"}, h.finalizers(t))
}

// If the cleanup of an optional step fails, the object is not removed.
func TestOptionalFinalize(t *testing.T) {
	h := newHarness(t, interceptor.Funcs{},
		Named("one", cleaning{returning(nil), returning(errors.New("boom"))}).Finalizer("example.com/one").Optional())
	h.pass(t)
	h.delete(t)
	h.pass(t)
	ready, _ := conditions.Get(h.status(t).Conditions, conditions.Ready)
	require.Equal(t, metav1.ConditionFalse, ready.Status)
}
