package corpus

import (
	"encoding/json"
	"fmt"
	"math"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/applyschema"
	"github.com/opblocks/opblocks/internal/compare"
	"github.com/opblocks/opblocks/internal/owned"
	"github.com/opblocks/opblocks/internal/owned/testkinds"
)

// TestRecordedHashes compares hashes with the ones in testdata/hashes.txt, which version 6f01fb7 of this module computed. Objects in
// clusters carry such hashes. If a release changed one of them, the children would be written again, and a changed hash in a pod template
// would replace the pods. The file has the hash of
//
//   - each manifest of the corpus, as a Go struct and as an unstructured object;
//   - random Deployments and Services, in the same two forms;
//   - values for ownedresources.SetHash, with all that Go's and the API's types may hold.
func TestRecordedHashes(t *testing.T) {
	recorded, err := os.ReadFile("testdata/hashes.txt")
	require.NoError(t, err)
	want := map[string]string{}
	for line := range strings.Lines(string(recorded)) {
		name, hash, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		want[name] = hash
	}
	require.Greater(t, len(want), 500)
	got := hashesToRecord(t)
	for name, hash := range want {
		if got[name] != hash {
			t.Errorf("%s: the hash was %s, and is now %q", name, hash, got[name])
		}
	}
}

// hashesToRecord returns the hashes by the names that they have in the file.
func hashesToRecord(t *testing.T) map[string]string {
	t.Helper()
	hashes := map[string]string{}
	add := func(name string, encoded []byte, err error) {
		require.NoError(t, err, name)
		s := owned.SumOf(encoded)
		require.NotContains(t, hashes, name)
		hashes[name] = strings.Trim(string(s[:]), "\x00")
	}
	types := runtime.NewScheme()
	require.NoError(t, scheme.AddToScheme(types))
	require.NoError(t, apiextensionsv1.AddToScheme(types))
	types.AddKnownTypeWithName(testkinds.GadgetKind, &testkinds.Gadget{})
	types.AddKnownTypeWithName(testkinds.WidgetKind, &testkinds.Widget{})
	c := &corpusEnv{scheme: types, codecs: serializer.NewCodecFactory(types, serializer.EnableStrict), kinds: &owned.Kinds{Schemas: applyschema.BuiltIn}}
	encode := func(name string, obj client.Object) {
		k, err := c.kinds.Of(obj, types)
		require.NoError(t, err, name)
		object, _, err := k.Normalize(obj, &owned.Options{})
		require.NoError(t, err, name)
		encoded, err := k.Comparer.AppendJSON(nil, object)
		add(name, encoded, err)
	}

	files, err := filepath.Glob("testdata/manifests/*.yaml")
	require.NoError(t, err)
	for _, file := range files {
		manifest, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, form := range []string{"typed", "unstructured"} {
			encode("corpus/"+filepath.Base(file)+"/"+form, c.decode(t, manifest, form))
		}
	}

	for i, obj := range randomObjects(60, 10) {
		k, err := c.kinds.Of(obj, types)
		require.NoError(t, err)
		name := fmt.Sprintf("random/%s/%d/", k.GVK.Kind, i)
		encode(name+"typed", obj)
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
		require.NoError(t, err)
		u := &unstructured.Unstructured{Object: content}
		u.SetGroupVersionKind(k.GVK)
		encode(name+"unstructured", u)
	}
	for name, u := range unstructuredToRecord() {
		u.SetGroupVersionKind(testkinds.GadgetKind)
		encode("unstructured/"+name, u)
	}
	for name, v := range valuesToRecord() {
		encoded, err := compare.AppendValue(nil, v)
		add("value/"+name, encoded, err)
	}
	return hashes
}

// unstructuredToRecord are objects with numbers, nulls and strings that are rare in manifests.
func unstructuredToRecord() map[string]*unstructured.Unstructured {
	specs := map[string]any{
		"Floats":      []any{1.5, 1e6, 1e20, 1e21, 1e-5, 1e-7, 123456789.0, 0.0, math.MaxFloat64, math.SmallestNonzeroFloat64},
		"Integers":    []any{int64(0), int64(math.MaxInt64), int64(math.MinInt64), int64(1) << 53},
		"Nulls":       map[string]any{"a": nil, "b": map[string]any{"c": nil}, "d": []any{nil, map[string]any{"e": nil}}},
		"Empty":       map[string]any{"a": map[string]any{}, "b": []any{}, "c": "", "d": false},
		"NilMap":      map[string]any{"a": map[string]any(nil), "b": []any(nil)},
		"Escapes":     oddText,
		"EscapedKeys": map[string]any{oddText: "x", "\n": "y", "<&>": "z", "ü": "1", "\xff": "2"},
		"Int":         map[string]any{"a": 5, "b": []string{"x"}, "c": map[string]string{"k": "v"}}, // types that apimachinery does not expect in an unstructured object
	}
	objects := map[string]*unstructured.Unstructured{}
	for name, spec := range specs {
		objects[name] = &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "a"}, "spec": spec}}
	}
	return objects
}

