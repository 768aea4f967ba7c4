package controller_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/opblocks/opblocks/conditions"
	userv1alpha1 "github.com/opblocks/opblocks/examples/databaseuser/api/v1alpha1"
	"github.com/opblocks/opblocks/examples/databaseuser/controller"
	"github.com/opblocks/opblocks/examples/internal/accounts"
	"github.com/opblocks/opblocks/examples/internal/accounts/accountstest"
	"github.com/opblocks/opblocks/reconcile"
)

var (
	noon  = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	alice = accounts.Account{User: "alice", Host: "%"}
)

// harness is the reconciler with controller-runtime's fake client and a database in memory.
type harness struct {
	client.Client
	reconciler *reconcile.Reconciler[*userv1alpha1.DatabaseUser]
	database   *accountstest.Database
	clock      *clocktesting.FakePassiveClock
	turn       int // the calls of one pass; 0 for the default
}

func newHarness(t *testing.T, objects ...client.Object) *harness {
	t.Helper()
	scheme := runtime.NewScheme() // with few kinds, since the fake client goes through all of them at each patch
	require.NoError(t, corev1.AddToScheme(scheme))
	require.NoError(t, userv1alpha1.AddToScheme(scheme))
	h := &harness{database: &accountstest.Database{}, clock: clocktesting.NewFakePassiveClock(noon)}
	h.Client = fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).
		WithStatusSubresource(&userv1alpha1.DatabaseUser{}).
		WithIndex(&userv1alpha1.DatabaseUser{}, controller.UserIndex, controller.IndexUsers).Build()
	h.start(h.database)
	return h
}

// start starts a process of the operator, which remembers nothing of the ones before.
func (h *harness) start(database accounts.Database) {
	operator := &controller.Operator{Database: database, Target: "Shop", Resync: 10 * time.Minute, Clock: h.clock}
	h.reconciler = reconcile.New(h.Client, operator.Steps()...).WithConditions(controller.Conditions).WithClock(h.clock)
	if h.turn > 0 {
		h.reconciler.WithTurns(h.turn, time.Hour)
	}
}

// reconcile runs passes over the sample until its turn is not over any more, and returns its condition Ready and the calls of the database.
func (h *harness) reconcile(t *testing.T) (ready metav1.Condition, calls []string) {
	t.Helper()
	return h.reconcileNamed(t, sample().Name), h.database.Calls()
}

// reconcileNamed does the same for another DatabaseUser, and returns its condition Ready.
func (h *harness) reconcileNamed(t *testing.T, name string) metav1.Condition {
	t.Helper()
	key := client.ObjectKey{Namespace: sample().Namespace, Name: name}
	require.NoError(t, h.passes(t, key))
	var u userv1alpha1.DatabaseUser
	if h.Get(t.Context(), key, &u) != nil {
		return metav1.Condition{}
	}
	c, _ := controller.Conditions.Get(u.Status.Conditions, conditions.Ready)
	return metav1.Condition{Status: c.Status, Reason: c.Reason, Message: c.Message}
}

// passes runs passes over a DatabaseUser until its turn is not over any more.
func (h *harness) passes(t *testing.T, key client.ObjectKey) error {
	t.Helper()
	for range 100 {
		result, err := h.reconciler.Reconcile(t.Context(), ctrl.Request{NamespacedName: key})
		if err != nil || result.RequeueAfter == 0 || result.RequeueAfter > time.Millisecond {
			return err
		}
	}
	require.Fail(t, "the work does not end")
	return nil
}

func (h *harness) change(t *testing.T, change func(*userv1alpha1.DatabaseUser)) {
	t.Helper()
	var u userv1alpha1.DatabaseUser
	require.NoError(t, h.Get(t.Context(), client.ObjectKeyFromObject(sample()), &u))
	change(&u)
	u.Generation++
	require.NoError(t, h.Update(t.Context(), &u))
}

func sample() *userv1alpha1.DatabaseUser {
	return &userv1alpha1.DatabaseUser{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "sample", UID: "sample-uid", Generation: 1, Labels: map[string]string{"target": "shop"}},
		Spec: userv1alpha1.DatabaseUserSpec{
			User:     "alice",
			Password: &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "alice"}, Key: "password"},
			Grants:   []userv1alpha1.Grant{{Privileges: []userv1alpha1.Privilege{"SELECT"}, Database: "shop"}},
		},
	}
}

func secret(password string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "alice", UID: "secret-uid"},
		Data:       map[string][]byte{"password": []byte(password)},
	}
}

