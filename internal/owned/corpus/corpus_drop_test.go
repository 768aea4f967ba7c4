package corpus

import (
	"encoding/json"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/owned"
	"github.com/opblocks/opblocks/internal/owned/apply"
	"github.com/opblocks/opblocks/internal/record"
)

// dropEachField tests single fields: it applies the wanted object without the field. After each apply, the live object must be like an
// object that was created without the field. The method alone returns the fields to test.
func (s *subject) dropEachField(t *testing.T, n *counts) {
	t.Helper()
	before := s.normalized(t, s.live(t), serverSet)
	full := s.sent(t)
	var last path // the field that the previous apply dropped, and that the next apply sends again
	var fixed immutableFields
	for _, at := range s.alone(t) {
		if _, item := at[len(at)-1].(int); item {
			if v, _ := at.in(full); isLeaf(v) {
				continue // an item of an atomic list or a set has no key
			}
		}
		if fixed.contains(at) || matches(required, at) {
			n.dropRefused.Add(1)
			continue
		}
		content := withoutPath(full, at).(map[string]any)
		want := s.decoded(t, content)
		most := s.migrationWrites() + 1
		op, sent, err := s.apply(t.Context(), want)
		if isRefusal(err) && s.restoreIsRefused(t, last, n) {
			s.recreate(t)
			op, sent, err = s.apply(t.Context(), want)
		}
		if isRefusal(err) {
			n.dropRefused.Add(1)
			fixed.noteIfImmutable(s, t, at, err)
			last = nil
			continue
		}
		require.NoError(t, err, "drop %s", at)
		if op == apply.Unchanged {
			continue
		}
		last = at
		n.dropped.Add(1)
		if at.field() != "replicas" { // giving replicas to another field manager takes one more write
			require.LessOrEqual(t, sent, most, "writes to drop %s", at)
		}
		if matches(undroppable, at) {
			s.recreate(t)
			last = nil
			continue
		}
		s.droppable.add(s.shapeOf(t, full, at))
		s.compareWithNew(t, want, at.String(), n)
	}
	if s.restoreIsRefused(t, last, n) {
		s.recreate(t)
	}
	if d := cmp.Diff(before, s.normalized(t, s.live(t), serverSet)); d != "" {
		t.Errorf("all fields again (-before, +after)\n%s", d)
	}
	s.expect(t, s.want, apply.Unchanged, 0, "after the last field came back")
}

// dropAllFields drops together all fields that the API server treats like one that the typed form could drop (see shapeOf), or as many of
// them as it accepts.
func (s *subject) dropAllFields(t *testing.T, n *counts) {
	t.Helper()
	full := s.sent(t)
	var droppable []path
	for _, at := range fieldsOf(full) {
		if v, _ := at.in(full); isLeaf(v) && at.field() != "replicas" && s.droppable.has(s.shapeOf(t, full, at)) {
			droppable = append(droppable, at)
		}
	}
	bisect(droppable, func(some []path) bool {
		content := full
		for _, at := range slices.Backward(some) {
			content = withoutPath(content, at).(map[string]any)
		}
		want := s.decoded(t, content)
		if _, _, err := s.apply(t.Context(), want); isRefusal(err) {
			return false
		}
		n.dropped.Add(int64(len(some)))
		s.compareWithNew(t, want, "many fields", n)
		if _, _, err := s.apply(t.Context(), s.want); isRefusal(err) {
			n.stuck.Add(1)
			s.recreate(t)
		}
		return true
	})
	s.expect(t, s.want, apply.Unchanged, 0, "all fields again")
}

// restoreIsRefused applies the whole object again, and reports whether the API server refuses it.
func (s *subject) restoreIsRefused(t *testing.T, last path, n *counts) bool {
	t.Helper()
	_, _, err := s.apply(t.Context(), s.want)
	if !isRefusal(err) {
		require.NoError(t, err, "all fields again")
		return false
	}
	n.stuck.Add(1)
	t.Logf("STUCK %s dropped: %v", last, err)
	if !matches(unrepairable, last) {
		t.Errorf("%s was dropped and cannot come back: %v", last, err)
	}
	return true
}

// compareWithNew compares the live object with the result of a dry run that creates want.
func (s *subject) compareWithNew(t *testing.T, want client.Object, dropped string, n *counts) {
	t.Helper()
	fresh := s.asCreated(t, want)
	if fresh == nil {
		n.uncompared.Add(1)
		return
	}
	if d := cmp.Diff(s.normalized(t, fresh, serverKept), s.normalized(t, s.live(t), serverKept)); d != "" {
		t.Errorf("dropped %s (-as if created so, +live)\n%s", dropped, d)
	}
}

