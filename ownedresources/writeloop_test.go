package ownedresources

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"

	"github.com/opblocks/opblocks/internal/owned/ownedtest"
	"github.com/opblocks/opblocks/internal/owned/set"
	"github.com/opblocks/opblocks/internal/writeloop"
)

// Two versions of an operator run at the same time. One creates a child, and the other prunes it. After some
// repetitions, each write is delayed.
func TestSlowDownByName(t *testing.T) {
	newEnv := func(t *testing.T) *memoryEnv {
		t.Helper()
		set := Ensure(hold("built", contentOfShop), hold("other", func(*Shop) string { return "constant" }))
		env := newMemoryEnv(t, set)
		set.set.Applier.Clock = env.clock
		env.converge(t)
		return env
	}
	late := func(t *testing.T, env *memoryEnv) *configMap {
		t.Helper()
		child := env.child(t, "built")
		child.Name, child.UID, child.ResourceVersion = "late", "", ""
		return child
	}
	exists := func(t *testing.T, env *memoryEnv, name string) bool {
		t.Helper()
		return env.server.Exists(t, &configMap{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	tests := map[string]struct {
		reason  string
		undo    func(t *testing.T, env *memoryEnv)
		done    func(t *testing.T, env *memoryEnv) bool
		message string
	}{
		"Creation": {
			reason: "the other one deletes the child",
			undo: func(t *testing.T, env *memoryEnv) {
				require.NoError(t, env.server.Other.Delete(t.Context(), env.child(t, "built")))
			},
			done:    func(t *testing.T, env *memoryEnv) bool { return exists(t, env, "built") },
			message: "ConfigMap default/built is deleted again and again by another writer, so it is created less often",
		},
		"Deletion": {
			reason: "the other one creates a child that is not desired",
			undo: func(t *testing.T, env *memoryEnv) {
				require.NoError(t, env.server.Other.Create(t.Context(), late(t, env)))
			},
			done:    func(t *testing.T, env *memoryEnv) bool { return !exists(t, env, "late") },
			message: "ConfigMap default/late is not desired and is created again and again by another writer, so it is deleted less often",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			env := newEnv(t)
			recorder := events.NewFakeRecorder(100)
			pass := func() (after time.Duration) {
				for range 3 { // the write of the status that shows the delay triggers another reconcile
					env.show(t)
					after = env.pass(t).RequeueAfter
				}
				return after
			}
			for range writeloop.Free + 1 {
				tc.undo(t, env)
				require.Zero(t, pass())
				require.True(t, tc.done(t, env), tc.reason)
			}
			env.set.set.Applier.Recorder = recorder
			tc.undo(t, env)
			require.Equal(t, writeloop.MinDelay, pass())
			require.False(t, tc.done(t, env), "it is delayed")
			require.Equal(t, "Warning WriteLoop "+tc.message, <-recorder.Events)
			require.Empty(t, recorder.Events, "one event per loop")
			ready := meta.FindStatusCondition(env.owner(t).Status.Conditions, "Ready")
			require.Equal(t, []string{"WriteLoop", tc.message}, []string{ready.Reason, ready.Message})
			require.Len(t, ownedtest.Shown(t, env.set.set.Applier.Metrics, "opblocks_write_loop"), 1)
			require.True(t, exists(t, env, "other"))

			env.clock.SetTime(env.clock.Now().Add(writeloop.MinDelay))
			require.Zero(t, pass())
			require.True(t, tc.done(t, env), "it is still done")
			tc.undo(t, env)
			require.Equal(t, 2*writeloop.MinDelay, pass(), "the next one comes later")

			env.clock.SetTime(env.clock.Now().Add(2*writeloop.MinDelay + writeloop.Gap))
			require.Zero(t, pass())
			tc.undo(t, env)
			require.Zero(t, pass(), "the loop has ended")
			require.Empty(t, ownedtest.Shown(t, env.set.set.Applier.Metrics, "opblocks_write_loop"))
		})
	}
	t.Run("OwnDecisions", func(t *testing.T) {
		env, wanted := newEnv(t), true
		env.set.set.Children[1].Build = func(r *set.Reconciliation) error {
			if wanted {
				r.Add(&configMap{ObjectMeta: metav1.ObjectMeta{Name: "other"}})
			}
			return nil
		}
		for i := range 4 * writeloop.Free {
			wanted = i%2 == 0
			owner := env.owner(t)
			metav1.SetMetaDataAnnotation(&owner.ObjectMeta, "changed", strconv.Itoa(i))
			require.NoError(t, env.server.Other.Update(t.Context(), owner))
			for range 3 {
				env.show(t)
				require.Zero(t, env.pass(t).RequeueAfter)
			}
			require.Equal(t, wanted, exists(t, env, "other"), "no other writer has undone anything")
		}
	})
}