// oddText has every character that an encoder of JSON may escape.
const oddText = "\x00\x01\b\t\n\v\f\r\x1f \"\\/'<>&\x7f\u0080é\u2028\u2029\ufffd\ufeff😀\xff\xc3\\n\\u2028\\\\"

type namedText string

type embeddedToRecord struct {
	Inner  string `json:"inner,omitempty"`
	Hidden string `json:"hidden"`
}

type recursiveToRecord struct {
	Name string               `json:"name"`
	Next *recursiveToRecord   `json:"next,omitempty"`
	List []recursiveToRecord  `json:"list"`
	Map  map[string]namedText `json:"map,omitempty"`
}

// valuesToRecord returns values for ownedresources.SetHash.
func valuesToRecord() map[string]any {
	type inner struct {
		Name string `json:"name"`
	}
	type zeros struct {
		Bool     bool            `json:"bool"`
		Int      int             `json:"int"`
		Text     string          `json:"text"`
		Struct   inner           `json:"struct"`
		Empty    struct{}        `json:"empty"`
		List     []int           `json:"list"`
		Map      map[string]int  `json:"map"`
		Pointer  *int            `json:"pointer"`
		Any      any             `json:"any"`
		Time     metav1.Time     `json:"time"`
		Duration metav1.Duration `json:"duration"`
		Go       time.Time       `json:"go"`
		Quantity resource.Quantity
		Port     intstr.IntOrString
		Bytes    []byte
		Float    float64
		Array    [2]inner
		Skipped  string `json:"-"`
		Dash     string `json:"-,"` //nolint:staticcheck // a field may have the name "-"
		private  string
	}
	type omitted struct {
		Bool     bool               `json:"bool,omitempty"`
		Int      int                `json:"int,omitempty"`
		Text     string             `json:"text,omitempty"`
		Struct   zeros              `json:"struct,omitempty"` //nolint:modernize // what omitempty does to a struct is recorded
		Zero     inner              `json:"zero,omitzero"`
		Empty    []int              `json:"empty,omitempty"`
		EmptyNot []int              `json:"emptyNot,omitzero"`
		Map      map[string]int     `json:"map,omitempty"`
		Any      any                `json:"any,omitempty"`
		Time     metav1.Time        `json:"time,omitempty"`     //nolint:modernize // what omitempty does to a struct is recorded
		Duration metav1.Duration    `json:"duration,omitempty"` //nolint:modernize // what omitempty does to a struct is recorded
		Quantity resource.Quantity  `json:"quantity,omitempty"` //nolint:modernize // what omitempty does to a struct is recorded
		Port     intstr.IntOrString `json:"port,omitempty"`     //nolint:modernize // what omitempty does to a struct is recorded
		Float    float64            `json:"float,omitempty"`
		Array    [2]int             `json:"array,omitempty"`
		Raw      json.RawMessage    `json:"raw,omitempty"`
		ByNumber map[int]string     `json:"byNumber,omitempty"`
	}
	at := time.Date(2026, 1, 2, 3, 4, 5, 6, time.FixedZone("x", 3600))
	return map[string]any{
		"Nil": nil, "NilPointer": (*int)(nil), "NilSlice": []string(nil), "NilMap": map[string]string(nil), "NilBytes": []byte(nil),
		"True": true, "Text": oddText, "NamedText": namedText("x\n"), "Bytes": []byte(oddText),
		"Int8": int8(-3), "Int64": int64(math.MinInt64), "Uint8": uint8(200), "Uint64": uint64(math.MaxUint64), "Uintptr": uintptr(7),
		"Float32": float32(0.1), "Float64": 1e6, "Floats": []float64{0, 0.1, 1e20, 1e21, 1e-6, 1e-7}, "Number": json.Number("1.00"),
		"Zeros": zeros{private: "p"}, "PointerToZeros": &zeros{}, "Omitted": omitted{}, "OmittedEmpty": omitted{Empty: []int{}, EmptyNot: []int{}, Map: map[string]int{}, ByNumber: map[int]string{}},
		"Set": omitted{
			Bool: true, Int: 1, Text: "<a>", Struct: zeros{Int: 3}, Zero: inner{"z"}, Empty: []int{0}, EmptyNot: []int{1}, Map: map[string]int{"z": 0, "a": 1},
			Any: inner{"any"}, Time: metav1.NewTime(at), Duration: metav1.Duration{Duration: time.Second}, Quantity: resource.MustParse("1000m"),
			Port: intstr.FromString("http"), Float: 2.5e10, Array: [2]int{1, 0}, Raw: json.RawMessage(`{ "b":1.0, "a":null }`), ByNumber: map[int]string{2: "b", 10: "a"},
		},
		"Times":       []metav1.Time{metav1.NewTime(at), {}},
		"MicroTime":   metav1.NewMicroTime(at),
		"GoTime":      at,
		"Durations":   []time.Duration{time.Second},
		"Ports":       []intstr.IntOrString{{}, intstr.FromInt32(80), intstr.FromString("")},
		"Quantities":  []resource.Quantity{{}, resource.MustParse("0"), resource.MustParse("1500m"), resource.MustParse("1Gi"), resource.MustParse("1.5Gi"), resource.MustParse("512"), resource.MustParse("1e3"), resource.MustParse("100000000000000000000000000000000"), resource.MustParse("0.1Ki"), *resource.NewQuantity(2048, resource.BinarySI), *resource.NewQuantity(2048, resource.DecimalSI), *resource.NewQuantity(-2048, resource.BinarySI)},
		"Resources":   corev1.ResourceList{"cpu": resource.MustParse("0.5"), "memory": resource.MustParse("64Mi")},
		"MapOfAny":    map[string]any{"null": nil, "deep": map[string]any{"null": nil, "list": []any{nil, 1, "x", 1.0}}, "struct": zeros{}, "quantity": resource.MustParse("1000m"), "empty": map[string]any{}},
		"ListOfAny":   []any{nil, 1, int64(1), 1.0, 1e21, "x", []string(nil), inner{}, &inner{}, json.Number("1e2")},
		"MapOfNil":    map[string]*int{"a": nil, "b": new(0)},
		"MapOfLists":  map[string][]string{"nil": nil, "empty": {}, "one": {"x"}},
		"MapOfBytes":  map[string][]byte{"nil": nil, "empty": {}, "\n": {1}},
		"NamedKeys":   map[namedText]namedText{"b": "1", "a": "2", "\"": "3", "\n": "4"},
		"NumberKeys":  map[int]string{2: "b", 10: "a"},
		"AddressKeys": map[netip.Addr]string{netip.MustParseAddr("10.0.0.1"): "a"},
		"Embedded": struct {
			embeddedToRecord
			Hidden int `json:"hidden"`
		}{embeddedToRecord{"i", "h"}, 5},
		"EmbeddedEmpty":   struct{ embeddedToRecord }{},
		"EmbeddedPointer": struct{ *embeddedToRecord }{&embeddedToRecord{"i", "h"}},
		"EmbeddedNamed": struct {
			embeddedToRecord `json:"named"`
		}{embeddedToRecord{"i", "h"}},
		"NumberAsText": struct {
			N int `json:"n,string"`
			M inner
		}{5, inner{}},
		"ListOfStructs":   []inner{{}, {"x"}},
		"ListOfPointers":  []*inner{nil, {}, {"x"}},
		"PointerPointer":  new(new("x")),
		"Array":           [3]string{"a", "", "c"},
		"ArrayOfBytes":    [3]byte{1, 2, 3},
		"Recursive":       recursiveToRecord{Name: "a", Next: &recursiveToRecord{List: []recursiveToRecord{{}, {Name: "b"}}}, Map: map[string]namedText{"k": ""}},
		"EmptyStruct":     struct{}{},
		"Raw":             runtime.RawExtension{Raw: []byte(`{"z": 1.50, "a": [1e3, null, {"x": null}], "t": "\n<\u2028"}`)},
		"RawNull":         []runtime.RawExtension{{}, {Raw: []byte("null")}},
		"Interfaces":      []fmt.Stringer{nil, &metav1.Time{Time: at}},
		"UID":             types.UID("u"),
		"Versions":        [][3]string{{"c", "", ""}, {"s", "u", "1"}}, // as ownedresources.SetHash hashes objects
		"ConfigMap":       &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "c", CreationTimestamp: metav1.NewTime(at)}, Data: map[string]string{"config.yaml": "a: 1\nb: \"<x>\"\n"}, BinaryData: map[string][]byte{"b": {0, 255}}},
		"DeploymentValue": appsv1.Deployment{Spec: appsv1.DeploymentSpec{Replicas: new(int32(0))}, Status: appsv1.DeploymentStatus{Replicas: 1}},
		"Unstructured":    unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "X", "spec": map[string]any{"f": 1e6, "n": nil, "t": "<\n"}}},
		"Objects":         []client.Object{&corev1.Service{Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}, nil},
		"FieldsV1":        metav1.NewFieldsV1(`{"f:a":{}}`),
		"Condition":       metav1.Condition{Type: "Ready", LastTransitionTime: metav1.NewTime(at)},
	}
}
