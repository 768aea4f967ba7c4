package upgrade_test

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/diff"
	"github.com/opblocks/opblocks/internal/record"
	"github.com/opblocks/opblocks/reconcile/preview"
	"github.com/opblocks/opblocks/reconcile/upgrade"
)

// upgradeCase describes an upgrade. The test compares the plan with the changes that the upgrade really makes.
type upgradeCase struct {
	reason        string
	first         func(t *testing.T, e *env) // is called before the earlier version runs
	before, after func() steps
	between       func(t *testing.T, e *env)
	beside        func(upgraded bool) steps // returns the steps of a second controller of the kind
	want          []planned                 // the expected changes; their differences are compared with what really happens
}

func (tc *upgradeCase) compare(t *testing.T) {
	t.Helper()
	e := newEnv(t)
	t.Cleanup(func() { e.removeElsewhere(t) })
	e.create(t, newBudget("web"))
	if tc.first != nil {
		tc.first(t, e)
	}
	beside := func(bool) (none steps) { return none }
	if tc.beside != nil {
		beside = tc.beside
	}
	e.run(t, "web", tc.before(), beside(false))
	if tc.between != nil {
		tc.between(t, e)
	}
	before := e.snapshot(t)
	e.beside = func() steps { return beside(true) }

	got, err := e.planJSON(t, tc.after())
	require.ErrorIs(t, err, upgrade.ErrChanges, "%s: %v", tc.reason, got)
	require.Equal(t, before, e.snapshot(t), "a plan changes nothing")
	require.NotContains(t, fmt.Sprint(got), "canary", "values of Secrets are hidden")
	writes := e.sent.take(e.namespace)
	require.LessOrEqual(t, len(writes), 4*len(got.Changes))
	for _, request := range writes {
		require.True(t, strings.HasPrefix(request, "GET ") || strings.HasSuffix(request, " All"), request)
	}

	e.run(t, "web", tc.after(), beside(true))
	if diff := cmp.Diff(happened(before, e.snapshot(t)), foretold(got.Changes), cmp.Comparer(slices.Equal[[]string])); diff != "" {
		t.Errorf("%s (-what happened +the plan)\n%s", tc.reason, diff)
	}
	for i := range got.Changes {
		c := &got.Changes[i]
		c.Shown, c.Differences = "", nil
		c.After, c.Note = strings.ReplaceAll(c.After, e.namespace, "NS"), strings.ReplaceAll(c.Note, e.namespace, "NS")
	}
	if diff := cmp.Diff(tc.want, got.Changes); diff != "" {
		t.Errorf("%s (-want +got)\n%s", tc.reason, diff)
	}

	again, err := e.planJSON(t, tc.after())
	require.NoError(t, err, "a plan right after the upgrade is empty: %v", again)
	require.Empty(t, again.Changes)
}

// elsewhere returns the name of a second namespace, which does not exist at first.
func (e *env) elsewhere() string { return e.namespace + "-other" }

// removeElsewhere deletes the objects that are not in the namespace of the test.
func (e *env) removeElsewhere(t *testing.T) {
	t.Helper()
	for _, obj := range []client.Object{
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: e.namespace + "-reader"}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: e.elsewhere()}},
	} {
		require.NoError(t, client.IgnoreNotFound(e.client.Delete(context.Background(), obj)))
	}
}

// planned is one change in the JSON form of a plan.
type planned struct {
	Action      string               `json:"action"`
	Kind        string               `json:"kind"`
	Shown       string               `json:"shown"`
	Differences []preview.Difference `json:"differences"`
	Effects     []string             `json:"effects"`
	LosesData   bool                 `json:"losesData"`
	After       string               `json:"after"`
	Note        string               `json:"note"`
	Reason      string               `json:"reason"`
}

// jsonPlan is the JSON form of a plan.
type jsonPlan struct {
	Changes    []planned `json:"changes"`
	NotPlanned []planned `json:"notPlanned"`
	Skipped    []planned `json:"skipped"`
	NotExact   []string  `json:"notExact"`
	Ended      string    `json:"ended"`
}

func (e *env) planJSON(t *testing.T, steps steps) (found jsonPlan, err error) {
	t.Helper()
	out, err := e.plan(t, t.Context(), "json", steps)
	require.NoError(t, json.Unmarshal([]byte(out), &found), out)
	return found, err
}

