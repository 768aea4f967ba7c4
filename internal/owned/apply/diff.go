package apply

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/diff"
	"github.com/opblocks/opblocks/internal/owned"
	"github.com/opblocks/opblocks/internal/owned/plan"
	"github.com/opblocks/opblocks/internal/owned/write"
	"github.com/opblocks/opblocks/internal/record"
)

// Change is what [ownedresources.Apply] would do to one object.
type Change struct {
	// Object is the desired object, as it was given.
	Object client.Object
	// Operation is what would be done.
	Operation Operation
	// Differences are the fields that an apply would change, in the order of their paths. Fields that the first apply
	// after a POST would remove come last. The list is empty for an object that would be created.
	Differences []Difference
}

// Difference is one field that an apply would change.
type Difference struct {
	// Path of the field, such as spec.template.spec.containers[0].image.
	Path string
	// Have is the live value and Want the value after the apply, as JSON. Each is empty if the value is absent. Values
	// of Secrets and of environment variables are replaced by "(hidden)".
	Have, Want string
}

// String returns the difference in one line: the path, and what is added (+), removed (-) or changed (→).
func (d Difference) String() string {
	switch {
	case d.Have == "":
		return d.Path + ": + " + d.Want
	case d.Want == "":
		return d.Path + ": - " + d.Have
	}
	return d.Path + ": " + d.Have + " → " + d.Want
}

// Diff returns what would be done to an object: see [ownedresources.Diff].
func (a *Applier) Diff(ctx context.Context, o *owned.Owner, obj client.Object) (Change, error) {
	d, err := a.Desire(o, obj, &owned.Options{})
	if err != nil {
		return Change{}, err
	}
	if err := plan.CheckValues(d); err != nil {
		return Change{}, err
	}
	change := Change{Object: obj, Operation: Unchanged}
	live, err := d.ReadLive(ctx)
	switch {
	case client.IgnoreNotFound(err) != nil:
		return Change{}, fmt.Errorf("read %s: %w", d, err)
	case err != nil:
		change.Operation = Created
		_, err := write.PostDryRun(ctx, d, d.Object.GetName())
		return change, err
	}
	p := plan.Decide([]plan.Stage{leaveAlone, plan.CompareLive}, &plan.State{Desired: d, Live: live})
	if p.Verb == plan.DoReturn {
		return Change{}, p.Err
	}
	if err := plan.SilentRefusal(d, live); err != nil {
		return Change{}, fmt.Errorf("apply %s: %w", d, err)
	}
	if p.Verb == plan.DoNothing {
		return change, nil
	}
	change.Operation = Applied
	change.Differences, err = differencesOfApply(ctx, d, live)
	return change, err
}

// leaveAlone is the stage leaveOthers of a plan that is not executed.
func leaveAlone(s *plan.State, p plan.Plan) plan.Plan {
	if err := s.Owner.MayWrite(s.Desired, s.Live); err != nil {
		return plan.Plan{Verb: plan.DoReturn, Err: err}
	}
	return p
}

// differencesOfApply finds out by dry runs which fields an apply would change.
func differencesOfApply(ctx context.Context, d *owned.Desired, live client.Object) ([]Difference, error) {
	answer, err := write.ServerSideApply(ctx, d, live, client.DryRunAll)
	switch {
	case plan.IsInvalid(err):
		answer, err = resolvedAnswer(ctx, d, err)
	case plan.IsLiveUntypable(err):
		answer, err = write.ByPatch(ctx, d, record.LastAppliedOf(live), err, client.DryRunAll)
	}
	if err != nil {
		return nil, err
	}
	found := differ{hidden: d.Kind.GVK.Kind == "Secret"}
	if answer.GetResourceVersion() == "" { // controller-runtime's fake client answers a dry run with an empty object
		for _, local := range d.Kind.Comparer.Differences(d.Object, live) {
			found.add(local.Path, decoded(local.Have), decoded(local.Want))
		}
		return found.found, nil
	}
	before, after, err := authored(live, answer)
	if err != nil {
		return nil, err
	}
	found.addChanged(before, after)
	removed, err := removedByTakeOver(d, live, answer)
	if err != nil || len(removed) == 0 {
		return found.found, err
	}
	// The apply removes what is not desired, unless the API server would default it again.
	fresh, err := write.PostDryRun(ctx, d, "")
	if err != nil {
		return nil, err
	}
	before, after, err = authored(live, fresh)
	if err != nil {
		return nil, err
	}
	for _, fields := range removed {
		found.addRemoved(fields, before, after)
	}
	return found.found, nil
}

// resolvedAnswer returns what a refused apply would make of the object if the live fields that contradict it were
// removed. If that does not help, the error is the refusal.
func resolvedAnswer(ctx context.Context, d *owned.Desired, refusal error) (client.Object, error) {
	live, err := d.ReadTree(ctx)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", d, err)
	}
	_, trial, err := write.Resolve(ctx, d, live, refusal)
	if err == nil && trial == nil {
		err = refusal
	}
	return trial, err
}

