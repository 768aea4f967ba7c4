package upgrade_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/ownedresources"
	"github.com/opblocks/opblocks/reconcile/reconciletest/controlplane"
)

// TestPlanOfOptionsEqualsWhatHappens is like TestPlanEqualsWhatHappens, for the options of children.
func TestPlanOfOptionsEqualsWhatHappens(t *testing.T) {
	always, never := func(*budget) bool { return true }, func(*budget) bool { return false }
	nothing := func(*budget) *corev1.ConfigMap { return nil }
	noChildren := func() steps { return children(noSettings()) }
	released := []string{"its owner reference is taken off"}
	theme := func(content string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "theme"}, Data: map[string]string{"color": content}}
	}
	for name, tc := range map[string]upgradeCase{
		"Retain of a child that is not desired any more": {
			reason: "it stays, and gets a mark in place of its owner reference",
			before: func() steps { return children(ownedresources.Build(settings("one"))) },
			after:  func() steps { return children(ownedresources.Build(nothing).Retain(always)) },
			want:   []planned{{Action: "retain", Kind: "ConfigMap"}},
		},
		"a retained child that is not desired any more": {
			reason: "it has its mark already, so only the other child changes",
			before: func() steps {
				return children(ownedresources.Build(settings("one")).Retain(always), ownedresources.Build(deployment(image("nginx:1.27"))))
			},
			after: func() steps {
				return children(ownedresources.Build(nothing).Retain(always), ownedresources.Build(deployment(image("nginx:1.28"))))
			},
			want: []planned{{Action: "apply", Kind: "Deployment", Effects: []string{"its pods are replaced"}}},
		},
		"a retained child that goes": {
			reason: "its function returns false, and it is not desired any more",
			before: func() steps { return children(ownedresources.Build(settings("one")).Retain(always)) },
			after:  func() steps { return children(ownedresources.Build(nothing).Retain(never)) },
			want:   []planned{{Action: "delete", Kind: "ConfigMap"}},
		},
		"a field of a retained child": {
			reason: "it is applied like any other",
			before: func() steps { return children(ownedresources.Build(settings("one")).Retain(always)) },
			after:  func() steps { return children(ownedresources.Build(settings("two")).Retain(always)) },
			want:   []planned{{Action: "apply", Kind: "ConfigMap"}},
		},
		"a child that gets Retain": {
			reason: "it loses its owner reference",
			before: func() steps { return children(ownedresources.Build(settings("one"))) },
			after:  func() steps { return children(ownedresources.Build(settings("one")).Retain(always)) },
			want:   []planned{{Action: "apply", Kind: "ConfigMap", Effects: released}},
		},
		"a child that gets Retain, and another field": {
			reason: "its reference goes first, and then it is applied",
			before: func() steps { return children(ownedresources.Build(deployment(image("nginx:1.27")))) },
			after: func() steps {
				return children(ownedresources.Build(deployment(func(d *appsv1.Deployment) {
					image("nginx:1.28")(d)
					d.Spec.Template.Spec.Containers[0].Env = nil
				})).Retain(always))
			},
			want: []planned{{Action: "apply", Kind: "Deployment", Effects: []string{"its owner reference is taken off", "its pods are replaced"}}},
		},
		"a child that loses Retain": {
			reason: "it gets its owner reference, and loses the mark",
			before: func() steps { return children(ownedresources.Build(settings("one")).Retain(always)) },
			after:  func() steps { return children(ownedresources.Build(settings("one"))) },
			want:   []planned{{Action: "apply", Kind: "ConfigMap"}},
		},
		"AdoptRetained": {
			reason: "a new owner of the same name takes over what was retained",
			before: func() steps { return children(ownedresources.Build(settings("one")).Retain(always)) },
			after: func() steps {
				return children(ownedresources.Build(settings("two")).AdoptRetained().Retain(always))
			},
			between: func(t *testing.T, e *env) {
				owner := newBudget("web")
				owner.Namespace = e.namespace
				require.NoError(t, e.client.Delete(t.Context(), owner))
				e.run(t, "web", children(ownedresources.Build(settings("one")).Retain(always)))
				e.create(t, newBudget("web"))
			},
			want: []planned{{Action: "apply", Kind: "ConfigMap"}},
		},
		"Adopt": {
			reason:  "nobody controls the child",
			before:  noChildren,
			after:   func() steps { return children(ownedresources.Build(settings("two")).Adopt()) },
			between: func(t *testing.T, e *env) { e.create(t, theirs(nil)) },
			want:    []planned{{Action: "apply", Kind: "ConfigMap"}},
		},
		"Adopt of a child that is as desired": {
			reason:  "only the owner reference is new",
			before:  noChildren,
			after:   func() steps { return children(ownedresources.Build(settings("theirs")).Adopt()) },
			between: func(t *testing.T, e *env) { e.create(t, theirs(nil)) },
			want:    []planned{{Action: "apply", Kind: "ConfigMap"}},
		},
		"Adopt with Retain": {
			reason: "it gets the mark and no owner reference",
			before: noChildren,
			after: func() steps {
				return children(ownedresources.Build(settings("two")).Adopt().Retain(always))
			},
			between: func(t *testing.T, e *env) { e.create(t, theirs(nil)) },
			want:    []planned{{Action: "apply", Kind: "ConfigMap"}},
		},
		"FormerManagers": {
			reason: "the fields of the older operator are taken over, and those that are not desired go",
			before: noChildren,
			after: func() steps {
				return children(ownedresources.Build(settings("two")).FormerManagers("manager"))
			},
			between: func(t *testing.T, e *env) { e.createBy(t, "manager") },
			want:    []planned{{Action: "apply", Kind: "ConfigMap"}},
		},
		"an older operator without FormerManagers": {
			reason:  "its other fields stay",
			before:  noChildren,
			after:   func() steps { return children(ownedresources.Build(settings("two"))) },
			between: func(t *testing.T, e *env) { e.createBy(t, "manager") },
			want:    []planned{{Action: "apply", Kind: "ConfigMap"}},
		},
		"IfServed, and the kind is not": {
			reason: "the child is left out",
			before: func() steps {
				return children(gadget(absentGadgetKind, 1), ownedresources.Build(deployment(image("nginx:1.27"))))
			},
			after: func() steps {
				return children(gadget(absentGadgetKind, 2), ownedresources.Build(deployment(image("nginx:1.28"))))
			},
			want: []planned{{Action: "apply", Kind: "Deployment", Effects: []string{"its pods are replaced"}}},
		},
		"IfServed, and the kind is": {
			reason: "the child is as any other",
			first:  func(t *testing.T, e *env) { e.install(t, gadgetKind) },
			before: func() steps { return children(gadget(gadgetKind, 1)) },
			after:  func() steps { return children(gadget(gadgetKind, 2)) },
			want:   []planned{{Action: "apply", Kind: "Gadget"}},
		},
		"IfServed, and the kind is by now": {
			reason:  "the child is created",
			before:  func() steps { return children(gadget(lateGadgetKind, 1)) },
			after:   func() steps { return children(gadget(lateGadgetKind, 1)) },
			between: func(t *testing.T, e *env) { e.install(t, lateGadgetKind) },
			want:    []planned{{Action: "create", Kind: "Gadget"}},
		},
		"KeepWhileMissing": {
			reason:  "the annotation stays, although what it is made of is missing",
			first:   func(t *testing.T, e *env) { e.create(t, theme("green")) },
			before:  func() steps { return children(themed("nginx:1.27")) },
			after:   func() steps { return children(themed("nginx:1.28")) },
			between: func(t *testing.T, e *env) { e.remove(t, theme("")) },
			want:    []planned{{Action: "apply", Kind: "Deployment", Effects: []string{"its pods are replaced"}}},
		},
		"KeepWhileMissing, and another child goes": {
			reason: "a child that only waits does not keep others from being deleted",
			first:  func(t *testing.T, e *env) { e.create(t, theme("green")) },
			before: func() steps { return children(themed("nginx:1.27"), ownedresources.Build(settings("one"))) },
			after: func() steps {
				return children(themed("nginx:1.27"), ownedresources.Build(nothing))
			},
			between: func(t *testing.T, e *env) { e.remove(t, theme("")) },
			want:    []planned{{Action: "delete", Kind: "ConfigMap"}},
		},
		"a trigger of a generated key": {
			reason: "the key gets a new value",
			before: func() steps {
				return children(ownedresources.Build(secret(nil)).Generate("password", 16, trigger("one")).Generate("token", 16))
			},
			after: func() steps {
				return children(ownedresources.Build(secret(nil)).Generate("password", 16, trigger("two")).Generate("token", 16))
			},
			want: []planned{{Action: "apply", Kind: "Secret"}},
		},
		"the first trigger of a generated key": {
			reason: "it is recorded, and the value stays",
			before: func() steps { return children(ownedresources.Build(secret(nil)).Generate("password", 16)) },
			after: func() steps {
				return children(ownedresources.Build(secret(nil)).Generate("password", 16, trigger("one")))
			},
			want: []planned{{Action: "apply", Kind: "Secret"}},
		},
		"a generated key that somebody has emptied": {
			reason: "it gets a new value",
			before: func() steps { return children(ownedresources.Build(secret(nil)).Generate("password", 16)) },
			after:  func() steps { return children(ownedresources.Build(secret(nil)).Generate("password", 16)) },
			between: func(t *testing.T, e *env) {
				s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: e.namespace, Name: "web"}}
				require.NoError(t, e.client.Patch(t.Context(), s, client.RawPatch(types.MergePatchType, []byte(`{"data":{"password":""}}`))))
			},
			want: []planned{{Action: "apply", Kind: "Secret"}},
		},
		"a key that is not generated any more": {
			reason: "it goes with the next change",
			before: func() steps {
				return children(ownedresources.Build(secret(nil)).Generate("password", 16).Generate("token", 16))
			},
			after: func() steps {
				return children(ownedresources.Build(secret(map[string]string{"user": "canary"})).Generate("password", 16))
			},
			want: []planned{{Action: "apply", Kind: "Secret"}},
		},
		"a generated key that is set": {
			reason: "the value of the function replaces the generated one",
			before: func() steps { return children(ownedresources.Build(secret(nil)).Generate("password", 16)) },
			after: func() steps {
				return children(ownedresources.Build(secret(map[string]string{"password": "canary"})).Generate("password", 16))
			},
			want: []planned{{Action: "apply", Kind: "Secret"}},
		},
		"a child in a namespace that is created": {
			reason: "the API server cannot be asked before the namespace exists",
			before: noChildren,
			after: func() steps {
				namespace := elsewhere()
				return children(namespace, ownedresources.Build(inElsewhere("one")).Anywhere().After(namespace))
			},
			want: []planned{
				{Action: "create", Kind: "Namespace"},
				{
					Action: "create", Kind: "ConfigMap", After: "Namespace NS-other is ready",
					Note: `the API server could not be asked: create ConfigMap NS-other/elsewhere: namespaces "NS-other" not found`,
				},
			},
		},
		"a child in another namespace": {
			reason: "it is applied, and found when it is not desired any more",
			before: func() steps {
				return children(elsewhere(), ownedresources.Build(inElsewhere("one")).Anywhere(), ownedresources.Build(secretElsewhere).Anywhere())
			},
			after: func() steps {
				return children(elsewhere(), ownedresources.Build(inElsewhere("two")).Anywhere(),
					ownedresources.Build(func(*budget) *corev1.Secret { return nil }).Anywhere())
			},
			want: []planned{{Action: "delete", Kind: "Secret"}, {Action: "apply", Kind: "ConfigMap"}},
		},
		"a cluster-scoped child that is new": {
			reason: "it has no namespace",
			before: noChildren,
			after:  func() steps { return children(ownedresources.Build(reader("get")).Anywhere()) },
			want:   []planned{{Action: "create", Kind: "ClusterRole"}},
		},
		"a field of a cluster-scoped child": {
			reason: "it is applied like any other",
			before: func() steps { return children(ownedresources.Build(reader("get")).Anywhere()) },
			after: func() steps {
				return children(ownedresources.Build(reader("get", "list")).Anywhere())
			},
			want: []planned{{Action: "apply", Kind: "ClusterRole"}},
		},
		"a cluster-scoped child that goes": {
			reason: "it has a mark and no owner reference",
			before: func() steps { return children(ownedresources.Build(reader("get")).Anywhere()) },
			after: func() steps {
				return children(ownedresources.Build(func(*budget) *rbacv1.ClusterRole { return nil }).Anywhere())
			},
			want: []planned{{Action: "delete", Kind: "ClusterRole"}},
		},
		"a child that moves to another namespace": {
			reason: "it is another object, so the old one is deleted",
			before: func() steps {
				return children(elsewhere(), ownedresources.Build(settings("one")).Anywhere())
			},
			after: func() steps {
				return children(elsewhere(), ownedresources.Build(inElsewhere("one")).Anywhere())
			},
			want: []planned{{Action: "delete", Kind: "ConfigMap"}, {Action: "create", Kind: "ConfigMap"}},
		},
		"a child that becomes one Anywhere": {
			reason: "it loses its owner reference, and gets a mark",
			before: func() steps { return children(ownedresources.Build(settings("one"))) },
			after:  func() steps { return children(ownedresources.Build(settings("one")).Anywhere()) },
			want:   []planned{{Action: "apply", Kind: "ConfigMap", Effects: released}},
		},
		"two sets in two controllers of one kind": {
			reason: "each set looks only at what it has written",
			before: func() steps { return children(ownedresources.Build(deployment(image("nginx:1.27")))) },
			after:  func() steps { return children(ownedresources.Build(deployment(image("nginx:1.28")))) },
			beside: func(upgraded bool) steps {
				all := []ownedresources.AnyChild[*budget]{ownedresources.Build(settings("one")), ownedresources.Build(secret(nil))}
				if upgraded {
					all = []ownedresources.AnyChild[*budget]{ownedresources.Build(settings("two")), ownedresources.Build(func(*budget) *corev1.Secret { return nil })}
				}
				return steps{named("beside", all...)}
			},
			want: []planned{
				{Action: "delete", Kind: "Secret"}, {Action: "apply", Kind: "ConfigMap"},
				{Action: "apply", Kind: "Deployment", Effects: []string{"its pods are replaced"}},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tc.compare(t)
		})
	}
}

