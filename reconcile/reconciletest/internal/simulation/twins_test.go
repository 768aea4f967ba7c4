package simulation

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestMentions(t *testing.T) {
	tests := map[string]struct {
		reason, text string
		want         bool
	}{
		"End":       {"a request ends with the name", "one more pass still had to create ClusterRole shop-web", true},
		"Line":      {"fields follow in the next line", "update ClusterRole shop-web:\n  rules", true},
		"List":      {"requests are separated by commas", "delete ClusterRole shop-web, create ClusterRole shop-zoo", true},
		"Longer":    {"another object has a longer name", "create ClusterRole shop-web-2", false},
		"Namespace": {"an object of a namespace has another name", "create ClusterRole shop-web/a", false},
	}
	for name, tc := range tests {
		assert.Equal(t, tc.want, mentions(tc.text, "ClusterRole shop-web"), "%s: %s", name, tc.reason)
	}
}
