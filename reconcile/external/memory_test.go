package external_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/reconcile/external"
)

// TestForgetsWhatIsGone: objects are gone although their cleanup has not succeeded.
func TestForgetsWhatIsGone(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		end    func(t *testing.T, e *env)
	}{
		"given up": {"the cleanup fails after the limit", func(t *testing.T, e *env) {
			t.Helper()
			require.NoError(t, e.Delete(t.Context(), e.object)) // the fake client uses the real time, which is long before the time of the test
			e.api.fail = func(string) (before, after error) { return errors.New("no"), nil }
			e.pass()
			require.Len(t, e.api.entries, 1, "it is left outside")
		}},
		"finalizer removed by hand": {"no cleanup runs", func(t *testing.T, e *env) {
			t.Helper()
			require.NoError(t, e.Delete(t.Context(), e.object))
			e.edit(func(a *Account) { a.Finalizers = nil })
			e.pass()
		}},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t, external.ByKey, nil)
			e.limit = time.Hour
			e.restart()
			e.pass()
			require.Equal(t, 1, e.step.Remembered())
			tc.end(t, e)
			require.Error(t, e.Get(t.Context(), e.name(), &Account{}), "the object is gone")
			require.Zero(t, e.step.Remembered(), tc.reason)
		})
	}
}

// TestAnotherObjectOfTheName: between two passes, another object of the same name is created. What the step remembers
// about the former object must have no effect.
func TestAnotherObjectOfTheName(t *testing.T) {
	e := newEnv(t, external.ByKey, nil)
	e.pass()
	e.edit(func(a *Account) { a.Finalizers = nil })
	require.NoError(t, e.Delete(t.Context(), e.object))
	record := e.object.Status.Account
	e.object = newAccount()
	e.object.UID, e.object.Generation = "7a20", 1
	e.object.Status.Account = record // as if it was restored from a backup
	e.object.Finalizers = []string{"test.opblocks.dev/account"}
	require.NoError(t, e.Create(t.Context(), e.object))
	require.NoError(t, e.Status().Update(t.Context(), e.object))
	require.NoError(t, e.Get(t.Context(), client.ObjectKeyFromObject(e.object), e.object))
	calls, _, _ := e.pass()
	require.Equal(t, []string{"get alice"}, calls)
	require.Equal(t, 1, e.step.Remembered())
}