// theirs returns an object that the operator did not create.
func theirs(owners []metav1.OwnerReference) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "web", OwnerReferences: owners, Labels: map[string]string{"old": "label"}},
		Data:       map[string]string{"content": "theirs", "more": "theirs"},
	}
}

// createBy creates a child with this field manager, as an older operator would have done.
func (e *env) createBy(t *testing.T, fieldManager string) {
	t.Helper()
	owner := &budget{}
	require.NoError(t, e.client.Get(t.Context(), client.ObjectKey{Namespace: e.namespace, Name: "web"}, owner))
	child := theirs([]metav1.OwnerReference{*metav1.NewControllerRef(owner, schema.GroupVersionKind{Group: "policy", Version: "v1", Kind: "PodDisruptionBudget"})})
	child.Namespace = e.namespace
	require.NoError(t, e.client.Create(t.Context(), child, client.FieldOwner(fieldManager)))
}

func (e *env) remove(t *testing.T, obj client.Object) {
	t.Helper()
	obj.SetNamespace(e.namespace)
	require.NoError(t, e.client.Delete(t.Context(), obj))
}

// themed returns a child of a Deployment whose pods are replaced when a ConfigMap changes.
func themed(name string) ownedresources.AnyChild[*budget] {
	version := ownedresources.VersionHash(ownedresources.Reads(&corev1.ConfigMap{}, func(*budget) []types.NamespacedName { return []types.NamespacedName{{Name: "theme"}} }))
	return ownedresources.BuildFrom(version, func(o *budget, hash string) (*appsv1.Deployment, error) {
		d := deployment(image(name))(o)
		d.Spec.Template.Annotations = map[string]string{"example.com/theme": hash}
		return d, nil
	}).KeepWhileMissing(func(live, desired *appsv1.Deployment) {
		desired.Spec.Template.Annotations["example.com/theme"] = live.Spec.Template.Annotations["example.com/theme"]
	})
}

