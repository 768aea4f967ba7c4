package test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	eruv1 "github.com/opblocks/opblocks/examples/eru/api/v1"
	"github.com/opblocks/opblocks/examples/internal/operatortest"
	"github.com/opblocks/opblocks/ownedresources/workload"
	"github.com/opblocks/opblocks/schedule"
)

// rolling simulates the Deployment controller. It records restarts, and completes rollouts when finish is called.
type rolling struct {
	u *user

	mu       sync.Mutex
	running  map[string]bool // names
	most     int             // at once
	restarts map[string][]seen
	stop     func()
}

// seen is a restart and the time at which it was seen.
type seen struct {
	due string
	at  time.Time
}

// follow watches all Deployments of the namespace. Those that are restarted roll out until finish is called.
func (u *user) follow(t testing.TB, now func() time.Time) *rolling {
	t.Helper()
	r := &rolling{u: u, running: map[string]bool{}, restarts: map[string][]seen{}}
	var list appsv1.DeploymentList
	require.NoError(t, u.List(context.Background(), &list, client.InNamespace(u.Namespace)))
	w, err := u.Watch(context.Background(), &list, client.InNamespace(u.Namespace), &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: list.ResourceVersion}})
	require.NoError(t, err)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for e := range w.ResultChan() {
			r.note(e, now())
		}
	}()
	r.stop = sync.OnceFunc(func() { w.Stop(); <-ended })
	t.Cleanup(r.stop)
	return r
}

func (r *rolling) note(e apiwatch.Event, now time.Time) {
	d, ok := e.Object.(*appsv1.Deployment)
	if !ok {
		return
	}
	due := d.Spec.Template.Annotations[workload.AnnotationRestartedAt]
	r.mu.Lock()
	defer r.mu.Unlock()
	if last := r.restarts[d.Name]; due != "" && (len(last) == 0 || last[len(last)-1].due != due) {
		r.restarts[d.Name] = append(last, seen{due, now})
	}
	if d.Status.ObservedGeneration < d.Generation {
		r.running[d.Name] = true
	} else {
		delete(r.running, d.Name)
	}
	r.most = max(r.most, len(r.running))
}

// finish completes the current rollouts and returns their number.
func (r *rolling) finish(t require.TestingT) int {
	r.mu.Lock()
	var names []string
	for name := range r.running {
		names = append(names, name)
	}
	r.mu.Unlock()
	for _, name := range names {
		r.u.rollOut(t, name)
	}
	return len(names)
}

func (r *rolling) count() (restarted int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.restarts)
}

// createMany creates Deployments that have rolled out, with an Eru each.
func (u *user) createMany(t testing.TB, many int, spec func(name string) eruv1.EruSpec) (names []string) {
	t.Helper()
	names = make([]string, many)
	var working sync.WaitGroup
	for worker := range 8 {
		working.Go(func() {
			for i := worker; i < many; i += 8 {
				names[i] = fmt.Sprintf("web-%d", i)
				u.rolledOut(t, names[i], false)
				u.create(t, names[i], spec(names[i]))
			}
		})
	}
	working.Wait()
	return names
}

// scheduledMany waits until a number of Erus of the namespace have their next due time. It uses a watch: listing so many Erus
// again and again would overload the API server.
func (u *user) scheduledMany(t testing.TB, many int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	w, err := u.Watch(ctx, &eruv1.EruList{}, client.InNamespace(u.Namespace)) // which begins with those that there are
	require.NoError(t, err)
	defer w.Stop()
	known := map[string]bool{}
	for len(known) < many {
		e, ok := <-w.ResultChan()
		require.True(t, ok, "%d of %d know their next time", len(known), many)
		if eru, ok := e.Object.(*eruv1.Eru); ok && eru.Status.NextScheduleTime != nil {
			known[eru.Name] = true
		}
	}
}

// TestManyDue has 300 Erus due in the same minute. Their places in the spread and the limit hold, also when the operator is restarted
// in between, and each Deployment is restarted once.
func TestManyDue(t *testing.T) {
	const many, maxConcurrent, spread = 300, 25, 60
	u := newUser(t, apiServer(t))
	r, clock := stepped()
	r.MaxConcurrent = maxConcurrent
	names := u.createMany(t, many, func(name string) eruv1.EruSpec {
		spec := enabled(name, "0 4 * * *")
		spec.SpreadSeconds = spread
		return spec
	})
	o := startOperator(t, r, u.ControlPlane.Config(), ctrl.Options{}, u.Namespace)
	u.scheduledMany(t, many)
	deployments := u.follow(t, clock.Now)

	// In the first half of the spread no Eru starts whose place is in the second half.
	clock.SetTime(four.Add(spread / 2 * time.Second))
	o.Stop()
	o = startOperator(t, r, u.ControlPlane.Config(), ctrl.Options{}, u.Namespace)
	var erus eruv1.EruList
	require.NoError(t, u.List(t.Context(), &erus, client.InNamespace(u.Namespace)))
	require.Len(t, erus.Items, many)
	inFirstHalf := map[string]bool{}
	for _, eru := range erus.Items {
		inFirstHalf[eru.Name] = schedule.Offset(eru.UID, spread*time.Second) <= spread/2*time.Second
	}
	operatortest.Eventually(t, "the limit is reached", func(c *assert.CollectT) { assert.Equal(c, maxConcurrent, deployments.count()) })
	deployments.finish(t)
	operatortest.Eventually(t, "the next ones start", func(c *assert.CollectT) { assert.Equal(c, 2*maxConcurrent, deployments.count()) })
	for name := range deployments.restarts {
		assert.True(t, inFirstHalf[name], "%s is not yet at its place", name)
	}

	// The rest, with another operator after each quarter.
	clock.SetTime(four.Add(spread * time.Second))
	for quarter := range 4 {
		o.Stop()
		o = startOperator(t, r, u.ControlPlane.Config(), ctrl.Options{}, u.Namespace)
		require.Eventually(t, func() bool {
			deployments.finish(t)
			return deployments.count() >= many*(quarter+1)/4
		}, 5*time.Minute, 10*time.Millisecond)
	}
	operatortest.Eventually(t, "all have rolled out", func(c *assert.CollectT) { assert.Zero(c, deployments.finish(c)) })
	deployments.stop()
	assert.LessOrEqual(t, deployments.most, maxConcurrent)
	for _, name := range names {
		assert.Len(t, deployments.restarts[name], 1, "%s: one restart", name)
		assert.Equal(t, "2026-03-02T04:00:00Z", deployments.restarts[name][0].due)
	}
}
