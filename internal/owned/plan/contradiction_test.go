package plan

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/opblocks/opblocks/internal/applyschema"
)

func TestCausesOfAStatefulSet(t *testing.T) {
	tree := func(kind string, templates []any, volumes ...string) map[string]any {
		var items []any
		for _, name := range volumes {
			items = append(items, map[string]any{"name": name})
		}
		return map[string]any{"apiVersion": "apps/v1", "kind": kind, "spec": map[string]any{
			"volumeClaimTemplates": templates,
			"template":             map[string]any{"spec": map[string]any{"volumes": items}},
		}}
	}
	template := func(name string) any { return map[string]any{"metadata": map[string]any{"name": name}} }
	at := func(index int) []applyschema.Step {
		return []applyschema.Step{"spec", "template", "spec", "volumes", index, "configMap"}
	}
	tests := map[string]struct {
		reason string
		tree   map[string]any
		field  string
		want   [][]applyschema.Step
	}{
		"NoTemplates": {
			reason: "Nothing is put before the volumes of the pods.",
			tree:   tree("StatefulSet", nil, "a", "b"), field: "spec.template.spec.volumes[1].configMap", want: [][]applyschema.Step{at(1)},
		},
		"Templates": {
			reason: "One volume for each template comes first.",
			tree:   tree("StatefulSet", []any{template("x"), template("y")}, "a", "b"), field: "spec.template.spec.volumes[3].configMap",
			want: [][]applyschema.Step{at(1)},
		},
		"TemplatesOfOneName": {
			reason: "Two templates of one name are one volume.",
			tree:   tree("StatefulSet", []any{template("x"), template("x")}, "a", "b"), field: "spec.template.spec.volumes[2].configMap",
			want: [][]applyschema.Step{at(1)},
		},
		"ReplacedVolumes": {
			reason: "A template's volume replaces that of the pods, wherever it is.",
			tree:   tree("StatefulSet", []any{template("x"), template("y")}, "x", "a", "y", "b"), field: "spec.template.spec.volumes[3].configMap",
			want: [][]applyschema.Step{at(3)},
		},
		"VolumeOfATemplate": {
			reason: "The pods do not have this volume, and the order of the templates' volumes is random.",
			tree:   tree("StatefulSet", []any{template("x")}, "a"), field: "spec.template.spec.volumes[0].configMap",
		},
		"BeyondTheLast": {
			reason: "There is no such volume.",
			tree:   tree("StatefulSet", []any{template("x")}, "a"), field: "spec.template.spec.volumes[2].configMap",
		},
		"WholeList": {
			reason: "The path has no index.",
			tree:   tree("StatefulSet", []any{template("x")}, "a"), field: "spec.template.spec.volumes",
			want: [][]applyschema.Step{{"spec", "template", "spec", "volumes"}},
		},
		"AnotherKind": {
			reason: "Only the StatefulSet of Kubernetes is validated so.",
			tree:   tree("Deployment", []any{template("x")}, "a", "b"), field: "spec.template.spec.volumes[1].configMap", want: [][]applyschema.Step{at(1)},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			refusal := apierrors.NewInvalid(appsv1.SchemeGroupVersion.WithKind("StatefulSet").GroupKind(), "web", field.ErrorList{
				{Type: field.ErrorTypeForbidden, Field: tc.field, Detail: "may not specify more than 1 volume type"},
			})
			if d := cmp.Diff(tc.want, CausesOf(refusal, tc.tree)); d != "" {
				t.Errorf("%s (-want, +got)\n%s", tc.reason, d)
			}
		})
	}
}
