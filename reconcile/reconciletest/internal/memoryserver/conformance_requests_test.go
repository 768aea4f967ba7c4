package memoryserver

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// request is a request that is sent to both servers.
type request struct {
	title string
	kind  string
	name  string
	send  func(s *side) (*unstructured.Unstructured, error)
}

type generator struct {
	*rand.Rand
	kinds []string
}

var apiVersions = map[string]string{
	"Deployment": "apps/v1", "Service": "v1", "ConfigMap": "v1", "Secret": "v1", "Widget": "example.com/v1", "Gauge": "example.com/v1", "Gadget": "example.com/v1", "Gadget.v1beta1": "example.com/v1beta1",
	"DaemonSet": "apps/v1", "ReplicaSet": "apps/v1", "CronJob": "batch/v1", "HorizontalPodAutoscaler": "autoscaling/v2", "PodDisruptionBudget": "policy/v1",
	"Ingress": "networking.k8s.io/v1", "NetworkPolicy": "networking.k8s.io/v1", "Role": "rbac.authorization.k8s.io/v1", "RoleBinding": "rbac.authorization.k8s.io/v1",
	"ServiceAccount": "v1", "PersistentVolumeClaim": "v1", "Lease": "coordination.k8s.io/v1", "Pod": "v1", "App": "app.huolala.cn/v1",
	"Memcached": "cache.example.com/v1alpha1", "StatefulSet": "apps/v1", "Job": "batch/v1", "DatabaseUser": "mygroup.handsomeguy.cn/v1alpha1",
}

var kindsByWeight = []string{
	"Deployment", "Deployment", "Deployment", "Service", "Service", "ConfigMap", "Secret", "Widget", "Widget", "Widget", "Gauge", "Memcached",
	"StatefulSet", "Job", "DatabaseUser", "DaemonSet", "ReplicaSet", "CronJob", "HorizontalPodAutoscaler", "PodDisruptionBudget", "Ingress", "NetworkPolicy",
	"Role", "RoleBinding", "ServiceAccount", "PersistentVolumeClaim", "Lease", "App", "Pod", "Pod",
}

// versionsOfOneKind are two versions of the same kind.
var versionsOfOneKind = []string{"Gadget", "Gadget.v1beta1"}

// newObject returns an object of a kind. The kind may be followed by a version, as in "Gadget.v1beta1".
func newObject(kind string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetAPIVersion(apiVersions[kind])
	kind, _, _ = strings.Cut(kind, ".")
	u.SetKind(kind)
	return u
}

func (g *generator) chance(percent int) bool { return g.IntN(100) < percent }

func pick[T any](g *generator, choices ...T) T { return choices[g.IntN(len(choices))] }

// request returns a random request. It chooses a kind, one of a few names, and a verb.
func (g *generator) request() request {
	kind := pick(g, g.kinds...)
	name := pick(g, "a", "a", "b")
	verb := pick(g, g.create, g.create, g.update, g.update, g.mergePatch, g.mergePatch, g.jsonPatch, g.strategicPatch, g.apply, g.apply, g.apply,
		g.writeStatus, g.writeStatus, g.remove, g.finalize, g.scale, g.removeAll)
	r := verb(kind, name)
	r.kind, r.name = kind, name
	return r
}

// options are random options that all kinds of writes have.
type options struct {
	manager    string
	dryRun     bool
	validation string
	force      *bool
}

func (g *generator) options() options {
	return options{
		manager: pick(g, "", "one", "two"), dryRun: g.chance(10),
		validation: pick(g, "", "", metav1.FieldValidationIgnore, metav1.FieldValidationWarn, metav1.FieldValidationStrict),
	}
}

func (o options) String() string {
	text := fmt.Sprintf("by %q validation=%q", o.manager, o.validation)
	if o.dryRun {
		text += " dry run"
	}
	if ptr.Deref(o.force, false) {
		text += " force"
	}
	return text
}

func (o options) dry() []string {
	if o.dryRun {
		return []string{metav1.DryRunAll}
	}
	return nil
}

func (g *generator) create(kind, name string) request {
	body, o, typed := g.body(kind), g.options(), g.chance(40)
	return request{title: fmt.Sprintf("create %s/%s typed=%v %s: %s", kind, name, typed, o, jsonOf(body)), send: func(s *side) (*unstructured.Unstructured, error) {
		u := s.object(kind, name, body)
		if object := typedObject(u); typed && object != nil {
			err := s.client.Create(context.Background(), object, &client.CreateOptions{FieldManager: o.manager, DryRun: o.dry(), FieldValidation: o.validation})
			return untypedObject(kind, object), err
		}
		err := s.client.Create(context.Background(), u, &client.CreateOptions{FieldManager: o.manager, DryRun: o.dry(), FieldValidation: o.validation})
		return u, err
	}}
}

