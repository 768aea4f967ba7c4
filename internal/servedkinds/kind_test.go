package servedkinds

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/types"
)

func TestDecide(t *testing.T) {
	served := observation{resource: "monitors", namespaced: true}
	defined := func(uid string) observation {
		o := served
		o.definition, o.definitionKnown = types.UID(uid), true
		return o
	}
	cases := map[string]struct {
		reason     string
		phase      phase
		shown, now observation
		want       action
	}{
		"Absent":             {"a kind that is not served has no informer", idle, observation{}, observation{}, nothing},
		"Appears":            {"it is watched as soon as it is served", idle, observation{}, served, start},
		"Stays":              {"nothing has changed", running, served, served, nothing},
		"Goes":               {"no informer may retry for ever", running, served, observation{}, stop},
		"DefinitionAppears":  {"definitions are listed later than the kind is watched", running, served, defined("1"), nothing},
		"DefinitionReplaced": {"the informer may hold objects of the former one", running, defined("1"), defined("2"), stop},
		"DefinitionGone":     {"discovery lags behind the event of the deletion", running, defined("1"), defined(""), stop},
		"DefinitionUnknown":  {"the permission to watch definitions was taken away", running, defined("1"), served, nothing},
		"ResourceRenamed":    {"it is another resource", running, served, observation{resource: "probes", namespaced: true}, stop},
		"ScopeChanged":       {"it is another resource", running, served, observation{resource: "monitors"}, stop},
		"StillRead":          {"the informer is removed first", draining, observation{}, served, nothing},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, tc.want, decide(tc.phase, tc.shown, tc.now), tc.reason)
		})
	}
}
