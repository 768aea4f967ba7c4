package heldjob_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/heldjob"
	"github.com/opblocks/opblocks/reconcile/reconciletest"
)

func newJob(suspend *bool) *batchv1.Job {
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "run", Annotations: map[string]string{"example.com/team": "red"}},
		Spec: batchv1.JobSpec{Suspend: suspend, Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "run", Image: "run:1"}},
		}}},
	}
}

func asTree(t *testing.T, job *batchv1.Job) client.Object {
	t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(job)
	require.NoError(t, err)
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(batchv1.SchemeGroupVersion.WithKind("Job"))
	return u
}

func TestHoldAndStart(t *testing.T) {
	tests := map[string]struct {
		reason  string
		suspend *bool
		want    bool // spec.suspend after the start
	}{
		"Runs":           {"A Job runs once it is started.", nil, false},
		"RunsAsItSays":   {"So does one that says so.", new(false), false},
		"StaysSuspended": {"A Job that its builder has suspended waits for somebody else.", new(true), true},
	}
	for name, test := range tests {
		for _, form := range []string{"Typed", "Unstructured"} {
			t.Run(name+"/"+form, func(t *testing.T) {
				c := reconciletest.NewClient(t, scheme.Scheme)
				var job client.Object = newJob(test.suspend)
				if form == "Unstructured" {
					job = asTree(t, newJob(test.suspend))
				}
				shared := job.GetAnnotations()
				heldjob.Hold(job)
				require.True(t, heldjob.IsHeld(job))
				require.Equal(t, map[string]string{"example.com/team": "red"}, shared, "the annotations may belong to the owner in the cache")
				require.NoError(t, c.Create(t.Context(), job))
				live := &batchv1.Job{}
				require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(job), live))
				require.True(t, *live.Spec.Suspend)

				live.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobSuspended, Status: corev1.ConditionTrue}}
				require.NoError(t, c.Status().Update(t.Context(), live), "as the Job controller does meanwhile")
				answer := &batchv1.Job{}
				require.NoError(t, heldjob.Start(t.Context(), c, job, answer, client.FieldOwner("test")), test.reason)
				require.Equal(t, test.want, *answer.Spec.Suspend, test.reason)
				require.False(t, heldjob.IsHeld(answer))
				require.Equal(t, "red", answer.Annotations["example.com/team"])
				require.True(t, apierrors.IsConflict(heldjob.Start(t.Context(), c, job, &batchv1.Job{})), "it is not started twice")
			})
		}
	}
}

func TestStartOfAnotherJob(t *testing.T) {
	tests := map[string]struct {
		reason string
		change func(t *testing.T, c client.Client, job *batchv1.Job)
	}{
		"Gone": {"Somebody has deleted it.", func(t *testing.T, c client.Client, job *batchv1.Job) {
			require.NoError(t, c.Delete(t.Context(), job, client.PropagationPolicy(metav1.DeletePropagationBackground)))
		}},
		"BeingDeleted": {"A Job that is being deleted does not start.", func(t *testing.T, c client.Client, job *batchv1.Job) {
			job.Finalizers = []string{"example.com/hold"}
			require.NoError(t, c.Update(t.Context(), job))
			require.NoError(t, c.Delete(t.Context(), job))
		}},
		"Namesake": {"A Job of the same name is another one.", func(t *testing.T, c client.Client, job *batchv1.Job) {
			require.NoError(t, c.Delete(t.Context(), job, client.PropagationPolicy(metav1.DeletePropagationBackground)))
			namesake := newJob(nil)
			heldjob.Hold(namesake)
			require.NoError(t, c.Create(t.Context(), namesake))
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c := reconciletest.NewClient(t, scheme.Scheme)
			job := newJob(nil)
			heldjob.Hold(job)
			require.NoError(t, c.Create(t.Context(), job))
			test.change(t, c, job.DeepCopy())
			require.True(t, apierrors.IsConflict(heldjob.Start(t.Context(), c, job, &batchv1.Job{})), test.reason)
		})
	}
}

func TestEnd(t *testing.T) {
	tests := map[string]struct {
		reason     string
		conditions []batchv1.JobCondition
		want       batchv1.JobConditionType // "" for none
	}{
		"None":      {"It has not begun.", nil, ""},
		"Suspended": {"Another condition is no end.", []batchv1.JobCondition{{Type: batchv1.JobSuspended, Status: corev1.ConditionTrue}}, ""},
		"Criteria":  {"Its pods have not ended yet.", []batchv1.JobCondition{{Type: batchv1.JobSuccessCriteriaMet, Status: corev1.ConditionTrue}}, ""},
		"NotYet":    {"A condition that is not True does not hold.", []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionFalse}}, ""},
		"Complete":  {"It has completed.", []batchv1.JobCondition{{Type: batchv1.JobSuspended, Status: corev1.ConditionFalse}, {Type: batchv1.JobComplete, Status: corev1.ConditionTrue}}, batchv1.JobComplete},
		"Failed":    {"It has failed.", []batchv1.JobCondition{{Type: batchv1.JobFailed, Status: corev1.ConditionTrue}}, batchv1.JobFailed},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			end := heldjob.End(&batchv1.Job{Status: batchv1.JobStatus{Conditions: test.conditions}})
			if test.want == "" {
				require.Nil(t, end, test.reason)
				return
			}
			require.NotNil(t, end, test.reason)
			require.Equal(t, test.want, end.Type, test.reason)
		})
	}
}
