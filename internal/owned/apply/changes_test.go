package apply_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/opblocks/opblocks/internal/owned/apply"
	"github.com/opblocks/opblocks/internal/owned/ownedtest"
	"github.com/opblocks/opblocks/internal/record"
)

// changeCase is a file of testdata/changes. It applies a child, edits the live object as another writer, changes the desired object and
// applies it again.
type changeCase struct {
	Reason    string          `json:"reason"`
	Validates bool            `json:"validates,omitempty"` // the case needs a validation that the server in memory does not have
	Before    json.RawMessage `json:"before"`              // the desired object at first
	Edit      jsonpatch.Patch `json:"edit,omitempty"`      // changes the live object as another writer
	Change    jsonpatch.Patch `json:"change,omitempty"`    // changes the desired object
	Operation string          `json:"operation,omitempty"` // what the next apply does; only in the folder drift
	After     jsonpatch.Patch `json:"after"`               // test operations of a JSON patch, which must hold for the live object in the end
}

// forEachChange runs a test for each file of a folder of testdata/changes: once with the desired object as a Go struct, and once as an
// unstructured object.
func forEachChange(t *testing.T, folder string, test func(t *testing.T, env *ownedtest.Server, c *changeCase, form func([]byte) client.Object)) {
	names, err := filepath.Glob("testdata/changes/" + folder + "/*.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, names)
	for _, name := range names {
		content, err := os.ReadFile(name)
		require.NoError(t, err)
		var c changeCase
		require.NoError(t, yaml.UnmarshalStrict(content, &c), name)
		for form, decode := range map[string]func(*testing.T, []byte) client.Object{"Typed": typedObject, "Unstructured": unstructuredObject} {
			t.Run(strings.TrimSuffix(filepath.Base(name), ".yaml")+"/"+form, func(t *testing.T) {
				t.Log(c.Reason)
				env := newServer
				if c.Validates {
					env = newRealServer
				}
				test(t, env(t), &c, func(json []byte) client.Object { return decode(t, json) })
			})
		}
	}
}

func unstructuredObject(t *testing.T, json []byte) client.Object {
	t.Helper()
	u := &unstructured.Unstructured{}
	require.NoError(t, u.UnmarshalJSON(json))
	return u
}

func typedObject(t *testing.T, json []byte) client.Object {
	t.Helper()
	obj, err := runtime.Decode(scheme.Codecs.UniversalDeserializer(), json)
	require.NoError(t, err)
	return obj.(client.Object)
}

// patched returns a JSON document after a JSON patch.
func patched(t *testing.T, json []byte, patch jsonpatch.Patch) []byte {
	t.Helper()
	if patch == nil {
		return json
	}
	after, err := patch.ApplyIndent(json, "  ")
	require.NoError(t, err, "%s", json)
	return after
}

// withAnnotations returns the JSON of an object that has annotations with exactly these keys.
func withAnnotations(t *testing.T, json []byte, keys ...string) []byte {
	t.Helper()
	u := unstructuredObject(t, json).(*unstructured.Unstructured)
	annotations := map[string]string{}
	for _, key := range keys {
		annotations[key] = "x"
	}
	u.SetAnnotations(annotations)
	after, err := u.MarshalJSON()
	require.NoError(t, err)
	return after
}

// liveJSON returns the JSON of the live object, which has the owner's name.
func liveJSON(t *testing.T, env *ownedtest.Server, desired []byte) []byte {
	t.Helper()
	live := unstructuredObject(t, desired)
	env.Live(t, live)
	json, err := live.(*unstructured.Unstructured).MarshalJSON()
	require.NoError(t, err)
	return json
}

// edit changes the live object as another writer.
func edit(t *testing.T, env *ownedtest.Server, desired []byte, patch jsonpatch.Patch) {
	t.Helper()
	edited := unstructuredObject(t, patched(t, liveJSON(t, env, desired), patch))
	require.NoError(t, env.Other.Update(t.Context(), edited, client.FieldOwner("kubectl-edit")))
}

func TestApplyRepairsDrift(t *testing.T) {
	forEachChange(t, "drift", func(t *testing.T, env *ownedtest.Server, c *changeCase, form func([]byte) client.Object) {
		env.Expect(t, form(c.Before), apply.Created, "POST deployments")
		desired := []byte(strings.Replace(string(c.Before), "nginx:1.27", "nginx:1.28", 1))
		env.Expect(t, form(desired), apply.Applied, "GET deployments", "PATCH deployments", "PATCH deployments")
		edit(t, env, desired, c.Edit)

		result := env.MustApply(t, form(desired))
		require.Equal(t, c.Operation, string(result.Operation), c.Reason)
		patched(t, liveJSON(t, env, desired), c.After)
		live := unstructuredObject(t, liveJSON(t, env, desired))
		require.NotEmpty(t, live.GetAnnotations()[record.Applied])

		version := live.GetResourceVersion()
		env.Settled(t, form(desired))
		env.Live(t, live)
		require.Equal(t, version, live.GetResourceVersion(), "the next pass writes nothing")
	})
}

// The desired object has a field that contradicts a live field. The live field belongs to nobody, or to another writer. The same apply
// drops an annotation, so that more than one difference is known.
func TestApplyReplacesWhatContradicts(t *testing.T) {
	forEachChange(t, "contradiction", func(t *testing.T, env *ownedtest.Server, c *changeCase, form func([]byte) client.Object) {
		for _, keys := range [][]string{{"example.com/dropped"}, {"example.com/dropped", "example.com/changed"}} {
			env.MustApply(t, form(withAnnotations(t, c.Before, keys...)), withRecreate())
		}
		edit(t, env, c.Before, c.Edit)
		before := unstructuredObject(t, liveJSON(t, env, c.Before))
		annotations := before.GetAnnotations()
		annotations["example.com/theirs"] = "x"
		before.SetAnnotations(annotations)
		require.NoError(t, env.Other.Update(t.Context(), before, client.FieldOwner("kubectl-edit")))

		desired := patched(t, c.Before, c.Change)
		change, err := env.Diff(t, form(desired))
		require.NoError(t, err)
		require.GreaterOrEqual(t, len(change.Differences), 2, "%v", change.Differences)
		require.Equal(t, apply.Applied, env.MustApply(t, form(desired), withRecreate()).Operation)
		patched(t, liveJSON(t, env, desired), c.After)
		live := unstructuredObject(t, liveJSON(t, env, desired))
		require.Equal(t, before.GetUID(), live.GetUID(), "it is not recreated")
		require.Equal(t, "x", live.GetAnnotations()["example.com/theirs"], "fields of others stay")
		require.NotContains(t, live.GetAnnotations(), "example.com/dropped")
		env.Settled(t, form(desired))

		for _, keys := range [][]string{{"example.com/later"}, nil} {
			env.MustApply(t, form(withAnnotations(t, desired, keys...)))
		}
		patched(t, liveJSON(t, env, desired), c.After)
		env.Live(t, live)
		require.NotContains(t, live.GetAnnotations(), "example.com/later", "our fields can be dropped afterwards")
		require.NoError(t, env.Other.Delete(t.Context(), live)) // deleted because the next test needs its node port
	})
}