// asCreated returns what the API server would make of want if it created it now, by a dry run. If the API server refuses the dry run, it
// returns nil.
func (s *subject) asCreated(t *testing.T, want client.Object) map[string]any {
	t.Helper()
	if s.kind(t).GVK.Kind == "Pod" {
		return nil // admission adds a volume with a random name to each pod
	}
	encoded, err := s.kind(t).Comparer.AppendApply(nil, owned.WithData(want), s.kind(t).GVK, "", "")
	require.NoError(t, err)
	text := string(encoded)
	if s.rename != nil {
		text = s.rename.Replace(text)
	}
	u := &unstructured.Unstructured{}
	require.NoError(t, utiljson.Unmarshal([]byte(text), &u.Object))
	if s.rename == nil {
		u.SetNamespace(metav1.NamespaceDefault)
	}
	if err := s.other.Create(t.Context(), u, client.DryRunAll); err != nil {
		t.Logf("not compared with a new object: %v", err)
		return nil
	}
	return u.Object
}

// normalized returns an object without its name and without the given fields, so that two objects of one kind can be compared.
func (s *subject) normalized(t *testing.T, object map[string]any, without map[string]bool) map[string]any {
	t.Helper()
	encoded, err := json.Marshal(object)
	require.NoError(t, err)
	text := string(encoded)
	if s.rename != nil {
		text = s.rename.Replace(text)
	}
	content := map[string]any{}
	require.NoError(t, utiljson.Unmarshal([]byte(text), &content))
	for _, field := range []string{"apiVersion", "kind", "status"} {
		delete(content, field)
	}
	metadata, _ := content["metadata"].(map[string]any)
	if content["aggregationRule"] != nil {
		delete(content, "rules") // a controller sets the rules
	}
	claims, _ := path{"spec", "volumeClaimTemplates"}.in(content)
	templates, _ := claims.([]any)
	for _, claim := range templates { // a POST sets their apiVersion and kind, and an apply removes them
		delete(claim.(map[string]any), "apiVersion")
		delete(claim.(map[string]any), "kind")
	}
	content["metadata"] = map[string]any{"labels": metadata["labels"], "annotations": metadata["annotations"]}
	pruned, _ := withoutFields(content, without).(map[string]any)
	return pruned
}

// serverSet are the fields, labels and annotations that the API server, its controllers and this library set.
var serverSet = withRecords(map[string]bool{
	"deployment.kubernetes.io/revision":        true,
	"deprecated.daemonset.template.generation": true, "creationTimestamp": true, "status": true, "uid": true,
	"controller-uid": true, "batch.kubernetes.io/controller-uid": true, "kubernetes.io/metadata.name": true,
	"clusterIP": true, "clusterIPs": true, "nodePort": true, "healthCheckNodePort": true,
	"batch.kubernetes.io/job-name": true, "job-name": true, "autoscaling.alpha.kubernetes.io/conditions": true,
	"paused": true, // set by the test, see pause
})

// withRecords adds to the keys the annotations that each write of this library sets.
func withRecords(keys map[string]bool) map[string]bool {
	for _, key := range record.OnChildren(record.AsAnnotation, func(k record.ChildKey) bool { return k.By == record.SetByWrite }) {
		keys[key] = true
	}
	return keys
}

// serverKept are the fields of serverSet, and fields that an object keeps from its creation although they are not wanted any more.
var serverKept = func() map[string]bool {
	kept := maps.Clone(serverSet)
	for _, field := range []string{"ipFamilies", "ipFamilyPolicy", "replicas"} { // another field manager gets the replicas
		kept[field] = true
	}
	return kept
}()

// withoutFields returns v without these fields, without nulls, and without values that become empty by that. The answers of the API server
// differ in them.
func withoutFields(v any, fields map[string]bool) any {
	switch v := v.(type) {
	case map[string]any:
		kept := map[string]any{}
		for k, e := range v {
			if e = withoutFields(e, fields); !fields[k] && e != nil {
				kept[k] = e
			}
		}
		if len(kept) == 0 {
			return nil
		}
		return kept
	case []any:
		kept := make([]any, len(v))
		for i, e := range v {
			kept[i] = withoutFields(e, fields)
		}
		if len(kept) == 0 {
			return nil
		}
		return kept
	}
	return v
}
