//go:build !race

// An exploration runs one pass at a time, so the race detector finds nothing in it, and would take ten times as long.

package controller_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	cachev1 "github.com/opblocks/opblocks/examples/memcached/api/v1"
	"github.com/opblocks/opblocks/examples/memcached/controller"
	"github.com/opblocks/opblocks/reconcile/reconciletest"
)

var named = metav1.ObjectMeta{Namespace: "default", Name: "memcached-sample"}

// TestSurvivesEveryFault runs scenarios that cover everything that the operator reacts to, once for every fault at every
// point. The faults at the creation and the deletion of a Memcached are tried only in the scenario "made": the other
// scenarios leave nothing else to clean up. What the operator asks the API server for is compared with its role.
func TestSurvivesEveryFault(t *testing.T) {
	created := reconciletest.Create(sample(2)).Then(serves(2, "96Mi", "-m=64", "-o", "modern", "-v", "-c", "1024"))
	tests := map[string][]reconciletest.Action{
		"made": {created, reconciletest.Delete(sample(0))},
		"changed": {
			created.WithoutFaults(),
			edit(func(s *cachev1.MemcachedSpec) { s.Size, s.MaxConnections = 3, 7 }).Then(serves(3, "96Mi", "-m=64", "-o", "modern", "-v", "-c", "7")),
			reconciletest.Change(&appsv1.Deployment{ObjectMeta: named}, func(d *appsv1.Deployment) {
				d.Spec.Replicas, d.OwnerReferences[0].BlockOwnerDeletion = new(int32(1)), nil
			}),
		},
		"lost": {
			created.WithoutFaults(),
			reconciletest.Change(&corev1.Service{ObjectMeta: named}, func(s *corev1.Service) { s.OwnerReferences[0].BlockOwnerDeletion = nil }),
			reconciletest.Delete(&corev1.Service{ObjectMeta: named}),
			reconciletest.Delete(&appsv1.Deployment{ObjectMeta: named}),
		},
	}
	var reports []*reconciletest.Report
	for name, actions := range tests {
		t.Run(name, func(t *testing.T) {
			reports = append(reports, reconciletest.Explore(t, scenario(t, reconciletest.Options{Pairs: 20}, actions...)))
		})
	}
	reconciletest.AssertRole(t, "../config/rbac/role.yaml", reports)
}

// TestDoesWhatTheSpecSays runs more changes, and only without faults: nothing else in it can fail.
func TestDoesWhatTheSpecSays(t *testing.T) {
	reconciletest.Explore(t, scenario(t, reconciletest.Options{WithoutFaults: true},
		reconciletest.Create(sample(2)),
		reconciletest.Create(byHand).Then(serves(2, "96Mi")),
		edit(func(s *cachev1.MemcachedSpec) { s.Image = "registry.invalid/memcached:1" }).Then(waits("ImagePullBackOff")),
		edit(func(s *cachev1.MemcachedSpec) {
			s.Image, s.Memory = "", &cachev1.Quantity{Quantity: resource.MustParse("128.5Mi")}
		}).Then(serves(2, "160Mi", "-m=128", "-o", "modern", "-v", "-c", "1024")),
		edit(func(s *cachev1.MemcachedSpec) { s.Size = 0 }).Then(serves(0, "160Mi")),
		reconciletest.Delete(sample(0)),
	))
}

// scenario returns a scenario with these options and actions.
func scenario(t *testing.T, options reconciletest.Options, actions ...reconciletest.Action) reconciletest.Scenario {
	t.Helper()
	scheme := runtime.NewScheme()
	require.NoError(t, clientgoscheme.AddToScheme(scheme))
	require.NoError(t, cachev1.AddToScheme(scheme))
	return reconciletest.Scenario{
		Scheme: scheme, CRDs: []string{"../config/crd/bases"}, Options: options, Actions: actions,
		Start: func(p *reconciletest.Process) error {
			return controller.SetupWithManager(p.Manager(controller.Cache()))
		},
	}
}

// byHand is a pod with the labels of a Memcached that no ReplicaSet has made: it does not count.
var byHand = &corev1.Pod{
	ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "by-hand", Labels: map[string]string{"app": "memcached", "memcached_cr": "memcached-sample"}},
	Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "memcached", Image: "memcached:1"}}},
}

func edit(spec func(s *cachev1.MemcachedSpec)) reconciletest.Action {
	return reconciletest.Change(sample(0), func(m *cachev1.Memcached) { spec(&m.Spec) })
}

// serves returns a check of what must be true for a number of pods: the children are as the spec asks for, and all are ready. If no arguments are given, memcached may have any.
func serves(size int32, memory string, arguments ...string) func(env *reconciletest.Env) error {
	ready := &cachev1.Memcached{ObjectMeta: named, Spec: cachev1.MemcachedSpec{Size: size}, Status: cachev1.MemcachedStatus{
		ReadyReplicas: size, Available: fmt.Sprintf("%d/%d", size, size), Selector: "app=memcached,memcached_cr=memcached-sample",
	}}
	container := corev1.Container{
		Name: "memcached", Image: "memcached:1.6-alpine", Ports: []corev1.ContainerPort{{Name: "memcached", ContainerPort: 11211}},
		Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("50m"), corev1.ResourceMemory: resource.MustParse(memory)}},
	}
	if len(arguments) > 0 {
		container.Command = append([]string{"memcached"}, arguments...)
	}
	for _, probe := range []**corev1.Probe{&container.ReadinessProbe, &container.LivenessProbe} {
		*probe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromString("memcached")}}}
	}
	deployment := &appsv1.Deployment{ObjectMeta: named, Spec: appsv1.DeploymentSpec{Replicas: &size}}
	deployment.Spec.Template = corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"cache.example.com/memcached": "memcached-sample"}},
		Spec:       corev1.PodSpec{SecurityContext: &corev1.PodSecurityContext{RunAsUser: new(int64(11211))}, Containers: []corev1.Container{container}},
	}
	service := &corev1.Service{ObjectMeta: named, Spec: corev1.ServiceSpec{
		ClusterIP: corev1.ClusterIPNone, Selector: byHand.Labels, Ports: []corev1.ServicePort{{Name: "memcached", Protocol: corev1.ProtocolTCP, Port: 11211, TargetPort: intstr.FromString("memcached")}},
	}}
	has, isReady := reconciletest.Has(ready, deployment, service), reconciletest.Ready(ready)
	return func(env *reconciletest.Env) error { return errors.Join(has(env), isReady(env), nodes(env, size)) }
}

// nodes returns an error if the status has not the names of the pods of the Deployment, in their order.
func nodes(env *reconciletest.Env, size int32) error {
	m := &cachev1.Memcached{}
	if err := env.Get(context.Background(), client.ObjectKeyFromObject(sample(0)), m); err != nil {
		return err
	}
	if len(m.Status.Nodes) != int(size) || slices.Contains(m.Status.Nodes, byHand.Name) || !slices.IsSorted(m.Status.Nodes) {
		return fmt.Errorf("the nodes in the status are %v", m.Status.Nodes)
	}
	return nil
}

// waits returns a check that the pods do not start, and that the conditions say why.
func waits(reason string) func(env *reconciletest.Env) error {
	return reconciletest.Has(&cachev1.Memcached{ObjectMeta: named, Spec: cachev1.MemcachedSpec{Size: 2}, Status: cachev1.MemcachedStatus{
		Available:  "0/2",
		Conditions: []metav1.Condition{{Type: "Available", Status: metav1.ConditionFalse, Reason: reason}, {Type: "Ready", Status: metav1.ConditionFalse, Reason: reason}},
	}})
}