func trigger(value string) func(*budget) string { return func(*budget) string { return value } }

// elsewhere returns a child whose object is the second namespace.
func elsewhere() *ownedresources.Child[*budget, *corev1.Namespace] {
	return ownedresources.Build(func(o *budget) *corev1.Namespace {
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: o.Namespace + "-other"}}
	}).Anywhere()
}

func inElsewhere(content string) func(*budget) *corev1.ConfigMap {
	return func(o *budget) *corev1.ConfigMap {
		m := settings(content)(o)
		m.Name, m.Namespace = "elsewhere", o.Namespace+"-other"
		return m
	}
}

func secretElsewhere(o *budget) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "elsewhere", Namespace: o.Namespace + "-other"}, StringData: map[string]string{"password": "canary"}}
}

func reader(verbs ...string) func(*budget) *rbacv1.ClusterRole {
	return func(o *budget) *rbacv1.ClusterRole {
		return &rbacv1.ClusterRole{
			ObjectMeta: metav1.ObjectMeta{Name: o.Namespace + "-reader"},
			Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: verbs}},
		}
	}
}

// These kinds have CustomResourceDefinitions: one case installs the first kind before it begins, one case installs the
// second kind later, and no case installs the third kind.
var (
	gadgetKind       = schema.GroupVersionKind{Group: "plan.example.com", Version: "v1", Kind: "Gadget"}
	lateGadgetKind   = schema.GroupVersionKind{Group: "late.example.com", Version: "v1", Kind: "Gadget"}
	absentGadgetKind = schema.GroupVersionKind{Group: "absent.example.com", Version: "v1", Kind: "Gadget"}
)

