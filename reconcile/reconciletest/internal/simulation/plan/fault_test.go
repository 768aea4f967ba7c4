package plan

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/kinds"
)

func TestFormatFaults(t *testing.T) {
	faults := []Fault{
		{kinds.CrashAfter, "create Deployment default/web", 1},
		{kinds.ConnectionRefused, "effect create user 'ann': admin #2", 12},
		{kinds.MissedEvent, "deleted ConfigMap default/web", 3},
	}
	text := FormatFaults(faults)
	assert.Equal(t, "crash after: create Deployment default/web #1; connection refused at: effect create user 'ann': admin #2 #12; "+
		"missed event of: deleted ConfigMap default/web #3", text)
	again, err := ParseFaults(text)
	require.NoError(t, err)
	assert.Equal(t, faults, again, "what is printed can be replayed")
}

func TestParseFaultsRejects(t *testing.T) {
	tests := map[string]string{
		"NoKind":      "create Deployment default/web #1",
		"UnknownKind": "earthquake at: create Deployment default/web #1",
		"NoNumber":    "crash after: create Deployment default/web",
		"NotANumber":  "crash after: create Deployment default/web #one",
	}
	for name, text := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := ParseFaults(text)
			assert.ErrorContains(t, err, "fault", "it says what is wrong")
		})
	}
}
