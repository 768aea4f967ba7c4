package forecast

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/opblocks/opblocks/reconcile/preview"
)

func TestEffects(t *testing.T) {
	spec := func(spec map[string]any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	}
	image := []preview.Difference{{Path: "spec.template.spec.containers[0].image", Have: `"a"`, Want: `"b"`}}
	for name, tc := range map[string]struct {
		reason string
		kind   schema.GroupKind
		action string
		fields []preview.Difference
		live   *unstructured.Unstructured
		want   []string
		loses  bool
	}{
		"a Deployment's template": {"a rolling update", deployment, Apply, image, spec(nil), []string{"its pods are replaced"}, false},
		"a Deployment's label": {
			"labels of the object itself touch no pod", deployment, Apply, []preview.Difference{{Path: "metadata.labels.a", Want: `"b"`}}, spec(nil), nil, false,
		},
		"a Deployment without pods": {"there are none to replace", deployment, Apply, image, spec(map[string]any{"replicas": int64(0)}), nil, false},
		"a paused Deployment": {
			"its controller waits", deployment, Apply, image, spec(map[string]any{"paused": true}), []string{"its pods are replaced as soon as it is not paused any more"}, false,
		},
		"a Deployment with the strategy Recreate": {
			"the service is down in between", deployment, Apply, image, spec(map[string]any{"strategy": map[string]any{"type": "Recreate"}}),
			[]string{"all its pods end before new ones start"}, false,
		},
		"a Deployment's replicas": {
			"both values are known", deployment, Apply, []preview.Difference{{Path: "spec.replicas", Have: "3", Want: "1"}}, spec(nil), []string{"it scales from 3 to 1"}, false,
		},
		"a StatefulSet with a partition": {
			"the pods below it stay", statefulSet, Apply, image,
			spec(map[string]any{"updateStrategy": map[string]any{"rollingUpdate": map[string]any{"partition": int64(2)}}}),
			[]string{"its pods from ordinal 2 on are replaced"}, false,
		},
		"a StatefulSet with OnDelete": {
			"somebody else decides when", statefulSet, Apply, image, spec(map[string]any{"updateStrategy": map[string]any{"type": "OnDelete"}}),
			[]string{"its pods stay as they are until somebody deletes them"}, false,
		},
		"a DaemonSet": {"every node has one", daemonSet, Apply, image, spec(nil), []string{"its pods are replaced, on all nodes"}, false},
		"a CronJob's template": {
			"only later runs have it", cronJob, Apply, []preview.Difference{{Path: "spec.jobTemplate.spec.template.spec.containers[0].image"}}, spec(nil), nil, false,
		},
		"a claim that grows": {
			"the volume follows", claim, Apply, []preview.Difference{{Path: "spec.resources.requests.storage", Have: `"1Gi"`, Want: `"2Gi"`}}, spec(nil),
			[]string{"the volume grows, if its storage class allows it"}, false,
		},
		"a Service's type": {
			"clients may lose it", service, Apply, []preview.Difference{{Path: "spec.type", Have: `"NodePort"`, Want: `"ClusterIP"`}}, spec(nil),
			[]string{`its type changes from "NodePort" to "ClusterIP", and with it the ways to reach it`}, false,
		},
		"a Deployment that is recreated": {"nothing runs in between", deployment, Recreate, nil, spec(nil), []string{"all its pods are deleted, and new ones start"}, false},
		"a StatefulSet that is deleted":  {"its claims stay by default", statefulSet, Delete, nil, spec(nil), []string{"all its pods are deleted"}, false},
		"a StatefulSet whose claims go with it": {
			"its retention policy says so", statefulSet, Delete, nil,
			spec(map[string]any{"persistentVolumeClaimRetentionPolicy": map[string]any{"whenDeleted": "Delete"}}),
			[]string{"all its pods are deleted, and its claims are deleted with their data"}, true,
		},
		"a StatefulSet that is replaced": {
			"its pods are adopted, and its claims stay whatever its retention policy says", statefulSet, Replace, []preview.Difference{{Path: "spec.volumeClaimTemplates"}},
			spec(map[string]any{"persistentVolumeClaimRetentionPolicy": map[string]any{"whenDeleted": "Delete"}}), []string{"its pods run on"}, false,
		},
		"a StatefulSet that is replaced, with another image": {
			"the new one rolls out", statefulSet, Replace, image, spec(nil), []string{"its pods are replaced"}, false,
		},
		"a Service that is recreated": {"clients that keep the address lose it", service, Recreate, nil, spec(nil), []string{"its cluster IP changes"}, false},
		"a claim that is deleted":     {"data", claim, Delete, nil, spec(nil), []string{"its volume is deleted, unless the reclaim policy of the volume is Retain"}, true},
		"a claim that is recreated": {
			"a volume that is kept is not bound again", claim, Recreate, nil, spec(nil),
			[]string{"the new claim is empty; the old volume is kept only if its reclaim policy is Retain"}, true,
		},
		"a volume that is deleted": {"data", volume, Delete, nil, spec(nil), []string{"what has a claim for it has its data no more"}, true},
		"a NetworkPolicy that is deleted": {
			"pods that no policy selects accept all connections", networkPolicy, Delete, nil, spec(nil),
			[]string{"what it refused to let through is let through, unless another NetworkPolicy selects the pods"}, false,
		},
		"a NetworkPolicy that is recreated": {"the gap is short", networkPolicy, Recreate, nil, spec(nil), nil, false},
		"a budget that is deleted":          {"a drain is not held up", budget, Delete, nil, spec(nil), []string{"nothing limits evictions of its pods any more"}, false},
		"a Namespace that is deleted":       {"all that is in it", namespace, Delete, nil, spec(nil), []string{"all that is in it is deleted"}, true},
		"a definition that is recreated": {
			"the API server deletes the objects first", definition, Recreate, nil, spec(nil), []string{"all objects of its kind are deleted"}, true,
		},
		"a Job that is created":     {"a creation has an effect", job, Create, nil, nil, []string{"it runs"}, false},
		"a ConfigMap":               {"nobody knows who reads it", schema.GroupKind{Kind: "ConfigMap"}, Delete, nil, spec(nil), nil, false},
		"a custom resource":         {"its own operator decides", schema.GroupKind{Group: "example.com", Kind: "Deployment"}, Apply, image, spec(nil), nil, false},
		"an object as it should be": {"nothing follows", deployment, None, nil, spec(nil), nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			c := preview.Change{Kind: tc.kind, Action: tc.action, Differences: tc.fields}
			if tc.live == nil {
				SetEffects(&c, nil)
			} else {
				SetEffects(&c, tc.live)
			}
			if diff := cmp.Diff(tc.want, c.Effects); diff != "" || c.LosesData != tc.loses {
				t.Errorf("%s: loses data: %t, want %t (-want +got)\n%s", tc.reason, c.LosesData, tc.loses, diff)
			}
		})
	}
}
