package reconcile

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

func TestEvents(t *testing.T) {
	boom := errors.New("boom")
	ready := sent{"Normal", "Ready", "Reconcile", "Everything is as wanted"}
	failed := sent{"Warning", "Failed", "MyStep", "boom"}
	conflict := apierrors.NewConflict(resource, "x", errors.New("modified"))
	tests := map[string]struct {
		reason string
		passes []error
		want   []sent
	}{
		"Ready":             {"the event is emitted once, not in each pass", []error{nil, nil, nil}, []sent{ready}},
		"ReadyInOwnWords":   {"the note is the message of the condition", []error{Success("Provisioned", 0, "The account is there.")}, []sent{{"Normal", "Ready", "Reconcile", "The account is there."}}},
		"Fails":             {"the event is emitted once: the conditions show that the failure goes on", []error{boom, boom, boom}, []sent{failed}},
		"FailsForSomething": {"another error is another event", []error{boom, errors.New("bang")}, []sent{failed, {"Warning", "Failed", "MyStep", "bang"}}},
		"Heals":             {"a failure after a success is another event, even with the same message", []error{boom, nil, boom, nil}, []sent{failed, ready, failed, ready}},
		"Waits":             {"a wait is not a failure", []error{Wait("X", time.Minute, "x"), nil}, []sent{ready}},
		"Stalled":           {"a warning, once, with the reason of the step", []error{Stalled("BadName", boom), Stalled("BadName", boom)}, []sent{{"Warning", "BadName", "MyStep", "boom"}}},
		"Conflict":          {"a conflict is not a failure", []error{conflict, nil}, []sent{ready}},
		"ConflictInBetween": {"after a conflict the failure is still the same", []error{boom, conflict, boom}, []sent{failed}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			pass, recorder := 0, &recorder{}
			h := newHarness(t, interceptor.Funcs{}, Named("my-step", Func(func(context.Context, client.Client, *budget) error {
				pass++
				return tc.passes[pass-1]
			})))
			h.recorder = recorder
			for range tc.passes {
				h.pass(t)
			}
			if diff := cmp.Diff(tc.want, recorder.events); diff != "" {
				t.Errorf("%s: (-want +got)\n%s", tc.reason, diff)
			}
		})
	}
}

// The log is for the people who run the operator. If a user has to correct an object, that is not logged as an error.
func TestLogs(t *testing.T) {
	forbidden := apierrors.NewForbidden(resource, "x", errors.New("no rule allows it"))
	tests := map[string]struct {
		reason string
		err    error
		want   []string
	}{
		"Fails":     {"something is wrong with the operator or with what it depends on", errors.New("boom"), []string{"error"}},
		"Forbidden": {"a role lacks a verb", forbidden, []string{"error"}},
		"Stalled":   {"the user has to correct the object", Stalled("BadName", errors.New("boom")), []string{"info"}},
		"Invalid":   {"the API server refuses what the object asks for", apierrors.NewBadRequest("boom"), []string{"info"}},
		"Waits":     {"a wait is logged with verbosity 1 only", Wait("X", time.Minute, "x"), nil},
		"Succeeds":  {"there is nothing to log", nil, nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, interceptor.Funcs{}, Named("one", returning(tc.err)))
			var levels []string
			ctx := log.IntoContext(t.Context(), funcr.NewJSON(func(line string) {
				if strings.Contains(line, `"error"`) {
					levels = append(levels, "error")
				} else {
					levels = append(levels, "info")
				}
			}, funcr.Options{}))
			_, err := h.Reconcile(ctx, request)
			require.NoError(t, err)
			if diff := cmp.Diff(tc.want, levels); diff != "" {
				t.Errorf("%s: (-want +got)\n%s", tc.reason, diff)
			}
		})
	}
}

// The event Ready is emitted only if the condition was written.
func TestNoReadyEventWithoutStatusWrite(t *testing.T) {
	fail, recorder := true, &recorder{}
	h := newHarness(t, interceptor.Funcs{SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
		if fail {
			return apierrors.NewConflict(resource, "a", errors.New("modified"))
		}
		return c.SubResource(sub).Patch(ctx, obj, p, opts...)
	}}, Named("one", returning(nil)))
	h.recorder = recorder
	h.pass(t)
	require.Empty(t, recorder.take())
	fail = false
	h.pass(t)
	require.Len(t, recorder.take(), 1)
}

func TestEventNoteLimit(t *testing.T) {
	tests := map[string]struct{ reason, message string }{
		"AsLongAsItMayBe":  {"a note of the longest length stays whole", strings.Repeat("x", 1024)},
		"TooLong":          {"a longer note is cut: the API server would refuse the event", strings.Repeat("x", 1024+1)},
		"TooLongInChinese": {"the note is cut between two characters", strings.Repeat("错", 400)},
		"InvalidUTF8":      {"invalid bytes are replaced: protobuf has no such strings", "x\xff\xfe"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			recorder := &recorder{}
			h := newHarness(t, interceptor.Funcs{}, Named("one", returning(errors.New(tc.message))))
			h.recorder = recorder
			h.pass(t)
			note := recorder.take()[0].Note
			require.LessOrEqual(t, len(note), 1024, tc.reason)
			require.True(t, utf8.ValidString(note), tc.reason)
			require.Equal(t, len(tc.message) > 1024, strings.HasSuffix(note, "…"), tc.reason)
			h.pass(t)
			require.Equal(t, 1, h.writes, "the same message is not written again")
		})
	}
}

func TestEventf(t *testing.T) {
	recorder := &recorder{}
	h := newHarness(t, interceptor.Funcs{}, Named("water-plants", Func(func(ctx context.Context, _ client.Client, b *budget) error {
		Eventf(ctx, b, corev1.EventTypeNormal, "Watered", "%d litres", 3)
		Eventf(ctx, &appsv1.Deployment{}, corev1.EventTypeWarning, "Wet", "from above")
		return nil
	})))
	h.pass(t) // Eventf without a recorder does nothing
	h.Reconciler.WithRecorder(recorder)
	h.pass(t)
	require.Equal(t, []sent{
		{"Normal", "Watered", "WaterPlants", "3 litres"}, {"Warning", "Wet", "WaterPlants", "from above"},
	}, recorder.take())
	Eventf(t.Context(), &appsv1.Deployment{}, corev1.EventTypeNormal, "Nowhere", "outside of a pass nothing is emitted")
}

func TestErrorIsLoggedOnce(t *testing.T) {
	fail := errors.New("boom")
	h := newHarness(t, interceptor.Funcs{}, Named("one", Func(func(context.Context, client.Client, *budget) error { return fail })))
	var lines []string
	ctx := log.IntoContext(t.Context(), funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{}))
	pass := func() {
		_, err := h.Reconcile(ctx, request)
		require.NoError(t, err)
	}
	pass()
	pass()
	require.Len(t, lines, 1, "the conditions show that it goes on")
	fail = errors.New("bang")
	pass()
	require.Len(t, lines, 2, "another error is logged")
	fail = nil
	pass()
	fail = errors.New("bang")
	pass()
	require.Len(t, lines, 3, "an error after a success is logged, even with the same message")
}
