package external

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
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
	// the ID is unknown, and [Resource.ID] tells it then. If it only has tags, a process that lost its leadership right before a creation may create a second thing.
	ByToken
	// ByID is for an API that gives only an ID. If the answer to a creation is lost, the step does not create again. It reports
	// CreationUnknown, and a person has to write the ID into the record, or to clear the record, in the status.
	ByID
)

// Resource is one thing outside of the cluster for each object of a kind: how its API is called, and what is desired. T is the kind, and S is
// the state of the thing. The first eight fields are required. The others are in groups, and each group begins with what its zero values
// mean. All functions are called in a pass of [reconcile.Reconciler], and may return its errors, such as [reconcile.Wait] and
// [reconcile.Stalled]. c reads the kinds that the steps watch or reference.
//
// A function that panics is an error of its object, with the reason Panicked. A creation that panics is taken to have had an effect.
//
// No function may put a sensitive value into an error.
type Resource[T client.Object, S any] struct {
	// Required. With [ByID] and [ByToken], Key may be nil, and Keys takes its place if an object has several things.

	// Record returns where the record is in the status of obj.
	Record func(obj T) *Record

	// Key returns the name of the thing, in the terms of its API. If it changes, the step creates the new thing before it deletes the
	// former one, unless Recreate is set. With [ByKey] it must not be empty, and the keys of two objects must differ. It is optional with
	// [ByID] and [ByToken].
	Key func(obj T) string

	// Observe returns the state, or [ErrNotFound].
	Observe func(ctx context.Context, c client.Client, obj T, ref Reference) (S, error)

	// Desired returns the desired state, from the object and from what it refers to. A field that the object leaves to the API stays unset.
	// The step never writes the spec: the spec belongs to its author, and a tool that applies it from a repository would remove the value again.
	Desired func(ctx context.Context, c client.Client, obj T) (S, error)

	// Differs reports whether the observed state has to be updated. With Keys, the key of the reference says which of the things is meant.
	// Ignore a field that is unset in desired, since the API has chosen its value, which Observed can put into the status. Do not compare
	// a field that can only be written, such as a password: see Version.
	Differs func(ref Reference, observed, desired S) bool

	// Create creates the thing, and returns its ID, if the API gives one. It returns [ErrExists] if the key is taken.
	Create func(ctx context.Context, c client.Client, obj T, ref Reference, desired S) (id string, err error)

	// Update changes the observed state into the desired one. If the API takes only whole states, fill what is unset from the observed one.
	Update func(ctx context.Context, c client.Client, obj T, ref Reference, observed, desired S) error

	// Delete deletes the thing. If there is none, it returns nil or [ErrNotFound].
	Delete func(ctx context.Context, c client.Client, obj T, ref Reference) error

	// What the API is like. The zero values are for one that finds a thing by its key, shows what was created at once, and deletes later.

	// Identity says how a creation is found again whose answer was lost. Default: [ByKey].
	Identity Identity

	// ID returns the ID in an observed state. With it, the record gets the ID of what was taken over, and of what was found by its token
	// since the answer to its creation was lost. Optional: if Observe finds nothing by a token, leave it out with [ByToken]. Then an object that
	// is deleted while the answer is lost stops with the reason CreationUnknown.
	ID func(observed S) string

	// DeletesAtOnce is for an API in which the thing is gone when Delete returns, such as a statement of SQL. Default: after Delete the
	// thing is observed until it is gone.
	DeletesAtOnce bool

	// Grace is how long the API may take to show what was created. While it lasts, a thing that is not found is not created again.
	// Default: 0, for an API that shows it at once.
	Grace time.Duration

	// Timeout limits each call, by its context. A function that goes on for a second after the end of its context is left alone: its pass
	// ends with the reason Unreachable, and nothing that the function does then reaches the pass or the object. Until it returns, the passes
	// of its object end with the reason NotReturned and call nothing, so at most one goroutine for each object is lost to such a function.
	// Default: 10 seconds.
	Timeout time.Duration

	// What is desired beside Desired. The zero values are for one thing for each object, whose record is kept as it is.

	// Keys takes the place of Key if an object has several things, one for each key, such as an account on several hosts. Desired returns the
	// state of all of them, and Create, Update and Differs choose from it by the key of the reference. If there are
	// none, all that obj had is deleted, and neither Desired nor Version is called. The order of the keys does not matter, and a key that
	// occurs twice counts once. Optional.
	Keys func(obj T) []string

	// Save writes the record into the status, if the status keeps it in fields of its own: Record then returns a record that is made from
	// these fields. Save is called when the record has changed, before the status is written. Optional.
	Save func(obj T, record *Record)

	// Version returns a text that changes with everything of the desired state that is not in the object, such as
	// [secrets.Version] of the password. It must not call the API. A version that changes leads to an update, also if Differs
	// reports nothing. Optional.
	Version func(ctx context.Context, c client.Client, obj T) (string, error)

	// Succeeded returns the reason and the message of the condition of an object whose things are as desired. Optional.
	Succeeded func(obj T) (reason, message string)

	// Whose a thing is. The zero values take what is found after a creation for ours, and take nothing over.

	// IsOurs reports whether what was found was created for obj, such as by a tag with the UID of obj or with the token. It is asked before
	// anything that the record names is changed or deleted, but for what was taken over: somebody may have deleted ours, and somebody else may
	// have created another thing of the name. Optional, and recommended: without it, what is found is taken to be ours, since nothing was there right
	// before it was created.
	IsOurs func(obj T, ref Reference, observed S) bool

	// MarksOnlyPending says that the mark which IsOurs looks for is taken off when the creation is confirmed, since the API has no room for
	// it. IsOurs is then asked only of what is recorded as pending.
	MarksOnlyPending bool

	// Adopt returns nil if obj may take over what exists and is not recorded, and else an error, such as [ErrExists]. It should ask for a
	// request in the object, and for a proof in the observed state. Optional: without it nothing is taken over.
	Adopt func(obj T, observed S) error

	// Admit returns an error if a thing must not become obj's: it is asked before the thing is created, with observed nil, and before it is
	// taken over. It may call the API. If the error is made by [reconcile.Wait] or [Refused], nothing is recorded that was not recorded
	// before. Optional.
	Admit func(ctx context.Context, c client.Client, obj T, ref Reference, observed *S) error

	// Others returns the objects that want a group, and those whose record has a key of it; a field index finds them. obj may be among
	// them. Optional: with it, an object waits for the one that has the better claim, also while another one has yet to drop the key, with
	// a [ClaimedError]. Two objects can swap their keys. Without it, the later one reports AlreadyExists. Watch the kind with
	// [reconcile.Watching], so that an object goes on as soon as it can.
	Others func(ctx context.Context, c client.Reader, obj T, group string) ([]T, error)

	// Group returns what can belong to one object only, if that is more than one key, such as the user name of accounts on several hosts.
	// Default: the key.
	Group func(key string) string

	// Recreate deletes what obj has under former keys before it creates the new one. Default: the new one is created first.
	Recreate bool

	// What an object forbids. The zero values forbid nothing.

	// Retain reports whether the thing is left as it is when obj is deleted, or when its key changes. Optional.
	Retain func(obj T) bool

	// ObserveOnly reports whether the thing is only observed: it is neither created, updated nor deleted. Optional.
	ObserveOnly func(obj T) bool

	// CreateOnly reports whether the thing is left as it is once it exists: Update is not called. Deletion is as usual. Optional.
	CreateOnly func(obj T) bool

	// MustExist reports whether somebody else creates the thing: Create is not called, and while it does not exist, the object waits. What
	// exists is taken over by Adopt, and is then updated and deleted as usual. With [ByID] and [ByToken], somebody has to write the ID into the
	// record. Optional.
	MustExist func(obj T) bool

	// What is told of a thing. The zero values tell nothing, and take each thing that is as desired for ready.

	// Observed is told of the state of the thing after each observation, unless it is somebody else's. With it, the thing is observed once more after
	// each creation and update. It may change the status of obj, for example by an address or a default that the API chose. With ObserveOnly it is
	// told of whatever has the key. Optional.
	Observed func(obj T, state S)

	// Ready returns an error while a thing that is as desired cannot be used yet, such as [reconcile.Wait] while the API still prepares
	// it. With it, the thing is observed once more after each creation and update. If ObserveOnly is true, desired is the zero value. Optional.
	Ready func(obj T, observed, desired S) error

	// The Secret in which it is published. The zero values publish nothing.

	// Publish returns the Secret in which what the API has made of the thing is published, such as its address and credentials, or nil for none.
	// It belongs to obj: it is written if it differs, repaired after an observation if somebody changes or deletes it, and deleted with obj, or
	// when Publish returns another name. A Secret of somebody else is left alone, with the reason OwnedByAnother. The thing is observed once
	// more after each creation and update. The operator needs the verbs get, list, watch, create, patch and delete on secrets. Optional.
	Publish func(obj T, state S) *corev1.Secret

	// Issue issues a credential that the API shows only once, such as by a new password, and returns the values of the keys that Publish has
	// left empty. It is called after the creation, and whenever the Secret does not have what it returned last: if the process has died
	// before the Secret was written, or if somebody has changed or deleted it. So it must make invalid what it issued before, and the answer
	// to a creation is not needed. Optional.
	Issue func(ctx context.Context, c client.Client, obj T, ref Reference, observed S) (map[string][]byte, error)

	// How often the API is called. The zero values are an interval of 10 minutes, one server, and no limits.

	// Every is the interval at which the thing is observed and repaired. Up to a tenth is added. Default: 10 minutes.
	Every time.Duration

	// EveryAtLeast is the shortest interval that [IntervalAnnotation] may set for an object. It must not be more than Every. Default: a
	// minute, or Every if that is less.
	EveryAtLeast time.Duration

	// Server returns the server that has the thing, if there are several. If a server does not answer, no object calls it for
	// a while: a second at first, 15 seconds at most. Then one object tries again while the others wait. Objects of other servers go on. Optional.
	Server func(obj T) string

	// Concurrency limits how many objects of one server are handled at a time, so that a server that hangs does not hold up the others. It
	// should be less than MaxConcurrentReconciles of the controller. Default: no limit.
	Concurrency int

	// Quota limits the calls of this process. Give the same limiter to all resources that share a quota. Polls leave a quarter of the burst
	// to objects that a person has changed. A pass that has to wait ends, and holds no worker. A call that follows from another one, such as the
	// observation of what was created, is made at once, and later passes wait for its token. If the quota is for more replicas than one, give each its share. Default: no limit.
	Quota *rate.Limiter

	// ObserveInPlans makes the plan of an upgrade (package upgrade) observe each thing, within Quota, so that it knows what would be updated. By
	// default a plan does not call the API: it decides by what is recorded, and says for the rest that it was not compared.
	ObserveInPlans bool

	// Clock is the real clock, unless a test sets it.
	Clock clock.PassiveClock
}

