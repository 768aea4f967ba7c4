package workload_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/opblocks/opblocks/internal/requests"
	"github.com/opblocks/opblocks/ownedresources"
	"github.com/opblocks/opblocks/ownedresources/workload"
	"github.com/opblocks/opblocks/reconcile/reconciletest/controlplane"
)

// controlPlane runs no controllers: only the tests write to it.
var controlPlane = controlplane.Shared(controlplane.Options{})

const fieldManager = client.FieldOwner("restarter.example.com")

// due is the time at which all tests restart.
var due = time.Date(2026, 3, 1, 2, 0, 0, 0, time.UTC)

// testEnv is a namespace of a real API server with the owner of a Deployment.
type testEnv struct {
	client client.Client // its requests are counted
	sent   *requests.Count
	owner  *corev1.ConfigMap
}

func newTestEnv(t *testing.T) *testEnv {
	t.Helper()
	cp := controlPlane(t)
	env := &testEnv{sent: &requests.Count{}}
	var err error
	env.client, err = client.New(env.sent.Wrap(cp.Config()), client.Options{})
	require.NoError(t, err)
	env.owner = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: controlplane.Namespace(t, cp), Name: "web"}}
	require.NoError(t, env.client.Create(t.Context(), env.owner))
	return env
}

// create creates the Deployment, as its owner's operator does.
func (env *testEnv) create(t *testing.T) {
	t.Helper()
	env.sent.Sent()
	require.Equal(t, controllerutil.OperationResultCreated, env.applyAsOwner(t, "nginx:1.27"))
	require.Equal(t, []string{"GET deployments", "POST deployments"}, env.sent.Sent())
}

// applyAsOwner applies the Deployment with an image, as its owner's operator does.
func (env *testEnv) applyAsOwner(t *testing.T, image string) controllerutil.OperationResult {
	t.Helper()
	d := ownedresources.NewDeployment(env.owner, nil, corev1.Container{Name: "web", Image: image})
	d.Spec.Replicas = new(int32(2))
	results, err := ownedresources.Apply(t.Context(), env.client, env.owner, d)
	require.NoError(t, err)
	return results[0].Operation
}

// live returns the Deployment from the API server.
func (env *testEnv) live(t *testing.T) *appsv1.Deployment {
	t.Helper()
	var d appsv1.Deployment
	require.NoError(t, env.client.Get(t.Context(), client.ObjectKeyFromObject(env.owner), &d))
	return &d
}

func TestRestart(t *testing.T) {
	t.Run("OnceForEachTime", func(t *testing.T) {
		env := newTestEnv(t)
		env.create(t)
		restart := func(at time.Time) bool {
			t.Helper()
			live := env.live(t)
			before := live.DeepCopy()
			env.sent.Sent()
			restarted, err := workload.Restart(t.Context(), env.client, live, at, fieldManager)
			require.NoError(t, err)
			require.Equal(t, restarted, len(env.sent.Sent()) == 1, "no request unless it is needed")
			require.Empty(t, cmp.Diff(before, live), "the object that was passed stays as it is")
			return restarted
		}
		require.True(t, restart(due))
		require.False(t, restart(due), "after a crash Restart is called again")
		require.False(t, restart(due.Add(900*time.Millisecond)), "the annotation has whole seconds")
		require.False(t, restart(due.Add(-time.Hour)), "a later restart covers an earlier one")
		require.True(t, restart(due.Add(time.Hour)))

		at, ok := workload.RestartedAt(env.live(t))
		require.True(t, ok)
		require.True(t, at.Equal(due.Add(time.Hour)))
		require.EqualValues(t, 3, env.live(t).Generation, "each restart is one rollout")

		env.applyAsOwner(t, "nginx:1.28")
		require.Equal(t, "nginx:1.28", env.live(t).Spec.Template.Spec.Containers[0].Image)
		_, ok = workload.RestartedAt(env.live(t))
		require.True(t, ok, "the owner's next write keeps the annotation")
	})

	t.Run("ConflictAfterAnotherWrite", func(t *testing.T) {
		env := newTestEnv(t)
		env.create(t)
		stale, live := env.live(t), env.live(t)
		live.Spec.Template.Annotations = map[string]string{workload.AnnotationRestartedAt: due.Add(time.Hour).Format(time.RFC3339)}
		require.NoError(t, env.client.Update(t.Context(), live))
		_, err := workload.Restart(t.Context(), env.client, stale, due, fieldManager)
		require.True(t, apierrors.IsConflict(err), "an older restart must not replace a newer one: %v", err)
	})

	t.Run("NoPodTemplate", func(t *testing.T) {
		_, err := workload.Restart(t.Context(), nil, &corev1.ConfigMap{}, due, fieldManager)
		require.EqualError(t, err, "*v1.ConfigMap has no pods that could be replaced: pass a Deployment, StatefulSet or DaemonSet")
	})
}

func TestRestartedAt(t *testing.T) {
	for _, obj := range []client.Object{&corev1.ConfigMap{}, &appsv1.StatefulSet{}, &appsv1.DaemonSet{}} {
		_, ok := workload.RestartedAt(obj)
		require.False(t, ok)
	}
}

func TestCheckRestart(t *testing.T) {
	tests := map[string]struct {
		reason string
		obj    client.Object
		want   string
	}{
		"NothingBlocks": {
			reason: "the last rollout is complete",
			obj:    deployment(nil),
		},
		"RestartedBefore": {
			reason: "the restart before was for another time",
			obj:    restartedDeployment(due.Add(-time.Hour), nil),
		},
		"ThisRestart": {
			reason: "the rollout is that of this restart, which may have been sent before a crash",
			obj:    restartedDeployment(due, rollingOut),
		},
		"RestartedLater": {
			reason: "the pods are newer than the time",
			obj:    restartedDeployment(due.Add(time.Second), nil),
			want:   workload.BlockedAlreadyRestarted,
		},
		"Paused": {
			reason: "nothing would be rolled out",
			obj:    deployment(func(d *appsv1.Deployment) { d.Spec.Paused = true }),
			want:   workload.BlockedPaused,
		},
		"RollingOut": {
			reason: "pods are being replaced",
			obj:    deployment(rollingOut),
			want:   workload.BlockedRolloutInProgress,
		},
		"NotObserved": {
			reason: "the controller has not seen the last generation, which may roll out nothing",
			obj:    deployment(func(d *appsv1.Deployment) { d.Generation++ }),
			want:   workload.BlockedNotObserved,
		},
		"Failed": {
			reason: "a restart may help",
			obj:    deployment(deadlineExceeded),
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := workload.CheckRestart(tc.obj, due, scheme.Scheme)
			require.NoError(t, err)
			require.Equal(t, tc.want, got.Reason, tc.reason)
			require.Equal(t, got.Reason == "", got.Message == "", "a reason comes with a message")
		})
	}
	t.Run("NoPodTemplate", func(t *testing.T) {
		_, err := workload.CheckRestart(&corev1.ConfigMap{}, due, scheme.Scheme)
		require.ErrorContains(t, err, "no pods that could be replaced")
	})
}