func TestResync(t *testing.T) {
	h := newHarness(t, sample(), secret("swordfish"))
	ready, calls := h.reconcile(t)
	assert.Equal(t, metav1.Condition{Status: "True", Reason: "ProvisionSucceeded", Message: "The user provisioning has succeeded."}, ready)
	assert.Contains(t, calls, "Create 'alice'@'%'")
	assert.Equal(t, "swordfish", h.database.Password(alice))

	_, calls = h.reconcile(t)
	assert.Empty(t, calls, "no statement while nothing has changed")

	h.clock.SetTime(noon.Add(time.Hour))
	require.NoError(t, h.database.SetPassword(t.Context(), alice, "by hand"))
	h.database.Calls()
	_, calls = h.reconcile(t)
	assert.Contains(t, calls, "SetPassword 'alice'@'%'", "a resync repairs what somebody else has changed")
	assert.Equal(t, "swordfish", h.database.Password(alice))
}

// TestResyncBesideAnEvent checks that a pass that an event triggers right before a resync is due does not put the resync off.
func TestResyncBesideAnEvent(t *testing.T) {
	h := newHarness(t, sample(), secret("swordfish"))
	request := ctrl.Request{NamespacedName: client.ObjectKeyFromObject(sample())}
	h.reconcile(t)
	for _, before := range []time.Duration{10 * time.Minute, time.Minute, time.Second, time.Millisecond} {
		h.clock.SetTime(noon.Add(10*time.Minute - before))
		result, err := h.reconciler.Reconcile(t.Context(), request)
		require.NoError(t, err)
		assert.Empty(t, h.database.Calls(), "%s before it is due", before)
		assert.GreaterOrEqual(t, result.RequeueAfter, before, "not too early, which would be a pass for nothing")
		assert.LessOrEqual(t, result.RequeueAfter, before+before/10, "with the spread of up to a tenth")
	}
	h.clock.SetTime(noon.Add(10 * time.Minute))
	result, err := h.reconciler.Reconcile(t.Context(), request)
	require.NoError(t, err)
	assert.Equal(t, []string{"Lookup 'alice'@'%'"}, h.database.Calls(), "now it is due")
	assert.GreaterOrEqual(t, result.RequeueAfter, 10*time.Minute, "and the next one after the interval")
}

// TestOlderWins has two DatabaseUsers for an account that does not exist yet: the older one gets it, though the other one is the
// first by name.
func TestOlderWins(t *testing.T) {
	for name, reverse := range map[string]bool{"older first": false, "younger first": true} {
		t.Run(name, func(t *testing.T) {
			older, younger := sample(), sample()
			older.CreationTimestamp = metav1.NewTime(noon)
			younger.Name, younger.UID = "a-"+older.Name, "younger-uid"
			younger.CreationTimestamp = metav1.NewTime(noon.Add(time.Second))
			h := newHarness(t, older, younger, secret("swordfish"))
			both := []*userv1alpha1.DatabaseUser{older, younger}
			if reverse {
				slices.Reverse(both)
			}
			for _, u := range both {
				_, err := h.reconciler.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(u)})
				require.NoError(t, err)
			}
			reasons := map[string]string{}
			for _, u := range both {
				require.NoError(t, h.Get(t.Context(), client.ObjectKeyFromObject(u), u))
				c, _ := controller.Conditions.Get(u.Status.Conditions, conditions.Ready)
				reasons[u.Name] = c.Reason + ": " + c.Message
			}
			assert.Equal(t, map[string]string{
				older.Name:   "ProvisionSucceeded: The user provisioning has succeeded.",
				younger.Name: "AccountClaimed: DatabaseUser default/sample has the better claim to the user name",
			}, reasons)
		})
	}
}

func TestPasswordRotation(t *testing.T) {
	h := newHarness(t, sample(), secret("swordfish"))
	h.reconcile(t)
	require.NoError(t, h.Update(t.Context(), secret("marlin")))
	h.reconcile(t)
	assert.Equal(t, "marlin", h.database.Password(alice))
}

func TestWaitingReasons(t *testing.T) {
	tests := map[string]struct {
		reason  string
		objects []client.Object
		before  func(*testing.T, *harness)
		want    string
		says    string
	}{
		"no Secret": {
			reason: "it may come later", objects: []client.Object{sample()},
			want: "SecretNotFound", says: "Secret default/alice does not exist",
		},
		"no key": {
			reason:  "an absent key is no empty password",
			objects: []client.Object{sample(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "alice"}}},
			want:    "SecretKeyNotFound", says: `Secret default/alice has no key "password"`,
		},
		"empty password": {
			reason: "anybody could log in", objects: []client.Object{sample(), secret("")},
			want: "PasswordEmpty", says: `the value of key "password" in Secret default/alice is empty`,
		},
		"account of somebody else": {
			reason: "it is never taken over silently", objects: []client.Object{sample(), secret("swordfish")},
			before: func(t *testing.T, h *harness) {
				require.NoError(t, h.database.Create(t.Context(), alice, "theirs", accounts.Settings{}))
			},
			want: "AccountExists", says: "exists and was not made for this DatabaseUser",
		},
		"database down": {
			reason: "the condition says so, and why", objects: []client.Object{sample(), secret("swordfish")},
			before: func(_ *testing.T, h *harness) {
				h.database.Fail = func(string) error {
					return &accounts.UnreachableError{Address: "db:3306", Reason: "connection refused"}
				}
			},
			want: "DatabaseUnreachable", says: "The user provisioning has failed: the database at db:3306 cannot be reached: connection refused",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, tc.objects...)
			if tc.before != nil {
				tc.before(t, h)
				h.database.Calls()
			}
			ready, calls := h.reconcile(t)
			assert.Equal(t, tc.want, ready.Reason, tc.reason)
			assert.Contains(t, ready.Message, tc.says)
			assert.NotContains(t, calls, "Create 'alice'@'%'")
		})
	}
}

