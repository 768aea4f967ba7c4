package workload_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/ownedresources/workload"
)

func pod(name string, edits ...func(*corev1.Pod)) corev1.Pod {
	p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}
	for _, edit := range edits {
		edit(&p)
	}
	return p
}

func ready(p *corev1.Pod) {
	p.Status.Conditions = []corev1.PodCondition{
		{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}, {Type: corev1.PodReady, Status: corev1.ConditionTrue},
	}
}

func terminating(p *corev1.Pod) { p.DeletionTimestamp = new(metav1.Now()) }

func inPhase(phase corev1.PodPhase) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Status.Phase = phase }
}

func container(name, reason string) corev1.ContainerStatus {
	return corev1.ContainerStatus{Name: name, Image: name + ":1", State: corev1.ContainerState{
		Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: "back-off 10s restarting failed container of pod web-1"},
	}}
}

func waiting(reason string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, container("web", reason))
	}
}

func crashing(code int32, reason string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		waiting("CrashLoopBackOff")(p)
		p.Status.ContainerStatuses[0].LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ExitCode: code, Reason: reason}
	}
}

func initWaiting(reason string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.InitContainerStatuses = []corev1.ContainerStatus{container("init", reason)}
	}
}

func running(p *corev1.Pod) {
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
}

func unscheduled(reason, message string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.Conditions = []corev1.PodCondition{
			{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: reason, Message: message},
		}
	}
}

// condition sets a condition of a Deployment.
func condition(conditionType appsv1.DeploymentConditionType, status corev1.ConditionStatus, reason, message string) client.Object {
	return deployment(func(d *appsv1.Deployment) {
		d.Status.Conditions = []appsv1.DeploymentCondition{{Type: conditionType, Status: status, Reason: reason, Message: message}}
	})
}

