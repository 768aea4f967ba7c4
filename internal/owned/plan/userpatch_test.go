package plan

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/opblocks/opblocks/internal/applyschema"
)

func TestPodTemplateAt(t *testing.T) {
	template := map[string]any{"metadata": map[string]any{"labels": map[string]any{"app": "web"}}, "spec": map[string]any{"nodeName": "one"}}
	deployment := map[string]any{"kind": "Deployment", "spec": map[string]any{"template": template}}
	pod := map[string]any{"kind": "Pod", "metadata": template["metadata"], "spec": template["spec"]}
	tests := map[string]struct {
		reason string
		tree   map[string]any
		cause  []applyschema.Step
		want   []any // nil if the field is not in a pod template
	}{
		"Field":       {"the steps go from the template to the field", deployment, []applyschema.Step{"spec", "template", "spec", "nodeName"}, []any{"spec", "nodeName"}},
		"Label":       {"the API server leaves out the metadata of a template", deployment, []applyschema.Step{"spec", "template", "labels"}, []any{"metadata", "labels"}},
		"Pod":         {"a Pod is its own template", pod, []applyschema.Step{"spec", "nodeName"}, []any{"spec", "nodeName"}},
		"Beside":      {"the field is not in the template", deployment, []applyschema.Step{"spec", "replicas"}, nil},
		"Absent":      {"what was refused is not known", nil, []applyschema.Step{"spec", "template", "spec", "nodeName"}, nil},
		"NotTemplate": {"another kind calls another field a template", map[string]any{"kind": "Shop", "template": "plain"}, []applyschema.Step{"template"}, nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			found, at := podTemplateAt(tc.tree, tc.cause)
			require.Equal(t, tc.want, at, tc.reason)
			if tc.want == nil {
				require.Nil(t, found, tc.reason)
				return
			}
			require.Equal(t, "one", found.Spec.NodeName, tc.reason)
			require.Equal(t, map[string]string{"app": "web"}, found.Labels, tc.reason)
		})
	}
}
