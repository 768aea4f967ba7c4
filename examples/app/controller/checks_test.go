//go:build !race

package controller_test

import (
	"context"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appv1 "github.com/opblocks/opblocks/examples/app/api/v1"
	"github.com/opblocks/opblocks/examples/app/controller"
	"github.com/opblocks/opblocks/reconcile/reconciletest"
)

var named = metav1.ObjectMeta{Namespace: "default", Name: "nginx-app"}

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
	for _, conditionType := range []appsv1.DeploymentConditionType{"Available", "Progressing", "ServiceReady", "Ready"} {
		a.Status.Conditions = append(a.Status.Conditions, appsv1.DeploymentCondition{Type: conditionType, Status: corev1.ConditionTrue})
	}
	a.Status.Replicas, a.Status.ReadyReplicas, a.Status.AvailableReplicas = replicas, replicas, replicas
	return a
}

var theirs = map[string]string{"app": "theirs"}

func theirDeployment() *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: named, Spec: appsv1.DeploymentSpec{
		Replicas: new(int32(7)), Selector: &metav1.LabelSelector{MatchLabels: theirs},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: theirs}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "theirs", Image: "theirs:1"}}}},
	}}
}

func theirService() *corev1.Service {
	return &corev1.Service{ObjectMeta: named, Spec: corev1.ServiceSpec{Selector: theirs, Ports: []corev1.ServicePort{{Port: 1, Protocol: corev1.ProtocolTCP, TargetPort: intstr.FromInt32(1)}}}}
}

// app returns a check of the only App. what is what the check is about.
func app(what string, isSo func(a *appv1.App) bool) func(env *reconciletest.Env) error {
	return func(env *reconciletest.Env) error {
		var apps appv1.AppList
		if err := env.List(context.Background(), &apps); err != nil {
			return err
		}
		if len(apps.Items) != 1 || !isSo(&apps.Items[0]) {
			return fmt.Errorf("the App has a wrong %s: %v", what, apps.Items)
		}
		return nil
	}
}

// unnamed returns an error if a port of the Service has a name.
func unnamed(env *reconciletest.Env) error {
	s := &corev1.Service{ObjectMeta: named}
	err := env.Get(context.Background(), client.ObjectKeyFromObject(s), s)
	if err == nil && slices.ContainsFunc(s.Spec.Ports, func(p corev1.ServicePort) bool { return p.Name != "" }) {
		err = fmt.Errorf("a port has a name: %v", s.Spec.Ports)
	}
	return err
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

// configured returns a check of whether the pods have a hash of what the App refers to. The generation of the Deployment says how often it
// was changed.
func configured(want bool, generation int64) func(env *reconciletest.Env) error {
	return func(env *reconciletest.Env) error {
		d := &appsv1.Deployment{}
		if err := env.Get(context.Background(), client.ObjectKeyFromObject(sample()), d); err != nil {
			return err
		}
		if is := d.Spec.Template.Annotations["app.huolala.cn/configuration"] != ""; is != want || d.Generation != generation {
			return fmt.Errorf("generation %d has a configuration: %t; it must be generation %d: %t", d.Generation, is, generation, want)
		}
		return nil
	}
}

// stalls returns a check of the condition of the Service, with the reason and a part of the message why there is none.
func stalls(reason, part string) func(env *reconciletest.Env) error {
	return condition("ServiceReady", "False", reason, part)
}

func condition(conditionType, status, reason, part string) func(env *reconciletest.Env) error {
	return app("condition "+conditionType, func(a *appv1.App) bool {
		c, _ := controller.Conditions.Get(a.Status.Conditions, conditionType)
		return string(c.Status) == status && c.Reason == reason && strings.Contains(c.Message, part)
	})
}
