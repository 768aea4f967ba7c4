package test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	userv1alpha1 "github.com/opblocks/opblocks/examples/databaseuser/api/v1alpha1"
	"github.com/opblocks/opblocks/examples/internal/operatortest"
)

// TestStoredByTheArticlesOperator reconciles an object of the article's operator: it gets the conditions of this one, and its
// account after spec.adopt.
func TestStoredByTheArticlesOperator(t *testing.T) {
	t.Parallel()
	n, db := newTenant(t), open(t, sharedServer(t))
	user := n.unique("john")
	db.execute(t, "CREATE USER `"+user+"` IDENTIFIED BY 'swordfish'")
	n.setPassword(t, "john", "swordfish")
	u := n.create(t, "john")
	long := metav1.Date(2020, 1, 1, 0, 0, 0, 0, metav1.Now().Location())
	u.Status.Conditions = []userv1alpha1.Condition{
		{Type: "Ready", Status: metav1.ConditionTrue, Reason: "Provision Succeeded", Message: "The user provisioning has succeeded.", LastUpdateTime: long, LastTransitionTime: long},
		{Type: "NotReady", Status: metav1.ConditionFalse, Reason: "Provision Failed", LastUpdateTime: long, LastTransitionTime: long},
	}
	require.NoError(t, n.Status().Update(t.Context(), u))
	o := n.operate(t, db.Server)
	u = n.settled(t, "john", "AccountExists")
	assert.NotContains(t, types(u), "NotReady")
	got := ready(u)
	assert.Equal(t, metav1.ConditionFalse, got.Status)
	assert.True(t, got.LastTransitionTime.After(long.Time))
	assert.True(t, got.LastUpdateTime.After(long.Time))

	n.set(t, "john", func(s *spec) { s.Adopt = true })
	u = n.provisioned(t, "john")
	assert.Equal(t, []string{"Ready"}, types(u), "all is well: one condition")
	assert.NoError(t, db.login(user, "swordfish"))

	// The time of the transition moves with the status, the time of the update with reason and message.
	was := ready(u)
	was.LastTransitionTime, was.LastUpdateTime, was.Message = long, long, "something else"
	u.Status.Conditions = []userv1alpha1.Condition{was}
	require.NoError(t, n.Status().Update(t.Context(), u))
	o.pass(t, n, "john")
	operatortest.Eventually(t, "the message is put right", func(c *assert.CollectT) {
		got := ready(operatortest.Live(c, n, u))
		assert.Equal(c, "The user provisioning has succeeded.", got.Message)
		assert.True(c, got.LastTransitionTime.Equal(&long))
		assert.True(c, got.LastUpdateTime.After(long.Time))
	})
}

func types(u *userv1alpha1.DatabaseUser) []string {
	var all []string
	for _, c := range u.Status.Conditions {
		all = append(all, c.Type)
	}
	return all
}
