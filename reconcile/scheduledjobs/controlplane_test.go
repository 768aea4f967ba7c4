package scheduledjobs_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/opblocks/opblocks/internal/requests"
	"github.com/opblocks/opblocks/reconcile"
	"github.com/opblocks/opblocks/reconcile/reconciletest/controlplane"
	"github.com/opblocks/opblocks/reconcile/scheduledjobs"
)

// controlPlane runs the real Job controller, TTL controller and garbage collector.
var controlPlane = controlplane.Shared(controlplane.Options{Controllers: true, CRDs: []string{"testdata/backups.yaml"}})

// cluster is a namespace of a real control plane, with an operator whose clock the test sets.
type cluster struct {
	client.Client
	clock     *clocktesting.FakePassiveClock
	count     requests.Count // the requests of the operator
	namespace string
	cp        *controlplane.ControlPlane
	stop      func()
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	cp := controlPlane(t)
	c := &cluster{cp: cp, namespace: controlplane.Namespace(t, cp), clock: clocktesting.NewFakePassiveClock(two.Add(-30 * time.Minute))}
	var err error
	c.Client, err = client.New(cp.Config(), client.Options{Scheme: scheme})
	require.NoError(t, err)
	c.start(t)
	return c
}

// start starts the operator in a new process.
func (c *cluster) start(t *testing.T) {
	t.Helper()
	mgr, err := ctrl.NewManager(c.count.Wrap(c.cp.Config()), ctrl.Options{
		Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"}, GracefulShutdownTimeout: new(controlplane.Patience),
		Cache:      cache.Options{DefaultNamespaces: map[string]cache.Config{c.namespace: {}}},
		Controller: config.Controller{SkipNameValidation: new(true)},
	})
	require.NoError(t, err)
	step := scheduledjobs.New(schedule, heldBack).WithClock(c.clock)
	require.NoError(t, reconcile.For(mgr, reconcile.Named("backup", step)).WithClock(c.clock).Complete())
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	c.stop = sync.OnceFunc(func() { cancel(); assert.NoError(t, <-ended) })
	t.Cleanup(c.stop)
	require.True(t, mgr.GetCache().WaitForCacheSync(ctx))
}

// heldBack returns the Job of a Backup. Its pods stay Pending until the test ends them.
func heldBack(b *Backup, scheduled time.Time) (*batchv1.Job, error) {
	job, err := backupJob(b, scheduled)
	job.Spec.Template.Annotations = map[string]string{"controlplane.opblocks.dev/hold": "true"}
	return job, err
}

func (c *cluster) create(t *testing.T, edit ...func(*BackupSpec)) *Backup {
	t.Helper()
	b := newBackup(edit...)
	b.Namespace = c.namespace
	require.NoError(t, c.Create(t.Context(), b))
	c.eventually(t, "the schedule has taken effect", func(a *assert.CollectT) { assert.NotNil(a, c.backup(a).Status.ScheduleSince) })
	return b
}

func (c *cluster) backup(t require.TestingT) *Backup {
	b := &Backup{}
	require.NoError(t, c.Get(context.Background(), client.ObjectKey{Namespace: c.namespace, Name: "web"}, b))
	return b
}

// set sets the clock, and triggers a reconcile as a timer would.
func (c *cluster) set(t *testing.T, now time.Time) {
	t.Helper()
	c.clock.SetTime(now)
	b := c.backup(t)
	before := b.DeepCopyObject().(*Backup)
	metav1.SetMetaDataAnnotation(&b.ObjectMeta, "example.com/now", now.Format(time.RFC3339))
	require.NoError(t, c.Patch(t.Context(), b, client.MergeFrom(before)))
}

func (c *cluster) eventually(t *testing.T, what string, condition func(*assert.CollectT)) {
	t.Helper()
	require.EventuallyWithT(t, condition, controlplane.Patience, 20*time.Millisecond, what)
}

// jobs returns the names of the Jobs, with the state of each.
func (c *cluster) jobs(t require.TestingT) (all []string) {
	var list batchv1.JobList
	require.NoError(t, c.List(context.Background(), &list, client.InNamespace(c.namespace)))
	for i := range list.Items {
		state := "running"
		if *list.Items[i].Spec.Suspend {
			state = "suspended"
		}
		for _, condition := range list.Items[i].Status.Conditions {
			if condition.Status == corev1.ConditionTrue && (condition.Type == batchv1.JobComplete || condition.Type == batchv1.JobFailed) {
				state = strings.ToLower(string(condition.Type))
			}
		}
		all = append(all, list.Items[i].Name+" "+state)
	}
	slices.Sort(all)
	return all
}

// become waits until these Jobs and no others exist.
func (c *cluster) become(t *testing.T, want ...string) {
	t.Helper()
	c.eventually(t, "the Jobs", func(a *assert.CollectT) { assert.Equal(a, want, c.jobs(a)) })
}

// end ends the pod of a Job with a phase.
func (c *cluster) end(t *testing.T, job string, phase corev1.PodPhase) {
	t.Helper()
	c.eventually(t, "the pod of "+job+" ends", func(a *assert.CollectT) {
		pods := c.pods(a, job)
		require.Len(a, pods, 1)
		pod := &pods[0]
		pod.Status.Phase = phase
		require.NoError(a, c.Status().Update(context.Background(), pod))
	})
}

