package ownedresources

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/opblocks/opblocks/internal/owned/set"
	"github.com/opblocks/opblocks/internal/record"
)

type configMap = corev1.ConfigMap

// constant returns a function that builds a ConfigMap with this name and content, whatever the shop is.
func constant(name, content string) func(*Shop) *configMap {
	return func(*Shop) *configMap {
		return &configMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"content": content}}
	}
}

func TestNewOrder(t *testing.T) {
	first, second, third := Build(constant("a", "")), Build(constant("b", "")), Build(constant("c", ""))
	elsewhere := Build(constant("d", ""))
	chain := Build(constant("e", "")).After(third.After(second.After(first)))
	tests := map[string]struct {
		reason   string
		children []AnyChild[*Shop]
		sequence []int
		rank     []int
		wantErr  string
	}{
		"AsDeclared": {
			reason:   "Children without an order keep that in which they are declared.",
			children: []AnyChild[*Shop]{Build(constant("a", "")), Build(constant("b", ""))}, sequence: []int{0, 1}, rank: []int{0, 0},
		},
		"DeclaredBackwards": {
			reason:   "A child may be declared before what it comes after.",
			children: []AnyChild[*Shop]{chain, third, second, first}, sequence: []int{3, 2, 1, 0}, rank: []int{3, 2, 1, 0},
		},
		"LiveInput": {
			reason: "A child that is built from the live object of another one comes after it.",
			children: func() []AnyChild[*Shop] {
				other := Build(constant("a", ""))
				from := BuildFrom(other.Live(), func(*Shop, *configMap) (*configMap, error) { return nil, nil })
				return []AnyChild[*Shop]{from, other}
			}(),
			sequence: []int{1, 0}, rank: []int{1, 0},
		},
		"Cycle": {
			reason: "A cycle would wait for itself.",
			children: func() []AnyChild[*Shop] {
				a, b := Build(constant("a", "")), Build(constant("b", ""))
				return []AnyChild[*Shop]{a.After(b), b.After(a)}
			}(),
			wantErr: "the order of the children is a cycle: child 1, a ConfigMap, after child 2, a ConfigMap, after child 1, a ConfigMap: take one After away",
		},
		"AfterItself": {
			reason: "The shortest cycle.",
			children: func() []AnyChild[*Shop] {
				a := Build(constant("a", ""))
				return []AnyChild[*Shop]{a.After(a)}
			}(),
			wantErr: "the order of the children is a cycle: child 1, a ConfigMap, after child 1, a ConfigMap: take one After away",
		},
		"AnotherSet": {
			reason:   "A set knows nothing of the children of another one.",
			children: []AnyChild[*Shop]{Build(constant("a", "")).After(elsewhere)},
			wantErr:  "child 1, a ConfigMap: it comes after a ConfigMap that is not in this set: give both to one Ensure",
		},
		"Nil":      {reason: "A nil child is a mistake of the caller.", children: []AnyChild[*Shop]{nil}, wantErr: "child 1 is nil"},
		"AfterNil": {reason: "So is nil in After.", children: []AnyChild[*Shop]{Build(constant("a", "")).After(nil)}, wantErr: "child 1, a ConfigMap: it comes after a child that is nil"},
		"Twice":    {reason: "One child given twice would build its objects twice.", children: []AnyChild[*Shop]{elsewhere, elsewhere}, wantErr: "child 2, a ConfigMap, is given twice"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			order, err := set.NewOrder(untyped(test.children))
			if test.wantErr != "" {
				require.EqualError(t, err, test.wantErr, test.reason)
				require.EqualError(t, Ensure(test.children...).Reconcile(t.Context(), nil, nil), test.wantErr, "every use of the set says so")
				return
			}
			require.NoError(t, err)
			require.Equal(t, test.sequence, order.Sequence, test.reason)
			require.Equal(t, test.rank, order.Rank, test.reason)
		})
	}
}

// databaseAndWeb returns a set with a Deployment, and a ConfigMap of this content that comes after it.
func databaseAndWeb(env *serverEnv, content string) *ChildSet[*Shop] {
	database := Build(func(*Shop) *appsv1.Deployment { return env.Deployment() })
	s := Ensure(Build(constant("after", content)).After(database), database)
	s.SetName("step")
	return s
}

func (env *serverEnv) setReady(t *testing.T, ready bool) {
	t.Helper()
	var live appsv1.Deployment
	env.Live(t, &live)
	status := appsv1.DeploymentStatus{ObservedGeneration: live.Generation, Replicas: 2, UpdatedReplicas: 2, ReadyReplicas: 2, AvailableReplicas: 2,
		Conditions: []appsv1.DeploymentCondition{
			{Type: "Available", Status: "True"}, {Type: "Progressing", Status: "True", Reason: "NewReplicaSetAvailable"},
		}}
	if !ready {
		status.ReadyReplicas, status.AvailableReplicas = 0, 0
	}
	live.Status = status
	require.NoError(t, env.Other.Status().Update(t.Context(), &live))
}

