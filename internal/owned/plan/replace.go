package plan

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/merge"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"github.com/opblocks/opblocks/internal/applyschema"
	"github.com/opblocks/opblocks/internal/owned"
	"github.com/opblocks/opblocks/internal/record"
)

// Tree returns the object that a write sends, as decoded JSON.
func Tree(d *owned.Desired, method record.Method) (map[string]any, error) {
	body, err := d.Kind.Comparer.AppendApply(nil, ToSend(d, method), d.Kind.GVK, "", "")
	if err != nil {
		return nil, fmt.Errorf("%s: %w", d, err)
	}
	tree := map[string]any{}
	if err := utiljson.Unmarshal(body, &tree); err != nil || method != record.ByApply {
		return tree, err
	}
	return withAdmitted(d, tree)
}

// MergeInto returns what a server-side apply of want would make of the live object: the fields of want are merged into it, and the fields
// that were sent before and are not in want are removed. It also returns the managed fields entries, in which our own entry is as the apply
// would write it.
func MergeInto(d *owned.Desired, live *unstructured.Unstructured, want map[string]any) (map[string]any, []metav1.ManagedFieldsEntry, error) {
	content := live.DeepCopy()
	content.SetManagedFields(nil)
	schema := d.Kind.Comparer.Schema().Type()
	before, err := schema.FromUnstructured(content.Object, typed.AllowDuplicates)
	if err != nil {
		return nil, nil, err
	}
	config, err := schema.FromUnstructured(want)
	if err != nil {
		return nil, nil, err
	}
	managers := fieldpath.ManagedFields{}
	for _, entry := range live.GetManagedFields() {
		set := &fieldpath.Set{}
		if entry.FieldsV1 == nil || set.FromJSON(bytes.NewReader(entry.FieldsV1.GetRawBytes())) != nil {
			continue
		}
		applied := entry.Operation == metav1.ManagedFieldsOperationApply
		name := fmt.Sprint(entry.Manager, "|", entry.Operation, "|", entry.Subresource, "|", entry.APIVersion)
		if isOurs(d, entry) {
			name = string(d.Owner.FieldManager)
		}
		managers[name] = fieldpath.NewVersionedSet(set, fieldpath.APIVersion(entry.APIVersion), applied)
	}
	updater := (&merge.UpdaterBuilder{Converter: oneVersion(d.Kind.GVK.GroupVersion().String()), ReturnInputOnNoop: true}).BuildUpdater()
	after, managers, err := updater.Apply(before, config, fieldpath.APIVersion(d.Kind.GVK.GroupVersion().String()), managers, string(d.Owner.FieldManager), true)
	if err != nil {
		return nil, nil, err
	}
	encoded, err := json.Marshal(after.AsValue().Unstructured())
	if err != nil {
		return nil, nil, err
	}
	merged := map[string]any{}
	if err := utiljson.Unmarshal(encoded, &merged); err != nil {
		return nil, nil, err
	}
	applyschema.NullEmptied(d.Kind.Comparer.Schema(), live.Object, merged)
	entries := live.GetManagedFields()
	if i := OurEntry(d, live); i >= 0 {
		entries[i].FieldsV1, err = FieldsV1Of(managers[string(d.Owner.FieldManager)].Set().Difference(untracked))
	}
	return merged, entries, err
}

// untracked are the fields that managed fields never contain.
var untracked = fieldpath.NewSet(
	fieldpath.MakePathOrDie("apiVersion"), fieldpath.MakePathOrDie("kind"), fieldpath.MakePathOrDie("metadata"),
	fieldpath.MakePathOrDie("metadata", "name"), fieldpath.MakePathOrDie("metadata", "namespace"),
)

// oneVersion is a version converter that converts nothing. So fields that were written in another version of the API are not removed.
type oneVersion fieldpath.APIVersion

type otherVersionError struct{}

func (otherVersionError) Error() string { return "another version" }

func (v oneVersion) Convert(obj *typed.TypedValue, version fieldpath.APIVersion) (*typed.TypedValue, error) {
	if version != fieldpath.APIVersion(v) {
		return nil, otherVersionError{}
	}
	return obj, nil
}

func (oneVersion) IsMissingVersionError(err error) bool {
	_, is := errors.AsType[otherVersionError](err)
	return is
}

// AnnotationPointer is the path of the annotation opblocks.dev/applied in a JSON patch.
var AnnotationPointer = jsonPointer(fieldPath{{name: "metadata"}, {name: "annotations"}, {name: record.Applied}})

// JSONPatchOperation is one operation of a JSON patch (RFC 6902).
type JSONPatchOperation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// ReplacePatch returns a JSON patch that turns the live object into tree. If the live object has a resource version, it is a precondition.
// If the patch adds values, pass record.ByCreate, so that the next apply first moves the ownership of the fields to our server-side apply.
func ReplacePatch(d *owned.Desired, live *unstructured.Unstructured, tree map[string]any, entries []metav1.ManagedFieldsEntry, method record.Method) ([]byte, error) {
	var patch []JSONPatchOperation
	if version := live.GetResourceVersion(); version != "" {
		patch = append(patch, JSONPatchOperation{"replace", "/metadata/resourceVersion", version})
	}
	if entries != nil && OurEntry(d, live) >= 0 {
		patch = append(patch, JSONPatchOperation{"replace", "/metadata/managedFields", entries})
	}
	replace := func(before, after map[string]any, prefix, name string) {
		value, wanted := after[name]
		old, there := before[name]
		pointer := prefix + jsonPointer(fieldPath{{name: name}})
		switch {
		case wanted && value != nil && !reflect.DeepEqual(old, value):
			patch = append(patch, JSONPatchOperation{"add", pointer, value})
		case wanted && value == nil && old != nil && wantsNull(d, prefix, name):
			patch = append(patch, JSONPatchOperation{"add", pointer, json.RawMessage("null")})
		case there && value == nil && (old != nil || !wanted):
			patch = append(patch, JSONPatchOperation{Op: "remove", Path: pointer})
		}
	}
	names := map[string]bool{}
	for name := range live.Object {
		names[name] = true
	}
	for name := range tree {
		names[name] = true
	}
	metadata, _ := tree["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	if annotations == nil {
		return nil, errors.New("no annotations")
	}
	annotations[record.Applied] = lastApplied(d, method)
	liveMetadata, _ := live.Object["metadata"].(map[string]any)
	for _, name := range []string{"labels", "annotations", "ownerReferences", "finalizers"} {
		replace(liveMetadata, metadata, "/metadata", name)
	}
	for _, name := range sortedNames(names) {
		switch name {
		case "apiVersion", "kind", "metadata", "status":
		default:
			replace(live.Object, tree, "", name)
		}
	}
	return json.Marshal(patch)
}

// wantsNull reports whether the desired object has null in this field at the top level. Any other null in a merged object is a struct whose
// last field was dropped.
func wantsNull(d *owned.Desired, prefix, name string) bool {
	u, untyped := d.Object.(*unstructured.Unstructured)
	if !untyped || prefix != "" {
		return false
	}
	value, set := u.Object[name]
	return set && value == nil
}

func sortedNames(names map[string]bool) []string {
	sorted := make([]string, 0, len(names))
	for name := range names {
		sorted = append(sorted, name)
	}
	slices.Sort(sorted)
	return sorted
}
