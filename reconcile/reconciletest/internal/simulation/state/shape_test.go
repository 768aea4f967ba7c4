package state

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestShape(t *testing.T) {
	tests := map[string]struct{ reason, text, want string }{
		"Number":          {"How often something happens does not count.", "it does not become quiet in 300 passes", "it does not become quiet in N passes"},
		"Suffix":          {"What is appended by chance does not count.", "delete server web-x7k2p", "delete server web-*"},
		"SuffixOfLetters": {"It may have no digit.", "delete server web-xkzpq", "delete server web-*"},
		"UUID":            {"A UUID is one name.", "create 550e8400-e29b-41d4-a716-446655440000", "create *"},
		"Counted":         {"So is a name with a number.", "create user12 of user-3", "create * of user-N"},
		"Words":           {"Words stay, and so do versions.", "update Deployment/status default/web of apps/v1beta1 and v1", "update Deployment/status default/web of apps/v1beta1 and v1"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) { assert.Equal(t, tc.want, Shape(tc.text), tc.reason) })
	}
}
