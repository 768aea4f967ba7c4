package ownedresources

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/owned/testkinds"
)

func TestNewDeploymentDoesNotChangeItsArguments(t *testing.T) {
	owner := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web"}}
	given := []corev1.Container{{Name: "a", SecurityContext: &corev1.SecurityContext{RunAsUser: new(int64(7))}}, {Name: "b"}}
	d := NewDeployment(owner, nil, given...)
	require.Nil(t, given[0].SecurityContext.Capabilities, "it may be part of the owner's spec, in the cache")
	require.Nil(t, given[1].SecurityContext)
	for _, c := range d.Spec.Template.Spec.Containers {
		require.Equal(t, []corev1.Capability{"ALL"}, c.SecurityContext.Capabilities.Drop, c.Name)
	}
	require.EqualValues(t, 7, *d.Spec.Template.Spec.Containers[0].SecurityContext.RunAsUser, "a field that is set is kept")
}

func TestNewHorizontalPodAutoscalerScaleTargetRef(t *testing.T) {
	owner := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web"}}
	meta := metav1.ObjectMeta{Name: "cache"}
	cache := &unstructured.Unstructured{}
	cache.SetGroupVersionKind(schema.GroupVersionKind{Group: "example.com", Version: "v2", Kind: "Cache"})
	cache.SetName("cache")
	tests := map[string]struct {
		reason string
		target client.Object
		want   autoscalingv2.CrossVersionObjectReference
	}{
		"Deployment": {
			reason: "a typed object has no TypeMeta, but its type is known",
			target: &appsv1.Deployment{ObjectMeta: meta},
			want:   autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "cache"},
		},
		"StatefulSet": {
			reason: "any kind with a scale subresource",
			target: NewStatefulSet(owner, nil),
			want:   autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "web"},
		},
		"CustomResource": {
			reason: "the kind is in the object",
			target: cache,
			want:   autoscalingv2.CrossVersionObjectReference{APIVersion: "example.com/v2", Kind: "Cache", Name: "cache"},
		},
		"UnknownType": {
			reason: "nothing is guessed: the API server refuses an empty kind",
			target: &testkinds.Widget{ObjectMeta: meta},
			want:   autoscalingv2.CrossVersionObjectReference{Name: "cache"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, NewHorizontalPodAutoscaler(owner, tc.target, 3).Spec.ScaleTargetRef); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
