package applyschema

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// TestNullEmptied expects null in place of each struct and list that has become empty because
// fields were removed.
func TestNullEmptied(t *testing.T) {
	before := tree(t, "{spec: {emptied: {a: x}, list: [x], deep: {a: {b: x}}, left: {a: x, b: y}, wasEmpty: {}}}")
	after := tree(t, "{spec: {emptied: {}, list: [], deep: {a: {}}, left: {b: y}, wasEmpty: {}, added: {}}}")
	nullEmptied(builtInSchema(t, customKind), before, after)
	require.Empty(t, cmp.Diff(tree(t, "{spec: {emptied: null, list: null, deep: {a: null}, left: {b: y}, wasEmpty: {}, added: {}}}"), after))

	deployment := schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	before = tree(t, "{spec: {template: {spec: {containers: [{name: first, livenessProbe: {exec: {command: [x]}}}, {name: second, command: [x], livenessProbe: {exec: {command: [x]}}}]}}}}")
	after = tree(t, "{spec: {template: {spec: {containers: [{name: second, command: [], livenessProbe: {exec: {}}}]}}}}")
	nullEmptied(builtInSchema(t, deployment), before, after)
	require.Empty(t, cmp.Diff(tree(t, "{spec: {template: {spec: {containers: [{name: second, command: [], livenessProbe: {exec: null}}]}}}}"), after), "items are matched by their keys, and an atomic list is empty because it was sent so")
}
