package ownedresources

import (
	"fmt"
	"testing"

	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/opblocks/opblocks/internal/owned"
	"github.com/opblocks/opblocks/internal/owned/ownedtest"
)

func TestWritesAreCountedAndEmitted(t *testing.T) {
	w := newEnvInMemory(t)
	recorder := events.NewFakeRecorder(10)
	wanted := true
	set := Ensure(Build(settings), BuildOrError(func(*Shop) (*appsv1.Deployment, error) {
		if !wanted {
			return nil, nil
		}
		return w.Deployment(), nil
	}))
	set.set.Applier.Recorder = recorder
	reconcile := func() {
		t.Helper()
		if err := set.Reconcile(t.Context(), w.Client, w.Owner); err != nil {
			require.ErrorAs(t, err, new(*owned.WaitingError))
		}
	}
	says := func(want ...string) {
		t.Helper()
		var got []string
		for len(recorder.Events) > 0 {
			got = append(got, <-recorder.Events)
		}
		require.Equal(t, want, got)
	}
	reconcile()
	says("Normal Created Created ConfigMap " + w.Namespace + "/web-settings, Deployment " + w.Namespace + "/web")
	reconcile()
	says()
	ownedtest.ByHand(t, w.Server, &appsv1.Deployment{}, func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(7)) })
	set.set.Applier.Writes.Forget(w.Deployment(), client.ObjectKeyFromObject(w.Deployment()))
	reconcile()
	says("Normal Applied Applied Deployment " + w.Namespace + "/web (spec.replicas)")
	wanted = false
	reconcile()
	says("Normal Deleted Deleted Deployment " + w.Namespace + "/web")
	require.Equal(t, []string{"ConfigMap,created=1", "Deployment,applied=1", "Deployment,created=1", "Deployment,deleted=1"},
		ownedtest.Shown(t, set.set.Applier.Metrics, "opblocks_applies_total"))
}

// TestEachWriteIsLogged checks that each write is logged in one line, and that the line contains no value of the
// object.
func TestEachWriteIsLogged(t *testing.T) {
	w := newEnvInMemory(t)
	var lines []string
	ctx := log.IntoContext(t.Context(), funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{}))
	wanted, password := true, "hunter2"
	set := Ensure(BuildOrError(func(*Shop) (*corev1.Secret, error) {
		if !wanted {
			return nil, nil
		}
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "web"}, StringData: map[string]string{"password": password}}, nil
	}))
	set.SetName("login")
	says := func(want ...string) {
		t.Helper()
		lines = nil
		require.NoError(t, set.Reconcile(ctx, w.Client, w.Owner))
		require.Equal(t, want, lines)
		require.NotContains(t, fmt.Sprint(lines), "hunter")
	}
	child := `"step"="login" "kind"="Secret" "child"={"name"="web" "namespace"="` + w.Namespace + `"}`
	says(`"level"=0 "msg"="Created a child" ` + child)
	says()
	password = "hunter3"
	says(`"level"=0 "msg"="Applied a child" ` + child + ` "fields"="data[password]"`)
	says()
	wanted = false
	says(`"level"=0 "msg"="Deleted a child" ` + child)
	says()
}

// sentEvent has the fields of an event except its note.
type sentEvent struct{ reason, action, related string }

type eventRecorder struct{ sent []sentEvent }

func (r *eventRecorder) Eventf(_, related runtime.Object, _, reason, action, _ string, _ ...any) {
	ref := related.(*corev1.ObjectReference)
	r.sent = append(r.sent, sentEvent{reason, action, fmt.Sprint(ref.APIVersion, " ", ref.Kind, " ", ref.Name, " ", ref.UID != "", " ", ref.ResourceVersion != "")})
}

func TestEventsNameStepAndChild(t *testing.T) {
	w := newEnvInMemory(t)
	recorder := &eventRecorder{}
	set := Ensure(Build(func(*Shop) *appsv1.Deployment { return w.Deployment() }))
	set.SetName("my-workload")
	set.set.Applier.Recorder = recorder
	require.ErrorAs(t, set.Reconcile(t.Context(), w.Client, w.Owner), new(*owned.WaitingError))
	require.Equal(t, []sentEvent{{"Created", "MyWorkload", "apps/v1 Deployment web true true"}}, recorder.sent)
}
