package argocd

import (
	"testing"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// equivalent has Argo CD's health status for each status of kstatus. Argo CD has no status for an object that is being deleted.
var equivalent = map[status.Status]string{
	status.CurrentStatus: "Healthy", status.InProgressStatus: "Progressing", status.FailedStatus: "Degraded", status.TerminatingStatus: "Progressing",
}

// TestHealthIsKstatus compares the results of the page's script with kstatus. They may differ only where the page says so.
func TestHealthIsKstatus(t *testing.T) {
	tests := map[string]struct {
		reason  string
		object  string // the metadata and the status
		kstatus status.Status
		differs string // the status that the script returns, if it differs
	}{
		"NoStatus": {
			"the operator has not looked at the object yet, which kstatus cannot know",
			`metadata: {generation: 1}`, status.CurrentStatus, "Progressing",
		},
		"NoReady": {
			"only another controller has written the status",
			`{metadata: {generation: 1}, status: {conditions: [{type: Audited, status: "True"}]}}`, status.CurrentStatus, "Progressing",
		},
		"NoStatusByDefault": {
			"the schema sets what says that nobody has looked",
			`{metadata: {generation: 1}, status: {observedGeneration: -1}}`, status.InProgressStatus, "",
		},
		"Behind": {
			"the conditions are about an older spec",
			`{metadata: {generation: 2}, status: {observedGeneration: 1, conditions: [{type: Ready, status: "True"}]}}`, status.InProgressStatus, "",
		},
		"StalledBehind": {
			"the new spec may be the one that helps",
			`{metadata: {generation: 2}, status: {observedGeneration: 1, conditions: [{type: Stalled, status: "True"}]}}`, status.InProgressStatus, "",
		},
		"Ready": {
			"all is done",
			`{metadata: {generation: 2}, status: {observedGeneration: 2, conditions: [{type: Ready, status: "True"}]}}`, status.CurrentStatus, "",
		},
		"WithoutObservedGeneration": {
			"the kind has no such field",
			`{metadata: {generation: 2}, status: {conditions: [{type: Ready, status: "True"}]}}`, status.CurrentStatus, "",
		},
		"OptionalStep": {
			"a step that does not count for Ready has failed",
			`{metadata: {generation: 1}, status: {observedGeneration: 1, conditions: [{type: BackupReady, status: "False"}, {type: Ready, status: "True"}]}}`,
			status.CurrentStatus, "",
		},
		"NotReady": {
			"whether it will be ready is not known",
			`{metadata: {generation: 1}, status: {observedGeneration: 1, conditions: [{type: Ready, status: "False"}]}}`, status.InProgressStatus, "",
		},
		"UnknownReady": {
			"nobody knows", `{metadata: {generation: 1}, status: {observedGeneration: 1, conditions: [{type: Ready, status: Unknown}]}}`, status.InProgressStatus, "",
		},
		"Reconciling": {
			"a step waits, or is tried again",
			`{metadata: {generation: 1}, status: {observedGeneration: 1, conditions: [{type: Ready, status: "False"}, {type: Reconciling, status: "True"}]}}`,
			status.InProgressStatus, "",
		},
		"ReconcilingWhileReady": {
			"other operators set both",
			`{metadata: {generation: 1}, status: {observedGeneration: 1, conditions: [{type: Ready, status: "True"}, {type: Reconciling, status: "True"}]}}`,
			status.InProgressStatus, "",
		},
		"NoLongerStalled": {
			"other operators set False in place of removing the condition",
			`{metadata: {generation: 1}, status: {observedGeneration: 1, conditions: [{type: Stalled, status: "False"}, {type: Ready, status: "True"}]}}`,
			status.CurrentStatus, "",
		},
		"Stalled": {
			"only a person can help",
			`{metadata: {generation: 1}, status: {observedGeneration: 1, conditions: [{type: Ready, status: "False"}, {type: Stalled, status: "True"}]}}`,
			status.FailedStatus, "",
		},
		"Deleted": {
			"Argo CD shows a deletion itself",
			`{metadata: {generation: 2, deletionTimestamp: "2026-01-01T00:00:00Z"}, status: {observedGeneration: 2, conditions: [{type: Stalled, status: "True"}]}}`,
			status.TerminatingStatus, "",
		},
		"Paused": {
			"kstatus has no word for a pause",
			`{metadata: {generation: 1}, status: {observedGeneration: 1, conditions: [{type: Ready, status: "True"}, {type: Paused, status: "True"}]}}`,
			status.CurrentStatus, "Suspended",
		},
		"PausedBehind": {
			"a changed spec waits for the end of the pause",
			`{metadata: {generation: 2}, status: {observedGeneration: 1, conditions: [{type: Ready, status: "True"}, {type: Paused, status: "True"}]}}`,
			status.InProgressStatus, "Suspended",
		},
		"PausedStalled": {
			"Ready and Stalled stay as they were before the pause",
			`{metadata: {generation: 1}, status: {observedGeneration: 1, conditions: [{type: Stalled, status: "True"}, {type: Paused, status: "True"}]}}`,
			status.FailedStatus, "Suspended",
		},
		"PausedDeleted": {
			"a pause does not stop a deletion",
			`{metadata: {generation: 1, deletionTimestamp: "2026-01-01T00:00:00Z"}, status: {conditions: [{type: Paused, status: "True"}]}}`,
			status.TerminatingStatus, "",
		},
	}
	text := script(t)
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			obj := &unstructured.Unstructured{}
			require.NoError(t, yaml.Unmarshal([]byte(tc.object), &obj.Object))
			got := answers(t, text, obj)
			want := answer{tc.kstatus, equivalent[tc.kstatus]}
			if tc.differs != "" {
				require.NotEqual(t, want.ArgoCD, tc.differs, "the two do not differ")
				want.ArgoCD = tc.differs
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// answer is the status of an object by kstatus, and the status that Argo CD shows.
type answer struct {
	Kstatus status.Status
	ArgoCD  string
}

func answers(t *testing.T, script string, obj *unstructured.Unstructured) answer {
	t.Helper()
	obj.SetAPIVersion("shop.example.com/v1")
	obj.SetKind("Shop")
	// As in an object that was read from the API server, whole numbers are of the type int64.
	text, err := obj.MarshalJSON()
	require.NoError(t, err)
	require.NoError(t, obj.UnmarshalJSON(text))
	computed, err := status.Compute(obj)
	require.NoError(t, err)
	shown, _ := health(t, script, obj)
	return answer{computed.Status, shown}
}
