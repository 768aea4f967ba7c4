//go:build !race

package controller_test

import (
	"context"
	"errors"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appv1 "github.com/opblocks/opblocks/examples/app/api/v1"
	"github.com/opblocks/opblocks/reconcile/reconciletest"
)

// TestDoesWhatTheSpecSays runs changes of all fields, and only without faults: nothing else in it can fail.
func TestDoesWhatTheSpecSays(t *testing.T) {
	settings := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "settings"}}
	key := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "key"}}
	numbered, tutorial, balanced := sample(), sample(), sample()
	numbered.Name, tutorial.Annotations, balanced.Spec.ServiceType = "1-nginx", map[string]string{"spec": "{}"}, corev1.ServiceTypeLoadBalancer
	tests := map[string]reconciletest.Scenario{
		"spec": {Actions: []reconciletest.Action{
			reconciletest.Create(tutorial).Then(
				reconciletest.Has(
					runs(2, corev1.Container{
						Name: "nginx-app", Image: "nginx:1.16.1", ImagePullPolicy: corev1.PullIfNotPresent, Ports: []corev1.ContainerPort{{ContainerPort: 80, Protocol: corev1.ProtocolTCP}},
						Env: []corev1.EnvVar{{Name: "DEMO", Value: "app"}, {Name: "GOPATH", Value: "gopath"}},
					}),
					exposes(corev1.ServiceTypeClusterIP, corev1.ServicePort{Port: 8080, Protocol: corev1.ProtocolTCP, TargetPort: intstr.FromInt32(80)}),
					reports("nginx-app.default.svc:8080", 2),
				)).
				Then(reconciletest.Ready(sample())).Then(unnamed).Then(absent(&policyv1.PodDisruptionBudget{ObjectMeta: named})).Then(configured(false, 1)).
				Then(app("annotation", func(a *appv1.App) bool { return a.Annotations["spec"] == "" })),
			edit(func(s *appv1.AppSpec) {
				s.Envs = append(s.Envs, corev1.EnvVar{Name: "DEMO", Value: "last"})
				s.EnvFrom = []corev1.EnvFromSource{{Prefix: "S_", ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "settings"}}}}
				s.Resources.Limits = appv1.ResourceList{"cpu": {Quantity: resource.MustParse("2")}}
				s.Replicas, s.ServiceAccountName, s.MinAvailable = new(int32(3)), "web", new(intstr.FromString("50%"))
				s.PodSecurityContext, s.SecurityContext = &corev1.PodSecurityContext{RunAsUser: new(int64(7))}, &corev1.SecurityContext{Privileged: new(false)}
				s.LivenessProbe, s.ReadinessProbe, s.StartupProbe = probe(1), probe(2), probe(3)
				s.Ports = append(s.Ports, corev1.ServicePort{Port: 53, Protocol: corev1.ProtocolUDP, TargetPort: intstr.FromInt32(53)}, corev1.ServicePort{Name: "web", Port: 443, TargetPort: intstr.FromString("https")})
				s.ServiceType = corev1.ServiceTypeNodePort
			}).Then(reconciletest.Has(
				runs(3, corev1.Container{
					Name: "nginx-app", Env: []corev1.EnvVar{{Name: "GOPATH", Value: "gopath"}, {Name: "DEMO", Value: "last"}},
					EnvFrom:       []corev1.EnvFromSource{{Prefix: "S_", ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "settings"}}}},
					Resources:     corev1.ResourceRequirements{Limits: corev1.ResourceList{"cpu": resource.MustParse("2")}},
					LivenessProbe: probe(1), ReadinessProbe: probe(2), StartupProbe: probe(3), SecurityContext: &corev1.SecurityContext{Privileged: new(false)},
				}),
				&appsv1.Deployment{ObjectMeta: named, Spec: appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
					ServiceAccountName: "web", SecurityContext: &corev1.PodSecurityContext{RunAsUser: new(int64(7))},
				}}}},
				exposes(corev1.ServiceTypeNodePort,
					corev1.ServicePort{Name: "tcp-8080", Protocol: corev1.ProtocolTCP, Port: 8080, TargetPort: intstr.FromInt32(80)},
					corev1.ServicePort{Name: "udp-53", Protocol: corev1.ProtocolUDP, Port: 53, TargetPort: intstr.FromInt32(53)},
					corev1.ServicePort{Name: "web", Protocol: corev1.ProtocolTCP, Port: 443, TargetPort: intstr.FromString("https")}),
				&policyv1.PodDisruptionBudget{ObjectMeta: named, Spec: policyv1.PodDisruptionBudgetSpec{MinAvailable: new(intstr.FromString("50%")), Selector: &metav1.LabelSelector{MatchLabels: labels}}},
				reports("nginx-app.default.svc:8080", 3),
			)),
			edit(func(s *appv1.AppSpec) { s.Ports = append(s.Ports, s.Ports[2]) }).Then(stalls("DuplicatePort", `no Service: [spec.ports[3].name: Duplicate value: "web"`)),
			edit(func(s *appv1.AppSpec) { s.Ports = s.Ports[:1]; s.Ports[0].Name = "Not_A_Name" }).Then(stalls("Invalid", `no Service: spec.ports[0].name: Invalid value: "Not_A_Name"`)).
				Then(app("endpoint", func(a *appv1.App) bool { return a.Status.Endpoint != "" })), // the former Service still works
			edit(func(s *appv1.AppSpec) { s.Ports, s.MinAvailable = nil, nil }).
				Then(reconciletest.Ready(sample())).Then(absent(&corev1.Service{ObjectMeta: named})).Then(absent(&policyv1.PodDisruptionBudget{ObjectMeta: named})).
				Then(app("endpoint", func(a *appv1.App) bool { return a.Status.Endpoint == "" })),
			reconciletest.Delete(sample()),
		}},
		"references": {Actions: []reconciletest.Action{
			reconciletest.Create(sample()).Then(configured(false, 1)),
			edit(func(s *appv1.AppSpec) {
				s.ConfigMapRefs, s.SecretRefs = []corev1.LocalObjectReference{{Name: "settings"}}, []corev1.LocalObjectReference{{Name: "key"}}
			}).Then(configured(true, 2)), // both are missing
			reconciletest.Create(settings).Then(configured(true, 2)),
			reconciletest.Create(key).Then(configured(true, 3)).Then(reconciletest.Ready(sample())),
			reconciletest.Change(settings, func(m *corev1.ConfigMap) { m.Data = map[string]string{"colour": "red"} }).Then(configured(true, 4)),
			reconciletest.Change(key, func(s *corev1.Secret) { s.Data = map[string][]byte{"key": []byte("secret")} }).Then(configured(true, 5)),
			reconciletest.Delete(key).Then(configured(true, 5)), // the pods keep what they have
			edit(func(s *appv1.AppSpec) { s.SecretRefs = nil }).Then(configured(true, 6)),
			edit(func(s *appv1.AppSpec) { s.ConfigMapRefs = nil }).Then(configured(false, 7)),
			reconciletest.Delete(sample()),
		}},
		"others": { // Others have objects of the App's name.
			Objects: []client.Object{theirDeployment(), theirService()},
			Actions: []reconciletest.Action{
				reconciletest.Create(sample()).Then(reconciletest.Has(theirDeployment(), theirService())).Then(condition("Ready", "False", "OwnedByAnother", "")).
					Then(app("endpoint or replicas", func(a *appv1.App) bool { return a.Status.Endpoint == "" && a.Status.Replicas == 0 })),
				reconciletest.Delete(theirDeployment()), reconciletest.Delete(theirService()).Then(reconciletest.Has(reports("nginx-app.default.svc:8080", 2))),
				reconciletest.Do("replace the Service", func(ctx context.Context, c client.Client) error {
					return errors.Join(c.Delete(ctx, theirService()), c.Create(ctx, theirService()))
				}).Then(reconciletest.Has(theirService())).Then(condition("ServiceReady", "False", "OwnedByAnother", "")).
					Then(app("endpoint", func(a *appv1.App) bool { return a.Status.Endpoint == "" })),
				reconciletest.Delete(theirService()).Then(reconciletest.Has(reports("nginx-app.default.svc:8080", 2))),
			},
		},
		"name": { // A Service cannot have this name.
			Actions: []reconciletest.Action{reconciletest.Create(numbered).Then(func(env *reconciletest.Env) error {
				return errors.Join(absent(&corev1.Service{ObjectMeta: numbered.ObjectMeta})(env), reconciletest.Ready(&appsv1.Deployment{ObjectMeta: numbered.ObjectMeta})(env))
			}).Then(stalls("InvalidServiceName", `no Service: metadata.name: Invalid value: "1-nginx"`))},
			Unready: []reconciletest.Unready{{Object: numbered, Reason: "InvalidServiceName"}},
		},
		"balancer": {
			SimulatedControllers: []reconciletest.SimulatedController{{For: &corev1.Service{}}},
			Actions:              []reconciletest.Action{reconciletest.Create(balanced).Then(app("endpoint", func(a *appv1.App) bool { return a.Status.Endpoint == "nginx-app.default.svc:8080" }))},
			Unready:              []reconciletest.Unready{{Object: sample(), Reason: "NoAddress"}},
		},
		"status": { // The test writes the status of the Deployment, without times.
			SimulatedControllers: []reconciletest.SimulatedController{{For: &appsv1.Deployment{}}},
			Actions: []reconciletest.Action{
				reconciletest.Create(sample()),
				reconciletest.Change(&appsv1.Deployment{ObjectMeta: named}, func(d *appsv1.Deployment) {
					d.Status = appsv1.DeploymentStatus{ObservedGeneration: d.Generation, Replicas: 2, UnavailableReplicas: 2, Conditions: []appsv1.DeploymentCondition{
						{Type: "ReplicaFailure", Status: "True", Reason: "FailedCreate"}, {Type: "Available", Status: "False", Reason: "MinimumReplicasUnavailable"},
					}}
				}).Then(condition("ReplicaFailure", "True", "FailedCreate", "")).Then(condition("Available", "False", "MinimumReplicasUnavailable", "")).
					Then(app("status", func(a *appv1.App) bool {
						c := a.Status.Conditions[0]
						return a.Status.UnavailableReplicas == 2 && a.Status.ObservedGeneration == a.Generation && c.Type == "Available" && !c.LastUpdateTime.IsZero()
					})),
				reconciletest.Change(sample(), func(a *appv1.App) { a.Spec.ServiceAccountName = "web" }).
					Then(app("generation", func(a *appv1.App) bool { return a.Status.ObservedGeneration == a.Generation })),
				reconciletest.Change(&appsv1.Deployment{ObjectMeta: named}, func(d *appsv1.Deployment) {
					d.Status = appsv1.DeploymentStatus{ObservedGeneration: d.Generation, Replicas: 2, UpdatedReplicas: 2, ReadyReplicas: 2, AvailableReplicas: 2, Conditions: []appsv1.DeploymentCondition{
						{Type: "Progressing", Status: "True", Reason: "NewReplicaSetAvailable"}, {Type: "Available", Status: "True", Reason: "MinimumReplicasAvailable"},
					}}
				}).Then(reconciletest.Has(reports("nginx-app.default.svc:8080", 2))).Then(reconciletest.Ready(sample())),
				reconciletest.Delete(sample()),
			},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := scenario(t, test.Actions...)
			s.Objects, s.SimulatedControllers, s.Unready = test.Objects, test.SimulatedControllers, test.Unready
			s.Options.WithoutFaults = true
			reconciletest.Explore(t, s)
		})
	}
}

func edit(spec func(s *appv1.AppSpec)) reconciletest.Action {
	return reconciletest.Change(sample(), func(a *appv1.App) { spec(&a.Spec) })
}
