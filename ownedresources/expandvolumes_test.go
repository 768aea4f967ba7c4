package ownedresources

import (
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/opblocks/opblocks/internal/record"
)

// claimTemplates returns claim templates of these names and sizes.
func claimTemplates(namesAndSizes ...string) (all []corev1.PersistentVolumeClaim) {
	for i := 0; i < len(namesAndSizes); i += 2 {
		claim := corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: namesAndSizes[i]}}
		if size := namesAndSizes[i+1]; size != "" {
			claim.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}
		}
		all = append(all, claim)
	}
	return all
}

// createPod creates a pod without a controller.
func (env *serverEnv) createPod(t *testing.T, name string, labels map[string]string) *corev1.Pod {
	t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: env.Namespace, Name: name, Labels: labels},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "server", Image: "server:1"}}},
	}
	require.NoError(t, env.Other.Create(t.Context(), pod))
	return pod
}

// Two sets of one owner have a StatefulSet each. If one set is replacing its StatefulSet, the other set does not
// treat that StatefulSet as abandoned.
func TestExpandVolumesInTwoSets(t *testing.T) {
	env := newEnvInMemory(t)
	set := func(name, size string) *ChildSet[*Shop] {
		s := Ensure(Build(func(*Shop) *appsv1.StatefulSet {
			labels, claims := map[string]string{"app": name}, claimTemplates("data", size)
			claims[0].Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
			template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}}
			template.Spec.Containers = []corev1.Container{{Name: "server", Image: "server:1"}}
			return &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: appsv1.StatefulSetSpec{
				Selector: &metav1.LabelSelector{MatchLabels: labels}, ServiceName: name, Template: template, VolumeClaimTemplates: claims,
			}}
		}).ExpandVolumes())
		s.SetName(name)
		return s
	}
	one, two := set("one", "1Gi"), set("two", "1Gi")
	requireWaits(t, one.Reconcile(t.Context(), env.Client, env.Owner), "LessReplicas")
	requireWaits(t, two.Reconcile(t.Context(), env.Client, env.Owner), "LessReplicas")
	live := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "one"}}
	require.True(t, env.Exists(t, live))
	pod := env.createPod(t, "one-0", map[string]string{"app": "one"})
	pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(live, appsv1.SchemeGroupVersion.WithKind("StatefulSet"))}
	require.NoError(t, env.Other.Update(t.Context(), pod))
	foreign := env.createPod(t, "one-1", map[string]string{"app": "one"}) // the StatefulSet has not adopted this pod
	requireWaits(t, set("one", "2Gi").Reconcile(t.Context(), env.Client, env.Owner), "Recreating")
	require.True(t, env.Exists(t, live))
	env.RereadOwner(t)
	requireWaits(t, one.Finalize(t.Context(), env.Client, env.Owner), "ChildTerminating") // the garbage collector has not removed their owner reference yet
	require.True(t, env.Exists(t, pod))
	pod.OwnerReferences, live.Finalizers = nil, nil // the garbage collector would do this, which does not run here
	require.NoError(t, env.Other.Update(t.Context(), pod))
	require.NoError(t, env.Other.Update(t.Context(), live))

	env.RereadOwner(t)
	requireWaits(t, two.Reconcile(t.Context(), env.Client, env.Owner), "LessReplicas")
	require.True(t, env.Exists(t, pod))
	require.Nil(t, pod.DeletionTimestamp)
	env.RereadOwner(t)
	require.Contains(t, env.Owner.Annotations, record.ExpansionPrefix+"one")

	require.NoError(t, one.Finalize(t.Context(), env.Client, env.Owner))
	require.False(t, env.Exists(t, pod), "the set that has orphaned it deletes it")
	require.True(t, env.Exists(t, foreign))
	require.Nil(t, foreign.DeletionTimestamp)
	require.Empty(t, foreign.Annotations, "it was never marked")
}
