package compare

import (
	"bytes"
	"encoding/json"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/randfill"

	"github.com/opblocks/opblocks/internal/applyschema"
)

func FuzzDeployment(f *testing.F) {
	fuzz(f, func() runtime.Object { return &appsv1.Deployment{} })
}

func FuzzService(f *testing.F) {
	fuzz(f, func() runtime.Object { return &corev1.Service{} })
}

func FuzzNetworkPolicy(f *testing.F) {
	fuzz(f, func() runtime.Object { return &networkingv1.NetworkPolicy{} })
}

// fuzz fills objects of a type at random, valid or not, and checks for each that
//
//   - it covers a copy of itself, and Covers and Differences agree;
//   - AppendJSON writes what encoding/json writes, except for the rules in doc.go;
//   - if a value is changed, both Typed and Untyped find a difference.
func fuzz(f *testing.F, empty func() runtime.Object) {
	const seeds, length = 60, 3000
	random := rand.New(rand.NewPCG(1, 2))
	for i := range seeds {
		data := make([]byte, i*length/seeds)
		for j := range data {
			data[j] = byte(random.Uint32())
		}
		f.Add(data, uint(random.Uint32()))
	}
	p := compiled(f, empty())
	kinds, _, err := scheme.Scheme.ObjectKinds(empty())
	require.NoError(f, err)
	untyped, err := CompileUntyped(kinds[0], applyschema.BuiltIn)
	require.NoError(f, err)

	f.Fuzz(func(t *testing.T, data []byte, which uint) {
		want, other := empty(), empty()
		filler := randfill.NewFromGoFuzz(data).NilChance(0.6).NumElements(1, 3).Funcs(fillers...)
		filler.Fill(want)
		filler.Fill(other)

		require.Empty(t, p.Differences(want, want.DeepCopyObject()), "an object covers itself")
		require.True(t, p.Covers(want, want.DeepCopyObject()), "an object covers itself")
		require.Equal(t, p.Covers(want, other), len(p.Differences(want, other)) == 0, "Covers and Differences agree")

		encoded, err := p.AppendJSON(nil, want)
		require.NoError(t, err)
		sent := decoded(t, encoded)
		if diff := cmp.Diff(expected(t, want), sent); diff != "" {
			t.Fatalf("-encoding/json +AppendJSON:\n%s", diff)
		}
		require.Empty(t, untyped.Differences(asUnstructured(sent), asUnstructured(sent)), "an unstructured object covers itself")

		paths := leaves(sent)
		for i := range min(uint(len(paths)), 10) {
			at := paths[(which+i*7919)%uint(len(paths))]
			have, changed := empty(), changedAt(sent, at).(map[string]any)
			b, err := json.Marshal(changed)
			require.NoError(t, err)
			require.NoError(t, json.Unmarshal(b, have), "%v", at)
			require.False(t, p.Covers(want, have), "%v changed", at)
			require.NotEmpty(t, p.Differences(want, have), "%v changed", at)
			require.False(t, untyped.Covers(asUnstructured(sent), asUnstructured(changed)), "%v changed, unstructured", at)
		}
	})
}

// fillers fill types for which random values would have no JSON form.
var fillers = []any{
	func(q *resource.Quantity, c randfill.Continue) {
		*q = *resource.NewMilliQuantity(int64(c.Uint32()), []resource.Format{resource.DecimalSI, resource.BinarySI}[c.Intn(2)])
	},
	func(v *intstr.IntOrString, c randfill.Continue) {
		if *v = intstr.FromInt32(int32(c.Uint32())); c.Bool() {
			*v = intstr.FromString("p" + c.String(5))
		}
	},
	func(t *metav1.Time, c randfill.Continue) { *t = metav1.NewTime(time.Unix(int64(c.Uint32()), 0)) },
	func(r *metav1.FieldsV1, _ randfill.Continue) { r.SetRawBytes([]byte(`{}`)) },
}

