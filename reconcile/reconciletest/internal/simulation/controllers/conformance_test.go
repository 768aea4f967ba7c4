package controllers_test

import (
	"context"
	"encoding/json"
	"maps"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/reconcile/reconciletest/controlplane"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/memoryserver"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/controllers"
)

var controlPlane = controlplane.Shared(controlplane.Options{Controllers: true})

// action is what a user does in a namespace.
type action struct {
	name string
	do   func(ctx context.Context, c client.Client, namespace string) error
}

func creating(obj client.Object) action {
	return action{"create", func(ctx context.Context, c client.Client, namespace string) error {
		made := obj.DeepCopyObject().(client.Object)
		made.SetNamespace(namespace)
		return c.Create(ctx, made)
	}}
}

// changing returns an action that updates an object. If somebody else has written the object since it was read, the action tries again.
func changing[T client.Object](name string, obj T, edit func(T)) action {
	return action{name, func(ctx context.Context, c client.Client, namespace string) error {
		return wait.PollUntilContextTimeout(ctx, time.Millisecond, 10*time.Second, true, func(ctx context.Context) (bool, error) {
			now := obj.DeepCopyObject().(T)
			if err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: obj.GetName()}, now); err != nil {
				return false, err
			}
			edit(now)
			return c.Update(ctx, now) == nil, nil
		})
	}}
}

func deletingPod(name string) action {
	return action{"delete Pod " + name, func(ctx context.Context, c client.Client, namespace string) error {
		return c.Delete(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}})
	}}
}

// TestConformance does the same in the server in memory and on a real control plane with kube-controller-manager. After each action the
// real controllers must reach the same state as the simulated ones. The state has the objects, their pods and their claims.
func TestConformance(t *testing.T) {
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
	edit := func(name string, edit func(*appsv1.StatefulSetSpec)) action {
		return changing(name, set, func(s *appsv1.StatefulSet) { edit(&s.Spec) })
	}
	image := func(image string) func(*appsv1.StatefulSetSpec) {
		return func(s *appsv1.StatefulSetSpec) { s.Template.Spec.Containers[0].Image = image }
	}
	backup := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "backup"}}
	remove := appsv1.DeletePersistentVolumeClaimRetentionPolicyType
	outcome := batchv1.JobComplete
	tests := map[string]struct {
		actions []action
		fails   bool // the pods of Jobs fail
	}{
		"StatefulSet": {actions: []action{
			creating(statefulSet(2)),
			edit("scale up", func(s *appsv1.StatefulSetSpec) { s.Replicas = new(int32(3)) }),
			edit("update in part", func(s *appsv1.StatefulSetSpec) {
				s.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateStatefulSetStrategy{Partition: new(int32(2))}
				image("web:2")(s)
			}),
			deletingPod("web-0"),
			edit("update all", func(s *appsv1.StatefulSetSpec) { s.UpdateStrategy.RollingUpdate.Partition = new(int32(0)) }),
			edit("scale down", func(s *appsv1.StatefulSetSpec) { s.Replicas = new(int32(1)) }),
			edit("broken update", image("registry.invalid/web")),
			edit("scale to zero", func(s *appsv1.StatefulSetSpec) { s.Replicas = new(int32(0)) }),
		}},
		"StatefulSetParallel": {actions: []action{
			creating(statefulSet(2, func(s *appsv1.StatefulSetSpec) {
				s.PodManagementPolicy, s.Ordinals = appsv1.ParallelPodManagement, &appsv1.StatefulSetOrdinals{Start: 3}
				s.PersistentVolumeClaimRetentionPolicy = &appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy{WhenDeleted: remove, WhenScaled: remove}
			})),
			edit("scale down", func(s *appsv1.StatefulSetSpec) { s.Replicas = new(int32(1)) }),
			edit("update", image("web:2")),
		}},
		"StatefulSetOnDelete": {actions: []action{
			creating(statefulSet(2, func(s *appsv1.StatefulSetSpec) { s.UpdateStrategy.Type = appsv1.OnDeleteStatefulSetStrategyType })),
			edit("update", image("web:2")),
			deletingPod("web-0"),
		}},
		"Job": {actions: []action{creating(job())}},
		"JobIndexed": {actions: []action{creating(job(func(s *batchv1.JobSpec) {
			s.Completions, s.Parallelism, s.CompletionMode = new(int32(3)), new(int32(2)), new(batchv1.IndexedCompletion)
		}))}},
		"JobSuspended": {actions: []action{creating(job(func(s *batchv1.JobSpec) { s.Suspend = new(true) })), changing("resume", backup, func(j *batchv1.Job) { j.Spec.Suspend = new(false) })}},
		"JobFailed": {fails: true, actions: []action{creating(job(func(s *batchv1.JobSpec) {
			s.BackoffLimit = new(int32(0))
			s.Template.Annotations = map[string]string{controlplane.HoldAnnotation: ""}
		}))}},
		"Deployment": {actions: []action{
			creating(&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: appsv1.DeploymentSpec{
				Replicas: new(int32(2)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}, Template: podTemplate("web:1"),
			}}),
			changing("update", &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web"}}, func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = "web:2" }),
		}},
		"DaemonSet": {actions: []action{
			creating(daemonSet()),
			changing("update", &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Name: "web"}}, func(d *appsv1.DaemonSet) { d.Spec.Template.Spec.Containers[0].Image = "web:2" }),
		}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cp := controlPlane(t)
			namespace := controlplane.Namespace(t, cp)
			live, err := client.New(cp.Config(), client.Options{})
			require.NoError(t, err)
			end := outcome
			if tc.fails {
				end = batchv1.JobFailed
			}
			server, err := memoryserver.New(clientgoscheme.Scheme)
			require.NoError(t, err)
			simulated := &cluster{server.Client(), t, server, []step{
				controllers.Deployments, controllers.StatefulSets, controllers.DaemonSets, controllers.PersistentVolumeClaims,
				controllers.Jobs(func(*batchv1.Job) batchv1.JobConditionType { return end }),
			}}
			copyNodes(t, live, simulated)
			for _, a := range tc.actions {
				require.NoError(t, a.do(t.Context(), simulated, "default"), a.name)
				simulated.settle()
				want := observed(t, simulated, "default")
				require.NoError(t, a.do(t.Context(), live, namespace), a.name)
				diff := "nothing was observed"
				err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
					if tc.fails {
						failPods(t, live, namespace)
					}
					diff = cmp.Diff(want, observed(t, live, namespace))
					return diff == "", nil
				})
				require.NoError(t, err, "after %q: - simulated, + real:\n%s", a.name, diff)
			}
		})
	}
}