func TestAdopt(t *testing.T) {
	adopting := sample()
	adopting.Spec.Adopt = true
	for powerful, want := range map[bool]string{false: "ProvisionSucceeded", true: "AccountExists"} {
		h := newHarness(t, adopting.DeepCopy(), secret("swordfish"))
		require.NoError(t, h.database.Create(t.Context(), alice, "theirs", accounts.Settings{}))
		if powerful {
			h.database.SetPowers(alice, "SUPER on *.*")
		}
		ready, _ := h.reconcile(t)
		assert.Equal(t, want, ready.Reason, ready.Message)
		assert.Equal(t, powerful, h.database.Password(alice) == "theirs", "who may write DatabaseUsers must not become a DBA")
	}
}

func TestRecordBeforeCreate(t *testing.T) {
	h := newHarness(t, sample(), secret("swordfish"))
	h.database.Fail = func(method string) error {
		if method != "Create" {
			return nil
		}
		var u userv1alpha1.DatabaseUser
		require.NoError(t, h.Get(t.Context(), client.ObjectKeyFromObject(sample()), &u))
		assert.Equal(t, []string{controller.Finalizer}, u.Finalizers, "the finalizer comes first")
		assert.Equal(t, "alice", u.Status.User, "then the record")
		return errors.New("the process dies here")
	}
	h.reconcile(t)
	h.database.Fail = nil
	ready, _ := h.reconcile(t)
	assert.Equal(t, "ProvisionSucceeded", ready.Reason, "it is created now")
}

// TestRefusedNameIsNotReserved checks that an account that somebody else creates is not taken for ours because the server had
// refused to create it for us before.
func TestRefusedNameIsNotReserved(t *testing.T) {
	h := newHarness(t, sample(), secret("weak"))
	h.database.Fail = func(method string) error {
		if method == "Create" {
			return &accounts.StatementError{Number: 1819, State: "HY000", Message: "Your password does not satisfy the current policy requirements"}
		}
		return nil
	}
	ready, _ := h.reconcile(t)
	assert.Equal(t, "ProvisionFailed", ready.Reason)
	h.database.Fail = nil
	require.NoError(t, h.database.Create(t.Context(), alice, "theirs", accounts.Settings{}))
	ready, calls := h.reconcile(t)
	assert.Equal(t, "AccountExists", ready.Reason, "the name was never ours")
	assert.NotContains(t, calls, "SetPassword 'alice'@'%'")
	require.NoError(t, h.Delete(t.Context(), sample()))
	h.reconcile(t)
	assert.Equal(t, []string{"'alice'@'%'"}, h.database.Accounts(), "nor is it dropped")
	assert.Equal(t, "theirs", h.database.Password(alice))
}

// TestCannotBeCreated checks that an account which the server refuses to create, although it does not exist, is waited for without
// further writes, and that it is not dropped.
func TestCannotBeCreated(t *testing.T) {
	refuse := func(method string) error {
		if method == "Create" {
			return accounts.ErrExists
		}
		return nil
	}
	h := newHarness(t, sample(), secret("swordfish"))
	h.database.Fail = refuse
	ready, _ := h.reconcile(t)
	assert.Equal(t, "AccountExists", ready.Reason)
	assert.Contains(t, ready.Message, "account 'alice'@'%' cannot be created")
	var before, after userv1alpha1.DatabaseUser
	require.NoError(t, h.Get(t.Context(), client.ObjectKeyFromObject(sample()), &before))
	_, calls := h.reconcile(t)
	assert.Contains(t, calls, "Create 'alice'@'%'", "it is tried again")
	require.NoError(t, h.Get(t.Context(), client.ObjectKeyFromObject(sample()), &after))
	assert.Equal(t, before.ResourceVersion, after.ResourceVersion, "nothing is written, which would trigger the next pass")

	h.database.Fail = nil
	ready, _ = h.reconcile(t)
	assert.Equal(t, "ProvisionSucceeded", ready.Reason, ready.Message)

	h = newHarness(t, sample(), secret("swordfish"))
	h.database.Fail = refuse
	h.reconcile(t)
	require.NoError(t, h.Delete(t.Context(), sample()))
	_, calls = h.reconcile(t)
	assert.NotContains(t, calls, "Drop 'alice'@'%'", "what the server has of it is not ours")
}

