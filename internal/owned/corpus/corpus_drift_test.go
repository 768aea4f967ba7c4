package corpus

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/owned"
	"github.com/opblocks/opblocks/internal/owned/apply"
)

// changeEachField changes fields of the live object as another writer, one field at a time, and checks that each change is repaired. It
// skips a field if an earlier manifest of the corpus has a field that the API server treats alike: see shapeOf.
func (s *subject) changeEachField(t *testing.T, n *counts) {
	t.Helper()
	var fixed immutableFields
	for _, at := range s.alone(t) {
		before := s.live(t)
		change, edited := s.editToOtherValue(t, at, &fixed, n)
		s.noteAccepted(t, at, before, change)
		if change == nil {
			continue
		}
		s.manifest.changes[at.String()] = change
		if s.manifest.untyped.covers(t, s.want, edited, at) {
			t.Errorf("%v by hand: not noticed by the unstructured form", change)
		}
		s.repair(t, []path{at}, before, n)
	}
}

// changeAllFields first changes each field of ours as another writer, in a dry run, and checks that the comparison notices the change. It
// skips the fields that the typed subject has changed one at a time. If the API server has already accepted a change of a field that it
// treats alike (see shapeOf), no request is sent.
//
// Then it changes all fields together, or as many as the API server accepts, and checks that they are repaired.
func (s *subject) changeAllFields(t *testing.T, n *counts) {
	t.Helper()
	k, want := s.kind(t), owned.WithData(s.want)
	changes := map[string]map[string]any{}
	var changed []path
	var fixed immutableFields
	for _, at := range fieldsOf(s.sent(t)) {
		if change := s.manifest.changes[at.String()]; change != nil && s.form == "unstructured" {
			if change["op"] == "replace" {
				changes[at.String()] = change
				changed = append(changed, at)
			}
			continue
		}
		change, edited, known := s.editLikeElsewhere(t, at, n)
		if !known {
			change, edited = s.editToOtherValue(t, at, &fixed, n, client.DryRunAll)
		}
		if change == nil {
			continue
		}
		n.noticed.Add(1)
		if k.Comparer.Covers(want, edited) {
			t.Errorf("%v by hand: not noticed", change)
		}
		if s.manifest.typed.covers(t, s.want, edited, at) {
			t.Errorf("%v by hand: not noticed by the typed form", change)
		}
		if change["op"] == "replace" {
			changes[at.String()] = change
			changed = append(changed, at)
		}
	}
	bisect(changed, func(some []path) bool {
		var all []map[string]any
		for _, at := range some {
			all = append(all, changes[at.String()])
		}
		before := s.live(t)
		return s.byHand(t, all...) == nil && s.repair(t, some, before, n)
	})
}

// covers reports whether the comparison would miss a changed field: whether the edited object still has everything that the wanted object
// sets. Both are decoded in the form of the subject (Go struct or unstructured). If this form does not send the field, covers reports
// false.
func (s *subject) covers(t *testing.T, want, edited client.Object, at path) bool {
	t.Helper()
	_, sent := at.in(s.sent(t))
	return sent && s.kind(t).Comparer.Covers(owned.WithData(s.decoded(t, contentOf(t, want))), s.decoded(t, contentOf(t, edited)))
}