func copyNodes(t *testing.T, from, to client.Client) {
	t.Helper()
	var nodes corev1.NodeList
	require.NoError(t, from.List(t.Context(), &nodes))
	for i := range nodes.Items {
		require.NoError(t, to.Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: nodes.Items[i].Name, Labels: nodes.Items[i].Labels}}))
	}
}

// failPods sets the status of the pending pods of a namespace to failed.
func failPods(t *testing.T, c client.Client, namespace string) {
	t.Helper()
	var pods corev1.PodList
	require.NoError(t, c.List(t.Context(), &pods, client.InNamespace(namespace)))
	for i := range pods.Items {
		if pod := &pods.Items[i]; pod.Status.Phase == corev1.PodPending {
			pod.Status.Phase = corev1.PodFailed
			_ = c.Status().Update(t.Context(), pod) // if the update fails, the next round tries again
		}
	}
}

// observed returns what an operator can see of the workloads in a namespace, without times and names that differ.
func observed(t *testing.T, c client.Client, namespace string) map[string]any {
	t.Helper()
	all := map[string]any{}
	in := client.InNamespace(namespace)
	var sets appsv1.StatefulSetList
	var jobs batchv1.JobList
	var deployments appsv1.DeploymentList
	var daemons appsv1.DaemonSetList
	for _, list := range []client.ObjectList{&sets, &jobs, &deployments, &daemons} {
		require.NoError(t, c.List(t.Context(), list, in))
	}
	revision := ""
	for i := range sets.Items {
		s := &sets.Items[i].Status
		revision = s.UpdateRevision
		all["StatefulSet "+sets.Items[i].Name] = plain(t, s, map[string]any{"updated": s.CurrentRevision == s.UpdateRevision})
	}
	for i := range jobs.Items {
		s := &jobs.Items[i].Status
		all["Job "+jobs.Items[i].Name] = plain(t, s, map[string]any{"started": s.StartTime != nil, "completed": s.CompletionTime != nil})
	}
	for i := range deployments.Items {
		all["Deployment "+deployments.Items[i].Name] = plain(t, &deployments.Items[i].Status, nil)
	}
	for i := range daemons.Items {
		all["DaemonSet "+daemons.Items[i].Name] = plain(t, &daemons.Items[i].Status, nil)
	}
	observePods(t, c, in, revision, all)
	var claims corev1.PersistentVolumeClaimList
	require.NoError(t, c.List(t.Context(), &claims, in))
	for i := range claims.Items {
		p := &claims.Items[i]
		var owners []string
		for _, ref := range p.OwnerReferences {
			owners = append(owners, ref.Kind+" "+ref.Name)
		}
		all["PersistentVolumeClaim "+p.Name] = map[string]any{
			"labels": p.Labels, "phase": p.Status.Phase, "capacity": p.Status.Capacity.Storage().Cmp(resource.MustParse("1Gi")) == 0, "owners": owners,
			"bound": p.Spec.VolumeName != "", "finalizers": p.Finalizers, "annotation": p.Annotations["pv.kubernetes.io/bind-completed"],
		}
	}
	return all
}

