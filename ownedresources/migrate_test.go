package ownedresources

import (
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestTakingOverFromAnOlderOperator(t *testing.T) {
	w := newWorld(t)
	old := w.deployment()
	old.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(w.owner, corev1.SchemeGroupVersion.WithKind("ConfigMap"))}
	old.Spec.Template.Spec.Containers[0].Env = append(old.Spec.Template.Spec.Containers[0].Env, corev1.EnvVar{Name: "OLD"})
	require.NoError(t, w.other.Create(t.Context(), old, client.FieldOwner("manager")))
	result, err := w.apply(t, w.deployment(), FormerManagers("manager"))
	require.NoError(t, err)
	require.Equal(t, Applied, result.Operation)
	var live appsv1.Deployment
	w.live(t, &live)
	require.Len(t, live.Spec.Template.Spec.Containers[0].Env, 1, "what the older operator set and we do not want goes")
	w.expect(t, w.deployment(), Unchanged, none...)
}