// repair applies the wanted object after another writer has changed fields, and checks that this restores them. It reports whether the API
// server accepted the apply.
func (s *subject) repair(t *testing.T, changed []path, before map[string]any, n *counts) bool {
	t.Helper()
	edited := s.live(t)
	most := s.migrationWrites() + 1
	op, sent, err := s.apply(t.Context(), s.want)
	for apierrors.IsConflict(err) { // a controller has written the object in between
		s.refresh(t)
		op, sent, err = s.apply(t.Context(), s.want)
	}
	if isRefusal(err) {
		if len(changed) == 1 {
			n.stuck.Add(1)
			t.Logf("STUCK %v changed: %v", changed, err)
			if !matches(unrepairable, changed[0]) {
				t.Errorf("%v changed and cannot be repaired: %v\n%s", changed, err, cmp.Diff(before, edited))
			}
		}
		s.recreate(t)
		return false
	}
	require.NoError(t, err, "changed %v", changed)
	if op != apply.Applied || sent < 1 || sent > most {
		t.Errorf("changed %v: %s by %d writes; (-before, +edited)\n%s", changed, op, sent, cmp.Diff(s.normalized(t, before, serverSet), s.normalized(t, edited, serverSet)))
		s.recreate(t)
		return true
	}
	n.repaired.Add(int64(len(changed)))
	s.expect(t, s.want, apply.Unchanged, 0, "after a repair")
	after := s.live(t)
	d := cmp.Diff(s.normalized(t, before, serverSet), s.normalized(t, after, serverSet))
	if d == "" {
		return true
	}
	n.leftovers.Add(1)
	for _, at := range changed {
		old, _ := at.in(before)
		if now, _ := at.in(after); !reflect.DeepEqual(withoutFields(old, serverSet), withoutFields(now, serverSet)) && !containsItem(at, before, after) && !matches(undroppable, at) {
			t.Errorf("changed %s and repaired (-before, +after)\n%s", at, d)
		}
	}
	if s.undo(t, before) != nil {
		s.recreate(t)
	}
	s.expect(t, s.want, apply.Unchanged, 0, "what a changed key left behind is gone")
	return true
}

// editToOtherValue changes a field, as another writer, to another value that the API server accepts. It returns the change and the API
// server's answer. If the API server accepts no other value, it returns nil.
func (s *subject) editToOtherValue(t *testing.T, at path, fixed *immutableFields, n *counts, options ...client.PatchOption) (map[string]any, client.Object) {
	t.Helper()
	old, there := at.in(s.live(t))
	if !there {
		if matches(unstored, at) {
			return nil, nil
		}
		sent, _ := at.in(s.sent(t))
		require.Contains(t, []any{int64(0), false, "", nil}, withoutFields(sent, nil), "%s was sent and is not in the live object", at)
		return nil, nil
	}
	if at.String() == "/metadata/annotations" {
		return nil, nil // the map has opblocks.dev/applied too, so this would change more than one field
	}
	n.fields.Add(1)
	if fixed.contains(at) {
		n.refused.Add(1)
		return nil, nil
	}
	for _, other := range otherValues(at, old) {
		change := operation("replace", at, other)
		if other == nil {
			change = operation("remove", at, nil)
		}
		var edited client.Object
		err := s.manifest.refused[fmt.Sprint(change)]
		if err == nil || s.form == "typed" {
			edited, err = s.edit(t, []map[string]any{change}, options...)
		}
		if err != nil {
			s.manifest.refused[fmt.Sprint(change)] = err
			require.True(t, isRefusal(err), "%s by hand: %v", at, err)
			if fixed.noteIfImmutable(s, t, at, err) {
				break
			}
			continue
		}
		if len(options) == 0 {
			s.client.last = edited
		}
		if now, _ := at.in(contentOf(t, edited)); !reflect.DeepEqual(now, old) && !restoredByServer(at, now, old) {
			return change, edited
		}
	}
	n.refused.Add(1)
	return nil, nil
}

// noteAccepted remembers, for a field and all fields that the API server treats alike (see shapeOf), which of the other values the API
// server has accepted.
func (s *subject) noteAccepted(t *testing.T, at path, before, change map[string]any) {
	t.Helper()
	accepted := -1
	if old, _ := at.in(before); change != nil {
		accepted = slices.IndexFunc(otherValues(at, old), func(v any) bool { return reflect.DeepEqual(v, change["value"]) })
	}
	s.accepted.Store(s.shapeOf(t, s.sent(t), at), accepted)
}