const (
	defaultEvery        = 10 * time.Minute
	defaultEveryAtLeast = time.Minute
	defaultTimeout      = 10 * time.Second
)

// validate returns an error for each field that is missing or impossible.
func (r *Resource[T, S]) validate() error {
	var errs []error
	for _, field := range []struct {
		name    string
		missing bool
	}{
		{"Record", r.Record == nil},
		{"Key", r.Key == nil && r.Keys == nil && r.Identity == ByKey},
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
	if r.Key != nil && r.Keys != nil {
		errs = append(errs, errors.New("set Key or Keys, and not both"))
	}
	if r.Others != nil && r.Key == nil && r.Keys == nil {
		errs = append(errs, errors.New("set Key or Keys, which Others compares"))
	}
	if r.Publish != nil && r.Keys != nil {
		errs = append(errs, errors.New("set Publish only with Key: it is for one thing"))
	}
	if r.Issue != nil && r.Publish == nil {
		errs = append(errs, errors.New("set Publish, which says where the values of Issue are published"))
	}
	if r.Concurrency < 0 {
		errs = append(errs, fmt.Errorf("set Concurrency to 0 for no limit, or to more; it is %d", r.Concurrency))
	}
	if least := min(r.Every, r.EveryAtLeast, r.Grace, r.Timeout); least < 0 {
		errs = append(errs, fmt.Errorf("set none of Every, EveryAtLeast, Grace and Timeout to less than 0, as %v is", least))
	}
	if every := cmp.Or(r.Every, defaultEvery); r.EveryAtLeast > every {
		errs = append(errs, fmt.Errorf("set EveryAtLeast to at most Every, which is %v; it is %v", every, r.EveryAtLeast))
	}
	if r.Identity < ByKey || r.Identity > ByID {
		errs = append(errs, fmt.Errorf("Identity is %d; set ByKey, ByToken or ByID", r.Identity))
	}
	if len(errs) == 0 {
		return nil
	}
	return fmt.Errorf("external.Resource: %w", errors.Join(errs...))
}

// keysOf returns the keys of what is desired, sorted, each one once.
func (r *Resource[T, S]) keysOf(obj T) []string {
	switch {
	case r.Keys != nil:
		return slices.Compact(slices.Sorted(slices.Values(r.Keys(obj))))
	case r.Key != nil:
		return []string{r.Key(obj)}
	}
	return []string{""} // with ByID and ByToken
}

// group returns what can belong to one object only.
func (r *Resource[T, S]) group(key string) string {
	if r.Group == nil {
		return key
	}
	return r.Group(key)
}

func (r *Resource[T, S]) server(obj T) string {
	if r.Server == nil {
		return ""
	}
	return r.Server(obj)
}
