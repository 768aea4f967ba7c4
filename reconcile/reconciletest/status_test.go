package reconciletest_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/reconcile/reconciletest"
)

// withEmptyStatus returns a shop with an empty status. A Go type sends this if its status is neither a pointer nor omitzero.
func withEmptyStatus(name string) *unstructured.Unstructured {
	s := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{}}}
	s.SetGroupVersionKind(shopVersion.WithKind("Shop"))
	s.SetNamespace("default")
	s.SetName(name)
	return s
}

// A kind has no status subresource, and its schema requires a field of the status. The API server refuses the empty status of a Go type.
func TestRefusedStatus(t *testing.T) {
	definition, err := os.ReadFile(filepath.Join("testdata", "shops.yaml"))
	require.NoError(t, err)
	crd := filepath.Join(t.TempDir(), "shops.yaml")
	const status = "          status:\n            type: object\n"
	text := strings.Replace(string(definition), "    subresources:\n      status: {}\n", "", 1)
	require.NoError(t, os.WriteFile(crd, []byte(strings.Replace(text, status, status+"            required: [phase]\n", 1)), 0o600))

	const hint = "If the kind has no status subresource, its Go type sends an empty status with each create and update, which the definition refuses: send an unstructured object without a status"
	tests := map[string]struct {
		reason string
		edit   func(s *reconciletest.Scenario)
		says   string
	}{
		"Action": {
			"The user creates the object.",
			func(s *reconciletest.Scenario) {
				s.Actions = []reconciletest.Action{reconciletest.Create(withEmptyStatus("web"))}
			},
			`the action "create Shop default/web": Shop.example.com "web" is invalid: status.phase: Required value`,
		},
		"Objects": {
			"It exists before.", func(s *reconciletest.Scenario) { s.Objects = []client.Object{withEmptyStatus("web")} },
			`the scenario's objects: Shop.example.com "web" is invalid: status.phase: Required value`,
		},
		"Operator": {
			"The operator creates another one.",
			func(s *reconciletest.Scenario) {
				s.Start = func(p *reconciletest.Process) error {
					p.Reconcile(&Shop{}, &shopReconciler{p.Client(), func(ctx context.Context, c client.Client, _ *Shop) (ctrl.Result, error) {
						return ctrl.Result{}, c.Create(ctx, withEmptyStatus("zoo"))
					}})
					return nil
				}
			},
			`passes over Shop default/web after "create Shop default/web" end in an error: Shop.example.com "zoo" is invalid: status.phase: Required value`,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := passing(func(context.Context, client.Client, *Shop) (ctrl.Result, error) { return ctrl.Result{}, nil })
			s.CRDs = []string{crd}
			tc.edit(&s)
			report := reconciletest.ExploreQuietly(t, s).String()
			assert.Contains(t, report, tc.says, tc.reason)
			assert.Contains(t, report, hint, tc.reason)
		})
	}
}