// editLikeElsewhere sends nothing. It returns the change that the API server has accepted for another field that it treats alike (see
// shapeOf), and the live object with this change. If the API server has accepted no change of such a field, the change is nil. If no such
// field was changed before, known is false.
func (s *subject) editLikeElsewhere(t *testing.T, at path, n *counts) (change map[string]any, edited client.Object, known bool) {
	t.Helper()
	accepted, known := s.accepted.Load(s.shapeOf(t, s.sent(t), at))
	live := s.live(t)
	old, there := at.in(live)
	if !known || !there || s.form == "typed" || at.String() == "/metadata/annotations" {
		return nil, nil, false
	}
	n.fields.Add(1)
	values := otherValues(at, old)
	switch i := accepted.(int); {
	case i < 0 || i >= len(values):
		n.refused.Add(1)
		return nil, nil, true
	case values[i] == nil:
		return operation("remove", at, nil), s.decoded(t, withoutPath(live, at).(map[string]any)), true
	default:
		return operation("replace", at, values[i]), s.decoded(t, withValue(live, at, values[i]).(map[string]any)), true
	}
}

// restoredByServer reports whether the API server itself has set a removed map again. For example, a Job without labels gets the labels of
// its pods.
func restoredByServer(at path, now, old any) bool {
	if _, item := at[len(at)-1].(int); item {
		return false // the index has the next item now
	}
	n, _ := now.(map[string]any)
	o, _ := old.(map[string]any)
	for k, v := range o {
		if given := n[k]; !reflect.DeepEqual(given, v) {
			return false
		}
	}
	return len(o) > 0
}

// containsItem reports whether a list on the path still has, unchanged, the item that the path leads through.
func containsItem(at path, before, after map[string]any) bool {
	for _, list := range at.lists() {
		item, _ := at[:len(list)+1].in(before)
		items, _ := list.in(after)
		now, _ := items.([]any)
		for _, other := range now {
			if reflect.DeepEqual(withoutFields(item, serverSet), withoutFields(other, serverSet)) {
				return true
			}
		}
	}
	return false
}

// undo writes, as another writer, the values that the fields had before they were changed.
func (s *subject) undo(t *testing.T, before map[string]any) error {
	t.Helper()
	var ops []map[string]any
	for field, value := range before {
		switch field {
		case "apiVersion", "kind", "status":
		case "metadata":
			metadata := value.(map[string]any)
			for _, shared := range []string{"labels", "annotations"} {
				if v := metadata[shared]; v != nil {
					ops = append(ops, operation("add", path{"metadata", shared}, v))
				}
			}
		default:
			ops = append(ops, operation("add", path{field}, value))
		}
	}
	return s.byHand(t, ops...)
}

// foreignItems are items that another writer adds to lists that several writers share. The key is the end of the list's path.
var foreignItems = map[string]any{
	"/spec/containers":       map[string]any{"name": "theirs", "image": "theirs:1"},
	"/spec/initContainers":   map[string]any{"name": "theirs-first", "image": "theirs:1"},
	"/spec/volumes":          map[string]any{"name": "theirs", "emptyDir": map[string]any{}},
	"/spec/imagePullSecrets": map[string]any{"name": "theirs"},
	"/spec/hostAliases":      map[string]any{"ip": "10.7.7.7", "hostnames": []any{"theirs.local"}},
	"/containers/0/env":      map[string]any{"name": "THEIRS", "value": "x"},
	"/containers/0/ports":    map[string]any{"containerPort": int64(65001), "protocol": "TCP"},
	"/topologySpreadConstraints": map[string]any{"topologyKey": "theirs", "maxSkew": int64(1), "whenUnsatisfiable": "ScheduleAnyway",
		"labelSelector": map[string]any{}},
	"/spec/ports": map[string]any{"name": "theirs", "port": int64(65001), "protocol": "TCP", "targetPort": int64(1)},
	"/secrets":    map[string]any{"name": "theirs"},
	"/webhooks": map[string]any{"name": "theirs.example.com", "admissionReviewVersions": []any{"v1"}, "sideEffects": "None",
		"failurePolicy": "Ignore", "clientConfig": map[string]any{"url": "https://theirs.example.com"}},
	"/spec/matchConditions": map[string]any{"name": "theirs", "expression": "true"},
	"/spec/parts":           map[string]any{"name": "theirs"},
	"/spec/tags":            "theirs",
	"/spec/endpoints":       map[string]any{"port": int64(65001), "protocol": "TCP"},
	"/members":              "theirs",
}