func TestAfter(t *testing.T) {
	env := newEnvInMemory(t)
	after := func() *configMap { return &configMap{ObjectMeta: metav1.ObjectMeta{Name: "after"}} }

	s := databaseAndWeb(env, "first")
	err := s.Reconcile(t.Context(), env.Client, env.Owner)
	requireWaits(t, err, "LessReplicas", "ConfigMap "+env.Namespace+"/after is not created until Deployment "+env.Namespace+"/web is ready")
	require.False(t, env.Exists(t, after()), "it is created only when the Deployment is ready")

	env.setReady(t, true)
	require.NoError(t, s.Reconcile(t.Context(), env.Client, env.Owner))
	require.True(t, env.Exists(t, after()))

	env.setReady(t, false)
	live := after()
	require.True(t, env.Exists(t, live))
	require.Equal(t, "1", live.Annotations[record.Order])
	live.Data["content"] = "by hand"
	require.NoError(t, env.Other.Update(t.Context(), live))
	requireWaits(t, s.Reconcile(t.Context(), env.Client, env.Owner), "LessAvailable")
	require.True(t, env.Exists(t, live))
	require.Equal(t, "first", live.Data["content"], "what exists is repaired although the Deployment is not ready")

	s = databaseAndWeb(env, "second")
	requireWaits(t, s.Reconcile(t.Context(), env.Client, env.Owner), "LessAvailable", "after is not changed until Deployment")
	require.True(t, env.Exists(t, live))
	require.Equal(t, "first", live.Data["content"], "a new desired state waits")

	env.setReady(t, true)
	require.NoError(t, s.Reconcile(t.Context(), env.Client, env.Owner))
	require.True(t, env.Exists(t, live))
	require.Equal(t, "second", live.Data["content"])
}

// If a child cannot be built, the children that come after it wait. All other children are applied.
func TestAfterAFailure(t *testing.T) {
	env := newEnvInMemory(t)
	broken := errors.New("no image")
	failing := BuildOrError(func(*Shop) (*appsv1.Deployment, error) { return nil, broken })
	s := Ensure(failing, Build(constant("after", "")).After(failing), Build(constant("beside", "")))
	err := s.Reconcile(t.Context(), env.Client, env.Owner)
	require.ErrorIs(t, err, broken)
	require.False(t, env.Exists(t, &configMap{ObjectMeta: metav1.ObjectMeta{Name: "after"}}))
	require.True(t, env.Exists(t, &configMap{ObjectMeta: metav1.ObjectMeta{Name: "beside"}}))
}

// Objects that are not desired any more are deleted in the reverse order, also after a restart of the operator.
func TestPruneInOrder(t *testing.T) {
	env := newEnvInMemory(t)
	release := func(wanted bool) *ChildSet[*Shop] {
		build := func(name string) *Child[*Shop, *configMap] {
			return Build(func(owner *Shop) *configMap {
				if !wanted {
					return nil
				}
				return constant(name, "")(owner)
			})
		}
		one, two := build("one"), build("two")
		s := Ensure(one, two.After(one), build("beside"))
		s.SetName("step")
		return s
	}
	require.NoError(t, release(true).Reconcile(t.Context(), env.Client, env.Owner))
	two := &configMap{ObjectMeta: metav1.ObjectMeta{Name: "two"}}
	require.True(t, env.Exists(t, two))
	two.Finalizers = []string{"example.com/slow"}
	require.NoError(t, env.Other.Update(t.Context(), two))

	for range 2 { // each time as in a new process
		requireWaits(t, release(false).Reconcile(t.Context(), env.Client, env.Owner), "ChildTerminating",
			"no longer desired: ConfigMap "+env.Namespace+"/beside, ConfigMap "+env.Namespace+"/one; waits for the deletion of ConfigMap "+env.Namespace+"/two, which came after")
		require.True(t, env.Exists(t, two))
		require.NotNil(t, two.DeletionTimestamp)
		require.True(t, env.Exists(t, &configMap{ObjectMeta: metav1.ObjectMeta{Name: "one"}}))
	}
	two.Finalizers = nil
	require.NoError(t, env.Other.Update(t.Context(), two))
	require.NoError(t, release(false).Reconcile(t.Context(), env.Client, env.Owner))
	require.False(t, env.Exists(t, &configMap{ObjectMeta: metav1.ObjectMeta{Name: "one"}}))
	require.False(t, env.Exists(t, &configMap{ObjectMeta: metav1.ObjectMeta{Name: "beside"}}))
}