// observePods adds the pods in a namespace to all: pods of StatefulSets by their names, and other pods by their content.
func observePods(t *testing.T, c client.Client, in client.ListOption, revision string, all map[string]any) {
	t.Helper()
	var pods corev1.PodList
	require.NoError(t, c.List(t.Context(), &pods, in))
	generated := map[string]int{}
	for i := range pods.Items {
		pod := &pods.Items[i]
		var claims []string
		for _, v := range pod.Spec.Volumes {
			if v.PersistentVolumeClaim != nil {
				claims = append(claims, v.Name+"="+v.PersistentVolumeClaim.ClaimName)
			}
		}
		ready := false
		for _, condition := range pod.Status.Conditions {
			ready = ready || condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue
		}
		labels := map[string]string{}
		for key, value := range pod.Labels {
			switch key {
			case appsv1.ControllerRevisionHashLabelKey:
				if revision != "" {
					labels[key] = map[bool]string{true: "update", false: "current"}[value == revision]
				}
			case batchv1.ControllerUidLabel, "controller-uid", appsv1.DefaultDeploymentUniqueLabelKey, appsv1.DeprecatedTemplateGeneration, "pod-template-generation":
			default:
				labels[key] = value
			}
		}
		content := map[string]any{
			"labels": labels, "image": pod.Spec.Containers[0].Image, "phase": pod.Status.Phase, "ready": ready, "claims": claims,
			"hostname": pod.Spec.Hostname, "subdomain": pod.Spec.Subdomain, "index": pod.Annotations[batchv1.JobCompletionIndexAnnotation],
		}
		if pod.Labels[appsv1.StatefulSetPodNameLabel] != "" { // its name is always the same, although the real controller also sets generateName
			all["Pod "+pod.Name] = content
			continue
		}
		encoded, err := json.Marshal(content)
		require.NoError(t, err)
		generated[string(encoded)]++
	}
	all["generated pods"] = generated
}

// plain returns a status as a JSON value with some further fields. It leaves out times and names of revisions.
func plain(t *testing.T, status any, with map[string]any) map[string]any {
	t.Helper()
	content, err := json.Marshal(status)
	require.NoError(t, err)
	var fields map[string]any
	require.NoError(t, json.Unmarshal(content, &fields))
	for _, field := range []string{"startTime", "completionTime", "currentRevision", "updateRevision", "collisionCount", "terminatingReplicas"} {
		delete(fields, field)
	}
	conditions, _ := fields["conditions"].([]any)
	for _, c := range conditions {
		for _, field := range []string{"lastTransitionTime", "lastProbeTime", "lastUpdateTime", "message", "observedGeneration"} {
			delete(c.(map[string]any), field)
		}
	}
	maps.Copy(fields, with)
	return fields
}
