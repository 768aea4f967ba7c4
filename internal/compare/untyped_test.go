package compare

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/opblocks/opblocks/internal/applyschema"
)

func TestUntypedSendsNulls(t *testing.T) {
	const tree = "{metadata: {labels: null, annotations: {a: null}}, spec: {a: null, replicas: null, list: [{b: null}]}}"
	tests := map[string]struct {
		reason string
		kind   schema.GroupVersionKind
		want   string
	}{
		"WithoutASchema": {
			reason: "A null may be a value.", kind: schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Gadget"},
			want: `{"metadata":{"annotations":{}},"spec":{"a":null,"list":[{"b":null}],"replicas":null}}`,
		},
		"BuiltIn": {
			reason: "The API server decodes it into a Go type, where null is unset.", kind: appsv1.SchemeGroupVersion.WithKind("Deployment"),
			want: `{"metadata":{"annotations":{}},"spec":{"list":[{}]}}`,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			u, err := CompileUntyped(tc.kind, applyschema.BuiltIn)
			require.NoError(t, err)
			encoded, err := u.AppendJSON(nil, unstructuredOf(decodedYAML(t, tree)))
			require.NoError(t, err)
			require.Equal(t, tc.want, string(encoded), tc.reason)
		})
	}
}

// Without a schema it is not known which nulls the API server stores. So a null is not a difference, not even inside of an atomic value.
func TestUntypedIgnoresNulls(t *testing.T) {
	u, err := CompileUntyped(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Gadget"}, applyschema.BuiltIn)
	require.NoError(t, err)
	object := func(item map[string]any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"list": []any{item}}}}
	}
	require.Empty(t, u.Differences(object(map[string]any{"a": nil, "b": "x"}), object(map[string]any{"b": "x"})))
}

func TestUntypedCoversZeros(t *testing.T) {
	tests := map[string]struct {
		reason     string
		want, have string
		covers     bool
	}{
		"Number":          {reason: "No pointer.", want: "{spec: {minReadySeconds: 0}}", have: "{spec: {}}", covers: true},
		"OtherNumber":     {reason: "Another value.", want: "{spec: {minReadySeconds: 0}}", have: "{spec: {minReadySeconds: 3}}"},
		"Pointer":         {reason: "A pointer to zero is stored.", want: "{spec: {replicas: 0}}", have: "{spec: {}}"},
		"Map":             {reason: "An empty map is stored as none.", want: "{spec: {template: {spec: {nodeSelector: {}}}}}", have: "{spec: {template: {spec: {}}}}", covers: true},
		"StructPointer":   {reason: "An empty struct behind a pointer is stored.", want: "{spec: {template: {spec: {volumes: [{name: a, emptyDir: {}}]}}}}", have: "{spec: {template: {spec: {volumes: [{name: a}]}}}}"},
		"InItem":          {reason: "Items of lists are walked.", want: "{spec: {template: {spec: {containers: [{name: a, args: []}]}}}}", have: "{spec: {template: {spec: {containers: [{name: a}]}}}}", covers: true},
		"EmptyItem":       {reason: "An item without a field is an item: this toleration tolerates everything.", want: "{spec: {template: {spec: {tolerations: [{}]}}}}", have: "{spec: {template: {spec: {}}}}"},
		"BoolPointer":     {reason: "It may mean the opposite of none.", want: "{spec: {template: {spec: {automountServiceAccountToken: false}}}}", have: "{spec: {template: {spec: {}}}}"},
		"InlineStruct":    {reason: "A volume's sources are embedded.", want: "{spec: {template: {spec: {volumes: [{name: a, secret: {secretName: \"\"}}]}}}}", have: "{spec: {template: {spec: {volumes: [{name: a, secret: {}}]}}}}", covers: true},
		"UnknownField":    {reason: "Nothing is known of it.", want: "{spec: {unknown: 0}}", have: "{spec: {}}"},
		"AnnotationEmpty": {reason: "A key of a map is stored.", want: "{metadata: {annotations: {a: \"\"}}}", have: "{metadata: {annotations: {}}}"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			u, err := CompileUntyped(appsv1.SchemeGroupVersion.WithKind("Deployment"), applyschema.BuiltIn)
			require.NoError(t, err)
			want, have := unstructuredOf(decodedYAML(t, tc.want)), unstructuredOf(decodedYAML(t, tc.have))
			require.Equal(t, tc.covers, u.Covers(want, have), tc.reason)
			require.Equal(t, tc.covers, len(u.Differences(want, have)) == 0)
		})
	}
}

// A float64 cannot hold all large integers: as float64, 2^53 and the next integer would be equal.
func TestUntypedIntegersAboveTwoToTheFiftyThird(t *testing.T) {
	u, err := CompileUntyped(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Gadget"}, applyschema.BuiltIn)
	require.NoError(t, err)
	object := func(n any) *unstructured.Unstructured {
		return unstructuredOf(map[string]any{"spec": map[string]any{"n": n, "list": []any{n}}})
	}
	const n = int64(1)<<53 + 1
	require.True(t, u.Covers(object(n), object(n)))
	require.False(t, u.Covers(object(n), object(n-1)))
	require.True(t, u.Covers(object(n), object(json.Number("9007199254740993"))))
	require.False(t, u.Covers(object(n), object(json.Number("9007199254740992"))))
	require.Equal(t, []Difference{
		{Path: "spec.list[0]", Want: "9007199254740993", Have: "9007199254740992"},
		{Path: "spec.n", Want: "9007199254740993", Have: "9007199254740992"},
	}, u.Differences(object(n), object(n-1)))
	encoded, err := u.AppendJSON(nil, object(n))
	require.NoError(t, err)
	require.Equal(t, `{"spec":{"list":[9007199254740993],"n":9007199254740993}}`, string(encoded))
}

func unstructuredOf(content map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: content}
}

func decodedYAML(t *testing.T, text string) (content map[string]any) {
	t.Helper()
	require.NoError(t, yaml.Unmarshal([]byte(text), &content))
	return content
}
