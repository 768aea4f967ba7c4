package readiness

import (
	"math"
	"testing"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// deployment returns a Deployment of three replicas whose rollout is complete, after calling edit.
func deployment(edit func(*appsv1.Deployment)) *appsv1.Deployment {
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
	if edit != nil {
		edit(d)
	}
	return d
}

// TestTypedEqualsKstatus compares the result for a typed object with the result of kstatus for the same object, unstructured: Status,
// Reason and Message are the same.
func TestTypedEqualsKstatus(t *testing.T) {
	deployments := map[string]func(*appsv1.Deployment){
		"Complete":        nil,
		"NeverObserved":   func(d *appsv1.Deployment) { d.Status = appsv1.DeploymentStatus{} },
		"OlderGeneration": func(d *appsv1.Deployment) { d.Status.ObservedGeneration = 1 },
		"TooFewPods":      func(d *appsv1.Deployment) { d.Status.Replicas = 2 },
		"TooFewUpdated":   func(d *appsv1.Deployment) { d.Status.UpdatedReplicas = 1 },
		"OldPodsLeft":     func(d *appsv1.Deployment) { d.Status.Replicas = 4 },
		"TooFewAvailable": func(d *appsv1.Deployment) { d.Status.AvailableReplicas = 2 },
		"TooFewReady":     func(d *appsv1.Deployment) { d.Status.ReadyReplicas = 2 },
		"ScaledToZero":    func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(0)); setNoPods(&d.Status) },
		"ZeroButOnePodLeft": func(d *appsv1.Deployment) {
			d.Spec.Replicas = new(int32(0))
			setNoPods(&d.Status)
			d.Status.Replicas = 1
		},
		"ReplicasUnset":    func(d *appsv1.Deployment) { d.Spec.Replicas = nil },
		"Progressing":      func(d *appsv1.Deployment) { d.Status.Conditions[1].Reason = "ReplicaSetUpdated" },
		"DeadlineExceeded": func(d *appsv1.Deployment) { d.Status.Conditions[1].Reason = "ProgressDeadlineExceeded" },
		"NoConditions":     func(d *appsv1.Deployment) { d.Status.Conditions = nil },
		"NoDeadline": func(d *appsv1.Deployment) {
			d.Spec.ProgressDeadlineSeconds = nil
			d.Status.Conditions = d.Status.Conditions[:1]
		},
		"InfiniteDeadline": func(d *appsv1.Deployment) {
			d.Spec.ProgressDeadlineSeconds = new(int32(math.MaxInt32))
			d.Status.Conditions = d.Status.Conditions[:1]
		},
		"NotAvailable":              func(d *appsv1.Deployment) { d.Status.Conditions[0].Status = corev1.ConditionFalse },
		"ReconcilingWithoutMessage": func(d *appsv1.Deployment) { d.Status.Conditions[0].Type = "Reconciling" },
		"ForeignStalled":            func(d *appsv1.Deployment) { d.Status.Conditions[0] = foreignCondition("Stalled") },
		"ForeignReconciling":        func(d *appsv1.Deployment) { d.Status.Conditions[0] = foreignCondition("Reconciling") },
	}
	for name, edit := range deployments {
		t.Run("Deployment/"+name, func(t *testing.T) { requireEqualsKstatus(t, deployment(edit)) })
	}
	services := map[string]corev1.ServiceSpec{
		"ClusterIP":                  {ClusterIP: "10.0.0.1"},
		"Headless":                   {ClusterIP: corev1.ClusterIPNone},
		"LoadBalancerWithoutAddress": {Type: corev1.ServiceTypeLoadBalancer, ClusterIP: "10.0.0.1"},
		"LoadBalancerWithoutIP":      {Type: corev1.ServiceTypeLoadBalancer},
		"ExternalName":               {Type: corev1.ServiceTypeExternalName, ExternalName: "example.com"},
		"WithoutDefaultsOfTheServer": {},
	}
	for name, spec := range services {
		t.Run("Service/"+name, func(t *testing.T) { requireEqualsKstatus(t, &corev1.Service{Spec: spec}) })
	}
	for name, obj := range map[string]client.Object{"ConfigMap": &corev1.ConfigMap{}, "Secret": &corev1.Secret{}} {
		obj.SetGeneration(2)
		t.Run(name, func(t *testing.T) { requireEqualsKstatus(t, obj) })
	}
}

// TestLoadBalancer tests the rule that kstatus does not have: a load balancer without an address is not ready, because nobody can use it.
func TestLoadBalancer(t *testing.T) {
	service := &corev1.Service{Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, ClusterIP: "10.0.0.1"}}
	tests := map[string]struct {
		ingress []corev1.LoadBalancerIngress
		want    Result
	}{
		"NoAddress": {nil, inProgress("NoAddress", "the load balancer has no address yet: see status.loadBalancer.ingress")},
		"IP":        {[]corev1.LoadBalancerIngress{{IP: "192.0.2.7"}}, Result{Status: status.CurrentStatus}},
		"Hostname":  {[]corev1.LoadBalancerIngress{{Hostname: "lb.example.com"}}, Result{Status: status.CurrentStatus}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			service := service.DeepCopy()
			service.Status.LoadBalancer.Ingress = tc.ingress
			requireEqualsKstatus(t, service)
			got, err := ComputeInScheme(service, scheme.Scheme)
			require.NoError(t, err)
			require.Equal(t, tc.want, got)
		})
	}
}

