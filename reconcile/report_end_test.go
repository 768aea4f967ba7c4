package reconcile

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	policyv1 "k8s.io/api/policy/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/opblocks/opblocks/internal/passcontext"
)

// A test that explores faults gets a report on how each pass ends. In this test the step always fails.
func TestReportEnd(t *testing.T) {
	kind := policyv1.SchemeGroupVersion.WithKind("PodDisruptionBudget")
	boom := errors.New("boom")
	failed := []passcontext.StepEnd{{Step: "one", State: "failed", Reason: "Failed", Message: "boom"}}
	tests := map[string]struct {
		reason string
		change func(t *testing.T, h *harness) // what happens between the two passes
		want   []passcontext.PassEnd          // the report on the second pass
	}{
		"Failed": {"the pass returns a delay and no error", func(*testing.T, *harness) {}, []passcontext.PassEnd{{Kind: kind, UID: "u", Steps: failed}}},
		"Paused": {
			"the failure of the pass before counts no longer", func(t *testing.T, h *harness) { h.annotate(t, "true") },
			[]passcontext.PassEnd{{Kind: kind, UID: "u"}},
		},
		"FilteredOut": {
			"the object is no longer one of ours", func(_ *testing.T, h *harness) { h.WithFilter(labelled("ours")) },
			[]passcontext.PassEnd{{Kind: kind, UID: "u", FilteredOut: true}},
		},
		"Cleanup": {
			"the cleanup fails too", func(t *testing.T, h *harness) { h.delete(t) },
			[]passcontext.PassEnd{{Kind: kind, UID: "u", Cleanup: true, Steps: failed}},
		},
		"CleanedUp": {
			"somebody has removed the finalizer of the step", func(t *testing.T, h *harness) {
				h.edit(t, func(b *budget) { b.Finalizers = []string{"example.com/other"} })
				h.delete(t)
			},
			[]passcontext.PassEnd{{Kind: kind, UID: "u", Cleanup: true}},
		},
		"Gone": {
			"nothing is left to do for the object", func(t *testing.T, h *harness) {
				h.edit(t, func(b *budget) { b.Finalizers = nil })
				h.delete(t)
			},
			[]passcontext.PassEnd{{Kind: kind, Gone: true}},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			cleanup := func(context.Context, client.Client, *budget) error { return boom }
			h := newHarness(t, interceptor.Funcs{}, Named("one", cleaning{returning(boom), cleanup}).Finalizer("example.com/one"))
			h.pass(t)
			tc.change(t, h)
			var got []passcontext.PassEnd
			ctx := passcontext.WithPassEnds(t.Context(), func(end passcontext.PassEnd) { got = append(got, end) })
			_, err := h.Reconcile(ctx, request)
			require.NoError(t, err)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: (-want +got)\n%s", tc.reason, diff)
			}
		})
	}
}
