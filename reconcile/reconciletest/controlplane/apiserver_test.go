package controlplane

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestMayStartLater(t *testing.T) {
	tests := map[string]struct {
		reason, log string
		want        bool
	}{
		"PortTaken": {
			"another process took the port after it was found to be free",
			`E "command failed" err="failed to create listener: failed to listen on 127.0.0.1:41903: listen tcp 127.0.0.1:41903: bind: address already in use"`, true,
		},
		"HookTimedOut": {
			"the machine was busy",
			`F hooks.go:203] PostStartHook "start-service-ip-repair-controllers" failed: unable to perform initial IP and Port allocation check`, true,
		},
		"Flag": {"it would fail again", "Error: unknown flag: --no-such-flag", false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, tc.want, mayStartLater([]byte(tc.log)), tc.reason)
		})
	}
}