// removedByTakeOver returns the fields that the next apply takes over, and then removes if they are not desired. These
// are the fields of the POST's managed fields entry. If the managed fields of the object were cleared, it also returns
// the fields that package write removes.
func removedByTakeOver(d *owned.Desired, live, answer client.Object) (removed []*metav1.FieldsV1, err error) {
	last := record.LastAppliedOf(live)
	if last.Method != record.ByApply {
		for _, entry := range live.GetManagedFields() {
			if entry.Manager == string(d.Owner.FieldManager) && entry.Subresource == "" && entry.FieldsV1 != nil {
				removed = append(removed, entry.FieldsV1)
			}
		}
	}
	if plan.OurEntry(d, answer) < 0 || !plan.IsLost(d, last, live) && !plan.IsReclaimable(d, answer) {
		return removed, nil
	}
	if dropped, err := plan.HasDropped(d, last, answer); err != nil || !dropped {
		return removed, err
	}
	taken, err := plan.Reclaimable(d, answer)
	if err != nil {
		return nil, err
	}
	fields, err := plan.FieldsV1Of(taken)
	return append(removed, fields), err
}

// authored returns two objects as trees of the fields that an author may set.
func authored(objs ...client.Object) (before, after map[string]any, err error) {
	var trees [2]map[string]any
	for i, obj := range objs {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
		if err != nil {
			return nil, nil, err
		}
		metadata, _ := content["metadata"].(map[string]any)
		annotations, _ := metadata["annotations"].(map[string]any)
		annotations = maps.Clone(annotations) // an unstructured object shares this map
		delete(annotations, record.Applied)
		delete(annotations, record.BuiltFrom)
		trees[i] = map[string]any{}
		for k, v := range content {
			switch k {
			case "apiVersion", "kind", "status":
			case "metadata":
				trees[i][k] = map[string]any{"labels": metadata["labels"], "annotations": annotations, "ownerReferences": metadata["ownerReferences"]}
			default:
				trees[i][k] = v
			}
		}
	}
	return trees[0], trees[1], nil
}

// differ collects the fields that an apply would change.
type differ struct {
	hidden bool // values are hidden
	found  []Difference
}

func (d *differ) addChanged(before, after any) {
	for _, found := range diff.Values(before, after, diff.Options{Field: fieldName}) {
		d.add(found.Path.String(), found.Before, found.After)
	}
}

// addRemoved adds the fields of a managed fields entry that before has and after lacks.
func (d *differ) addRemoved(entry *metav1.FieldsV1, before, after any) {
	var fields map[string]any
	if json.Unmarshal(entry.GetRawBytes(), &fields) == nil {
		d.addRemovedFields(nil, fields, before, after)
	}
}

func (d *differ) addRemovedFields(path diff.Path, fields map[string]any, before, after any) {
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		below, _ := fields[name].(map[string]any)
		kind, value, _ := strings.Cut(name, ":")
		var at diff.Path
		var b, a any
		switch kind {
		case "f":
			at = path.Field(fieldName(value))
			b, a = fieldOf(before, value), fieldOf(after, value)
		case "k":
			at = path.Item(value)
			b, a = item(before, value), item(after, value)
		default:
			continue
		}
		switch {
		case b == nil:
		case a == nil:
			d.add(at.String(), b, nil)
		case len(below) > 0:
			d.addRemovedFields(at, below, b, a)
		}
	}
}

func fieldOf(tree any, name string) any {
	m, _ := tree.(map[string]any)
	return m[name]
}

// item returns the item of a list that has these keys, which are JSON, or nil.
func item(tree any, keys string) any {
	var want map[string]any
	list, _ := tree.([]any)
	if json.Unmarshal([]byte(keys), &want) != nil {
		return nil
	}
next:
	for _, candidate := range list {
		for k, v := range want {
			if encoded(fieldOf(candidate, k)) != encoded(v) {
				continue next
			}
		}
		return candidate
	}
	return nil
}

// fieldName returns how a field is written in paths: in brackets if its name has dots or slashes, as keys of
// labels and annotations have.
func fieldName(name string) string {
	if strings.ContainsAny(name, "./") {
		return "[" + name + "]"
	}
	return name
}

// add adds a difference, unless the path has one already. Null is the same as absent: an apply sends neither.
func (d *differ) add(path string, before, after any) {
	difference := Difference{Path: path, Have: d.show(path, before), Want: d.show(path, after)}
	if difference.Have == "" && difference.Want == "" {
		return
	}
	if !slices.ContainsFunc(d.found, func(f Difference) bool { return f.Path == path }) {
		d.found = append(d.found, difference)
	}
}

func (d *differ) show(path string, v any) string {
	_, absent := v.(diff.Absent)
	switch {
	case v == nil, absent:
		return ""
	case d.hidden || holdsEnvironment(path, v):
		return "(hidden)"
	}
	return encoded(v)
}

// holdsEnvironment reports whether a value belongs to an environment variable, or contains some.
func holdsEnvironment(path string, v any) bool {
	if strings.Contains(path, ".env[") || strings.HasSuffix(path, ".env") {
		return true
	}
	switch v := v.(type) {
	case map[string]any:
		_, ok := v["env"]
		for _, e := range v {
			ok = ok || holdsEnvironment("", e)
		}
		return ok
	case []any:
		return slices.ContainsFunc(v, func(e any) bool { return holdsEnvironment("", e) })
	}
	return false
}

func encoded(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return "(not JSON)"
	}
	return string(b)
}

// decoded returns the value of a JSON text, nil for an empty one.
func decoded(text string) any {
	var v any
	if json.Unmarshal([]byte(text), &v) != nil {
		return nil
	}
	return v
}
