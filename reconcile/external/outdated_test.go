package external_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/reconcile"
	"github.com/opblocks/opblocks/reconcile/external"
)

// TestVersionGoesBack: the result of Version changes, the answer to the update is lost, and the result changes back.
func TestVersionGoesBack(t *testing.T) {
	version, stored, lose := "v1", "", false
	e := newEnv(t, external.ByKey, func(r *external.Resource[*Account, entry]) {
		r.Version = func(context.Context, client.Client, *Account) (string, error) { return version, nil }
		create := r.Create
		r.Create = func(ctx context.Context, c client.Client, a *Account, ref external.Reference, desired entry) (string, error) {
			stored = version
			return create(ctx, c, a, ref, desired)
		}
		r.Update = func(ctx context.Context, c client.Client, a *Account, ref external.Reference, _, desired entry) error {
			stored = version
			if lose {
				return errors.New("lost")
			}
			return nil
		}
	})
	e.try()
	require.Equal(t, "v1", stored)
	version, lose = "v2", true
	e.try()
	require.Equal(t, "v2", stored)
	version, lose = "v1", false
	reason := e.try()
	require.Contains(t, reason, "Succeeded")
	require.Equal(t, "v1", stored, "v2 may have been stored")
}

// TestVersionChangesWithinGrace changes the result of Version while the API does not show the created thing yet.
func TestVersionChangesWithinGrace(t *testing.T) {
	for name, lost := range map[string]bool{"answered": false, "the answer is lost": true} {
		t.Run(name, func(t *testing.T) {
			version, stored := "v1", ""
			e := newEnv(t, external.ByKey, func(r *external.Resource[*Account, entry]) {
				r.Grace = 30 * time.Second
				r.Version = func(context.Context, client.Client, *Account) (string, error) { return version, nil }
				create := r.Create
				r.Create = func(ctx context.Context, c client.Client, a *Account, ref external.Reference, desired entry) (string, error) {
					stored = version
					id, err := create(ctx, c, a, ref, desired)
					if lost {
						err = errors.New("lost")
					}
					return id, err
				}
				r.Update = func(context.Context, client.Client, *Account, external.Reference, entry, entry) error {
					stored = version
					return nil
				}
			})
			e.try()
			e.api.hidden = true
			version = "v2"
			e.later(5 * time.Second)
			e.try()
			e.api.hidden = false
			e.later(30 * time.Second)
			reason := e.try()
			require.Contains(t, reason, "Succeeded")
			require.Equal(t, "v2", stored)
		})
	}
}

// TestCreateOnlyIsLifted: a thing was created with an earlier version. At first the object forbids updates, and then
// allows them.
func TestCreateOnlyIsLifted(t *testing.T) {
	version, stored, lose := "v1", "", true
	e := newEnv(t, external.ByKey, func(r *external.Resource[*Account, entry]) {
		r.CreateOnly = func(a *Account) bool { return a.Spec.Adopt }
		r.Version = func(context.Context, client.Client, *Account) (string, error) { return version, nil }
		create := r.Create
		r.Create = func(ctx context.Context, c client.Client, a *Account, ref external.Reference, desired entry) (string, error) {
			id, err := create(ctx, c, a, ref, desired)
			if err == nil {
				stored = version
			}
			if lose {
				err = errors.New("lost")
			}
			return id, err
		}
		r.Update = func(context.Context, client.Client, *Account, external.Reference, entry, entry) error {
			stored = version
			return nil
		}
	})
	e.edit(func(a *Account) { a.Spec.Adopt = true })
	e.try()
	version, lose = "v2", false
	e.api.hidden = true
	e.api.fail = func(call string) (before, after error) {
		if call == "create alice" {
			e.api.hidden = false
		}
		return nil, nil
	}
	e.try()
	require.Equal(t, "v1", stored, "the earlier pass was faster, and the object forbids updates")
	e.edit(func(a *Account) { a.Spec.Adopt = false })
	e.try()
	require.Equal(t, "v2", stored)
}

