package reconcile

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/opblocks/opblocks/predicates"
)

// queue is a work queue that records the requests which are added.
type queue struct {
	workqueue.TypedRateLimitingInterface[ctrl.Request]
	added []ctrl.Request
}

func (q *queue) Add(r ctrl.Request) { q.added = append(q.added, r) }

// A step watches one field of Pods, and ignores creations.
func TestWatching(t *testing.T) {
	node := func(p *corev1.Pod) string { return p.Spec.NodeName }
	withoutCreations := predicate.Funcs{CreateFunc: func(event.CreateEvent) bool { return false }}
	var read error
	toBudget := func(ctx context.Context, r client.Reader, p *corev1.Pod) []ctrl.Request {
		read = errors.Join(r.Get(ctx, request.NamespacedName, &budget{}), r.Get(ctx, request.NamespacedName, &corev1.Service{}))
		return []ctrl.Request{{NamespacedName: types.NamespacedName{Namespace: p.Namespace, Name: p.Labels["budget"]}}}
	}
	h := newHarness(t, interceptor.Funcs{}, Named("one", returning(nil), Watching(&corev1.Pod{}, toBudget, predicates.FieldChanged(node), withoutCreations)))
	require.NoError(t, h.prepare())
	w := &h.steps[0].watches[0]
	pod := func(on string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Labels: map[string]string{"budget": "a"}}, Spec: corev1.PodSpec{NodeName: on}}
	}
	to := []ctrl.Request{request}
	filter := predicate.And(w.predicates...)
	for name, tc := range map[string]struct {
		reason string
		passes bool
		handle func(handler.EventHandler, *queue)
		want   []ctrl.Request
	}{
		"Creation": {
			"the predicate drops creations, of which there is one for each Pod at the start", filter.Create(event.CreateEvent{Object: pod("a")}),
			func(e handler.EventHandler, q *queue) { e.Create(t.Context(), event.CreateEvent{Object: pod("a")}, q) }, nil,
		},
		"Unchanged": {
			"the predicate drops updates that do not change the field", filter.Update(event.UpdateEvent{ObjectOld: pod("a"), ObjectNew: pod("a")}),
			func(e handler.EventHandler, q *queue) {
				e.Update(t.Context(), event.UpdateEvent{ObjectOld: pod("a"), ObjectNew: pod("a")}, q)
			}, nil,
		},
		"Changed": {
			"the requests for the old and the new Pod are enqueued, equal ones once", filter.Update(event.UpdateEvent{ObjectOld: pod("a"), ObjectNew: pod("b")}),
			func(e handler.EventHandler, q *queue) {
				e.Update(t.Context(), event.UpdateEvent{ObjectOld: pod("a"), ObjectNew: pod("b")}, q)
			}, to,
		},
		"AnotherKind": {
			"the mapping function is not called with an object of another type", true,
			func(e handler.EventHandler, q *queue) {
				e.Generic(t.Context(), event.GenericEvent{Object: &corev1.Service{}}, q)
			}, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			q := &queue{}
			if tc.passes {
				tc.handle(w.handler(h.stepClient), q)
			}
			if diff := cmp.Diff(tc.want, q.added); diff != "" {
				t.Errorf("%s: (-want +got)\n%s", tc.reason, diff)
			}
		})
	}
	require.ErrorContains(t, read, "read of Service, which no step watches", "the mapping function reads what the steps may read, and no more")
	require.NotContains(t, read.Error(), "PodDisruptionBudget", "the object's own kind is read")
}
