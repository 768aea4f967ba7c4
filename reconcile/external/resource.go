package external

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Identity says how a creation is found again whose answer was lost.
type Identity int

const (
	// ByKey is for an API in which the key is the name: Observe finds it by [Reference.Key], and a second creation with this key is
	// refused with [ErrExists]. It is the default.
	ByKey Identity = iota
	// ByToken is for an API that takes [Reference.Token] as an idempotency key: a second Create with this token creates nothing, and
	// returns the ID that the first one returned. If the API also finds things by the token, such as by a tag, Observe may do so while
	// the ID is unknown. If it only has tags, a process that lost its leadership right before a creation may create a second thing.
	ByToken
	// ByID is for an API that gives only an ID. If the answer to a creation is lost, the step does not create again. It reports
	// CreationUnknown, and a person has to write the ID into the record, or to clear the record, in the status.
	ByID
)

// Resource is one thing outside of the cluster for each object of a kind: how its API is called, and what is desired. T is the kind, and S is
// the state of the thing. The fields without "optional" are required. All functions are called in a pass of [reconcile.Reconciler], and may
// return its errors, such as [reconcile.Wait] and [reconcile.Stalled]. c reads the kinds that the steps watch or reference.
//
// No function may put a sensitive value into an error.
type Resource[T client.Object, S any] struct {
	// Record returns where the record is in the status of obj.
	Record func(obj T) *Record

	// Key returns the name of the thing, in the terms of its API. If it changes, the step creates the new thing before it deletes the
	// former one. With [ByKey] it must not be empty, and the keys of two objects must differ. It is optional with [ByID] and [ByToken].
	Key func(obj T) string

	// Identity says how a creation is found again whose answer was lost. Default: [ByKey].
	Identity Identity

	// Observe returns the state, or [ErrNotFound].
	Observe func(ctx context.Context, c client.Client, obj T, ref Reference) (S, error)

	// Desired returns the desired state, from the object and from what it refers to.
	Desired func(ctx context.Context, c client.Client, obj T) (S, error)

	// Differs reports whether the observed state has to be updated. Leave out what can only be written, such as a password: see Version.
	Differs func(observed, desired S) bool

	// Create creates the thing, and returns its ID, if the API gives one. It returns [ErrExists] if the key is taken.
	Create func(ctx context.Context, obj T, ref Reference, desired S) (id string, err error)

	// Update changes the observed state into the desired one.
	Update func(ctx context.Context, obj T, ref Reference, observed, desired S) error

	// Delete deletes the thing. It succeeds if there is none.
	Delete func(ctx context.Context, obj T, ref Reference) error

	// Version returns a text that changes with everything of the desired state that is not in the object, such as
	// [reconcile.SecretVersion] of the password. It must not call the API. A version that changes leads to an update, also if Differs
	// reports nothing. Optional.
	Version func(ctx context.Context, c client.Client, obj T) (string, error)

	// IsOurs reports whether what was found for a pending record was created for obj, such as by a tag with the UID of obj or with
	// the token. Optional: without it, what is found is taken to be ours, since nothing was there right before.
	IsOurs func(obj T, ref Reference, observed S) bool

	// Adopt reports whether obj may take over what exists and is not recorded. It should ask for a request in the object, and for a proof
	// in the observed state. Optional: without it nothing is taken over.
	Adopt func(obj T, observed S) bool

	// Others returns the objects whose key is this one, and those whose record has it; a field index finds them. obj may be among them. Optional:
	// with it, an object waits until another one has dropped a key, and two objects can swap their keys. Without it, the later one reports
	// AlreadyExists.
	Others func(ctx context.Context, c client.Reader, obj T, key string) ([]T, error)

	// Retain reports whether the thing is left as it is when obj is deleted, or when its key changes. Optional.
	Retain func(obj T) bool

	// ObserveOnly reports whether the thing is only observed: it is neither created, updated nor deleted. Optional.
	ObserveOnly func(obj T) bool

	// Observed is told of the state after each observation of what is desired, not of what is about to be deleted. With it, the thing is observed once more after each creation and update. It may
	// change the status of obj, for example by an address or a default that the API chose. Optional.
	Observed func(obj T, state S)

	// Server returns the server that has the thing, if there are several. A server that gives no answer is spared: for a second at first, and
	// at most for 15 seconds, no object calls it. Then one tries, while the others wait. Objects of other servers go on. Optional.
	Server func(obj T) string

	// Concurrency limits how many objects of one server are handled at a time, so that a server that hangs does not hold up the others. It
	// should be less than MaxConcurrentReconciles of the controller. Default: no limit.
	Concurrency int

	// Quota limits the calls of this process. Give the same limiter to all resources that share a quota. Polls leave a quarter of the burst
	// to objects that a person has changed. If the quota is for more replicas than one, give each its share. Default: no limit.
	Quota *rate.Limiter

	// Every is the interval at which the thing is observed and repaired. Up to a tenth is added. Default: 10 minutes.
	Every time.Duration

	// Grace is how long the API may take to show what was created. While it lasts, a thing that is not found is not created again.
	// Default: 0, for an API that shows it at once.
	Grace time.Duration

	// Timeout limits each call, by its context. Default: 10 seconds.
	Timeout time.Duration

	// Clock is the real clock, unless a test sets it.
	Clock clock.PassiveClock
}

const (
	defaultEvery   = 10 * time.Minute
	defaultTimeout = 10 * time.Second
)

// validate returns an error for each field that is missing or impossible.
func (r *Resource[T, S]) validate() error {
	var errs []error
	for _, field := range []struct {
		name    string
		missing bool
	}{
		{"Record", r.Record == nil},
		{"Key", r.Key == nil && r.Identity == ByKey},
		{"Observe", r.Observe == nil},
		{"Desired", r.Desired == nil},
		{"Differs", r.Differs == nil},
		{"Create", r.Create == nil},
		{"Update", r.Update == nil},
		{"Delete", r.Delete == nil},
	} {
		if field.missing {
			errs = append(errs, fmt.Errorf("set %s", field.name))
		}
	}
	if r.Concurrency < 0 {
		errs = append(errs, fmt.Errorf("set Concurrency to 0 for no limit, or to more; it is %d", r.Concurrency))
	}
	if least := min(r.Every, r.Grace, r.Timeout); least < 0 {
		errs = append(errs, fmt.Errorf("set none of Every, Grace and Timeout to less than 0, as %v is", least))
	}
	if r.Identity < ByKey || r.Identity > ByID {
		errs = append(errs, fmt.Errorf("Identity is %d; set ByKey, ByToken or ByID", r.Identity))
	}
	if len(errs) == 0 {
		return nil
	}
	return fmt.Errorf("external.Resource: %w", errors.Join(errs...))
}