// TestRequestedAndNotReady: a person requests a pass, and it ends with a wait. The next pass observes again.
func TestRequestedAndNotReady(t *testing.T) {
	isReady := true
	e := newEnv(t, external.ByKey, func(r *external.Resource[*Account, entry]) {
		r.Ready = func(*Account, entry, entry) error {
			if !isReady {
				return reconcile.Wait("Preparing", 5*time.Second, "not ready")
			}
			return nil
		}
	})
	reason := e.try()
	require.Contains(t, reason, "Succeeded")
	isReady = false
	e.later(time.Minute)
	e.edit(func(a *Account) {
		a.Annotations = map[string]string{reconcile.RequestedAnnotation: "now"}
		a.Generation--
	})
	reason = e.try()
	require.Contains(t, reason, "Preparing")
	e.later(5 * time.Second)
	reason = e.try()
	require.Contains(t, reason, "Preparing")
}

// TestBackWhileDeleting changes the key back to a former one while the API still shows that thing, which is being
// deleted.
func TestBackWhileDeleting(t *testing.T) {
	e := newEnv(t, external.ByKey, nil)
	e.try()
	e.later(time.Hour)
	old := e.api.entries["alice"]
	stale := false
	e.api.fail = func(call string) (before, after error) {
		if call == "get alice" && stale {
			e.api.entries["alice"] = old
		}
		return nil, nil
	}
	e.edit(func(a *Account) { a.Spec.Login = "bob" })
	stale = true
	reason := e.try()
	require.Contains(t, reason, "Deleting")
	e.edit(func(a *Account) { a.Spec.Login = "alice" })
	e.try()
	stale = false
	delete(e.api.entries, "alice")
	e.later(time.Minute)
	e.try()
	require.Contains(t, e.api.entries, "alice", "what was on its way out is looked at once more")
}

// TestMustExistAndRecreate proves that the former thing is not deleted before somebody has created the new one.
func TestMustExistAndRecreate(t *testing.T) {
	e := newEnv(t, external.ByKey, func(r *external.Resource[*Account, entry]) {
		r.Recreate = true
		r.MustExist = func(a *Account) bool { return a.Spec.Retain }
		r.Retain = nil
	})
	e.try()
	e.edit(func(a *Account) { a.Spec.Retain, a.Spec.Adopt, a.Spec.Login = true, true, "bob" })
	reason := e.try()
	require.Contains(t, reason, "NotFound")
	require.Contains(t, e.api.entries, "alice")
	e.api.entries["bob"] = entry{Login: "bob", Owner: "them"}
	e.later(time.Hour)
	reason = e.try()
	require.Contains(t, reason, "Succeeded")
	require.NotContains(t, e.api.entries, "alice")
	require.True(t, e.object.Status.Account.Adopted)
}

// TestQueriesOfAllFunctions: functions return errors with URLs, also functions that do not call the API. The conditions
// do not show the queries.
func TestQueriesOfAllFunctions(t *testing.T) {
	leak := fmt.Errorf("ask: %w", &url.Error{Op: "Get", URL: "https://api.example.com/x?token=s3cret", Err: errors.New("refused")})
	for name, edit := range map[string]func(*external.Resource[*Account, entry]){
		"Desired": func(r *external.Resource[*Account, entry]) {
			r.Desired = func(context.Context, client.Client, *Account) (entry, error) { return entry{}, leak }
		},
		"Version": func(r *external.Resource[*Account, entry]) {
			r.Version = func(context.Context, client.Client, *Account) (string, error) { return "", leak }
		},
		"Ready": func(r *external.Resource[*Account, entry]) {
			r.Ready = func(*Account, entry, entry) error { return leak }
		},
		"Others": func(r *external.Resource[*Account, entry]) {
			r.Others = func(context.Context, client.Reader, *Account, string) ([]*Account, error) { return nil, leak }
		},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t, external.ByKey, edit)
			reason := e.try()
			require.NotContains(t, reason, "s3cret")
			require.Contains(t, reason, "(hidden)")
		})
	}
}

// TestRefusedForAnErrorOfTheNetwork: Admit refuses an object because of a network error: the host that the object names
// does not exist. The step still calls the server for other objects.
func TestRefusedForAnErrorOfTheNetwork(t *testing.T) {
	c := newCommunity(t, func(r *external.Resource[*Account, entry]) {
		r.Admit = func(_ context.Context, _ client.Client, a *Account, _ external.Reference, _ *entry) error {
			if a.Spec.Login == "nowhere" {
				return external.Refused("NoSuchHost", &net.DNSError{Err: "no such host", Name: "nowhere", IsNotFound: true})
			}
			return nil
		}
	})
	c.create("x", "nowhere")
	c.create("y", "bob")
	require.Contains(t, c.pass("x"), "NoSuchHost")
	require.Equal(t, succeeded, c.pass("y"))
}
