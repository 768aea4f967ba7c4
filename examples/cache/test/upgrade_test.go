package test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/examples/internal/launch"
	"github.com/opblocks/opblocks/examples/internal/operatortest"
	"github.com/opblocks/opblocks/reconcile/preview"
)

// TestPlanOfAnUpgrade plans a version of the operator that has another default image, for many objects, and then runs it.
func TestPlanOfAnUpgrade(t *testing.T) {
	const objects, image, nextImage = 40, "redis:7.4-alpine", "redis:8.2-alpine"
	u := newUser(t, apiServer(t))
	installed := operatortest.Install(t, u.User, "cache")
	flag := "-namespaces=" + u.Namespace
	next := installed.Build(t, launch.SourceEdit{File: "../controller/statefulset.go", Old: image, New: nextImage})
	stop := installed.Build(t).Start(t, flag)
	for i := range objects {
		u.create(t, fmt.Sprintf("cache-%03d", i))
	}
	operatortest.Eventually(t, "all have their children", func(c *assert.CollectT) { assert.Equal(c, objects, u.images(c)[image]) })
	stop()

	before := u.written(t)
	exit, out := next.Plan(t, "json", flag)
	require.Equal(t, 3, exit)
	require.Empty(t, cmp.Diff(before, u.written(t)), "a plan changes nothing")
	var plan struct {
		Kinds   []struct{ Objects, Change int }
		Changes []struct {
			Action, Kind string
			Count        int
			Differences  []preview.Difference
			Effects      []string
		}
	}
	require.NoError(t, json.Unmarshal([]byte(out), &plan))
	require.Equal(t, objects, plan.Kinds[0].Change)
	require.Len(t, plan.Changes, 1, "it is the same for all")
	change := plan.Changes[0]
	require.Equal(t, objects, change.Count)
	require.Equal(t, "apply StatefulSet", change.Action+" "+change.Kind)
	require.Equal(t, []string{"its pods are replaced"}, change.Effects)
	require.Equal(t, []preview.Difference{{
		Path: "spec.template.spec.containers[0].image", Have: `"` + image + `"`, Want: `"` + nextImage + `"`,
	}}, change.Differences)

	stop = next.Start(t, flag)
	operatortest.Eventually(t, "all are changed", func(c *assert.CollectT) { assert.Equal(c, objects, u.images(c)[nextImage]) })
	stop()
	for name, content := range before {
		before[name] = strings.ReplaceAll(content, image, nextImage)
	}
	if diff := cmp.Diff(before, u.written(t)); diff != "" {
		t.Errorf("(-the plan, +what happened)\n%s", diff)
	}
	exit, out = next.Plan(t, "text", flag)
	require.Zero(t, exit, out)
}

// images returns how many StatefulSets have an image.
func (u *user) images(t require.TestingT) map[string]int {
	found := map[string]int{}
	var all appsv1.StatefulSetList
	require.NoError(t, u.List(context.Background(), &all, client.InNamespace(u.Namespace)))
	for i := range all.Items {
		found[all.Items[i].Spec.Template.Spec.Containers[0].Image]++
	}
	return found
}

// written returns what the operator has written of the objects that it applies.
func (u *user) written(t require.TestingT) map[string]string {
	found := map[string]string{}
	for _, kind := range []schema.GroupVersionKind{
		{Group: "apps", Version: "v1", Kind: "StatefulSet"}, {Version: "v1", Kind: "Service"}, {Version: "v1", Kind: "ConfigMap"}, {Version: "v1", Kind: "Secret"},
		{Group: "policy", Version: "v1", Kind: "PodDisruptionBudget"}, {Group: "networking.k8s.io", Version: "v1", Kind: "NetworkPolicy"},
	} {
		for _, item := range u.list(t, kind) {
			annotations := item.GetAnnotations()
			maps.DeleteFunc(annotations, func(key, _ string) bool { return strings.HasPrefix(key, "opblocks.dev/") })
			item.Object["metadata"] = map[string]any{"uid": item.GetUID(), "labels": item.GetLabels(), "annotations": annotations, "ownerReferences": item.GetOwnerReferences()}
			delete(item.Object, "status")
			content, err := json.Marshal(item.Object)
			require.NoError(t, err)
			found[kind.Kind+" "+item.GetName()] = string(content)
		}
	}
	return found
}

func (u *user) list(t require.TestingT, kind schema.GroupVersionKind) []unstructured.Unstructured {
	all := &unstructured.UnstructuredList{}
	all.SetGroupVersionKind(kind)
	require.NoError(t, u.List(context.Background(), all, client.InNamespace(u.Namespace)))
	return all.Items
}