func gadget(kind schema.GroupVersionKind, size int64) ownedresources.AnyChild[*budget] {
	return ownedresources.Build(func(o *budget) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"metadata": map[string]any{"name": o.Name}, "spec": map[string]any{"size": size},
		}}
	}).IfServed().Kind(kind)
}

// install creates the CustomResourceDefinition of a kind, unless it exists, and waits until the API server serves its schema.
func (e *env) install(t *testing.T, kind schema.GroupVersionKind) {
	t.Helper()
	text := map[string]any{"type": "string"}
	definition := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": "gadgets." + kind.Group},
		"spec": map[string]any{
			"group": kind.Group, "scope": "Namespaced", "names": map[string]any{"plural": "gadgets", "kind": kind.Kind},
			"versions": []any{map[string]any{
				"name": kind.Version, "served": true, "storage": true,
				"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "properties": map[string]any{
					"spec": map[string]any{"type": "object", "properties": map[string]any{
						"size": map[string]any{"type": "integer", "maximum": int64(100)},
						"env": map[string]any{"type": "array", "items": map[string]any{"type": "object", "properties": map[string]any{
							"name": text, "value": map[string]any{"type": "string", "pattern": "^[a-z-]*$"},
						}}},
					}},
				}}},
			}},
		},
	}}
	require.NoError(t, client.IgnoreAlreadyExists(e.client.Create(t.Context(), definition)))
	schemas := discovery.NewDiscoveryClientForConfigOrDie(e.access).OpenAPIV3()
	require.Eventually(t, func() bool {
		paths, err := schemas.Paths()
		return err == nil && paths["apis/"+kind.GroupVersion().String()] != nil
	}, controlplane.Patience, 50*time.Millisecond)
}
