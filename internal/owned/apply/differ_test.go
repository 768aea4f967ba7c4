package apply

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestHoldsEnvironment(t *testing.T) {
	variables := []any{map[string]any{"name": "PASSWORD", "value": "canary"}}
	for name, tc := range map[string]struct {
		reason, path string
		value        any
		want         bool
	}{
		"a variable":                {"of a container", "spec.template.spec.containers[0].env[0].value", "canary", true},
		"a variable of a map":       {"its name is the key", "spec.env.PASSWORD", "canary", true},
		"at the top":                {"a custom resource may have no spec", "env[0].value", "canary", true},
		"a map at the top":          {"a custom resource may have no spec", "env", map[string]any{"PASSWORD": "canary"}, true},
		"another name of the list":  {"charts use it", "spec.extraEnv[0].value", "canary", true},
		"variables of a kind":       {"charts use it", "spec.envVars.PASSWORD", "canary", true},
		"the whole word":            {"operators use it", "spec.environment.PASSWORD", "canary", true},
		"a container":               {"it has variables", "spec.template.spec.containers[0]", map[string]any{"name": "web", "env": variables}, true},
		"a list of containers":      {"one has variables", "spec.containers", []any{map[string]any{"name": "web"}, map[string]any{"extraEnv": variables}}, true},
		"where variables come from": {"it has names only", "spec.containers[0].envFrom[0].secretRef.name", "a", false},
		"a proxy":                   {"only its name begins the same", "spec.envoy.image", "envoy:1", false},
		"a word that ends the same": {"it is not a name of variables", "spec.denv.a", "a", false},
		"an image":                  {"it is not secret", "spec.image", "nginx:1", false},
		"an annotation":             {"its key is in brackets", "metadata.annotations[example.com/env]", "a", false},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, tc.want, holdsEnvironment(tc.path, tc.value), tc.reason)
		})
	}
}