// object returns an object with this body, in the namespace that the side uses.
func (s *side) object(kind, name string, body map[string]any) *unstructured.Unstructured {
	u := newObject(kind)
	maps.Copy(u.Object, (&unstructured.Unstructured{Object: body}).DeepCopy().Object)
	u.SetNamespace(s.namespace)
	u.SetName(name)
	return u
}

// update sends a new body with the metadata of an object that was read earlier, so its resource version may be old.
func (g *generator) update(kind, name string) request {
	body, o, steps, typed := g.body(kind), g.options(), pick(g, 0, 0, 0, 0, 1, 3), g.chance(40)
	how := pick(g, "", "", "", "", "", "", "no version", "other uid", "same", "same")
	return request{title: fmt.Sprintf("update %s/%s typed=%v %s from %d ago, %s: %s", kind, name, typed, o, steps, how, jsonOf(body)), send: func(s *side) (*unstructured.Unstructured, error) {
		u := s.object(kind, name, body)
		if before := s.back(kind+"/"+name, steps); before != nil {
			if how == "same" {
				u = before
			}
			u.SetUID(before.GetUID())
			u.SetResourceVersion(before.GetResourceVersion())
			u.SetManagedFields(before.GetManagedFields())
		}
		switch how {
		case "no version":
			u.SetResourceVersion("")
		case "other uid":
			u.SetUID("3b3b3b3b-0000-4000-8000-000000000001")
		}
		if object := typedObject(u); typed && object != nil {
			err := s.client.Update(context.Background(), object, &client.UpdateOptions{FieldManager: o.manager, DryRun: o.dry(), FieldValidation: o.validation})
			return untypedObject(kind, object), err
		}
		err := s.client.Update(context.Background(), u, &client.UpdateOptions{FieldManager: o.manager, DryRun: o.dry(), FieldValidation: o.validation})
		return u, err
	}}
}

// typedObject returns the object as its Go type. It returns nil if the kind has no Go type, or if the object does not fit it.
func typedObject(u *unstructured.Unstructured) client.Object {
	made, err := testScheme.New(u.GroupVersionKind())
	if err != nil || runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, made) != nil {
		return nil
	}
	return made.(client.Object)
}

func untypedObject(kind string, object client.Object) *unstructured.Unstructured {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		panic(err)
	}
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(newObject(kind).GroupVersionKind())
	return u
}

func (g *generator) mergePatch(kind, name string) request {
	patch := g.partial(kind)
	version := pick(g, "", "", "", "live", "stale", "uid")
	return g.patch(kind, name, types.MergePatchType, patch, version)
}

func (g *generator) strategicPatch(kind, name string) request {
	patch := g.partial(kind)
	if kind == "Deployment" && g.chance(50) {
		patch = map[string]any{"spec": map[string]any{"template": map[string]any{"spec": map[string]any{"containers": []any{
			pick(g, map[string]any{"name": "web", "image": "nginx:2"}, map[string]any{"name": "side", "image": "busybox"},
				map[string]any{"name": "side", "$patch": "delete"}, map[string]any{"name": "web", "env": []any{map[string]any{"name": "A", "value": "9"}}}),
		}}}}}
	}
	return g.patch(kind, name, types.StrategicMergePatchType, patch, "")
}

func (g *generator) patch(kind, name string, patchType types.PatchType, patch map[string]any, version string) request {
	o := g.options()
	subresource := pick(g, "", "", "", "", "", "status")
	return request{title: fmt.Sprintf("%s %s/%s %s %s %s: %s", patchType, kind, name, subresource, o, version, jsonOf(patch)), send: func(s *side) (*unstructured.Unstructured, error) {
		patch := (&unstructured.Unstructured{Object: patch}).DeepCopy().Object
		s.condition(kind+"/"+name, patch, version)
		return s.patch(kind, name, subresource, client.RawPatch(patchType, []byte(jsonOf(patch))), o)
	}}
}

// condition adds a precondition to a body. version says which UID or resource version it has.
func (s *side) condition(key string, body map[string]any, version string) {
	seen := s.back(key, 0)
	if version == "stale" {
		seen = s.back(key, 2)
	}
	metadata, _ := body["metadata"].(map[string]any)
	if metadata == nil {
		metadata = map[string]any{}
	}
	switch {
	case version == "other uid":
		metadata["uid"] = "3b3b3b3b-0000-4000-8000-000000000001"
	case seen == nil:
		return
	case version == "live", version == "stale":
		metadata["resourceVersion"] = seen.GetResourceVersion()
	case version == "uid":
		metadata["uid"] = string(seen.GetUID())
	default:
		return
	}
	body["metadata"] = metadata
}

