//go:build !race

package corpus

import (
	"cmp"
	"encoding/json"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/forecast"
	"github.com/opblocks/opblocks/internal/owned"
	"github.com/opblocks/opblocks/internal/owned/apply"
	"github.com/opblocks/opblocks/internal/owned/write"
)

// foreseen is what a preview says of one object, before a new version of the operator writes it.
type foreseen struct {
	apply.Previewed
	err    error
	before client.Object
}

// foresee previews an apply of want. It uses a process that remembers nothing, and a client that sends only reads and dry runs. The preview
// may cost at most three requests, and none if it says that nothing would be done.
func (s *subject) foresee(t *testing.T, want client.Object, n *counts) foreseen {
	t.Helper()
	o, err := owned.NewOwner(s.owner, client.NewDryRunClient(s.client), s.apiReader)
	require.NoError(t, err)
	a := apply.New()
	a.Kinds = s.applier.Kinds
	children, err := a.Declare(&o, []client.Object{want})
	require.NoError(t, err)
	s.writes.n.Store(0)
	s.writes.all.Store(0)
	f := foreseen{before: s.client.last}
	f.Previewed, f.err = a.Previews().Preview(t.Context(), &o, children[0])
	require.Zero(t, s.writes.n.Load(), "a plan writes nothing")
	most := int64(3)
	if f.err == nil && !forecast.Changes(&f.Change) {
		most = 0
	}
	if isRefusal(f.err) {
		most += 1 + write.MaxAttempts // reads the whole object, and looks for a way around the refusal
	}
	if sent := s.writes.all.Load(); sent > most {
		t.Errorf("%d requests to plan %s %v: %v", sent, f.Action, f.Differences, f.err)
	}
	n.foreseen.Add(1)
	return f
}

// check compares the preview with what the apply has done. A second preview right after the apply must find nothing to do.
func (f *foreseen) check(t *testing.T, s *subject, want client.Object, op apply.Operation, err error, n *counts) {
	t.Helper()
	switch {
	case f.err != nil || err != nil:
		if (!isRefusal(f.err) || !isRefusal(err)) && !isUnforeseeable(err) {
			t.Errorf("foreseen: %v\nhappened: %v", f.err, err)
		}
		return
	case f.Action == forecast.None != (op == apply.Unchanged), f.Action != forecast.None && f.Action != forecast.Apply:
		t.Errorf("foreseen: %s %v\nhappened: %s", f.Action, f.Differences, op)
		return
	}
	before, after := contentOf(t, f.before), contentOf(t, s.client.last)
	replayed := any(before)
	for _, d := range f.Differences {
		n.foreseenFields.Add(1)
		at := pathOf(t, d.Path)
		was, is := at.resolved(before), at.resolved(after)
		if have, _ := was.in(before); d.Have != "(hidden)" && !same(d.Have, have) {
			t.Errorf("%s: it was %v", d, have)
		}
		value, there := is.in(after)
		if matches(undroppable, at) {
			return // the API server restores the field
		}
		if d.Want != "(hidden)" && !same(d.Want, value) && (f.Note == "" || !strings.Contains(d.Path+d.Want, "odePort")) {
			t.Errorf("%s: it is %v", d, value)
		}
		switch in := at.resolved(replayed); {
		case there:
			replayed = withValue(replayed, in, value)
		default:
			if _, has := in.in(replayed); has {
				replayed = withoutPath(replayed, in)
			}
		}
	}
	tree, _ := replayed.(map[string]any)
	if d := gocmp.Diff(s.normalized(t, tree, recorded), s.normalized(t, after, recorded)); d != "" {
		t.Errorf("foreseen %s %v: (-foreseen, +happened)\n%s", f.Action, f.Differences, d)
	}
	if again := s.foresee(t, want, n); again.err != nil || again.Action != forecast.None {
		t.Errorf("right after it: %s %v: %v", again.Action, again.Differences, again.err)
	}
}

// recorded are fields that an apply or a controller changes in addition to the desired ones.
var recorded = withRecords(map[string]bool{
	"deployment.kubernetes.io/revision":        true,
	"deprecated.daemonset.template.generation": true, "autoscaling.alpha.kubernetes.io/conditions": true,
})

// isUnforeseeable reports whether the API server has refused a request for a reason for which it does not refuse a dry run.
func isUnforeseeable(err error) bool {
	return err != nil && strings.Contains(err.Error(), "provided port is not in the valid range") // in a dry run the API server reserves no port
}

