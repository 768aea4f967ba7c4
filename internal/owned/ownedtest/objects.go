package ownedtest

import (
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// Meta returns the metadata of a child. It has the owner's name and a label.
func (s *Server) Meta() metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: s.Namespace, Name: "web", Labels: map[string]string{"tier": "front"}}
}

// Deployment returns the child that most tests apply.
func (s *Server) Deployment() *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: s.Meta(), Spec: appsv1.DeploymentSpec{
		Replicas: new(int32(2)),
		Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
		Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{
				Name: "web", Image: "nginx:1.27", Env: []corev1.EnvVar{{Name: "MODE", Value: "shop"}},
				Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}},
			}}},
		},
	}}
}

// Service returns a Service that selects the pods of Deployment.
func (s *Server) Service() *corev1.Service {
	return &corev1.Service{ObjectMeta: s.Meta(), Spec: corev1.ServiceSpec{
		Selector: map[string]string{"app": "web"}, Ports: []corev1.ServicePort{{Name: "http", Port: 80}},
	}}
}

// Unstructured returns the object that an apply of o sends, as an unstructured object.
func (s *Server) Unstructured(t *testing.T, o client.Object) *unstructured.Unstructured {
	t.Helper()
	k, err := s.Applier.Kinds.Of(o, s.Client.Scheme())
	require.NoError(t, err)
	body, err := k.Comparer.AppendApply(nil, o, k.GVK, "", "")
	require.NoError(t, err)
	u := &unstructured.Unstructured{}
	require.NoError(t, u.UnmarshalJSON(body))
	return u
}

// FromYAML returns an unstructured object.
func FromYAML(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	require.NoError(t, yaml.Unmarshal([]byte(text), &u.Object))
	return u
}