func TestRemoveInOrder(t *testing.T) {
	env := newEnvInMemory(t)
	one := Build(constant("one", ""))
	s := Ensure(one, Build(constant("two", "")).After(one))
	require.Empty(t, s.FinalizerName(), "without RemoveInOrder the garbage collector removes the children")
	s.RemoveInOrder().SetName("step")
	require.Equal(t, "children.opblocks.dev/step", s.FinalizerName())
	require.NoError(t, s.Reconcile(t.Context(), env.Client, env.Owner))

	exists := func(name string) bool { return env.Exists(t, &configMap{ObjectMeta: metav1.ObjectMeta{Name: name}}) }
	requireWaits(t, s.Finalize(t.Context(), env.Client, env.Owner), "ChildTerminating", "/one; waits for the deletion of ConfigMap "+env.Namespace+"/two, which came after")
	require.False(t, exists("two"))
	require.True(t, exists("one"), "it goes after what came after it")
	requireWaits(t, s.Finalize(t.Context(), env.Client, env.Owner), "ChildTerminating", "/one; waits for their deletion")
	require.False(t, exists("one"))
	require.NoError(t, s.Finalize(t.Context(), env.Client, env.Owner), "nothing is left")
}

func TestReadyWhen(t *testing.T) {
	env := newEnvInMemory(t)
	s := Ensure(Build(func(*Shop) *appsv1.Deployment { return env.Deployment() }).ReadyWhen("Available"))
	requireWaits(t, s.Reconcile(t.Context(), env.Client, env.Owner), "ConditionNotTrue", "condition Available is not reported yet")
	set := func(status corev1.ConditionStatus, reason, message string) {
		var live appsv1.Deployment
		env.Live(t, &live)
		live.Status.Conditions = []appsv1.DeploymentCondition{{Type: "Available", Status: status, Reason: reason, Message: message}}
		require.NoError(t, env.Other.Status().Update(t.Context(), &live))
	}
	set("False", "MinimumReplicasUnavailable", "no pod is up")
	requireWaits(t, s.Reconcile(t.Context(), env.Client, env.Owner), "MinimumReplicasUnavailable", "condition Available is False: no pod is up")
	set("True", "", "")
	require.NoError(t, s.Reconcile(t.Context(), env.Client, env.Owner), "the rules of kstatus, which ask for updated replicas, do not count")
}

// oneAndTwo returns a set of two ConfigMaps. first is the name of the ConfigMap that comes first. If first is empty,
// the two have no order.
func oneAndTwo(first string) *ChildSet[*Shop] {
	one, two := Build(constant("one", "")), Build(constant("two", ""))
	switch first {
	case "one":
		two.After(one)
	case "two":
		one.After(two)
	}
	s := Ensure(one, two).RemoveInOrder()
	s.SetName("step")
	return s
}

// A new release of the operator sets or changes the order of children that exist.
func TestOrderOfChildrenThatExist(t *testing.T) {
	for _, before := range []string{"", "two"} {
		t.Run("First"+before, func(t *testing.T) {
			env := newEnvInMemory(t)
			require.NoError(t, oneAndTwo(before).Reconcile(t.Context(), env.Client, env.Owner))
			s := oneAndTwo("one")
			require.NoError(t, s.Reconcile(t.Context(), env.Client, env.Owner))
			one, two := &configMap{ObjectMeta: metav1.ObjectMeta{Name: "one"}}, &configMap{ObjectMeta: metav1.ObjectMeta{Name: "two"}}
			require.True(t, env.Exists(t, one) && env.Exists(t, two))
			require.Equal(t, []int{0, 1}, []int{record.OrderOf(one), record.OrderOf(two)})
			env.Requests.Sent()
			require.NoError(t, s.Reconcile(t.Context(), env.Client, env.Owner))
			require.Equal(t, []string{"GET configmaps", "GET configmaps"}, env.Requests.Sent())

			requireWaits(t, s.Finalize(t.Context(), env.Client, env.Owner), "ChildTerminating", "/one; waits for the deletion of ConfigMap "+env.Namespace+"/two, which came after")
			require.True(t, env.Exists(t, one))
		})
	}
}

// Somebody changes the annotation [record.Order] of a child without [Child.After]. An order is repaired once. A text that is not an order counts
// as none, so nothing is written.
func TestOrderByHand(t *testing.T) {
	env := newEnvInMemory(t)
	s := oneAndTwo("")
	require.NoError(t, s.Reconcile(t.Context(), env.Client, env.Owner))
	two := &configMap{ObjectMeta: metav1.ObjectMeta{Name: "two"}}
	for _, tc := range []struct {
		value  string
		writes []string
		reason string
	}{
		{"7", []string{"PATCH configmaps", "PATCH configmaps"}, "the first one makes the fields of the creation those of the apply"},
		{"-1", nil, "it is not an order"}, {"99999999999999999999", nil, "it is too large"}, {"none", nil, "it is not a number"}, {"", nil, "it is empty"},
	} {
		require.True(t, env.Exists(t, two))
		two.Annotations[record.Order] = tc.value
		require.NoError(t, env.Other.Update(t.Context(), two))
		env.Requests.Sent()
		for range 3 {
			require.NoError(t, s.Reconcile(t.Context(), env.Client, env.Owner))
		}
		writes := slices.DeleteFunc(env.Requests.Sent(), func(request string) bool { return strings.HasPrefix(request, "GET ") })
		require.ElementsMatch(t, tc.writes, writes, "%q: %s", tc.value, tc.reason)
		require.True(t, env.Exists(t, two))
		require.Zero(t, record.OrderOf(two))
	}
}
