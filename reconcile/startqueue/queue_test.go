package startqueue_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/opblocks/opblocks/reconcile"
	"github.com/opblocks/opblocks/reconcile/reconciletest"
	"github.com/opblocks/opblocks/reconcile/startqueue"
	"github.com/opblocks/opblocks/schedule"
)

// These are labels of a ConfigMap, which stands for a custom resource, and the layout of a time in a label. The label
// due says when the run is due, in the format of RFC 3339 with dots instead of colons. The label running says whether
// the object runs.
const due, running, order = "due", "running", "2006-01-02T15.04.05Z"

var two = time.Date(2026, 3, 1, 2, 0, 0, 0, time.UTC)

func candidate(m *corev1.ConfigMap, now time.Time) (schedule.Candidate, bool) {
	status := schedule.Status{}
	if at, err := time.Parse(order, m.Labels[due]); err == nil {
		status.NextScheduleTime = new(metav1.NewTime(at))
	}
	return status.Candidate(now, client.ObjectKeyFromObject(m), m.Labels[running] != "", 0)
}

func newQueue(limit int, c clock.PassiveClock) startqueue.Queue[*corev1.ConfigMap] {
	return startqueue.Queue[*corev1.ConfigMap]{Limit: limit, Clock: c, List: &corev1.ConfigMapList{}, Candidate: candidate}
}

// waits returns an object whose run is due this number of minutes after two o'clock.
func waits(name string, minutes int, edit ...func(*corev1.ConfigMap)) *corev1.ConfigMap {
	m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: name, Labels: map[string]string{due: two.Add(time.Duration(minutes) * time.Minute).Format(order)},
	}}
	for _, e := range edit {
		e(m)
	}
	return m
}

// dueAt sets when a run is due, in minutes after two o'clock.
func dueAt(minutes int) func(*corev1.ConfigMap) {
	return func(m *corev1.ConfigMap) { m.Labels[due] = waits("", minutes).Labels[due] }
}

func runs(m *corev1.ConfigMap) { m.Labels[running] = "true" }

func paused(m *corev1.ConfigMap) {
	m.Annotations = map[string]string{reconcile.PausedAnnotation: "true"}
}

func deleted(m *corev1.ConfigMap) {
	m.DeletionTimestamp, m.Finalizers = new(metav1.NewTime(two)), []string{"example.com/keep"}
}

func TestMayStart(t *testing.T) {
	tests := map[string]struct {
		reason string
		limit  int
		others []client.Object
		want   bool
	}{
		"Alone":    {"nobody else is there", 1, nil, true},
		"Running":  {"another one runs", 1, []client.Object{waits("a", 0, runs)}, false},
		"Room":     {"two may run", 2, []client.Object{waits("a", 0, runs)}, true},
		"Earlier":  {"another one was due before", 1, []client.Object{waits("a", 0)}, false},
		"Later":    {"this one was due before", 1, []client.Object{waits("a", 2)}, true},
		"NotDue":   {"the run of the other one is not due yet", 1, []client.Object{waits("a", 60)}, true},
		"Paused":   {"a paused object takes no place", 1, []client.Object{waits("a", 0, runs, paused)}, true},
		"Deleted":  {"nor does one that is being deleted", 1, []client.Object{waits("a", 0, deleted)}, true},
		"NoLimit":  {"0 means no limit", 0, []client.Object{waits("a", 0, runs)}, true},
		"Negative": {"less than 0 means no limit", -1, []client.Object{waits("a", 0, runs)}, true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			own := waits("me", 1)
			c := fake.NewClientBuilder().WithObjects(append(tc.others, own)...).Build()
			got, err := newQueue(tc.limit, clocktesting.NewFakePassiveClock(two.Add(5*time.Minute))).MayStart(t.Context(), c, own)
			require.NoError(t, err)
			require.Equal(t, tc.want, got, tc.reason)
		})
	}
	t.Run("Error", func(t *testing.T) {
		boom := errors.New("boom")
		c := interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
			List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error { return boom },
		})
		_, err := newQueue(1, clock.RealClock{}).MayStart(t.Context(), c, waits("me", 1))
		require.ErrorIs(t, err, boom)
		may, err := newQueue(0, clock.RealClock{}).MayStart(t.Context(), c, waits("me", 1))
		require.NoError(t, err, "without a limit nothing is listed")
		require.True(t, may)
	})
}