func (s *side) patch(kind, name, subresource string, patch client.Patch, o options) (*unstructured.Unstructured, error) {
	u := newObject(kind)
	u.SetNamespace(s.namespace)
	u.SetName(name)
	po := client.PatchOptions{FieldManager: o.manager, DryRun: o.dry(), FieldValidation: o.validation, Force: o.force}
	if subresource != "" {
		return u, s.client.SubResource(subresource).Patch(context.Background(), u, patch, &client.SubResourcePatchOptions{PatchOptions: po})
	}
	return u, s.client.Patch(context.Background(), u, patch, &po)
}

func (g *generator) jsonPatch(kind, name string) request {
	paths := map[string][]string{
		"Deployment": {"/spec/replicas", "/metadata/labels/l", "/spec/template/spec/containers/0/image", "/spec/strategy"},
		"Service":    {"/spec/type", "/spec/ports/0/port", "/metadata/labels", "/spec/clusterIP"},
		"Widget":     {"/spec/parts/0", "/spec/replicas", "/spec/class", "/spec/unknown", "/spec/note", "/spec/parts/-"},
	}[kind]
	paths = append(paths, "/metadata/annotations", "/metadata/labels/l", "/spec", "/data/k", "/metadata/finalizers")
	values := []any{"x", int64(2), nil, map[string]any{"k": "v"}, []any{"example.com/f"}, map[string]any{"name": "p", "count": int64(3)}}
	var operations []map[string]any
	for range 1 + g.IntN(2) {
		operation := map[string]any{"op": pick(g, "add", "replace", "remove", "test"), "path": pick(g, paths...)}
		if operation["op"] != "remove" {
			operation["value"] = pick(g, values...)
		}
		operations = append(operations, operation)
	}
	o := g.options()
	content, err := json.Marshal(operations)
	if err != nil {
		panic(err)
	}
	return request{title: fmt.Sprintf("JSON patch %s/%s %s: %s", kind, name, o, content), send: func(s *side) (*unstructured.Unstructured, error) {
		return s.patch(kind, name, "", client.RawPatch(types.JSONPatchType, content), o)
	}}
}

func (g *generator) apply(kind, name string) request {
	body := g.body(kind)
	if g.chance(50) {
		body = g.partial(kind)
	}
	if g.chance(60) {
		dropNulls(body)
	}
	o := g.options()
	o.manager = pick(g, "one", "two", "three", "three", "")
	o.force = pick(g, nil, nil, new(true), new(true), new(false))
	version := pick(g, "", "", "", "", "", "uid", "live", "stale", "other uid")
	return request{title: fmt.Sprintf("apply %s/%s %s %s: %s", kind, name, o, version, jsonOf(body)), send: func(s *side) (*unstructured.Unstructured, error) {
		u := s.object(kind, name, body)
		s.condition(kind+"/"+name, u.Object, version)
		return s.patch(kind, name, "", client.RawPatch(types.ApplyYAMLPatchType, []byte(jsonOf(u.Object))), o)
	}}
}

func dropNulls(m map[string]any) {
	for key, value := range m {
		switch value := value.(type) {
		case nil:
			delete(m, key)
		case map[string]any:
			dropNulls(value)
		}
	}
}

func (g *generator) writeStatus(kind, name string) request {
	status, o := g.status(kind), g.options()
	how := pick(g, "update", "patch", "apply")
	labels := pick(g, nil, map[string]any{"l": "status"})
	return request{title: fmt.Sprintf("%s status %s/%s %s: %s", how, kind, name, o, jsonOf(status)), send: func(s *side) (*unstructured.Unstructured, error) {
		body := map[string]any{"status": status}
		if labels != nil {
			body["metadata"] = map[string]any{"labels": labels}
		}
		switch how {
		case "patch":
			return s.patch(kind, name, "status", client.RawPatch(types.MergePatchType, []byte(jsonOf(body))), o)
		case "apply":
			o := o
			o.manager, o.force = "applier", new(true)
			return s.patch(kind, name, "status", client.RawPatch(types.ApplyYAMLPatchType, []byte(jsonOf(s.object(kind, name, body).Object))), o)
		}
		u := s.back(kind+"/"+name, 0)
		if u == nil {
			u = s.object(kind, name, map[string]any{})
		}
		u.Object["status"] = (&unstructured.Unstructured{Object: status}).DeepCopy().Object
		err := s.client.Status().Update(context.Background(), u, &client.SubResourceUpdateOptions{UpdateOptions: client.UpdateOptions{FieldManager: o.manager, DryRun: o.dry(), FieldValidation: o.validation}})
		return u, err
	}}
}

