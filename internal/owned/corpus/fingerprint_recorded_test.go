package corpus

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	k8sjson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/opblocks/opblocks/internal/applyschema"
	"github.com/opblocks/opblocks/internal/compare"
	"github.com/opblocks/opblocks/internal/owned"
	"github.com/opblocks/opblocks/internal/owned/testkinds"
)

// TestRecordedFingerprints compares fingerprints (short hashes of differences) with the ones in testdata/fingerprints.txt, which version
// 6f01fb7 of this module computed. Objects in clusters carry such fingerprints, for the differences between what was sent and what the API
// server stored. If a release changed one of them, the object would be applied again, and its fingerprint written in a second request.
//
// The file has the fingerprints of the manifests of the corpus, of random Deployments and Services, and of odd strings, as Go structs, as
// unstructured objects, and as apply configurations. In the live object, values are removed, emptied or changed.
func TestRecordedFingerprints(t *testing.T) {
	got := fingerprintsToRecord(t)
	recorded, err := os.ReadFile("testdata/fingerprints.txt")
	require.NoError(t, err)
	want := map[string]string{}
	for line := range strings.Lines(string(recorded)) {
		name, fingerprint, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		want[name] = fingerprint
	}
	require.Len(t, want, len(got))
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if got[name] != want[name] {
			t.Errorf("%s: the fingerprint was %q, and is now %q", name, want[name], got[name])
		}
	}
}

// fingerprintsToRecord returns the fingerprints by the names that they have in the file.
func fingerprintsToRecord(t *testing.T) map[string]string {
	t.Helper()
	types := runtime.NewScheme()
	require.NoError(t, scheme.AddToScheme(types))
	require.NoError(t, apiextensionsv1.AddToScheme(types))
	types.AddKnownTypeWithName(testkinds.GadgetKind, &testkinds.Gadget{})
	types.AddKnownTypeWithName(testkinds.WidgetKind, &testkinds.Widget{})
	c := &corpusEnv{scheme: types, codecs: serializer.NewCodecFactory(types, serializer.EnableStrict), kinds: &owned.Kinds{Schemas: applyschema.BuiltIn}}
	fingerprints := map[string]string{}
	add := func(name string, manifest []byte) {
		desired := c.decode(t, manifest, "typed")
		content := c.decode(t, manifest, "unstructured").(*unstructured.Unstructured)
		typed, err := c.kinds.Of(desired, types)
		require.NoError(t, err, name)
		untyped, err := c.kinds.Of(content, types)
		require.NoError(t, err, name)
		configured, err := c.kinds.OfConfiguration(desired, types)
		require.NoError(t, err, name)
		for _, edit := range []string{"emptied", "mixed"} {
			live, liveContent := rewritten(t, typed, content, edit)
			for form, differences := range map[string][]compare.Difference{
				"typed":         typed.Comparer.Differences(owned.WithData(desired), live),
				"unstructured":  untyped.Comparer.Differences(content, liveContent),
				"configuration": configured.Comparer.Differences(content, live),
			} {
				fingerprints[name+"/"+edit+"/"+form] = owned.Fingerprint(differences)
			}
		}
	}
	files, err := filepath.Glob("testdata/manifests/*.yaml")
	require.NoError(t, err)
	for _, file := range files {
		manifest, err := os.ReadFile(file)
		require.NoError(t, err)
		add("corpus/"+filepath.Base(file), manifest)
	}
	for i, obj := range randomObjects(10, 50) {
		kind, err := c.kinds.Of(obj, types)
		require.NoError(t, err)
		obj.GetObjectKind().SetGroupVersionKind(kind.GVK)
		manifest, err := yaml.Marshal(obj)
		require.NoError(t, err)
		add(fmt.Sprintf("random/%s/%d", kind.GVK.Kind, i), manifest)
	}
	for name, manifest := range map[string]string{
		"Keys":     `{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, labels: {"a.b/c": "1", "x\n\"": "2", "é<": "3"}}, spec: {template: {spec: {containers: [{name: "a\"b\n", env: [{name: "x=\\y", value: "<>&\u2028"}, {name: "é ", value: ""}]}]}}}}`,
		"Sets":     `{apiVersion: v1, kind: Service, metadata: {name: a, finalizers: [x/a, y/b]}, spec: {ports: [{port: 80}, {port: 80, protocol: UDP}], loadBalancerSourceRanges: [a, b], externalIPs: []}}`,
		"Zeros":    `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, annotations: {a: "", b: "0"}}, data: {a: "", b: "x\ty"}, binaryData: {c: ""}}`,
		"Selector": `{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: a}, spec: {podSelector: {}, ingress: [{from: [{namespaceSelector: {}}, {podSelector: {matchLabels: {a: b}}}]}]}}`,
	} {
		encoded, err := yaml.YAMLToJSON([]byte(manifest))
		require.NoError(t, err)
		add("odd/"+name, encoded)
	}
	return fingerprints
}

// rewritten returns an object with changed values, as if the API server had changed them, as a Go struct and as an unstructured object.
func rewritten(t *testing.T, k *owned.Kind, content *unstructured.Unstructured, edit string) (typed, untyped client.Object) {
	t.Helper()
	for _, texts := range []bool{true, false} { // a changed string may be invalid for the Go type, such as a quantity or a date
		e := editor{edit: edit, texts: texts}
		edited := e.edited(content.Object).(map[string]any)
		for _, field := range []string{"apiVersion", "kind"} {
			edited[field] = content.Object[field]
		}
		encoded, err := json.Marshal(edited)
		require.NoError(t, err)
		live := k.Empty()
		err = json.Unmarshal(encoded, live)
		if err != nil && texts {
			continue
		}
		require.NoError(t, err)
		u := &unstructured.Unstructured{}
		require.NoError(t, k8sjson.Unmarshal(encoded, &u.Object))
		return live, u
	}
	return nil, nil
}

// editor changes every third value of a tree.
type editor struct {
	edit   string
	texts  bool
	values int
}

func (e *editor) edited(v any) any {
	switch v := v.(type) {
	case map[string]any:
		edited := map[string]any{}
		for _, k := range slices.Sorted(maps.Keys(v)) {
			if value := e.edited(v[k]); value != nil {
				edited[k] = value
			}
		}
		return edited
	case []any:
		edited := []any{}
		for _, item := range v {
			if value := e.edited(item); value != nil {
				edited = append(edited, value)
			}
		}
		return edited
	}
	e.values++
	edit := e.edit
	if edit == "mixed" {
		edit = []string{"removed", "emptied", "changed"}[e.values/3%3]
	}
	text, isText := v.(string)
	switch {
	case e.values%3 != 0 || isText && !e.texts && edit != "removed":
		return v
	case edit == "removed":
		return nil
	}
	empty := edit == "emptied"
	switch v := v.(type) {
	case string:
		if empty {
			return ""
		}
		return "1" + text
	case bool:
		return !empty && !v
	case int64:
		if empty {
			return int64(0)
		}
		return v + 1
	}
	return v
}
