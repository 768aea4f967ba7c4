package set

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/opblocks/opblocks/internal/owned"
	"github.com/opblocks/opblocks/internal/record"
)

func TestReadWritten(t *testing.T) {
	tests := map[string]struct {
		reason string
		change func(live *corev1.ConfigMap)
		want   bool
	}{
		"Written": {reason: "The set has written it right before, and the cache does not show it.", change: func(*corev1.ConfigMap) {}, want: true},
		"BeingDeleted": {reason: "It cannot stay.", change: func(live *corev1.ConfigMap) {
			live.DeletionTimestamp, live.Finalizers = new(metav1.Now()), []string{"example.com/a"}
		}},
		"OfAnotherSet":  {reason: "The other set decides.", change: func(live *corev1.ConfigMap) { live.Annotations[record.Set] = "other" }},
		"OfAnother":     {reason: "It was not written for this owner.", change: func(live *corev1.ConfigMap) { live.OwnerReferences[0].UID = "another" }},
		"OfAnotherName": {reason: "There is no such object.", change: func(live *corev1.ConfigMap) { live.Name = "b" }},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			k, err := owned.BuiltIn.Of(&corev1.ConfigMap{}, scheme.Scheme)
			require.NoError(t, err)
			owner := &owned.Owner{Reference: metav1.OwnerReference{APIVersion: "v1", Kind: "Shop", Name: "web", UID: "o", Controller: new(true)}}
			live := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
				Namespace: "ns", Name: "a", OwnerReferences: []metav1.OwnerReference{owner.Reference},
				Annotations: map[string]string{record.Set: "children", record.Applied: "v1:applied:0"},
			}}
			desired := record.NameOf(k.GVK.GroupKind(), live)
			tc.change(live)
			owner.Client = fake.NewClientBuilder().WithObjects(live).Build()
			found, err := (&Set{Name: "children"}).readWritten(&Reconciliation{ctx: t.Context(), owner: owner, Kinds: []*owned.Kind{k}}, desired)
			require.NoError(t, err)
			require.Equal(t, tc.want, found != nil, tc.reason)
			if found != nil {
				require.Equal(t, desired, record.NameOf(found.kind.GVK.GroupKind(), found.object))
			}
		})
	}
}
