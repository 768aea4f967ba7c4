package test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appv1 "github.com/opblocks/opblocks/examples/app/api/v1"
	"github.com/opblocks/opblocks/examples/app/controller"
	"github.com/opblocks/opblocks/examples/internal/operatortest"
	"github.com/opblocks/opblocks/reconcile"
)

// story is a life in which everything happens that the operator answers to. Each act is a write of somebody else.
var story = []struct {
	name string
	act  func(t *testing.T, u *user)
}{
	{"created", func(t *testing.T, u *user) {
		u.create(t, "web", func(s *appv1.AppSpec) { s.Envs = []corev1.EnvVar{{Name: "DEMO", Value: "app"}} })
	}},
	{"annotated as the tutorial did", func(t *testing.T, u *user) {
		change(t, u, u.app("web"), func(app *appv1.App) { app.Annotations = map[string]string{"spec": "{}"} })
	}},
	{"rolled out", func(t *testing.T, u *user) {
		d := live(t, u, u.deployment("web"))
		d.Status = appsv1.DeploymentStatus{ObservedGeneration: d.Generation, Replicas: 1, UpdatedReplicas: 1, ReadyReplicas: 1, AvailableReplicas: 1}
		require.NoError(t, u.Status().Update(t.Context(), d))
	}},
	{"given a budget", func(t *testing.T, u *user) {
		u.set(t, "web", func(s *appv1.AppSpec) { s.MinAvailable = new(intstr.FromInt32(1)) })
	}},
	{"given another port", func(t *testing.T, u *user) {
		u.set(t, "web", func(s *appv1.AppSpec) {
			s.Ports = append(s.Ports, corev1.ServicePort{Port: 53, Protocol: corev1.ProtocolUDP})
		})
	}},
	{"an env taken away", func(t *testing.T, u *user) { u.set(t, "web", func(s *appv1.AppSpec) { s.Envs = nil }) }},
	{"left to an autoscaler", func(t *testing.T, u *user) { u.set(t, "web", func(s *appv1.AppSpec) { s.Replicas = nil }) }},
	{"scaled by it", func(t *testing.T, u *user) {
		change(t, u, u.deployment("web"), func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(5)) })
	}},
	{"drifted", func(t *testing.T, u *user) {
		change(t, u, u.deployment("web"), func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = "nginx:1.0" })
	}},
	{"Service deleted", func(t *testing.T, u *user) { require.NoError(t, u.Delete(t.Context(), u.service("web"))) }},
	{"without ports and budget", func(t *testing.T, u *user) {
		u.set(t, "web", func(s *appv1.AppSpec) { s.Ports, s.MinAvailable = nil, nil })
	}},
	{"a port again", func(t *testing.T, u *user) {
		u.set(t, "web", func(s *appv1.AppSpec) { s.Ports = []corev1.ServicePort{{Port: 80}} })
	}},
	{"Service removed by hand", func(t *testing.T, u *user) { require.NoError(t, u.Delete(t.Context(), u.service("web"))) }},
}

// fault is what goes wrong: the process ends at a write, or what is read is some writes old.
type fault struct {
	crashAt   int
	committed bool
	lag       int
}

func (f fault) String() string {
	switch {
	case f.lag > 0:
		return fmt.Sprintf("reads %d writes old", f.lag)
	case f.committed:
		return fmt.Sprintf("crash after write %d", f.crashAt)
	default:
		return fmt.Sprintf("crash before write %d", f.crashAt)
	}
}

// tell plays the story with a fault and gives the final state, and how many writes the operator tried.
func tell(t *testing.T, f fault) (final string, writes int) {
	t.Helper()
	u := newUser(t, apiServer(t))
	history := operatortest.NewHistory(u.WithWatch, nil)
	u.WithWatch = history.Client()
	process := &operatortest.Process{History: history, CrashAt: f.crashAt, Committed: f.committed}
	reconciler := reconcile.New(process.Client(), controller.Steps()...).WithConditions(controller.Conditions)
	request := ctrl.Request{NamespacedName: client.ObjectKey{Namespace: u.namespace, Name: "web"}}

	for _, chapter := range story {
		chapter.act(t, u)
		process.Lag = f.lag
		for passes, quiet := 0, false; !quiet; passes++ {
			require.Less(t, passes, 20, "%s: it does not become quiet", chapter.name)
			before := history.Len()
			_, err := reconciler.Reconcile(t.Context(), request)
			require.NoError(t, err)
			switch {
			case process.Crashed:
				process = &operatortest.Process{History: history}
				reconciler = reconcile.New(process.Client(), controller.Steps()...).WithConditions(controller.Conditions)
			case history.Len() > before:
				process.Lag = f.lag
			case process.Lag > 0:
				process.Lag-- // the cache catches up
			default:
				quiet = true
			}
		}
	}
	return strings.ReplaceAll(describe(t, history), u.namespace, "namespace"), process.Writes
}

// describe gives the state without what differs from run to run.
func describe(t *testing.T, history *operatortest.History) string {
	t.Helper()
	var all strings.Builder
	for _, obj := range history.Now() {
		owned := ""
		if ref := metav1.GetControllerOf(obj); ref != nil {
			owned = ref.Kind + " " + ref.Name
		}
		fmt.Fprintf(&all, "%T %s of %q, labels %v\n", obj, obj.GetName(), owned, obj.GetLabels())
		switch obj := obj.(type) {
		case *appsv1.Deployment:
			writeJSON(t, &all, obj.Spec)
		case *corev1.Service:
			obj.Spec.ClusterIP, obj.Spec.ClusterIPs = "", nil
			writeJSON(t, &all, obj.Spec)
		case *appv1.App:
			for i := range obj.Status.Conditions {
				c := &obj.Status.Conditions[i]
				c.LastTransitionTime, c.LastUpdateTime = metav1.Time{}, metav1.Time{}
			}
			fmt.Fprintf(&all, "\tannotations %v\n", obj.Annotations)
			writeJSON(t, &all, obj.Status)
		}
	}
	return all.String()
}

// Whenever the operator crashes, and however old what it reads: in the end everything is as if nothing had happened.
func TestFaults(t *testing.T) {
	want, writes := tell(t, fault{})
	t.Logf("%d writes; in the end:\n%s", writes, want)
	for _, part := range []string{`*v1.Deployment web of "App web"`, `"replicas":5`, `*v1.Service web of "App web"`, `"endpoint":"web.namespace.svc:80"`, "annotations map[]"} {
		require.Contains(t, want, part, "without a fault all is as wanted")
	}
	require.NotContains(t, want, "PodDisruptionBudget")
	var faults []fault
	for lag := 1; lag <= 3; lag++ {
		faults = append(faults, fault{lag: lag})
	}
	for n := 1; n <= writes; n++ {
		faults = append(faults, fault{crashAt: n}, fault{crashAt: n, committed: true})
	}
	for _, f := range faults {
		t.Run(f.String(), func(t *testing.T) {
			t.Parallel()
			got, _ := tell(t, f)
			assert.Equal(t, want, got)
		})
	}
}

func writeJSON(t *testing.T, to *strings.Builder, v any) {
	t.Helper()
	encoded, err := json.Marshal(v)
	require.NoError(t, err)
	fmt.Fprintf(to, "\t%s\n", encoded)
}
