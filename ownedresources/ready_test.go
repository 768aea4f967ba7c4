package ownedresources

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// rollout is a Deployment of three replicas at some moment.
func rollout(change func(*appsv1.Deployment)) *appsv1.Deployment {
	d := &appsv1.Deployment{}
	d.Namespace, d.Name, d.Generation = "ns", "web", 2
	d.Spec.Replicas, d.Spec.ProgressDeadlineSeconds = new(int32(3)), new(int32(600))
	d.Status = appsv1.DeploymentStatus{
		ObservedGeneration: 2, Replicas: 3, UpdatedReplicas: 3, ReadyReplicas: 3, AvailableReplicas: 3,
		Conditions: []appsv1.DeploymentCondition{
			{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue, Reason: "MinimumReplicasAvailable"},
			{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: "NewReplicaSetAvailable"},
		},
	}
	if change != nil {
		change(d)
	}
	return d
}

// The quick answers must be kstatus's, word for word: both are asked.
func TestReadinessIsThatOfKstatus(t *testing.T) {
	deployments := map[string]func(*appsv1.Deployment){
		"complete":          nil,
		"nobody looked yet": func(d *appsv1.Deployment) { d.Status = appsv1.DeploymentStatus{} },
		"older generation":  func(d *appsv1.Deployment) { d.Status.ObservedGeneration = 1 },
		"too few pods":      func(d *appsv1.Deployment) { d.Status.Replicas = 2 },
		"too few updated":   func(d *appsv1.Deployment) { d.Status.UpdatedReplicas = 1 },
		"old ones left":     func(d *appsv1.Deployment) { d.Status.Replicas = 4 },
		"too few available": func(d *appsv1.Deployment) { d.Status.AvailableReplicas = 2 },
		"too few ready":     func(d *appsv1.Deployment) { d.Status.ReadyReplicas = 2 },
		"scaled to zero":    func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(0)); zero(&d.Status) },
		"zero, one left":    func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(0)); zero(&d.Status); d.Status.Replicas = 1 },
		"replicas unset":    func(d *appsv1.Deployment) { d.Spec.Replicas = nil },
		"progressing":       func(d *appsv1.Deployment) { d.Status.Conditions[1].Reason = "ReplicaSetUpdated" },
		"deadline exceeded": func(d *appsv1.Deployment) { d.Status.Conditions[1].Reason = "ProgressDeadlineExceeded" },
		"no conditions":     func(d *appsv1.Deployment) { d.Status.Conditions = nil },
		"no deadline": func(d *appsv1.Deployment) {
			d.Spec.ProgressDeadlineSeconds = nil
			d.Status.Conditions = d.Status.Conditions[:1]
		},
		"infinite deadline": func(d *appsv1.Deployment) {
			d.Spec.ProgressDeadlineSeconds = new(int32(math.MaxInt32))
			d.Status.Conditions = d.Status.Conditions[:1]
		},
		"not available":         func(d *appsv1.Deployment) { d.Status.Conditions[0].Status = corev1.ConditionFalse },
		"condition of somebody": func(d *appsv1.Deployment) { d.Status.Conditions[0].Type = "Reconciling" },
		"stalled, says somebody": func(d *appsv1.Deployment) {
			d.Status.Conditions[0] = appsv1.DeploymentCondition{Type: "Stalled", Status: "True", Reason: "X", Message: "y"}
		},
		"reconciling says somebody": func(d *appsv1.Deployment) {
			d.Status.Conditions[0] = appsv1.DeploymentCondition{Type: "Reconciling", Status: "True", Reason: "X", Message: "y"}
		},
	}
	for name, change := range deployments {
		t.Run("Deployment "+name, func(t *testing.T) { agree(t, rollout(change)) })
	}
	services := map[string]corev1.ServiceSpec{
		"internal":              {ClusterIP: "10.0.0.1"},
		"headless":              {ClusterIP: corev1.ClusterIPNone},
		"load balancer":         {Type: corev1.ServiceTypeLoadBalancer, ClusterIP: "10.0.0.1"},
		"load balancer, no IP":  {Type: corev1.ServiceTypeLoadBalancer},
		"another name":          {Type: corev1.ServiceTypeExternalName, ExternalName: "example.com"},
		"just created, untyped": {},
	}
	for name, spec := range services {
		t.Run("Service "+name, func(t *testing.T) { agree(t, &corev1.Service{Spec: spec}) })
	}
}

func zero(s *appsv1.DeploymentStatus) {
	s.Replicas, s.UpdatedReplicas, s.ReadyReplicas, s.AvailableReplicas = 0, 0, 0, 0
}

func agree(t *testing.T, obj client.Object) {
	t.Helper()
	k, err := builtInKinds.of(obj, scheme.Scheme)
	require.NoError(t, err)
	want, err := kstatusProgress(k, obj)
	require.NoError(t, err)
	got, quick := quickProgress(obj)
	require.True(t, quick, "it is looked at without conversion")
	require.Equal(t, want, got)
}

func TestChildThatHasFailed(t *testing.T) {
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web"}}
	job.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobFailed, Status: "True", Reason: "BackoffLimitExceeded", Message: "too often"}}
	late := rollout(func(d *appsv1.Deployment) { d.Status.Conditions[1].Reason = "ProgressDeadlineExceeded" })
	for reason, obj := range map[string]client.Object{"JobFailed": job, "ProgressDeadlineExceeded": late} {
		k, err := builtInKinds.of(obj, scheme.Scheme)
		require.NoError(t, err)
		err = k.ready(obj)
		var failed *FailedError
		require.ErrorAs(t, err, &failed)
		require.Equal(t, reason, failed.Reason())
		require.ErrorContains(t, err, k.gvk.Kind+" ns/web: ")
		require.ErrorIs(t, err, ctrlreconcile.TerminalError(nil), "an event of the child brings the next pass")
	}
}
