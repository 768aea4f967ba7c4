package ownedresources

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/opblocks/opblocks/internal/owned/feature"
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

func TestGrowthOf(t *testing.T) {
	cases := map[string]struct {
		reason     string
		want, live []corev1.PersistentVolumeClaim
		grown      []string // template, from, to
		err        string
	}{
		"Same":          {"Nothing has to grow.", claimTemplates("data", "1Gi"), claimTemplates("data", "1Gi"), nil, ""},
		"SameInOther":   {"Sizes are compared by value.", claimTemplates("data", "1024Mi"), claimTemplates("data", "1Gi"), nil, ""},
		"Larger":        {"One grows.", claimTemplates("data", "2Gi", "log", "1Gi"), claimTemplates("log", "1Gi", "data", "1Gi"), []string{"data", "1Gi", "2Gi"}, ""},
		"Both":          {"Both grow.", claimTemplates("data", "2Gi", "log", "3Gi"), claimTemplates("data", "1Gi", "log", "1Gi"), []string{"data", "1Gi", "2Gi", "log", "1Gi", "3Gi"}, ""},
		"AnotherName":   {"A new template is another change, which the API server refuses.", claimTemplates("new", "2Gi"), claimTemplates("data", "1Gi"), nil, ""},
		"None":          {"So is one that is dropped.", nil, claimTemplates("data", "1Gi"), nil, ""},
		"WithoutASize":  {"The API server refuses it.", claimTemplates("data", ""), claimTemplates("data", "1Gi"), nil, ""},
		"LiveWithoutIt": {"A size where there was none is larger.", claimTemplates("data", "1Gi"), claimTemplates("data", ""), []string{"data", "0", "1Gi"}, ""},
		"Smaller": {"Volumes cannot shrink.", claimTemplates("data", "1Gi"), claimTemplates("data", "2Gi"), nil,
			`StatefulSet.apps "web" is invalid: spec.volumeClaimTemplates[data].spec.resources.requests.storage: Invalid value: "1Gi": the live claim template requests 2Gi, and volumes cannot shrink: request at least as much`},
		"SmallerAndLarger": {"Nothing grows if something cannot be done.", claimTemplates("data", "2Gi", "log", "1Gi"), claimTemplates("data", "1Gi", "log", "2Gi"), nil,
			`StatefulSet.apps "web" is invalid: spec.volumeClaimTemplates[log].spec.resources.requests.storage: Invalid value: "1Gi": the live claim template requests 2Gi, and volumes cannot shrink: request at least as much`},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			grown, err := feature.GrowthOf("web", test.want, test.live)
			if test.err != "" {
				require.EqualError(t, err, test.err, test.reason)
				require.True(t, apierrors.IsInvalid(err))
				return
			}
			require.NoError(t, err, test.reason)
			var got []string
			for _, g := range grown {
				got = append(got, g.Template, g.From.String(), g.To.String())
			}
			if diff := cmp.Diff(test.grown, got); diff != "" {
				t.Errorf("%s\n%s", test.reason, diff)
			}
		})
	}
}

func TestWantedSize(t *testing.T) {
	grown := []feature.VolumeGrowth{{Template: "data", To: resource.MustParse("2Gi")}, {Template: "data-web", To: resource.MustParse("3Gi")}}
	cases := map[string]struct {
		reason, claim, want string
	}{
		"First":        {"The claim of an ordinal.", "data-web-0", "2Gi"},
		"Many":         {"Ordinals have any number of digits.", "data-web-120", "2Gi"},
		"OtherSet":     {"A StatefulSet whose name begins with ours may have the same labels.", "data-web-2-0", ""},
		"OtherName":    {"The name of the StatefulSet is missing.", "data-0", ""},
		"OfNoOrdinal":  {"Somebody's own claim.", "data-web-backup", ""},
		"Negative":     {"There is no such ordinal.", "data-web--1", ""},
		"LongTemplate": {"The name of one template begins with that of another one and of the StatefulSet.", "data-web-web-0", "3Gi"},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			size, ok := feature.WantedSize(test.claim, "web", grown)
			require.Equal(t, test.want != "", ok, test.reason)
			if ok {
				require.Equal(t, test.want, size.String(), test.reason)
			}
		})
	}
}

// createPod creates a pod without a controller.
func (env *testEnv) createPod(t *testing.T, name string, labels map[string]string) *corev1.Pod {
	t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: env.namespace, Name: name, Labels: labels},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "server", Image: "server:1"}}},
	}
	require.NoError(t, env.other.Create(t.Context(), pod))
	return pod
}

// A set does not abandon the StatefulSet that another set of the owner replaces at this moment.
func TestExpandVolumesInTwoSets(t *testing.T) {
	env := newTestEnv(t)
	set := func(name, size string) *ChildSet[*configMap] {
		s := Ensure(Build(func(*configMap) *appsv1.StatefulSet {
			labels, claims := map[string]string{"app": name}, claimTemplates("data", size)
			claims[0].Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
			template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}}
			template.Spec.Containers = []corev1.Container{{Name: "server", Image: "server:1"}}
			return &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: appsv1.StatefulSetSpec{
				Selector: &metav1.LabelSelector{MatchLabels: labels}, ServiceName: name, Template: template, VolumeClaimTemplates: claims,
			}}
		}, ExpandVolumes()))
		s.SetName(name)
		return s
	}
	one, two := set("one", "1Gi"), set("two", "1Gi")
	requireWaits(t, one.Reconcile(t.Context(), env.client, env.owner), "LessReplicas")
	requireWaits(t, two.Reconcile(t.Context(), env.client, env.owner), "LessReplicas")
	live := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "one"}}
	require.True(t, env.exists(t, live))
	pod := env.createPod(t, "one-0", map[string]string{"app": "one"})
	pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(live, appsv1.SchemeGroupVersion.WithKind("StatefulSet"))}
	require.NoError(t, env.other.Update(t.Context(), pod))
	foreign := env.createPod(t, "one-1", map[string]string{"app": "one"}) // which the StatefulSet has not adopted
	requireWaits(t, set("one", "2Gi").Reconcile(t.Context(), env.client, env.owner), "Recreating")
	require.True(t, env.exists(t, live))
	env.rereadOwner(t)
	requireWaits(t, one.Finalize(t.Context(), env.client, env.owner), "ChildTerminating") // its pods are not orphaned yet
	require.True(t, env.exists(t, pod))
	pod.OwnerReferences, live.Finalizers = nil, nil // as the garbage collector does it, which does not run here
	require.NoError(t, env.other.Update(t.Context(), pod))
	require.NoError(t, env.other.Update(t.Context(), live))

	env.rereadOwner(t)
	requireWaits(t, two.Reconcile(t.Context(), env.client, env.owner), "LessReplicas")
	require.True(t, env.exists(t, pod))
	require.Nil(t, pod.DeletionTimestamp)
	env.rereadOwner(t)
	require.Contains(t, env.owner.Annotations, record.ExpansionPrefix+"one")

	require.NoError(t, one.Finalize(t.Context(), env.client, env.owner))
	require.False(t, env.exists(t, pod), "the set that has orphaned it deletes it")
	require.True(t, env.exists(t, foreign))
	require.Nil(t, foreign.DeletionTimestamp)
	require.Empty(t, foreign.Annotations, "it was never marked")
}
