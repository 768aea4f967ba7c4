//go:build !race

package controller_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appv1 "github.com/opblocks/opblocks/examples/app/api/v1"
	"github.com/opblocks/opblocks/reconcile/reconciletest"
)

var named = metav1.ObjectMeta{Namespace: "default", Name: "nginx-app"}

// TestDoesWhatTheSpecSays runs changes of all fields, and only without faults: nothing else in it can fail.
func TestDoesWhatTheSpecSays(t *testing.T) {
	edit := func(spec func(s *appv1.AppSpec)) reconciletest.Action {
		return reconciletest.Change(sample(), func(a *appv1.App) { spec(&a.Spec) })
	}
	settings := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "settings"}}
	key := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "key"}}
	tutorial := sample()
	tutorial.Annotations = map[string]string{"spec": "{}"}
	reconciletest.Explore(t, scenario(t,
		reconciletest.Create(tutorial).Then(all(
			reconciletest.Ready(sample()), lacks("annotation", func(a *appv1.App) bool { return a.Annotations["spec"] == "" }),
			absent(&policyv1.PodDisruptionBudget{ObjectMeta: named}), configured(false),
			reconciletest.Has(
				runs(2, corev1.Container{
					Name: "nginx-app", Image: "nginx:1.16.1", ImagePullPolicy: corev1.PullIfNotPresent, Ports: []corev1.ContainerPort{{ContainerPort: 80, Protocol: corev1.ProtocolTCP}},
					Env: []corev1.EnvVar{{Name: "DEMO", Value: "app"}, {Name: "GOPATH", Value: "gopath"}},
				}),
				exposes(corev1.ServiceTypeClusterIP, corev1.ServicePort{Port: 8080, Protocol: corev1.ProtocolTCP, TargetPort: intstr.FromInt32(80)}),
				reports("nginx-app.default.svc:8080", 2),
			),
		)),
		edit(func(s *appv1.AppSpec) {
			s.Envs = append(s.Envs, corev1.EnvVar{Name: "DEMO", Value: "last"})
			s.Replicas, s.ServiceAccountName, s.MinAvailable = new(int32(3)), "web", new(intstr.FromString("50%"))
			s.PodSecurityContext, s.SecurityContext = &corev1.PodSecurityContext{RunAsUser: new(int64(7))}, &corev1.SecurityContext{Privileged: new(false)}
			s.LivenessProbe, s.ReadinessProbe, s.StartupProbe = probe(1), probe(2), probe(3)
			s.Ports = append(s.Ports, corev1.ServicePort{Port: 53, Protocol: corev1.ProtocolUDP, TargetPort: intstr.FromInt32(53)}, corev1.ServicePort{Name: "web", Port: 443, TargetPort: intstr.FromInt32(443)})
			s.ServiceType = corev1.ServiceTypeNodePort
		}).Then(reconciletest.Has(
			runs(3, corev1.Container{
				Name: "nginx-app", Env: []corev1.EnvVar{{Name: "GOPATH", Value: "gopath"}, {Name: "DEMO", Value: "last"}},
				LivenessProbe: probe(1), ReadinessProbe: probe(2), StartupProbe: probe(3), SecurityContext: &corev1.SecurityContext{Privileged: new(false)},
			}),
			&appsv1.Deployment{ObjectMeta: named, Spec: appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
				ServiceAccountName: "web", SecurityContext: &corev1.PodSecurityContext{RunAsUser: new(int64(7))},
			}}}},
			exposes(corev1.ServiceTypeNodePort,
				corev1.ServicePort{Name: "tcp-8080", Protocol: corev1.ProtocolTCP, Port: 8080, TargetPort: intstr.FromInt32(80)},
				corev1.ServicePort{Name: "udp-53", Protocol: corev1.ProtocolUDP, Port: 53, TargetPort: intstr.FromInt32(53)},
				corev1.ServicePort{Name: "web", Protocol: corev1.ProtocolTCP, Port: 443, TargetPort: intstr.FromInt32(443)}),
			&policyv1.PodDisruptionBudget{ObjectMeta: named, Spec: policyv1.PodDisruptionBudgetSpec{MinAvailable: new(intstr.FromString("50%")), Selector: &metav1.LabelSelector{MatchLabels: labels}}},
			reports("nginx-app.default.svc:8080", 3),
		)),
		edit(func(s *appv1.AppSpec) {
			s.ConfigMapRefs, s.SecretRefs = []corev1.LocalObjectReference{{Name: "settings"}}, []corev1.LocalObjectReference{{Name: "key"}}
		}).Then(configured(true)), // both are missing
		reconciletest.Create(settings), reconciletest.Create(key).Then(all(configured(true), reconciletest.Ready(sample()))),
		reconciletest.Delete(key).Then(configured(true)), // the pods keep what they have
		edit(func(s *appv1.AppSpec) { s.SecretRefs = nil }).Then(configured(true)),
		edit(func(s *appv1.AppSpec) { s.Ports = append(s.Ports, s.Ports[2]) }).Then(stalls("DuplicatePort")),
		edit(func(s *appv1.AppSpec) { s.Ports = s.Ports[:1]; s.Ports[0].Name = "Not_A_Name" }).Then(stalls("Invalid")),
		edit(func(s *appv1.AppSpec) { s.Ports, s.MinAvailable = nil, nil }).Then(all(
			reconciletest.Ready(sample()), absent(&corev1.Service{ObjectMeta: named}), absent(&policyv1.PodDisruptionBudget{ObjectMeta: named}),
			lacks("endpoint", func(a *appv1.App) bool { return a.Status.Endpoint == "" }),
		)),
		reconciletest.Delete(sample()),
	), reconciletest.WithoutFaults())
}