func TestLocked(t *testing.T) {
	h := newHarness(t, sample(), secret("swordfish"))
	h.reconcile(t)
	h.database.SetLocked(alice, true)
	h.clock.SetTime(noon.Add(time.Hour))
	ready, calls := h.reconcile(t)
	assert.Equal(t, metav1.ConditionFalse, ready.Status)
	assert.Equal(t, "AccountLocked", ready.Reason)
	assert.Contains(t, ready.Message, "ask an administrator of the database to unlock it")
	assert.Equal(t, []string{"Lookup 'alice'@'%'"}, calls, "nothing is changed")
	h.database.SetLocked(alice, false)
	ready, _ = h.reconcile(t)
	assert.Equal(t, "ProvisionSucceeded", ready.Reason)

	adopting := sample()
	adopting.Spec.Adopt = true
	h = newHarness(t, adopting, secret("swordfish"))
	require.NoError(t, h.database.Create(t.Context(), alice, "theirs", accounts.Settings{}))
	h.database.SetLocked(alice, true)
	ready, _ = h.reconcile(t)
	assert.Equal(t, "AccountExists", ready.Reason, "somebody has shut it on purpose")
	assert.Contains(t, ready.Message, "account 'alice'@'%' is locked")
	assert.Equal(t, "theirs", h.database.Password(alice))
}

func TestExpired(t *testing.T) {
	h := newHarness(t, sample(), secret("swordfish"))
	h.reconcile(t)
	h.database.Expire(alice)
	h.clock.SetTime(noon.Add(time.Hour))
	ready, calls := h.reconcile(t)
	assert.Equal(t, metav1.ConditionFalse, ready.Status)
	assert.Equal(t, "PasswordExpired", ready.Reason)
	assert.Contains(t, ready.Message, "put another password into Secret alice")
	assert.Equal(t, []string{"Lookup 'alice'@'%'"}, calls, "the same password would shut nobody out")
	require.NoError(t, h.Update(t.Context(), secret("marlin")))
	ready, _ = h.reconcile(t)
	assert.Equal(t, "ProvisionSucceeded", ready.Reason, ready.Message)
	assert.Equal(t, "marlin", h.database.Password(alice))
}

func TestRename(t *testing.T) {
	h := newHarness(t, sample(), secret("swordfish"))
	h.reconcile(t)
	h.change(t, func(u *userv1alpha1.DatabaseUser) { u.Spec.User = "bob" })
	h.reconcile(t)
	assert.Equal(t, []string{"'bob'@'%'"}, h.database.Accounts(), "the old account does not stay")
}

func TestFinalize(t *testing.T) {
	for policy, left := range map[userv1alpha1.DeletionPolicy][]string{
		userv1alpha1.DeletionDelete: nil, userv1alpha1.DeletionRetain: {"'alice'@'%'"},
	} {
		t.Run(string(policy), func(t *testing.T) {
			h := newHarness(t, sample(), secret("swordfish"))
			h.change(t, func(u *userv1alpha1.DatabaseUser) { u.Spec.DeletionPolicy = policy })
			h.reconcile(t)
			require.NoError(t, h.Delete(t.Context(), sample()))
			_, calls := h.reconcile(t)
			assert.Equal(t, left, h.database.Accounts())
			if policy == userv1alpha1.DeletionRetain {
				assert.Empty(t, calls, "a retained account needs no database")
			}
			assert.Error(t, h.Get(t.Context(), client.ObjectKeyFromObject(sample()), sample()), "the object is gone")
		})
	}
}

func TestRelease(t *testing.T) {
	h := newHarness(t, sample(), secret("swordfish"))
	h.reconcile(t)
	h.change(t, func(u *userv1alpha1.DatabaseUser) { u.Labels["target"] = "archive" })
	ready, _ := h.reconcile(t)
	assert.Empty(t, h.database.Accounts(), "the account is released")
	assert.Equal(t, "Released", ready.Reason)

	require.NoError(t, h.Update(t.Context(), secret("marlin")))
	h.change(t, func(u *userv1alpha1.DatabaseUser) { u.Labels["target"] = "shop" })
	ready, calls := h.reconcile(t)
	assert.Equal(t, "ProvisionSucceeded", ready.Reason, ready.Message)
	assert.Equal(t, "marlin", h.database.Password(alice))
	assert.NotContains(t, calls, "SetPassword 'alice'@'%'", "nothing is known of the password that the account had before")
}
