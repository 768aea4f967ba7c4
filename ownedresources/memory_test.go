package ownedresources

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/compare"
	"github.com/opblocks/opblocks/internal/owned"
	"github.com/opblocks/opblocks/internal/owned/apply"
	"github.com/opblocks/opblocks/internal/owned/memory"
	"github.com/opblocks/opblocks/internal/owned/report"
	"github.com/opblocks/opblocks/internal/owned/set"
	"github.com/opblocks/opblocks/internal/record"
	"github.com/opblocks/opblocks/internal/versions"
)

// rewriteImages makes the API server replace the image of every Deployment in the namespace, as an admission plug-in does.
func rewriteImages(t *testing.T, w *testEnv) {
	t.Helper()
	name := "rewrite-" + w.namespace
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": w.namespace}}
	policy := &admissionregistrationv1.MutatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionregistrationv1.MutatingAdmissionPolicySpec{
			MatchConstraints: &admissionregistrationv1.MatchResources{
				NamespaceSelector: selector,
				ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{RuleWithOperations: admissionregistrationv1.RuleWithOperations{
					Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
					Rule:       admissionregistrationv1.Rule{APIGroups: []string{"apps"}, APIVersions: []string{"v1"}, Resources: []string{"deployments"}},
				}}},
			},
			ReinvocationPolicy: admissionregistrationv1.NeverReinvocationPolicy,
			Mutations: []admissionregistrationv1.Mutation{{
				PatchType: admissionregistrationv1.PatchTypeJSONPatch,
				JSONPatch: &admissionregistrationv1.JSONPatch{
					Expression: `[JSONPatch{op: "replace", path: "/spec/template/spec/containers/0/image", value: "mirror.example.com/nginx:1.27"}]`,
				},
			}},
		},
	}
	binding := &admissionregistrationv1.MutatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       admissionregistrationv1.MutatingAdmissionPolicyBindingSpec{PolicyName: name},
	}
	for _, obj := range []client.Object{policy, binding} {
		require.NoError(t, w.other.Create(t.Context(), obj))
		t.Cleanup(func() { require.NoError(t, w.other.Delete(context.Background(), obj)) })
	}
	require.Eventually(t, func() bool { // the API server watches its policies
		probe := w.deployment()
		probe.Name = "probe"
		require.NoError(t, w.other.Create(t.Context(), probe, client.DryRunAll))
		return probe.Spec.Template.Spec.Containers[0].Image != "nginx:1.27"
	}, 20*time.Second, 20*time.Millisecond)
}

func TestToleratedDifferences(t *testing.T) {
	if os.Getenv(otherVersion) != "" {
		t.Skip("needs a MutatingAdmissionPolicy, which only Kubernetes 1.36 serves")
	}
	w := newTestEnv(t)
	rewriteImages(t, w)
	rewritten := []string{"Deployment,spec.template.spec.containers[name=web].image=1"}
	w.expect(t, w.deployment(), apply.Created, "POST deployments", "PATCH deployments") // the second records what was rewritten
	w.expect(t, w.deployment(), apply.Unchanged, none...)
	require.Equal(t, rewritten, shown(t, w.applier.Metrics, "opblocks_settled_differences"), "the metric names the field")

	for range 2 {
		w.applier = apply.New() // after a restart the record is in the object
		w.expect(t, w.deployment(), apply.Unchanged, none...)
		require.Equal(t, rewritten, shown(t, w.applier.Metrics, "opblocks_settled_differences"))
	}
	for range 3 { // calls of Apply, which remembers nothing
		_, err := Apply(t.Context(), w.client, w.owner, w.deployment())
		require.NoError(t, err)
		require.NotContains(t, w.sent.Sent(), "PATCH deployments")
	}

	changed := w.deployment()
	changed.Spec.Replicas = new(int32(3))
	w.expect(t, changed, apply.Applied, "GET deployments", "PATCH deployments", "PATCH deployments") // migrates, and applies
	w.expect(t, w.deployment(), apply.Applied, "PATCH deployments")                                  // the record has not changed
	w.applier = apply.New()
	w.expect(t, w.deployment(), apply.Unchanged, none...)

	byHand(t, w, &appsv1.Deployment{}, func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(9)) })
	w.expect(t, w.deployment(), apply.Applied, "PATCH deployments") // other drift is repaired
	w.expect(t, w.deployment(), apply.Unchanged, none...)
}