// scale reads or writes the scale subresource. The kind may have none.
func (g *generator) scale(kind, name string) request {
	o, replicas, how, version := g.options(), pick(g, int64(0), int64(2), int64(5), int64(-1)), pick(g, "get", "update", "patch"), pick(g, "", "live", "stale", "uid", "other uid")
	return request{title: fmt.Sprintf("%s scale %s/%s %s %s: %d", how, kind, name, o, version, replicas), send: func(s *side) (*unstructured.Unstructured, error) {
		u, scale := s.object(kind, name, nil), &unstructured.Unstructured{Object: map[string]any{"apiVersion": "autoscaling/v1", "kind": "Scale", "spec": map[string]any{"replicas": replicas}}}
		s.condition(kind+"/"+name, scale.Object, version)
		sub := s.client.SubResource("scale")
		switch how {
		case "get":
			return scale, sub.Get(context.Background(), u, scale)
		case "patch":
			delete(scale.Object, "apiVersion")
			delete(scale.Object, "kind")
			patch := client.RawPatch(types.MergePatchType, []byte(jsonOf(scale.Object)))
			scale.SetGroupVersionKind(autoscalingv1.SchemeGroupVersion.WithKind("Scale"))
			return scale, sub.Patch(context.Background(), u, patch, &client.SubResourcePatchOptions{PatchOptions: client.PatchOptions{FieldManager: o.manager, DryRun: o.dry()}, SubResourceBody: scale})
		}
		return scale, sub.Update(context.Background(), u, &client.SubResourceUpdateOptions{UpdateOptions: client.UpdateOptions{FieldManager: o.manager, DryRun: o.dry()}, SubResourceBody: scale})
	}}
}

// removeAll deletes the objects of a kind that have a label.
func (g *generator) removeAll(kind, name string) request {
	labels := pick(g, client.MatchingLabels{"l": "1"}, client.MatchingLabels{"l": "2"})
	return request{title: fmt.Sprintf("delete all %s %v", kind, labels), send: func(s *side) (*unstructured.Unstructured, error) {
		return nil, s.client.DeleteAllOf(context.Background(), newObject(kind), client.InNamespace(s.namespace), labels)
	}}
}

func (g *generator) remove(kind, name string) request {
	condition := pick(g, "", "", "", "uid", "other uid", "live", "stale")
	policy := pick(g, "", "", metav1.DeletePropagationBackground, metav1.DeletePropagationForeground, metav1.DeletePropagationOrphan)
	dryRun := g.chance(10)
	return request{title: fmt.Sprintf("delete %s/%s %s %s dry=%v", kind, name, condition, policy, dryRun), send: func(s *side) (*unstructured.Unstructured, error) {
		body := map[string]any{}
		s.condition(kind+"/"+name, body, condition)
		want := &unstructured.Unstructured{Object: body}
		o := &client.DeleteOptions{}
		if want.GetUID() != "" {
			o.Preconditions = &metav1.Preconditions{UID: new(want.GetUID())}
		}
		if want.GetResourceVersion() != "" {
			o.Preconditions = &metav1.Preconditions{ResourceVersion: new(want.GetResourceVersion())}
		}
		if policy != "" {
			o.PropagationPolicy = &policy
		}
		if dryRun {
			o.DryRun = []string{metav1.DryRunAll}
		}
		u := newObject(kind)
		u.SetNamespace(s.namespace)
		u.SetName(name)
		return nil, s.client.Delete(context.Background(), u, o)
	}}
}

// finalize adds or removes finalizers and owner references.
func (g *generator) finalize(kind, name string) request {
	owner := func(uid string, controller bool) map[string]any {
		return map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": uid, "controller": controller}
	}
	patch := map[string]any{"metadata": pick(g,
		map[string]any{"finalizers": []any{"example.com/one"}}, map[string]any{"finalizers": []any{"example.com/one", "example.com/two"}},
		map[string]any{"finalizers": nil}, map[string]any{"finalizers": nil}, map[string]any{"finalizers": []any{"not a name"}}, map[string]any{"finalizers": []any{"orphan"}},
		map[string]any{"ownerReferences": []any{owner("u1", true)}}, map[string]any{"ownerReferences": []any{owner("u1", true), owner("u2", true)}},
		map[string]any{"ownerReferences": []any{owner("u1", false), owner("u1", false)}},
		map[string]any{"generation": int64(7)}, map[string]any{"deletionTimestamp": nil}, map[string]any{"creationTimestamp": nil},
		map[string]any{"managedFields": []any{map[string]any{}}}, map[string]any{"managedFields": []any{}}, map[string]any{"name": "other"},
		map[string]any{"labels": map[string]any{"not a key!": "v"}}, map[string]any{"labels": map[string]any{"l": "not a value!"}},
	)}
	return g.patch(kind, name, types.MergePatchType, patch, "")
}