// leaveForeignFields adds fields and list items as another field manager. They must cause no write, and our writes must not remove them.
func (s *subject) leaveForeignFields(t *testing.T, n *counts) {
	t.Helper()
	theirs := []path{{"metadata", "labels", "theirs"}, {"metadata", "annotations", "theirs"}}
	ops := []map[string]any{operation("add", theirs[1], "x")}
	if labels, _ := (path{"metadata", "labels"}).in(s.live(t)); labels == nil {
		ops = append(ops, operation("add", path{"metadata", "labels"}, map[string]any{}))
	}
	require.NoError(t, s.byHand(t, append(ops, operation("add", theirs[0], "x"))...))
	s.expect(t, s.want, apply.Unchanged, 0, "a foreign label and annotation")

	var lists []path
	items := map[string]map[string]any{} // the operation that adds an item, by the path of the list
	for _, at := range fieldsOf(s.sent(t)) {
		for end, item := range foreignItems {
			if strings.HasSuffix(at.String(), end) {
				lists = append(lists, at)
				items[at.String()] = operation("add", at.with("-"), item)
			}
		}
	}
	bisect(lists, func(some []path) bool {
		var all []map[string]any
		for _, at := range some {
			all = append(all, items[at.String()])
		}
		if err := s.byHand(t, all...); err != nil {
			require.True(t, isRefusal(err), "%v: %v", some, err)
			t.Logf("foreign items of %v: refused: %v", some, err)
			return false
		}
		for _, at := range some {
			live, _ := at.in(s.live(t))
			theirs = append(theirs, at.with(len(live.([]any))-1))
		}
		s.expect(t, s.want, apply.Unchanged, 0, fmt.Sprint("foreign items of ", some))
		return true
	})
	n.foreign.Add(int64(len(theirs)))
	before := s.live(t)
	most := 1 + s.migrationWrites()
	op, sent, err := s.apply(t.Context(), s.changed())
	require.NoError(t, err)
	require.Equal(t, apply.Applied, op, "a change of ours beside foreign fields")
	require.LessOrEqual(t, sent, most, "writes: a change of ours beside foreign fields") // a write that replaced lists may have already moved the field ownership
	for _, at := range theirs {
		old, _ := at.in(before)
		now, there := at.in(s.live(t))
		if !there || !reflect.DeepEqual(old, now) {
			t.Errorf("foreign %s did not survive a write of ours: %v became %v", at, old, now)
		}
	}
	if s.form == "typed" { // the unstructured form removes the annotation in clearManagedFields
		s.expect(t, s.want, apply.Applied, 1, "the change is undone")
	}
}

// clearManagedFields clears the managed fields, as some tools do to save space. After that, a field that the operator adds must appear, and
// a field that it drops must disappear, for every kind.
func (s *subject) clearManagedFields(t *testing.T) {
	t.Helper()
	wants := []client.Object{s.want}
	if s.form == "typed" { // the live object of the unstructured form still has the annotation
		wants = append([]client.Object{s.changed()}, wants...)
	}
	for _, want := range wants {
		require.NoError(t, s.byHand(t, operation("replace", path{"metadata", "managedFields"}, []any{map[string]any{}})))
		op, _, err := s.apply(t.Context(), want)
		require.NoError(t, err, "managed fields were cleared")
		require.Equal(t, apply.Applied, op)
		s.expect(t, want, apply.Unchanged, 0, "managed fields were cleared")
	}
	require.NotContains(t, s.client.last.GetAnnotations(), changedAnnotation)
}

const changedAnnotation = "example.com/changed"

// changed returns the wanted object with one more annotation.
func (s *subject) changed() client.Object {
	want := s.want.DeepCopyObject().(client.Object)
	annotations := want.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[changedAnnotation] = "yes"
	want.SetAnnotations(annotations)
	return want
}