// expected returns what encoding/json writes for an object, changed by the rules in doc.go.
func expected(t *testing.T, obj runtime.Object) map[string]any {
	t.Helper()
	b, err := json.Marshal(obj)
	require.NoError(t, err)
	content := decoded(t, b)
	for _, field := range serverOwned {
		delete(content, field)
	}
	metadata, _ := content["metadata"].(map[string]any)
	for _, field := range serverOwnedMetadata {
		delete(metadata, field)
	}
	return withoutUnset(reflect.ValueOf(obj).Elem(), content).(map[string]any)
}

// withoutUnset removes nulls, `{}` of struct fields that are not pointers, and target ports of 0.
func withoutUnset(v reflect.Value, content any) any {
	switch v.Kind() {
	case reflect.Pointer:
		return withoutUnset(v.Elem(), content)
	case reflect.Slice:
		if items, ok := content.([]any); ok {
			for i := range items {
				items[i] = withoutUnset(v.Index(i), items[i])
			}
		}
	case reflect.Map:
		fields, _ := content.(map[string]any)
		for _, k := range v.MapKeys() {
			fields[k.String()] = withoutUnset(v.MapIndex(k), fields[k.String()])
		}
	case reflect.Struct:
		fields, ok := content.(map[string]any)
		if !ok {
			return content
		}
		for f, field := range v.Fields() {
			tag := f.Tag.Get("json")
			name, options, _ := strings.Cut(tag, ",")
			if f.Anonymous && name == "" {
				withoutUnset(field, content)
				continue
			}
			value, there := fields[name]
			if !there {
				continue
			}
			if value != nil {
				value = withoutUnset(field, value)
			}
			fields[name] = value
			_, isMap := value.(map[string]any)
			port, isPort := reflect.TypeAssert[intstr.IntOrString](field)
			if value == nil || field.Kind() == reflect.Struct && isMap && len(value.(map[string]any)) == 0 ||
				isPort && port == (intstr.IntOrString{}) && strings.Contains(options, "omitempty") {
				delete(fields, name)
			}
		}
	}
	return content
}

func decoded(t *testing.T, b []byte) map[string]any {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var content map[string]any
	require.NoError(t, d.Decode(&content), "%s", b)
	return content
}

func asUnstructured(content map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: content}
}

// leaves returns the paths of all scalars in a tree.
func leaves(content any) (paths [][]any) {
	within := func(step, v any) {
		for _, p := range leaves(v) {
			paths = append(paths, append([]any{step}, p...))
		}
	}
	switch v := content.(type) {
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			within(k, v[k])
		}
	case []any:
		for i, item := range v {
			if _, text := item.(string); text && count(v, item) > 1 {
				continue // the list has the text twice: if the list is a set, the other one would still cover it
			}
			within(i, item)
		}
	default:
		paths = append(paths, nil)
	}
	return paths
}

// count returns how often a text is in a list.
func count(list []any, item any) (n int) {
	for _, other := range list {
		if text, ok := other.(string); ok && text == item {
			n++
		}
	}
	return n
}

// changedAt returns a copy of a tree with another value of the same type at the path.
func changedAt(content any, at []any) any {
	if len(at) > 0 {
		switch v := content.(type) {
		case map[string]any:
			v = maps.Clone(v)
			v[at[0].(string)] = changedAt(v[at[0].(string)], at[1:])
			return v
		case []any:
			v = slices.Clone(v)
			v[at[0].(int)] = changedAt(v[at[0].(int)], at[1:])
			return v
		}
	}
	switch v := content.(type) {
	case bool:
		return !v
	case json.Number:
		if v == "1" {
			return json.Number("2")
		}
		return json.Number("1")
	case string:
		if _, err := time.Parse(time.RFC3339, v); err == nil {
			return "2001-02-03T04:05:06Z"
		}
		return "1" + v
	}
	return content
}