// If withoutUnread removes fields, the result stays the same.
func TestWithoutUnread(t *testing.T) {
	template := deployment(nil).Spec.Template
	template.Spec.Containers = []corev1.Container{{Name: "web", Image: "nginx"}}
	metadata := metav1.ObjectMeta{
		Name: "web", Generation: 2, Labels: map[string]string{"l": "1"}, Annotations: map[string]string{"a": "1"},
		OwnerReferences: []metav1.OwnerReference{{Name: "owner"}}, ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m"}},
	}
	set := func(edit func(*appsv1.StatefulSet)) *appsv1.StatefulSet {
		s := &appsv1.StatefulSet{ObjectMeta: metadata}
		s.Spec.Replicas, s.Spec.Template, s.Spec.VolumeClaimTemplates = new(int32(3)), template, make([]corev1.PersistentVolumeClaim, 1)
		s.Status = appsv1.StatefulSetStatus{ObservedGeneration: 2, Replicas: 3, ReadyReplicas: 3, CurrentReplicas: 3, UpdatedReplicas: 3, CurrentRevision: "1", UpdateRevision: "1"}
		edit(s)
		return s
	}
	tests := map[string]client.Object{
		"Ready":            set(func(*appsv1.StatefulSet) {}),
		"TooFewPods":       set(func(s *appsv1.StatefulSet) { s.Status.Replicas = 2 }),
		"TooFewReady":      set(func(s *appsv1.StatefulSet) { s.Status.ReadyReplicas = 2 }),
		"OldPodsLeft":      set(func(s *appsv1.StatefulSet) { s.Status.Replicas = 4 }),
		"OldRevision":      set(func(s *appsv1.StatefulSet) { s.Status.CurrentRevision = "0" }),
		"OlderGeneration":  set(func(s *appsv1.StatefulSet) { s.Status.ObservedGeneration = 1 }),
		"OnDelete":         set(func(s *appsv1.StatefulSet) { s.Spec.UpdateStrategy.Type = appsv1.OnDeleteStatefulSetStrategyType }),
		"Deleted":          set(func(s *appsv1.StatefulSet) { s.DeletionTimestamp = new(metav1.Now()) }),
		"DaemonSet":        &appsv1.DaemonSet{ObjectMeta: metadata, Spec: appsv1.DaemonSetSpec{Template: template}},
		"Job":              &batchv1.Job{ObjectMeta: metadata, Spec: batchv1.JobSpec{Template: template}},
		"Claim":            &corev1.PersistentVolumeClaim{ObjectMeta: metadata},
		"ClaimBound":       &corev1.PersistentVolumeClaim{ObjectMeta: metadata, Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound}},
		"DisruptionBudget": &policyv1.PodDisruptionBudget{ObjectMeta: metadata},
	}
	for name, obj := range tests {
		t.Run(name, func(t *testing.T) {
			requireReadsNoMore(t, obj)
			less := withoutUnread(obj)
			require.Empty(t, less.GetLabels(), "the conversion is cheap")
			require.NotEmpty(t, obj.GetLabels(), "the object is not changed")
		})
	}
}

// requireReadsNoMore requires that kstatus does not read the fields that withoutUnread removes, and that withoutUnread does not change the
// object.
func requireReadsNoMore(t *testing.T, obj client.Object) {
	t.Helper()
	gvk, err := apiutil.GVKForObject(obj, scheme.Scheme)
	require.NoError(t, err)
	before := obj.DeepCopyObject()
	want, err := computeUnstructured(obj, gvk)
	require.NoError(t, err)
	got, err := computeUnstructured(withoutUnread(obj), gvk)
	require.NoError(t, err)
	require.Equal(t, want, got)
	require.Equal(t, before, obj)
}

func foreignCondition(conditionType appsv1.DeploymentConditionType) appsv1.DeploymentCondition {
	return appsv1.DeploymentCondition{Type: conditionType, Status: "True", Reason: "X", Message: "y"}
}

func setNoPods(s *appsv1.DeploymentStatus) {
	s.Replicas, s.UpdatedReplicas, s.ReadyReplicas, s.AvailableReplicas = 0, 0, 0, 0
}

func requireEqualsKstatus(t *testing.T, obj client.Object) {
	t.Helper()
	gvk, err := apiutil.GVKForObject(obj, scheme.Scheme)
	require.NoError(t, err)
	want, err := computeUnstructured(obj, gvk)
	require.NoError(t, err)
	got, ok := computeTyped(obj)
	require.True(t, ok, "the rules are written out for this kind")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-kstatus +typed:\n%s", diff)
	}
}

func TestComputeInScheme(t *testing.T) {
	job := &batchv1.Job{}
	job.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobFailed, Status: "True", Reason: "BackoffLimitExceeded", Message: "too often"}}
	got, err := ComputeInScheme(job, scheme.Scheme)
	require.NoError(t, err)
	want := Result{Status: status.FailedStatus, Reason: "JobFailed", Message: "Job Failed. failed: 0/1"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	_, err = ComputeInScheme(job, runtime.NewScheme())
	require.ErrorContains(t, err, "add its types to the manager's scheme")
	_, err = ComputeInScheme(deployment(nil), runtime.NewScheme())
	require.NoError(t, err, "the kind of a Deployment need not be looked up")
}

// Istio's controller writes the observed generation as a string, as Protobuf does.
func TestGenerationThatIsAText(t *testing.T) {
	for generation, want := range map[any]status.Status{"2": status.CurrentStatus, "1": status.InProgressStatus, int64(2): status.CurrentStatus} {
		gateway := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "networking.istio.io/v1", "kind": "Gateway", "metadata": map[string]any{"name": "web", "generation": int64(2)},
			"status": map[string]any{"observedGeneration": generation},
		}}
		before := gateway.DeepCopy()
		result, err := Compute(gateway, gateway.GroupVersionKind())
		require.NoError(t, err)
		require.Equal(t, want, result.Status, "%v", generation)
		require.Equal(t, before, gateway, "others read the same object")
	}
}
