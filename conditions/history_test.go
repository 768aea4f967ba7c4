package conditions_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/opblocks/opblocks/conditions"
)

func TestHistory(t *testing.T) {
	var stored []metav1.Condition
	list := conditions.History(&stored, 3)
	_, found := list.Get("Ready")
	require.False(t, found)
	set := func(conditionType string, status metav1.ConditionStatus) bool {
		t.Helper()
		got, changed, err := list.Set(metav1.Condition{Type: conditionType, Status: status, Reason: "Because"})
		require.NoError(t, err)
		require.Equal(t, status, got.Status, "what is stored is the newest of its type")
		return changed
	}
	require.True(t, set("Ready", metav1.ConditionFalse))
	require.False(t, set("Ready", metav1.ConditionFalse), "it is what was said last")
	require.True(t, set("Ready", metav1.ConditionTrue))
	require.True(t, set("Stopped", metav1.ConditionTrue))
	require.True(t, set("Ready", metav1.ConditionFalse), "something else was said in between")
	require.False(t, list.Remove("Ready"), "what was so stays told")

	var told []string
	for _, c := range list.All() {
		told = append(told, c.Type+" "+string(c.Status))
	}
	require.Equal(t, []string{"Ready True", "Stopped True", "Ready False"}, told, "oldest first, and no more than the limit")
	newest, _ := list.Get("Ready")
	require.Equal(t, metav1.ConditionFalse, newest.Status)

	_, changed, err := conditions.History(&stored, 0).Set(metav1.Condition{Type: "Ready", Status: metav1.ConditionTrue, Reason: "Because"})
	require.ErrorIs(t, err, conditions.ErrInvalid)
	require.False(t, changed)
}
