package applyschema

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

func builtInSchema(t *testing.T, kind schema.GroupVersionKind) Schema {
	t.Helper()
	s, err := BuiltIn.Of(kind)
	require.NoError(t, err)
	return s
}

func tree(t *testing.T, text string) map[string]any {
	t.Helper()
	var m map[string]any
	require.NoError(t, yaml.Unmarshal([]byte(text), &m))
	return m
}

var (
	deploymentKind = appsv1.SchemeGroupVersion.WithKind("Deployment")
	serviceKind    = corev1.SchemeGroupVersion.WithKind("Service")
	customKind     = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Custom"}
)

func TestForeign(t *testing.T) {
	const pod = "{spec: {strategy: {type: Recreate}, template: {spec: {containers: [{name: web, ports: [{containerPort: 80}]}]}}}}"
	const live = `{spec: {strategy: {type: Recreate, rollingUpdate: {maxSurge: 1}}, selector: {matchLabels: {a: b}}, template: {spec: {containers: [
		{name: mesh, ports: [{containerPort: 81, protocol: TCP}]},
		{name: web, image: x, ports: [{containerPort: 80, protocol: TCP, name: http}, {containerPort: 82, protocol: TCP}]}]}}}}`
	containers := []Step{"spec", "template", "spec", "containers"}
	at := func(steps ...Step) []Step { return append(append([]Step{}, containers...), steps...) }
	tests := map[string]struct {
		reason     string
		kind       schema.GroupVersionKind
		want, have string
		at         []Step
		found      [][]Step
	}{
		"Field":          {reason: "The field itself is not desired.", at: []Step{"spec", "strategy", "rollingUpdate"}, found: [][]Step{{"spec", "strategy", "rollingUpdate"}}},
		"Sibling":        {reason: "A field of the struct is not desired.", at: []Step{"spec", "strategy"}, found: [][]Step{{"spec", "strategy", "rollingUpdate"}}},
		"Desired":        {reason: "A desired field is not foreign.", at: []Step{"spec", "strategy", "type"}},
		"InForeignItem":  {reason: "The innermost item goes, and not the whole container.", at: at(0, "ports", 0, "hostPort"), found: [][]Step{at(0, "ports", 0)}},
		"InForeignField": {reason: "There is no such field.", at: at(1, "ports", 0, "hostPort")},
		"ItemOfOurList":  {reason: "An item of others in a list of ours.", at: at(1, "ports"), found: [][]Step{at(1, "ports", 1)}},
		"FieldsOfItem":   {reason: "Fields of our item, but no lists in it.", at: at(1), found: [][]Step{at(1, "image")}},
		"Items":          {reason: "A container of others.", at: containers, found: [][]Step{at(0)}},
		"AtomicForeign":  {reason: "A label selector is one value.", at: []Step{"spec", "selector", "matchLabels", "a"}, found: [][]Step{{"spec", "selector"}}},
		"AtomicList": {
			reason: "Without a schema a list is one value.", kind: customKind,
			want: "{spec: {a: [1]}}", have: "{spec: {a: [1, 2], b: [3]}}", at: []Step{"spec", "a", 1},
		},
		"ForeignAtomicList": {
			reason: "An item of an atomic list goes with the list.", kind: customKind,
			want: "{spec: {a: [1]}}", have: "{spec: {a: [1, 2], b: [3]}}", at: []Step{"spec", "b", 0}, found: [][]Step{{"spec", "b"}},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if tc.want == "" {
				tc.kind, tc.want, tc.have = deploymentKind, pod, live
			}
			found := builtInSchema(t, tc.kind).Foreign(tree(t, tc.want), tree(t, tc.have), tc.at)
			if diff := cmp.Diff(tc.found, found); diff != "" {
				t.Errorf("%s (-want +got)\n%s", tc.reason, diff)
			}
		})
	}
}

func TestDuplicate(t *testing.T) {
	tests := map[string]struct {
		reason string
		kind   schema.GroupVersionKind
		tree   string
		want   string
	}{
		"None":            {reason: "The protocol is part of the key.", kind: serviceKind, tree: "{spec: {ports: [{port: 53}, {port: 53, protocol: UDP}]}}"},
		"DefaultedKey":    {reason: "The protocol is defaulted.", kind: serviceKind, tree: "{spec: {ports: [{port: 53}, {port: 53, protocol: TCP}]}}", want: "spec.ports[port=53,protocol=TCP]"},
		"Set":             {reason: "A set has each value once.", kind: serviceKind, tree: "{metadata: {finalizers: [a, b, a]}}", want: "metadata.finalizers[a]"},
		"AtomicList":      {reason: "A list without keys may repeat.", kind: serviceKind, tree: "{spec: {externalIPs: [a, a]}}"},
		"WithoutASchema":  {reason: "Lists are atomic.", kind: customKind, tree: "{spec: {items: [{name: a}, {name: a}]}}"},
		"InAnItem":        {reason: "Items may have lists.", kind: deploymentKind, tree: "{spec: {template: {spec: {containers: [{name: a, env: [{name: X}, {name: X}]}]}}}}", want: "spec.template.spec.containers[name=a].env[name=X]"},
		"NotInAnAtomic":   {reason: "Inside an atomic list nothing is merged.", kind: deploymentKind, tree: "{spec: {template: {spec: {tolerations: [{key: a}, {key: a}]}}}}"},
		"VolumeMountPath": {reason: "The key is that of the schema.", kind: deploymentKind, tree: "{spec: {template: {spec: {containers: [{name: a, volumeMounts: [{name: x, mountPath: /a}, {name: y, mountPath: /a}]}]}}}}", want: "spec.template.spec.containers[name=a].volumeMounts[mountPath=/a]"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, tc.want, builtInSchema(t, tc.kind).Duplicate(tree(t, tc.tree)), tc.reason)
		})
	}
}

