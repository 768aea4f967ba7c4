package overlay_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/opblocks/opblocks/ownedresources/overlay"
)

// No patch causes a panic. A patch that Validate accepts can be merged, or the error is about the result of the merge.
func FuzzApply(f *testing.F) {
	for _, seed := range []string{
		``, `null`, `[]`, `{"spec": null}`, `{"$patch": "replace"}`, `{"$retainKeys": ["spec"], "spec": {}}`,
		`{"metadata": {"finalizers": ["a"], "$setElementOrder/finalizers": ["b", "a"], "labels": {"$patch": "replace", "app": "web"}}}`,
		`{"metadata": {"$deleteFromPrimitiveList/finalizers": ["a"]}}`,
		`{"spec": {"containers": [{"name": "web", "env": [{"name": "MODE", "$patch": "delete"}], "$deleteFromPrimitiveList/args": ["-g"]}]}}`,
		`{"spec": {"containers": [{"$patch": "replace"}, {"name": "a"}], "$setElementOrder/containers": [{"name": "a"}, {"name": "web"}]}}`,
		`{"spec": {"volumes": [{"$retainKeys": ["name"], "name": "data"}], "tolerations": [{"key": null}], "securityContext": {"$patch": "delete"}}}`,
		`{"spec": {"containers": [{"name": "web", "resources": {"limits": {"cpu": 1e3}}, "ports": [{"containerPort": 8080.0}]}], "overhead": {"cpu": "1e-9", "memory": 1}}}`,
	} {
		f.Add([]byte(seed))
	}
	given := template(f, base)
	unchanged := *given.DeepCopy()
	protect := overlay.Protect("spec.containers[web].name", "metadata.annotations[note]")
	f.Fuzz(func(t *testing.T, patch []byte) {
		p := &overlay.PodTemplate{Raw: patch}
		got, err := p.Apply(given, selector, protect)
		require.True(t, equality.Semantic.DeepEqual(unchanged, given), "the base was changed")
		if err != nil {
			_, ok := errors.AsType[*overlay.InvalidError](err)
			require.True(t, ok, err)
			return
		}
		again, err := p.Apply(given, selector, protect)
		require.NoError(t, err)
		require.Equal(t, encoded(t, got), encoded(t, again))
		require.Equal(t, "web", got.Labels["app"])
		_, err = p.Apply(got, selector, protect)
		require.NoError(t, err)
	})
}