func (c *cluster) pods(t require.TestingT, job string) []corev1.Pod {
	var pods corev1.PodList
	require.NoError(t, c.List(context.Background(), &pods, client.InNamespace(c.namespace), client.MatchingLabels{batchv1.JobNameLabel: job}))
	return pods.Items
}

// sent returns the operator's requests since the last call: writes, and reads of single objects, without the requests
// for events. It lists several status writes in a row only once, because it depends on timing how many states of a
// Job the operator sees.
func (c *cluster) sent() (all []string) {
	for _, request := range c.count.Sent() {
		if !strings.Contains(request, "events") && !strings.HasPrefix(request, "LIST") && !strings.HasPrefix(request, "WATCH") {
			all = append(all, request)
		}
	}
	return slices.CompactFunc(all, func(a, b string) bool { return a == b && strings.HasSuffix(a, "/status") })
}

func TestRealJobController(t *testing.T) {
	t.Run("History", func(t *testing.T) {
		t.Parallel()
		c := newCluster(t)
		c.create(t, func(s *BackupSpec) { s.SuccessfulJobsHistoryLimit = new(int32(1)) })
		c.sent()
		c.set(t, two)
		c.become(t, jobAtTwo+" running")
		assert.Equal(t, []string{"POST jobs", "PATCH backups/status", "PATCH jobs"}, c.sent())
		c.end(t, jobAtTwo, corev1.PodSucceeded)
		c.become(t, jobAtTwo+" complete")
		c.eventually(t, "the success is recorded", func(a *assert.CollectT) { assert.NotNil(a, c.backup(a).Status.LastSuccessfulTime) })
		assert.Equal(t, []string{"PATCH backups/status"}, c.sent())

		c.set(t, two.Add(time.Hour))
		c.end(t, jobAtThree, corev1.PodFailed)
		c.become(t, jobAtTwo+" complete", jobAtThree+" failed")
		assert.Equal(t, []string{"POST jobs", "PATCH backups/status", "PATCH jobs"}, c.sent())
		c.set(t, two.Add(2*time.Hour))
		c.end(t, "web-29538960", corev1.PodSucceeded)
		c.become(t, jobAtThree+" failed", "web-29538960 complete")
		c.set(t, two.Add(3*time.Hour))
		c.end(t, "web-29539020", corev1.PodFailed)
		c.become(t, "web-29538960 complete", "web-29539020 failed")
		c.eventually(t, "the pods go with their Jobs", func(a *assert.CollectT) { assert.Empty(a, c.pods(a, jobAtTwo)) })
	})
	t.Run("TTL", func(t *testing.T) {
		t.Parallel()
		c := newCluster(t)
		c.create(t, func(s *BackupSpec) { s.TTL = new(int32(0)) })
		c.set(t, two)
		c.end(t, jobAtTwo, corev1.PodSucceeded)
		c.become(t)
		c.stop()
		c.start(t)
		c.set(t, two.Add(time.Minute))
		c.set(t, two.Add(time.Hour))
		c.become(t, jobAtThree+" running")
	})
	t.Run("Forbid", func(t *testing.T) {
		t.Parallel()
		c := newCluster(t)
		c.create(t, func(s *BackupSpec) { s.ConcurrencyPolicy = batchv1.ForbidConcurrent })
		c.set(t, two)
		c.become(t, jobAtTwo+" running")
		c.set(t, two.Add(time.Hour))
		c.eventually(t, "it waits", func(a *assert.CollectT) { assert.Equal(a, "WaitingForJob", ready(c.backup(a)).Reason) })
		assert.Contains(t, c.jobs(t), jobAtTwo+" running")
		assert.NotContains(t, c.jobs(t), jobAtThree+" running", "if the cache was behind, it was created, but it is suspended")
		c.end(t, jobAtTwo, corev1.PodSucceeded)
		c.become(t, jobAtTwo+" complete", jobAtThree+" running")
	})
	t.Run("Replace", func(t *testing.T) {
		t.Parallel()
		c := newCluster(t)
		c.create(t, func(s *BackupSpec) { s.ConcurrencyPolicy = batchv1.ReplaceConcurrent })
		c.set(t, two)
		c.become(t, jobAtTwo+" running")
		c.set(t, two.Add(time.Hour))
		c.become(t, jobAtThree+" running")
		c.eventually(t, "its pod is deleted", func(a *assert.CollectT) { assert.Empty(a, c.pods(a, jobAtTwo)) })
	})
	t.Run("OwnerDeleted", func(t *testing.T) {
		t.Parallel()
		c := newCluster(t)
		b := c.create(t)
		byHand, err := heldBack(b, two)
		require.NoError(t, err)
		byHand.Namespace, byHand.Name = c.namespace, "by-hand"
		require.NoError(t, c.Create(t.Context(), byHand))
		c.set(t, two)
		c.become(t, "by-hand running", jobAtTwo+" running")
		require.NoError(t, c.Delete(t.Context(), b))
		c.become(t, "by-hand running")
		assert.True(t, apierrors.IsNotFound(c.Get(t.Context(), client.ObjectKeyFromObject(b), b)))
	})
}
