package ownedresources

import (
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestKeepAnnotations(t *testing.T) {
	tests := map[string]struct {
		reason string
		obj    client.Object
		path   []string // where the annotations are
	}{
		"Object":      {"a child may have no pods", &corev1.ConfigMap{}, []string{"metadata", "annotations"}},
		"Deployment":  {"its pods would be replaced", &appsv1.Deployment{}, []string{"spec", "template", "metadata", "annotations"}},
		"StatefulSet": {"its pods would be replaced", &appsv1.StatefulSet{}, []string{"spec", "template", "metadata", "annotations"}},
		"DaemonSet":   {"its pods would be replaced", &appsv1.DaemonSet{}, []string{"spec", "template", "metadata", "annotations"}},
		"Job":         {"its template cannot change", &batchv1.Job{}, []string{"spec", "template", "metadata", "annotations"}},
		"CronJob":     {"its template is deeper", &batchv1.CronJob{}, []string{"spec", "jobTemplate", "spec", "template", "metadata", "annotations"}},
		"UntypedCronJob": {
			"its template is deeper", &unstructured.Unstructured{Object: map[string]any{"apiVersion": "batch/v1", "kind": "CronJob"}},
			[]string{"spec", "jobTemplate", "spec", "template", "metadata", "annotations"},
		},
		"Untyped": {"a custom workload has a pod template too", &unstructured.Unstructured{Object: map[string]any{}}, []string{"spec", "template", "metadata", "annotations"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			with := func(annotations map[string]string) client.Object {
				obj := tc.obj.DeepCopyObject().(client.Object)
				tree, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
				require.NoError(t, err)
				require.NoError(t, unstructured.SetNestedStringMap(tree, annotations, tc.path...))
				if u, ok := obj.(*unstructured.Unstructured); ok {
					u.Object = tree
					return u
				}
				require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(tree, obj))
				return obj
			}
			desired := with(map[string]string{"hash": "of the others", "new": "1", "mine": "2"})
			keepAnnotations(with(map[string]string{"hash": "of all", "mine": "0"}), desired, []string{"hash", "new"})
			tree, err := runtime.DefaultUnstructuredConverter.ToUnstructured(desired)
			require.NoError(t, err)
			got, _, err := unstructured.NestedStringMap(tree, tc.path...)
			require.NoError(t, err)
			require.Equal(t, map[string]string{"hash": "of all", "new": "1", "mine": "2"}, got, tc.reason)
		})
	}
	shared := map[string]string{"hash": "of the others"}
	desired := &corev1.ConfigMap{}
	desired.Annotations = shared
	live := desired.DeepCopy()
	live.Annotations["hash"] = "of all"
	keepAnnotations(live, desired, []string{"hash"})
	require.Equal(t, "of the others", shared["hash"], "the builder's map is not changed")
}