func TestChildMemory(t *testing.T) {
	now := time.Unix(0, 0)
	difference := []compare.Difference{{Path: "spec.image", Have: "a", Want: "b"}}
	newMemory := func() *memory.Children { return memory.NewChildren(report.NewMetrics(), &versions.Epoch{}) }
	t.Run("ForgetEverything", func(t *testing.T) {
		m := newMemory()
		o, live, d := &owned.Owner{}, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{UID: "u"}}, &owned.Desired{}
		m.SetVerified(o, live, nil)
		m.SetRewritten("ConfigMap", "u", difference)
		m.CountWrite(d, "u", "data", now)
		m.OrphanSince("u", now)
		require.Len(t, shown(t, m.Metrics, "opblocks_settled_differences"), 1)
		m.Forget("u")
		require.Empty(t, m.ByUID)
		require.Equal(t, []string{"ConfigMap,spec.image=0"}, shown(t, m.Metrics, "opblocks_settled_differences"))
	})
	t.Run("Rewritten", func(t *testing.T) {
		m := newMemory()
		m.SetRewritten("ConfigMap", "u", difference)
		known, _ := m.DetailsOf("u")
		require.Equal(t, difference, known.Rewritten)
		_, found := m.DetailsOf("v")
		require.False(t, found, "another object")
		m.SetRewritten("ConfigMap", "u", nil)
		require.Empty(t, m.ByUID, "the last answer had no difference")
	})
	t.Run("Verified", func(t *testing.T) {
		m := newMemory()
		o := &owned.Owner{Reference: metav1.OwnerReference{UID: "o"}}
		live := func(uid types.UID, version string) client.Object {
			return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{UID: uid, ResourceVersion: version}}
		}
		m.SetVerified(o, live("u", "1"), []byte("a"))
		require.True(t, m.IsVerified(o, live("u", "1"), []byte("a")))
		require.False(t, m.IsVerified(o, live("u", "2"), []byte("a")), "another version")
		require.False(t, m.IsVerified(o, live("u", "1"), []byte("b")), "another desired object")
		require.False(t, m.IsVerified(&owned.Owner{}, live("u", "1"), []byte("a")), "another owner")
		require.False(t, m.IsVerified(o, live("v", "1"), []byte("a")), "another object")
		m.SetVerified(o, live("", "1"), []byte("a"))
		require.False(t, m.IsVerified(o, live("", "1"), []byte("a")), "the fake client sets no UID")
	})
	t.Run("Orphan", func(t *testing.T) {
		m := newMemory()
		require.Equal(t, now, m.OrphanSince("u", now))
		require.Equal(t, now, m.OrphanSince("u", now.Add(time.Hour)), "it is one since it was first seen")
	})
}

func TestOwnerMemory(t *testing.T) {
	ownerObject := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", UID: "o"}}
	k, err := owned.BuiltIn.Of(&corev1.ConfigMap{}, scheme.Scheme)
	require.NoError(t, err)
	child := func(name string) owned.Declared {
		return owned.Declared{Kind: k, Object: &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}}
	}
	t.Run("ForgetEverything", func(t *testing.T) {
		m := set.NewOwnerMemory(&versions.Epoch{})
		m.BeginList("o")
		m.EndList("o", m.Digest(set.DesiredNames{Objects: []owned.Declared{child("a")}}))
		b := child("b")
		m.SetBlocked(b.ObjectName(), client.ObjectKeyFromObject(ownerObject))
		m.Forget(ownerObject)
		require.Empty(t, m.ByUID)
		require.Empty(t, m.Blocked)
	})
	t.Run("Pruned", func(t *testing.T) {
		m := set.NewOwnerMemory(&versions.Epoch{})
		one, two := m.Digest(set.DesiredNames{Objects: []owned.Declared{child("a")}}), m.Digest(set.DesiredNames{Objects: []owned.Declared{child("a"), child("b")}})
		require.False(t, m.IsPruned("o", one), "after a restart")
		m.BeginList("o")
		m.EndList("o", one)
		require.True(t, m.IsPruned("o", one))
		require.False(t, m.IsPruned("o", two), "other names")
		deleted := child("a").Object
		deleted.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(ownerObject, corev1.SchemeGroupVersion.WithKind("ConfigMap"))})
		m.ChildDeleted(deleted)
		require.False(t, m.IsPruned("o", one), "after the deletion of a child")
		require.Empty(t, m.ByUID)
	})
	t.Run("Blocked", func(t *testing.T) {
		m := set.NewOwnerMemory(&versions.Epoch{})
		name := client.ObjectKeyFromObject(ownerObject)
		other := types.NamespacedName{Namespace: "ns", Name: "other"}
		named := func(kind, name string) record.Name {
			return record.Name{Kind: schema.GroupKind{Group: "example.com", Kind: kind}, NamespacedName: types.NamespacedName{Namespace: "ns", Name: name}}
		}
		m.SetBlocked(named("Route", "a"), name)
		m.SetBlocked(named("Route", "a"), name)
		m.SetBlocked(named("Route", "a"), other)
		m.SetBlocked(named("Gateway", "a"), other)
		require.Empty(t, m.TakeBlocked(named("Route", "b")))
		require.Equal(t, []types.NamespacedName{name, other}, m.TakeBlocked(named("Route", "a")), "all that wait are enqueued")
		require.Empty(t, m.TakeBlocked(named("Route", "a")), "they are enqueued once")
		require.Equal(t, []types.NamespacedName{other}, m.TakeBlocked(named("Gateway", "a")), "another kind without a Go type")
	})
}
