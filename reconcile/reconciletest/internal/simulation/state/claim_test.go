package state

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// If a StatefulSet is deleted before its claim is created, the claim may be missing. If the claim exists, and is missing without faults,
// that is a finding.
func TestKeptClaims(t *testing.T) {
	var with State
	require.NoError(t, json.Unmarshal([]byte(`{
		"StatefulSet default/web": {"spec": {"volumeClaimTemplates": [{"metadata": {"name": "data"}}]}},
		"PersistentVolumeClaim default/data-web-0": {"spec": {}},
		"PersistentVolumeClaim default/data-web-x": {"spec": {}},
		"PersistentVolumeClaim other/data-web-0": {"spec": {}},
		"PersistentVolumeClaim default/data-web-1": {"metadata": {"ownerReferences": [{"kind": "StatefulSet", "name": "web", "controller": true}]}}}`), &with))
	claims := Claims([]State{with})
	assert.Equal(t, map[string]string{"PersistentVolumeClaim default/data-web-0": "StatefulSet default/web"}, claims, "other claims are no such claims, or are collected")

	const claim = "PersistentVolumeClaim default/data-web-0"
	kept, none := State{claim: with[claim]}, State{}
	set := State{"StatefulSet default/web": with["StatefulSet default/web"]}
	for reason, tc := range map[string]struct {
		baseline, got State
		wrong         bool
	}{
		"the StatefulSet went before the claim was made": {baseline: kept, got: none},
		"it is not there without faults":                 {baseline: none, got: kept, wrong: true},
		"the StatefulSet exists and lacks it":            {baseline: State{claim: with[claim], "StatefulSet default/web": with["StatefulSet default/web"]}, got: set, wrong: true},
	} {
		verdict := (&References{Baseline: tc.baseline, Claims: claims}).Judge(tc.got)
		assert.Equal(t, tc.wrong, len(verdict.Wrong)+len(verdict.Timing) > 0, reason)
	}
}