func TestCheckStart(t *testing.T) {
	imagePull := workload.Blocker{Reason: "ImagePullBackOff", Message: "container web with image web:1 waits: ImagePullBackOff"}
	quota := condition(appsv1.DeploymentReplicaFailure, corev1.ConditionTrue, "FailedCreate",
		`pods "web-5d8c-x7f2q" is forbidden: exceeded quota: small`)
	tests := map[string]struct {
		reason   string
		workload client.Object
		pods     []corev1.Pod
		want     workload.Blocker
	}{
		"NoPods": {
			reason:   "nothing is known yet",
			workload: deployment(nil),
		},
		"Ready": {
			reason: "it has started",
			pods:   []corev1.Pod{pod("a", ready)},
		},
		"Pending": {
			reason: "its status is empty at first",
			pods:   []corev1.Pod{pod("a")},
		},
		"ContainerCreating": {
			reason: "every pod starts so",
			pods:   []corev1.Pod{pod("a", waiting("ContainerCreating"))},
		},
		"PodInitializing": {
			reason: "every pod with an init container starts so",
			pods:   []corev1.Pod{pod("a", waiting("PodInitializing"))},
		},
		"Running": {
			reason: "it has started and is not ready, for which there is no reason",
			pods:   []corev1.Pod{pod("a", running)},
		},
		"ImagePullBackOff": {
			reason: "the kubelet's message counts seconds, so it is left out",
			pods:   []corev1.Pod{pod("a", waiting("ImagePullBackOff"))},
			want:   imagePull,
		},
		"CrashLoopBackOff": {
			reason: "the exit code is what the user looks for",
			pods:   []corev1.Pod{pod("a", crashing(137, "OOMKilled"))},
			want: workload.Blocker{
				Reason: "CrashLoopBackOff", Message: "container web with image web:1 waits: CrashLoopBackOff after exit code 137 (OOMKilled)",
			},
		},
		"InitContainer": {
			reason: "the other containers wait for it",
			pods:   []corev1.Pod{pod("a", waiting("PodInitializing"), initWaiting("ErrImagePull"))},
			want:   workload.Blocker{Reason: "ErrImagePull", Message: "container init with image init:1 waits: ErrImagePull"},
		},
		"SecondContainer": {
			reason: "each container counts",
			pods:   []corev1.Pod{pod("a", running, waiting("ImagePullBackOff"))},
			want:   imagePull,
		},
		"Unschedulable": {
			reason: "the numbers of nodes change as nodes come and go, and the causes are sorted by them",
			pods: []corev1.Pod{pod("a", unscheduled("Unschedulable",
				"0/14 nodes are available: 12 node(s) had untolerated taint {a: b}, 2 Insufficient cpu. "+
					"preemption: 0/14 nodes are available: 12 Preemption is not helpful for scheduling, 2 No preemption victims found for incoming pod."))},
			want: workload.Blocker{
				Reason: "Unschedulable", Message: "a pod is not scheduled: Insufficient cpu, node(s) had untolerated taint {a: b}",
			},
		},
		"MissingClaim": {
			reason: "such a cause has no number",
			pods: []corev1.Pod{pod("a", unscheduled("Unschedulable",
				`0/1 nodes are available: persistentvolumeclaim "data" not found. preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling.`))},
			want: workload.Blocker{Reason: "Unschedulable", Message: `a pod is not scheduled: persistentvolumeclaim "data" not found`},
		},
		"SchedulingGated": {
			reason: "somebody holds the pod back",
			pods:   []corev1.Pod{pod("a", unscheduled("SchedulingGated", "Scheduling is blocked due to non-empty scheduling gates"))},
			want: workload.Blocker{
				Reason: "SchedulingGated", Message: "a pod is not scheduled: Scheduling is blocked due to non-empty scheduling gates",
			},
		},
		"Terminating": {
			reason: "it is about to go",
			pods:   []corev1.Pod{pod("a", waiting("ErrImagePull"), terminating)},
		},
		"Ended": {
			reason: "another pod takes its place",
			pods:   []corev1.Pod{pod("a", waiting("ErrImagePull"), inPhase(corev1.PodFailed)), pod("b", waiting("ErrImagePull"), inPhase(corev1.PodSucceeded))},
		},
		"Several": {
			reason: "that of the first pod by name does not alternate",
			pods: []corev1.Pod{
				pod("c", waiting("CrashLoopBackOff")), pod("b", waiting("ImagePullBackOff")), pod("d", waiting("ErrImagePull")), pod("a", ready),
			},
			want: imagePull,
		},
		"Quota": {
			reason:   "the pod was never created, so its name is left out",
			workload: quota,
			pods:     []corev1.Pod{pod("a", ready)},
			want:     workload.Blocker{Reason: "FailedCreate", Message: "new pods: forbidden: exceeded quota: small"},
		},
		"InvalidPod": {
			reason: "validation has other words than a plug-in",
			workload: condition(appsv1.DeploymentReplicaFailure, corev1.ConditionTrue, "FailedCreate",
				`Pod "web-5d8c-x7f2q" is invalid: spec.containers[0].image: Invalid value: " nginx"`),
			want: workload.Blocker{
				Reason: "FailedCreate", Message: `new pods: invalid: spec.containers[0].image: Invalid value: " nginx"`,
			},
		},
		"OtherRefusal": {
			reason: "the words before \"is\" are no name",
			workload: condition(appsv1.DeploymentReplicaFailure, corev1.ConditionTrue, "FailedCreate",
				`Internal error occurred: failed calling webhook: the server is down`),
			want: workload.Blocker{
				Reason: "FailedCreate", Message: "new pods: Internal error occurred: failed calling webhook: the server is down",
			},
		},
		"Deadline": {
			reason: "the Deployment controller has given up",
			workload: condition(appsv1.DeploymentProgressing, corev1.ConditionFalse, "ProgressDeadlineExceeded",
				`ReplicaSet "web-5d8c" has timed out progressing.`),
			want: workload.Blocker{
				Reason: "ProgressDeadlineExceeded", Message: `new pods: ReplicaSet "web-5d8c" has timed out progressing.`,
			},
		},
		"PodBeforeDeployment": {
			reason:   "a pod is nearer to the cause",
			workload: quota,
			pods:     []corev1.Pod{pod("a", waiting("ImagePullBackOff"))},
			want:     imagePull,
		},
		"StatefulSet": {
			reason:   "its status has no such conditions",
			workload: &appsv1.StatefulSet{},
			pods:     []corev1.Pod{pod("a", waiting("ImagePullBackOff"))},
			want:     imagePull,
		},
		"NilDeployment": {
			reason:   "as when it was not found",
			workload: (*appsv1.Deployment)(nil),
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, workload.CheckStart(tc.workload, tc.pods)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
			pods := slices.Clone(tc.pods)
			slices.Reverse(pods)
			if diff := cmp.Diff(tc.want, workload.CheckStart(tc.workload, pods)); diff != "" {
				t.Errorf("the order of the pods counts: -want +got:\n%s", diff)
			}
		})
	}
}

func TestCheckStartAllocations(t *testing.T) {
	pods := []corev1.Pod{pod("a", ready), pod("b", ready), pod("c", running)}
	web := deployment(nil)
	if got := testing.AllocsPerRun(100, func() { workload.CheckStart(web, pods) }); got != 0 {
		t.Errorf("want no allocation while the pods start as they should, got %v", got)
	}
}
