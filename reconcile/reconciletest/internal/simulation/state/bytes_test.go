package state

import (
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestBytes(t *testing.T) {
	secret := func(value string) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "u-1"}, Data: map[string][]byte{"value": []byte(value)}}
	}
	tests := map[string]struct {
		reason     string
		one, other string
		same       bool
	}{
		"Times":  {reason: "A time in a Secret is a time.", one: "since 2000-01-01T00:00:01Z", other: "since 2000-01-01T00:07:00Z", same: true},
		"UIDs":   {reason: "A UID in a Secret is a UID.", one: "owner=u-1", other: "owner=<uid of Secret web>", same: true},
		"Values": {reason: "Other values are compared.", one: "red", other: "blue"},
		"Binary": {reason: "Bytes that are not text are compared as they are.", one: "\xff\x00", other: "\xff\x01"},
		"Equal":  {reason: "Equal bytes are equal.", one: "\xff\x00", other: "\xff\x00", same: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			lines := Difference(stateOf(t, secret(tc.one)), stateOf(t, secret(tc.other)))
			assert.Equal(t, tc.same, len(lines) == 0, "%s %q", tc.reason, lines)
			for _, line := range lines {
				assert.NotContains(t, line, tc.one, "the report does not show the text")
			}
		})
	}
}