// TestWatching lets events occur in a queue with a limit of one, and checks which objects the events enqueue. It leaves out
// the object of the event itself, which its own controller enqueues.
func TestWatching(t *testing.T) {
	change := func(name string, edit func(*corev1.ConfigMap)) reconciletest.Action {
		return reconciletest.Change(waits(name, 0), edit)
	}
	ended := func(m *corev1.ConfigMap) { delete(m.Labels, running); delete(m.Labels, due) }
	tests := map[string]struct {
		reason string
		limit  int
		action reconciletest.Action
		want   []string
	}{
		"RunEnded":  {"the next one may start", 1, change("a", ended), []string{"b"}},
		"RunEnded2": {"as many as there is room for", 2, change("a", ended), []string{"b", "c"}},
		"Deleted":   {"its run is over too", 1, reconciletest.Delete(waits("a", 0)), []string{"b"}},
		"Paused":    {"a paused object takes no place", 1, change("a", paused), []string{"b"}},
		"Skipped":   {"there was no room before, and is none now", 1, change("b", ended), nil},
		"Unrelated": {"the place in the queue did not change", 1, change("a", func(m *corev1.ConfigMap) { m.Data = map[string]string{"a": "b"} }), nil},
		"Started":   {"the next one could start before", 3, change("b", runs), nil},
		"Earlier":   {"it comes before the others as it did", 3, change("b", dueAt(-1)), nil},
		"Later":     {"the next one comes before it now", 2, change("b", dueAt(4)), []string{"c"}},
		"Created":   {"a creation lets nobody start", 2, reconciletest.Create(waits("d", 0)), nil},
		"NoLimit":   {"nobody waits", 0, change("a", ended), nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var passes []string
			queue := newQueue(tc.limit, clocktesting.NewFakePassiveClock(two.Add(5*time.Minute)))
			start := func(p *reconciletest.Process) error {
				// The controller of another kind runs here. Only this watch triggers it, so it counts the requests that the
				// queue enqueues.
				count := reconcile.Func(func(context.Context, client.Client, *appsv1.Deployment) error { return nil })
				return reconcile.For(p.Manager(), reconcile.Named("count", count, queue.Watching())).WithoutStatus().
					WithFilter(func(d *appsv1.Deployment) bool { passes = append(passes, d.Name); return true }).Complete()
			}
			scheme := runtime.NewScheme()
			require.NoError(t, clientgoscheme.AddToScheme(scheme))
			objects := []client.Object{waits("a", 0, runs), waits("b", 1), waits("c", 2)}
			for _, name := range []string{"a", "b", "c", "d"} {
				objects = append(objects, deployment(name))
			}
			s := reconciletest.Scenario{Scheme: scheme, Objects: objects, Start: start, SimulatedControllers: []reconciletest.SimulatedController{{For: &appsv1.Deployment{}}}}
			reconciletest.Run(t, s, func(t *testing.T, env *reconciletest.Env) {
				passes = nil
				env.Do(tc.action)
				var got []string
				for _, name := range []string{"a", "b", "c", "d"} {
					n := 0
					for _, p := range passes {
						if p == name {
							n++
						}
					}
					if n > 1 { // the check at the end reconciles each object once
						got = append(got, name)
					}
				}
				if diff := cmp.Diff(tc.want, got); diff != "" {
					t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
				}
			})
		})
	}
}

func deployment(name string) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "nginx:1.27"}}},
			},
		},
	}
}
