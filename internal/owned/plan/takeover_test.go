package plan

import (
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/owned"
	"github.com/opblocks/opblocks/internal/record"
)

func TestTakeOverSteps(t *testing.T) {
	scaled := &appsv1.Deployment{Spec: appsv1.DeploymentSpec{Replicas: new(int32(1))}}
	unset := func(client.Object) {}
	tests := map[string]struct {
		reason             string
		last               record.LastApplied
		object             client.Object
		options            owned.Options
		migrates, releases bool
	}{
		"Applied":           {reason: "All fields are those of our last apply.", last: record.LastApplied{Method: record.ByApply}, object: &appsv1.Deployment{}},
		"Created":           {reason: "The fields of the POST have to be migrated.", last: record.LastApplied{Method: record.ByCreate}, object: &appsv1.Deployment{}, migrates: true},
		"ByOthers":          {reason: "So have those of a former manager.", last: record.LastApplied{Method: record.ByOthers}, object: &appsv1.Deployment{}, migrates: true},
		"CreateOnly":        {reason: "After the migration an apply would remove fields that are set at creation only.", last: record.LastApplied{Method: record.ByCreate}, object: &appsv1.Deployment{}, options: owned.Options{CreateOnly: unset}, migrates: true, releases: true},
		"CreateOnlyApplied": {reason: "They were released before the first apply.", last: record.LastApplied{Method: record.ByApply}, object: &appsv1.Deployment{}, options: owned.Options{CreateOnly: unset}},
		"ReplicasUnset":     {reason: "An apply would reset replicas that were sent and are not sent any more.", last: record.LastApplied{Method: record.ByApply, Replicas: true}, object: &appsv1.Deployment{}, releases: true},
		"ReplicasStillSet":  {reason: "They are sent again.", last: record.LastApplied{Method: record.ByApply, Replicas: true}, object: scaled},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			migrates, releases := TakeOverSteps(&owned.Desired{Object: tc.object, Options: &tc.options}, tc.last)
			require.Equal(t, tc.migrates, migrates, tc.reason)
			require.Equal(t, tc.releases, releases, tc.reason)
		})
	}
}