// TestLeavesObjectsOfOthers has a Deployment and a Service of somebody else under the App's name.
func TestLeavesObjectsOfOthers(t *testing.T) {
	theirs := map[string]string{"app": "theirs"}
	pod := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: theirs}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "theirs", Image: "theirs:1"}}}}
	objects := []client.Object{
		&appsv1.Deployment{ObjectMeta: named, Spec: appsv1.DeploymentSpec{Replicas: new(int32(7)), Selector: &metav1.LabelSelector{MatchLabels: theirs}, Template: pod}},
		&corev1.Service{ObjectMeta: named, Spec: corev1.ServiceSpec{Selector: theirs, Ports: []corev1.ServicePort{{Port: 1}}}},
	}
	s := scenario(t, reconciletest.Create(sample()).Then(all(
		reconciletest.Has(&appsv1.Deployment{ObjectMeta: named, Spec: appsv1.DeploymentSpec{Replicas: new(int32(7))}}, &corev1.Service{ObjectMeta: named, Spec: corev1.ServiceSpec{Selector: theirs}}),
		lacks("endpoint and replicas", func(a *appv1.App) bool { return a.Status.Endpoint == "" && a.Status.Replicas == 0 }),
	)))
	s.Objects = objects
	s.Unready = []reconciletest.Unready{{Object: sample(), Reason: "OwnedByAnother"}}
	reconciletest.Explore(t, s, reconciletest.WithoutFaults())
}

var labels = map[string]string{"app.example.com/v1": "nginx-app"}

func probe(seconds int32) *corev1.Probe {
	return &corev1.Probe{PeriodSeconds: seconds, ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(80)}}}
}

func runs(replicas int32, container corev1.Container) *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: named, Spec: appsv1.DeploymentSpec{
		Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{container}}},
	}}
}

func exposes(serviceType corev1.ServiceType, ports ...corev1.ServicePort) *corev1.Service {
	return &corev1.Service{ObjectMeta: named, Spec: corev1.ServiceSpec{Type: serviceType, Selector: labels, Ports: ports}}
}

func reports(endpoint string, replicas int32) *appv1.App {
	a := &appv1.App{ObjectMeta: named, Status: appv1.AppStatus{Endpoint: endpoint, Selector: "app.example.com/v1=nginx-app"}}
	a.Spec.Image = "nginx:1.16.1"
	a.Status.Replicas, a.Status.ReadyReplicas, a.Status.AvailableReplicas = replicas, replicas, replicas
	return a
}

// all returns a check of all checks.
func all(checks ...func(env *reconciletest.Env) error) func(env *reconciletest.Env) error {
	return func(env *reconciletest.Env) error {
		var errs []error
		for _, check := range checks {
			errs = append(errs, check(env))
		}
		return errors.Join(errs...)
	}
}

// lacks returns a check of what an App must not have.
func lacks(what string, isSo func(a *appv1.App) bool) func(env *reconciletest.Env) error {
	return func(env *reconciletest.Env) error {
		a := &appv1.App{}
		if err := env.Get(context.Background(), client.ObjectKeyFromObject(sample()), a); err != nil {
			return err
		}
		if !isSo(a) {
			return fmt.Errorf("the App has a wrong %s: %v %v", what, a.Annotations, a.Status)
		}
		return nil
	}
}

// absent returns a check that an object does not exist.
func absent(obj client.Object) func(env *reconciletest.Env) error {
	return func(env *reconciletest.Env) error {
		if err := env.Get(context.Background(), client.ObjectKeyFromObject(obj), obj); !apierrors.IsNotFound(err) {
			return fmt.Errorf("%T exists, or cannot be read: %w", obj, err)
		}
		return nil
	}
}

// configured returns a check whether the pods have the hash of what the App refers to.
func configured(want bool) func(env *reconciletest.Env) error {
	return func(env *reconciletest.Env) error {
		d := &appsv1.Deployment{}
		if err := env.Get(context.Background(), client.ObjectKeyFromObject(sample()), d); err != nil {
			return err
		}
		if is := d.Spec.Template.Annotations["app.huolala.cn/configuration"] != ""; is != want {
			return fmt.Errorf("whether the pods have a configuration is %t, and must be %t", is, want)
		}
		return nil
	}
}

// stalls returns a check of the condition of the Service, with the reason why there is none.
func stalls(reason string) func(env *reconciletest.Env) error {
	return lacks("condition ServiceReady", func(a *appv1.App) bool {
		for _, c := range a.Status.Conditions {
			if c.Type == "ServiceReady" {
				return c.Status == corev1.ConditionFalse && c.Reason == reason
			}
		}
		return false
	})
}
