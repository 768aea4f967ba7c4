package plan

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// If the API server names only the whole spec in its refusal, users do not see which field cannot be changed.
func TestExplain(t *testing.T) {
	path, web := fieldpath.MakePathOrDie, fieldpath.KeyByFields("name", "web")
	image := path("spec", "template", "spec", "containers", web, "image")
	env := path("spec", "template", "spec", "containers", web, "env")
	variable := path("spec", "template", "spec", "containers", web, "env", fieldpath.KeyByFields("name", "A"))
	ttl := path("spec", "ttlSecondsAfterFinished")
	tests := map[string]struct {
		reason string
		causes []string
		wishes []fieldpath.Path
		adds   string // the added text; empty if the refusal is unchanged
	}{
		"a field": {
			"The path has the keys of the lists.", []string{"spec"}, []fieldpath.Path{image},
			`spec.template.spec.containers[name="web"].image`,
		},
		"a field outside": {
			"The API server has not refused it.", []string{"spec.template"}, []fieldpath.Path{image, ttl},
			`spec.template.spec.containers[name="web"].image`,
		},
		"a field inside of another": {
			"The outer one says it.", []string{"spec"}, []fieldpath.Path{env, variable, ttl},
			`spec.template.spec.containers[name="web"].env, spec.ttlSecondsAfterFinished`,
		},
		"two causes": {
			"Each field is named once.", []string{"spec", "spec.template"}, []fieldpath.Path{image},
			`spec.template.spec.containers[name="web"].image`,
		},
		"an item of a set": {
			"The item is a value, which may be secret.", []string{"spec"}, []fieldpath.Path{path("spec", "tokens", value.NewValueInterface("s3cret"))},
			"spec.tokens",
		},
		"many fields": {
			"A condition has no room for all.", []string{"spec"}, []fieldpath.Path{path("spec", "a"), path("spec", "b"), path("spec", "c"), path("spec", "d")},
			"spec.a, spec.b, spec.c, …",
		},
		"similar names":     {"Neither is inside of the other.", []string{"spec"}, []fieldpath.Path{path("spec", "a"), path("spec", "ab")}, "spec.a, spec.ab"},
		"no field":          {"Nothing is known.", []string{"spec.template"}, []fieldpath.Path{ttl}, ""},
		"a cause of itself": {"It says enough.", []string{"spec", "spec.template.spec.nodeSelector"}, []fieldpath.Path{image}, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var causes field.ErrorList
			for _, cause := range tc.causes {
				causes = append(causes, field.Forbidden(field.NewPath(cause), "it is immutable"))
			}
			refusal := apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "web", causes)
			got := (&Refused{wishes: fieldpath.NewSet(tc.wishes...)}).Explain(refusal)
			want := refusal.Error()
			if tc.adds != "" {
				want += " (the apply would change " + tc.adds + ")"
			}
			require.EqualError(t, got, want, tc.reason)
			require.True(t, apierrors.IsInvalid(got))
		})
	}
	t.Run("another error", func(t *testing.T) {
		cause := errors.New("the network is down")
		require.Equal(t, cause, (&Refused{wishes: fieldpath.NewSet(image)}).Explain(cause))
	})
}
