package owned

import (
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func TestReadyReturnsAFailedError(t *testing.T) {
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web"}}
	job.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobFailed, Status: "True", Reason: "BackoffLimitExceeded", Message: "too often"}}
	late := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web"}}
	late.Status.Conditions = []appsv1.DeploymentCondition{{Type: appsv1.DeploymentProgressing, Status: "False", Reason: "ProgressDeadlineExceeded"}}
	for reason, obj := range map[string]client.Object{"JobFailed": job, "ProgressDeadlineExceeded": late} {
		k, err := BuiltIn.Of(obj, scheme.Scheme)
		require.NoError(t, err)
		err = k.Ready(obj, "")
		var failed *FailedError
		require.ErrorAs(t, err, &failed)
		require.Equal(t, reason, failed.Reason())
		require.ErrorContains(t, err, k.GVK.Kind+" ns/web: ")
		require.ErrorIs(t, err, ctrlreconcile.TerminalError(nil), "it is not retried: an event of the child triggers the next reconcile")
	}
}

func TestJoinWaits(t *testing.T) {
	err := JoinWaits([]*WaitingError{NewWaiting("A", 0, "a"), NewWaiting("B", 7, "b"), NewWaiting("C", 5, "c")})
	var wait *WaitingError
	require.ErrorAs(t, err, &wait)
	_, after := wait.Waiting()
	require.EqualValues(t, 5, after)
}
