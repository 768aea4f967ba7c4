package argocd

import (
	"context"
	"errors"
	"testing"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/opblocks/opblocks/reconcile"
)

// Shop is a custom resource with the status that package reconcile writes.
type Shop struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`
	Status            ShopStatus `json:"status,omitzero"`
}

// ShopStatus has the fields that package reconcile writes.
type ShopStatus struct {
	ObservedGeneration int64              `json:"observedGeneration,omitempty"`
	Conditions         []metav1.Condition `json:"conditions,omitempty"`
}

// DeepCopyObject implements runtime.Object.
func (s *Shop) DeepCopyObject() runtime.Object {
	out := &Shop{TypeMeta: s.TypeMeta, Status: s.Status}
	s.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	out.Status.Conditions = append([]metav1.Condition(nil), s.Status.Conditions...)
	return out
}

// TestHealthOfWhatReconcileWrites runs one pass for each outcome of a step. It compares the statuses of the object by kstatus and by Argo
// CD.
func TestHealthOfWhatReconcileWrites(t *testing.T) {
	boom := errors.New("boom")
	tests := map[string]struct {
		outcome error
		paused  bool
		want    answer
		message string
	}{
		"Success":  {nil, false, answer{status.CurrentStatus, "Healthy"}, ""},
		"Reason":   {reconcile.Success("Synced", 0, "The account is there"), false, answer{status.CurrentStatus, "Healthy"}, "The account is there"},
		"Wait":     {reconcile.Wait("Issuing", 0, "no certificate yet"), false, answer{status.InProgressStatus, "Progressing"}, "no certificate yet"},
		"Failure":  {boom, false, answer{status.InProgressStatus, "Progressing"}, "boom"},
		"Halt":     {reconcile.Halt(boom), false, answer{status.InProgressStatus, "Progressing"}, "boom"},
		"Stalled":  {reconcile.Stalled("BadName", boom), false, answer{status.FailedStatus, "Degraded"}, "boom"},
		"Paused":   {nil, true, answer{status.CurrentStatus, "Suspended"}, "nothing is done until the annotation opblocks.dev/paused is removed"},
		"Conflict": {reconcile.KeepConditions(nil), false, answer{status.CurrentStatus, "Progressing"}, "No pass has ended yet"},
	}
	text := script(t)
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			shop := &Shop{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", Generation: 1}}
			if tc.paused {
				shop.Annotations = map[string]string{reconcile.PausedAnnotation: "true"}
			}
			obj := afterPass(t, shop, tc.outcome)
			got := answers(t, text, obj)
			_, message := health(t, text, obj)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if message != tc.message {
				t.Errorf("the message is %q, and not %q", message, tc.message)
			}
		})
	}
}

// afterPass returns the shop as it is stored after a pass with one step. The step returns outcome.
func afterPass(t *testing.T, shop *Shop, outcome error) *unstructured.Unstructured {
	t.Helper()
	scheme := runtime.NewScheme()
	scheme.AddKnownTypes(schema.GroupVersion{Group: "shop.example.com", Version: "v1"}, &Shop{})
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(shop).WithStatusSubresource(&Shop{}).Build()
	step := reconcile.Func(func(context.Context, client.Client, *Shop) error { return outcome })
	_, err := reconcile.New(c, reconcile.Named("one", step)).Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(shop)})
	require.NoError(t, err)

	stored := &Shop{}
	require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(shop), stored))
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(stored)
	require.NoError(t, err)
	return &unstructured.Unstructured{Object: content}
}