// snapshot returns the objects that an operator may write, by kind and name: the objects in the namespace of the test, and
// the objects whose name or namespace begins with the name of that namespace.
func (e *env) snapshot(t *testing.T) map[string]*unstructured.Unstructured {
	t.Helper()
	found := map[string]*unstructured.Unstructured{}
	add := func(kind schema.GroupVersionKind, isOurs func(obj *unstructured.Unstructured) bool, options ...client.ListOption) {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind)
		err := e.client.List(t.Context(), list, options...)
		if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) { // the kind is not served
			return
		}
		require.NoError(t, err)
		for i := range list.Items {
			if item := &list.Items[i]; isOurs(item) && item.GetName() != "kube-root-ca.crt" && item.GetDeletionTimestamp() == nil {
				found[kind.Kind+" "+item.GetName()] = item
			}
		}
	}
	all := func(*unstructured.Unstructured) bool { return true }
	for _, kind := range []schema.GroupVersionKind{
		appsv1.SchemeGroupVersion.WithKind("Deployment"), appsv1.SchemeGroupVersion.WithKind("StatefulSet"), batchv1.SchemeGroupVersion.WithKind("Job"),
		corev1.SchemeGroupVersion.WithKind("Service"), corev1.SchemeGroupVersion.WithKind("Secret"), corev1.SchemeGroupVersion.WithKind("ConfigMap"),
		corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim"),
	} {
		add(kind, all, client.InNamespace(e.namespace))
		add(kind, all, client.InNamespace(e.elsewhere()))
	}
	add(gadgetKind, all, client.InNamespace(e.namespace))
	add(lateGadgetKind, all, client.InNamespace(e.namespace))
	for _, kind := range []schema.GroupVersionKind{rbacv1.SchemeGroupVersion.WithKind("ClusterRole"), corev1.SchemeGroupVersion.WithKind("Namespace")} {
		add(kind, func(obj *unstructured.Unstructured) bool { return strings.HasPrefix(obj.GetName(), e.namespace+"-") })
	}
	return found
}

// authored returns the fields of an object that its author may set, and not the API server's own fields.
func authored(obj *unstructured.Unstructured) map[string]any {
	tree := obj.DeepCopy().Object
	annotations := obj.GetAnnotations()
	for _, key := range []string{record.Applied, record.BuiltFrom, record.OwnerName} {
		delete(annotations, key)
	}
	metadata := map[string]any{}
	for key, value := range annotations {
		metadata["annotations["+key+"]"] = value
	}
	for key, value := range obj.GetLabels() {
		metadata["labels["+key+"]"] = value
	}
	for _, key := range []string{"apiVersion", "kind", "status"} {
		delete(tree, key)
	}
	if content, _, _ := unstructured.NestedFieldNoCopy(obj.Object, "metadata", "ownerReferences"); content != nil {
		metadata["ownerReferences"] = fmt.Sprint(content)
	}
	tree["metadata"] = metadata
	return tree
}

// happened returns the changes that were really made: for each object an action, and the paths that differ.
func happened(before, after map[string]*unstructured.Unstructured) map[string][]string {
	found := map[string][]string{}
	for name, was := range before {
		is := after[name]
		switch {
		case is == nil:
			found["delete "+name] = nil
		case is.GetUID() != was.GetUID():
			found["recreate "+name] = nil
		default:
			var paths []string
			for _, d := range diff.Values(authored(was), authored(is), diff.Options{ExpandMaps: true}) {
				paths = append(paths, withoutItems(d.Path.String()))
			}
			if len(paths) > 0 {
				found["apply "+name] = paths
			}
		}
	}
	for name := range after {
		if before[name] == nil {
			found["create "+name] = nil
		}
	}
	return found
}

var items = regexp.MustCompile(`\[(\d+|\{[^}]*\})\]`)

// withoutItems removes the keys and indexes of list items from a path, because they can be written in several ways.
func withoutItems(path string) string {
	return strings.NewReplacer("annotations.[", "annotations[", "labels.[", "labels[", "labels.new", "labels[new]").Replace(items.ReplaceAllString(path, "[]"))
}

// pathsOf returns the path of a difference. If an object had no labels before, or has none afterwards, it returns the paths of
// all labels.
func pathsOf(d preview.Difference) (paths []string) {
	labels := map[string]string{}
	if d.Path != "metadata.labels" || json.Unmarshal([]byte(d.Have+d.Want), &labels) != nil {
		return []string{withoutItems(d.Path)}
	}
	for key := range labels {
		paths = append(paths, "metadata.labels["+key+"]")
	}
	return paths
}

// foretold returns the changes of a plan in the same form as happened.
func foretold(changes []planned) map[string][]string {
	found := map[string][]string{}
	for _, c := range changes {
		action := c.Action
		if action == "replace" {
			action = "recreate"
		}
		var paths []string
		if action == "retain" {
			action, paths = "apply", []string{
				"metadata.annotations[opblocks.dev/object]", "metadata.annotations[opblocks.dev/owner]", "metadata.annotations[opblocks.dev/retained]",
				"metadata.labels[opblocks.dev/owner-uid]", "metadata.ownerReferences",
			}
		}
		if c.Action == "apply" {
			for _, d := range c.Differences {
				paths = append(paths, pathsOf(d)...)
			}
		}
		slices.Sort(paths)
		found[action+" "+c.Kind+" "+c.Shown[strings.Index(c.Shown, "/")+1:]] = paths
	}
	return found
}