// same reports whether the text in a preview stands for this value.
func same(text string, value any) bool {
	if text == "" {
		return value == nil
	}
	var planned any
	encoded, err := json.Marshal(value)
	return err == nil && utiljson.Unmarshal([]byte(text), &planned) == nil && text == string(encoded)
}

// pathOf parses the path of a difference. A list item in it is an index, or the item's keys as JSON.
func pathOf(t *testing.T, text string) (at path) {
	t.Helper()
	for text != "" {
		var step string
		switch text[0] {
		case '.':
			text = text[1:]
		case '[':
			end := strings.Index(text, "]")
			if strings.HasPrefix(text, "[{") {
				end = strings.Index(text, "}]") + 1
			}
			require.Positive(t, end, text)
			step, text = text[1:end], text[end+1:]
			if i, err := strconv.Atoi(step); err == nil {
				at = append(at, i)
			} else if keys := map[string]any{}; utiljson.Unmarshal([]byte(step), &keys) == nil {
				at = append(at, keys)
			} else {
				at = append(at, step)
			}
		default:
			step, text = text, ""
			if end := strings.IndexAny(step, ".["); end >= 0 {
				step, text = step[:end], step[end:]
			}
			at = append(at, step)
		}
	}
	return at
}

// resolved returns the path with indices in place of the keys of items. If an item does not exist, its index is the length of the list.
func (p path) resolved(v any) path {
	found := path{}
	for _, step := range p {
		keys, isItem := step.(map[string]any)
		if !isItem {
			found = found.with(step)
			continue
		}
		list, _ := found.in(v)
		items, _ := list.([]any)
		i := slices.IndexFunc(items, func(item any) bool {
			fields, _ := item.(map[string]any)
			for k, key := range keys {
				if !gocmp.Equal(fields[k], key) {
					return false
				}
			}
			return true
		})
		if i < 0 {
			i = len(items)
		}
		found = found.with(i)
	}
	return found
}

// changeDesired changes a field of the desired object, as a new version of the operator does, and then changes it back. For both changes,
// the preview must be right. It tries at most three fields, until the API server accepts a change.
func (s *subject) changeDesired(t *testing.T, n *counts) {
	t.Helper()
	full := s.sent(t)
	s.tryFields(t, n, func(at path) client.Object {
		old, _ := at.in(full)
		if !isLeaf(old) {
			return nil
		}
		return s.decoded(t, withValue(full, at, otherValues(at, old)[0]).(map[string]any))
	})
	if isRefusal(s.applyForeseen(t, s.want, n)) {
		s.recreate(t)
	}
}

// dropAfterCreation drops a field of an object that was created and never applied. So the first apply has to take over the fields of the
// POST. The preview must be right.
func (s *subject) dropAfterCreation(t *testing.T, n *counts) {
	t.Helper()
	full := s.sent(t)
	s.tryFields(t, n, func(at path) client.Object {
		if matches(required, at) {
			return nil
		}
		return s.decoded(t, withoutPath(full, at).(map[string]any))
	})
	_, _, err := s.apply(t.Context(), s.want)
	if isRefusal(err) {
		s.recreate(t)
		return
	}
	require.NoError(t, err)
}

// tryFields applies an object with a change of one field. The preview of the change must be right. It tries at most three fields, until the
// API server accepts a change. Which fields it tries differs from manifest to manifest.
func (s *subject) tryFields(t *testing.T, n *counts, changed func(path) client.Object) {
	t.Helper()
	fields := fieldsOf(s.sent(t))
	hash := func(at path) uint32 {
		h := fnv.New32a()
		_, _ = h.Write([]byte(s.String() + at.String()))
		return h.Sum32()
	}
	slices.SortFunc(fields, func(a, b path) int { return cmp.Compare(hash(a), hash(b)) })
	tried := 0
	for _, at := range fields {
		want := changed(at)
		if want == nil {
			continue
		}
		if tried++; s.applyForeseen(t, want, n) == nil || tried == 3 {
			return
		}
	}
}

// applyForeseen previews an apply of want, applies want, and compares the two.
func (s *subject) applyForeseen(t *testing.T, want client.Object, n *counts) error {
	t.Helper()
	f := s.foresee(t, want, n)
	op, _, err := s.apply(t.Context(), want)
	f.check(t, s, want, op, err, n)
	return err
}
