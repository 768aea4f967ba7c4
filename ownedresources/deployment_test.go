package ownedresources

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestNewDeploymentLeavesWhatItIsGivenAlone(t *testing.T) {
	owner := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web"}}
	given := []corev1.Container{{Name: "a", SecurityContext: &corev1.SecurityContext{RunAsUser: new(int64(7))}}, {Name: "b"}}
	d := NewDeployment(owner, nil, given...)
	require.Nil(t, given[0].SecurityContext.Capabilities, "it may be part of the owner's spec, in the cache")
	require.Nil(t, given[1].SecurityContext)
	for _, c := range d.Spec.Template.Spec.Containers {
		require.Equal(t, []corev1.Capability{"ALL"}, c.SecurityContext.Capabilities.Drop, c.Name)
	}
	require.EqualValues(t, 7, *d.Spec.Template.Spec.Containers[0].SecurityContext.RunAsUser, "what was said stays")
}
