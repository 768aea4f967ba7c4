//go:build !race

// All actions of a step run in one goroutine, so the race detector would find nothing, and the tests would take ten
// times as long.

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
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// A step does the actions that confirm, or fail to confirm, that its object is current. It does them in every order, and ignores their
// errors. The status write at the end of the pass depends only on the errors. After a conflict, the pass does not write the status. After
// another error, it writes the status with the resource version as precondition. Otherwise it needs no precondition. So the content of a
// failed checkpoint is never written later without that precondition.
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

// freshnessAction is such an action of a step. If metadata is set, it writes metadata. If confirm is set, it confirms that
// the object is current. Otherwise it is a checkpoint.
type freshnessAction struct {
	reason   string
	metadata bool
	confirm  bool
	err      error // the error that its request returns
	stored   bool  // the server carries out the request, although the request returns err
}

// freshnessRun is one pass of a process that has just started, with the actions of its step.
type freshnessRun struct {
	actions []freshnessAction
	started bool            // the step has begun its actions
	now     freshnessAction // the present action; the zero value before the first and after the last one
	ended   bool            // the step has done all actions

	conflicted, failed bool // an action has returned a conflict, or another error
	written            bool // the metadata was written, and no action has failed since
	confirmed          bool // a checkpoint or a confirmation has succeeded, which holds for the rest of the process
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
	h.pass(t) // the first status has a list of conditions, so it is always written with the resource version
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

// step does the actions. It also changes a field of the status that is not a list, so that the status write needs no
// precondition because of this field.
func (r *freshnessRun) step(t *testing.T) stepFunc[*budget] {
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
				continue // the step returns this error in the end, so the status may be written
			case action.confirm:
				_, err = handleFrom(ctx).ConfirmCurrent(ctx, b)
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