// TestIdentity checks that identity returns the same string for two values if and only if the values are equal.
func TestIdentity(t *testing.T) {
	values := []any{nil, "", "80", "null", true, false, "true", 80, int64(80), 80.0, 80.5, json.Number("80"), json.Number("80.5"), json.Number("8e1"),
		uint64(math.MaxUint64), 1e300, -80, map[string]any{}, []any{}}
	for _, a := range values {
		for _, b := range values {
			x, xOK := scalarIdentity(a)
			y, yOK := scalarIdentity(b)
			require.Equal(t, SameScalar(a, b, false), xOK && yOK && x == y, "%T %v and %T %v", a, a, b, b)
		}
	}
}

// BenchmarkDuplicate measures two lists. The larger one has ten times as many items, and takes ten times as long.
func BenchmarkDuplicate(b *testing.B) {
	s, err := BuiltIn.Of(deploymentKind)
	require.NoError(b, err)
	for _, n := range []int{1_000, 10_000} {
		env := make([]any, n)
		for i := range env {
			env[i] = map[string]any{"name": fmt.Sprint("V", i)}
		}
		container := map[string]any{"name": "web", "env": env}
		tree := map[string]any{"spec": map[string]any{"template": map[string]any{"spec": map[string]any{"containers": []any{container}}}}}
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				require.Empty(b, s.Duplicate(tree))
			}
		})
	}
}

func TestHugeQuantity(t *testing.T) {
	tests := map[string]struct {
		reason, quantity string
		huge             bool
	}{
		"Plain":    {"It is usual.", "2", false},
		"Milli":    {"It has a suffix.", "1500m", false},
		"Binary":   {"It has a suffix.", "10Gi", false},
		"Exa":      {"E is a suffix too, without a number behind it.", "8E", false},
		"Exbi":     {"So is Ei.", "7Ei", false},
		"Exponent": {"Nobody writes that, and the server takes it.", "1e30", false},
		"Negative": {"The exponent has a sign.", "1e-9", false},
		"Huge":     {"The server computes for half a minute.", "1e999999999", true},
		"Tiny":     {"So it does for small ones.", "1E-999999999", true},
		"NoNumber": {"The exponent fits no integer.", "1e99999999999999999999", true},
		"Long":     {"A long number costs too.", strings.Repeat("9", 65), true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			want := map[bool]string{true: "spec.template.spec.containers[name=a].resources.limits[cpu]"}[tc.huge]
			have := tree(t, "{spec: {template: {spec: {containers: [{name: a, image: 1e999999999, resources: {limits: {cpu: "+strconv.Quote(tc.quantity)+"}}}]}}}}")
			require.Equal(t, want, builtInSchema(t, deploymentKind).HugeQuantity(have), tc.reason)
		})
	}
	claim := tree(t, "{spec: {resources: {requests: {storage: 1e999999999}}}}")
	require.Equal(t, "spec.resources.requests[storage]", builtInSchema(t, corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim")).HugeQuantity(claim))
}

func TestKeyless(t *testing.T) {
	account := corev1.SchemeGroupVersion.WithKind("ServiceAccount")
	tests := map[string]struct {
		reason string
		kind   schema.GroupVersionKind
		tree   string
		want   [][]Step
	}{
		"Keyless":    {reason: "The name is the key.", kind: account, tree: "{secrets: [{name: a}, {namespace: x}, {}]}", want: [][]Step{{"secrets", 1}, {"secrets", 2}}},
		"Default":    {reason: "Most keys have a default.", kind: deploymentKind, tree: "{spec: {template: {spec: {containers: [{env: [{value: b}]}]}}}}"},
		"Set":        {reason: "A value of a set is its own key.", kind: serviceKind, tree: "{metadata: {finalizers: [a, null]}}", want: [][]Step{{"metadata", "finalizers", 1}}},
		"AtomicList": {reason: "Its items have no keys.", kind: account, tree: "{imagePullSecrets: [{}]}"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, tc.want, builtInSchema(t, tc.kind).Keyless(tree(t, tc.tree)), tc.reason)
		})
	}
}

func TestWithout(t *testing.T) {
	before := tree(t, "{a: [{n: 0}, {n: 1}, {n: 2}, {n: 3}], b: {c: x, d: y}}")
	removed := [][]Step{{"a", 0}, {"a", 2}, {"b", "c"}}
	after := Without(before, removed)
	require.Empty(t, cmp.Diff(any(tree(t, "{a: [{n: 1}, {n: 3}], b: {d: y}}")), after))
	require.Empty(t, cmp.Diff(tree(t, "{a: [{n: 0}, {n: 1}, {n: 2}, {n: 3}], b: {c: x, d: y}}"), before), "it is a copy")
	for i, want := range []int{1, 3} {
		require.Equal(t, []Step{"a", want, "n"}, PathBefore(before, removed, []Step{"a", i, "n"}))
		require.Equal(t, At(before, []Step{"a", want, "n"}), At(after, []Step{"a", i, "n"}))
	}
}

func TestFillEmpty(t *testing.T) {
	want := tree(t, "{spec: {subject: {}, list: [], deep: {a: {}}, kept: {}}}")
	have := tree(t, "{spec: {subject: null, list: null, deep: null, kept: {theirs: x}}}")
	builtInSchema(t, customKind).FillEmpty(want, have)
	require.Empty(t, cmp.Diff(tree(t, "{spec: {subject: {}, list: [], deep: {a: {}}, kept: {theirs: x}}}"), have))
}
