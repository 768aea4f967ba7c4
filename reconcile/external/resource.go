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

// Identity says how the step finds a thing again if the answer to its creation was lost.
type Identity int

const (
	// ByKey is for an API in which the key is the name: Observe finds the thing by [Reference.Key], and the API refuses a second
	// creation with this key, for which Create returns [ErrExists]. It is the default.
	ByKey Identity = iota
	// ByToken is for an API that takes [Reference.Token] as an idempotency key: a second Create with this token creates nothing, and returns
	// the ID that the first one returned. If the API also finds things by the token, such as by a tag, Observe may use the token while the ID
	// is unknown, and [Resource.ID] then returns the ID. If the API only has tags, a process that lost its leadership right before a creation
	// may create a second thing.
	ByToken
	// ByID is for an API that gives only an ID. If the answer to a creation is lost, the step does not create again. It reports
	// CreationUnknown, and a person has to write the ID into the record in the status, or to clear the record.
	ByID
)

// Resource says how a step calls an API outside of the cluster, and which state is desired. Each object of a kind has one thing there,
// unless Keys is set. T is the kind, and S is the state of the thing. The first eight fields are required. The other fields are in groups.
// Each group begins with a comment that says what the zero values mean. All functions are called in a pass of [reconcile.Reconciler], and
// may return its errors, such as [reconcile.Wait] and [reconcile.Stalled]. c reads the kinds that the steps watch or reference.
//
// If a function panics, its object gets an error with the reason Panicked. If Create panics, the step assumes that the thing may exist.
//
// No function may put a sensitive value into an error.
type Resource[T client.Object, S any] struct {
	// Required. With [ByID] and [ByToken], Key may be nil. If an object has several things, set Keys instead of Key.

	// Record returns the field of obj's status that has the record.
	Record func(obj T) *Record

	// Key returns the name of the thing in its API. If the key changes, the step creates the new thing before it deletes the former
	// one, unless Recreate is set. With [ByKey] the key must not be empty, and the keys of two objects must differ. Key is optional
	// with [ByID] and [ByToken].
	Key func(obj T) string

	// Observe returns the state of the thing, or [ErrNotFound].
	Observe func(ctx context.Context, c client.Client, obj T, ref Reference) (S, error)

	// Desired returns the desired state, from the object and from the objects that it refers to. If the object leaves the choice of a value to
	// the API, leave that field of S unset. The step never writes the value that the API has chosen into the spec: the spec belongs to its
	// author, and a tool that applies the spec from a repository would remove the value again.
	Desired func(ctx context.Context, c client.Client, obj T) (S, error)

	// Differs reports whether the observed state has to be updated. With Keys, the key of the reference says which thing is meant. Ignore
	// a field that is unset in desired: the API has chosen its value, and Observed can put that value into the status. Do not compare a
	// field that can only be written, such as a password: see Version.
	Differs func(ref Reference, observed, desired S) bool

	// Create creates the thing. If the API gives an ID, Create returns it. If the key is taken, Create returns [ErrExists].
	Create func(ctx context.Context, c client.Client, obj T, ref Reference, desired S) (id string, err error)

	// Update changes the observed state into the desired one. If the API takes only whole states, copy unset fields from the observed state.
	Update func(ctx context.Context, c client.Client, obj T, ref Reference, observed, desired S) error

	// Delete deletes the thing. If it does not exist, Delete returns nil or [ErrNotFound].
	Delete func(ctx context.Context, c client.Client, obj T, ref Reference) error

	// Properties of the API. The zero values are for an API that finds a thing by its key, shows a created thing at once, and deletes
	// later.

	// Identity says how the step finds a thing again if the answer to its creation was lost. Default: [ByKey].
	Identity Identity

	// ID returns the ID in an observed state. With ID, the step records the ID of a thing that was taken over. If the answer to a creation
	// was lost, it records the ID of the thing that Observe finds by its token. Optional. With [ByToken], leave ID out if Observe cannot
	// find a thing by a token. Then, if an object is deleted after the answer to its creation was lost, its cleanup stops with the reason
	// CreationUnknown.
	ID func(observed S) string

	// DeletesAtOnce is for an API in which the thing is gone when Delete returns, such as with a statement of SQL. By default, the step
	// observes the thing after Delete until it is gone.
	DeletesAtOnce bool

	// Grace is how long the API may take to show a created thing, from the last try to create it. During this time, a thing that is not
	// found is not created again. The default is 0, for an API that shows a created thing at once.
	Grace time.Duration

	// Timeout limits each call, by its context. If a function still runs a second after the end of its context, its pass ends without it,
	// with the reason Unreachable. From then on the function cannot reach the pass or the object. Until it returns, the passes of its object
	// end with the reason NotReturned and call nothing, so such functions cost at most one goroutine for each object. Default: 10 seconds.
	Timeout time.Duration

	// The desired state, in addition to Desired. The zero values are for one thing for each object, and for a record that is
	// stored in the status as it is.

	// Keys is used instead of Key if an object has several things, one for each key, such as an account on several hosts. Desired returns
	// the state of all of them. Create, Update and Differs use the part of this state that belongs to the key of the reference. Without
	// keys, the step deletes all things of obj, and calls neither Desired nor Version. The order of the keys does not matter, and a key
	// that occurs twice counts once. Optional.
	Keys func(obj T) []string

	// Save writes the record into other fields of the status, for a status that does not contain the record itself. The function
	// Record then returns a record with the values of these fields. Save is called when the record has changed, before the status
	// is written. Optional.
	Save func(obj T, record *Record)

	// Version returns a text for the parts of the desired state that are not in the object. The text changes whenever one of
	// these parts changes. An example is [secrets.Version] of the password. Version must not call the API. If the version
	// changes, the step updates the thing even if Differs returns false. Optional.
	Version func(ctx context.Context, c client.Client, obj T) (string, error)

	// Succeeded returns the reason and the message of the condition, for an object whose things are as desired.
	// Optional.
	Succeeded func(obj T) (reason, message string)

	// Who owns a thing. With the zero values, a thing that is found after its creation is ours, and nothing is taken over.

	// IsOurs reports whether the thing that was found was created for obj. It may check a tag with the UID of obj, or the token. The step
	// calls it before it changes or deletes a recorded thing, except a thing that was taken over. Somebody may have deleted our thing, and
	// somebody else may have created another one with the same name. Optional, and recommended. Without it, the thing that is found is
	// taken for ours, because it did not exist right before our creation.
	IsOurs func(obj T, ref Reference, observed S) bool

	// MarksOnlyPending is for an API that cannot store the mark which IsOurs checks for long: the thing has the mark only until its
	// creation is confirmed. The step then calls IsOurs only for things that are recorded as pending.
	MarksOnlyPending bool

	// Adopt returns nil if obj may take over a thing that exists and is not recorded. Otherwise it returns an error, such as [ErrExists].
	// It should check that the object asks for this, and that the observed state proves that the object may have the thing. Optional:
	// without it nothing is taken over.
	Adopt func(obj T, observed S) error

	// Admit returns an error if obj must not get a thing. The step calls it before it creates the thing, with observed nil, and before it
	// takes the thing over. Admit may call the API. If the error is made by [reconcile.Wait] or [Refused], the step does not record
	// anything that was not recorded before. Optional.
	Admit func(ctx context.Context, c client.Client, obj T, ref Reference, observed *S) error

	// Others returns the objects that want a group, and the objects whose record has a key of it. A field index finds them. obj may be
	// among them. Optional. With Others, an object waits, with the error [ClaimedError], for the object to which the key belongs, or
	// which does not want the key any more and still has it. So two objects can swap their keys. Without Others, the later object
	// reports AlreadyExists. Watch the kind with [reconcile.Watching], so that an object continues as soon as it can.
	Others func(ctx context.Context, c client.Reader, obj T, group string) ([]T, error)

	// Group returns the group of a key: all keys of a group belong to the same object. An example is the user name of accounts on several
	// hosts. Default: the key.
	Group func(key string) string

	// Recreate is for a changed key. If it is true, the step deletes the thing with the former key before it creates the new one. By
	// default, it creates the new one first.
	Recreate bool

	// What an object forbids. The zero values forbid nothing.

	// Retain reports whether the thing is kept when obj is deleted, or when its key changes. Optional.
	Retain func(obj T) bool

	// ObserveOnly reports whether the thing is only observed: it is not created, updated or deleted. Optional.
	ObserveOnly func(obj T) bool

	// CreateOnly reports whether the thing is not changed after its creation: Update is not called. Deletion works as usual.
	// Optional.
	CreateOnly func(obj T) bool

	// MustExist reports whether somebody else has to create the thing. Create is not called, and while the thing does not exist, the object
	// waits. When the thing exists, Adopt takes it over, and the step updates and deletes it as usual. With [ByID] and [ByToken], somebody
	// has to write the ID into the record. Optional.
	MustExist func(obj T) bool

	// Functions that get the observed state. With the zero values, no function gets it, and a thing that is as desired is ready.

	// Observed is called with the state of the thing after each observation, unless the thing is somebody else's. It may change the status of
	// obj, for example by an address or a default that the API chose. With Observed, the step observes the thing once more after each creation
	// and update. With ObserveOnly, Observed is called with any thing that has the key. Optional.
	Observed func(obj T, state S)

	// Ready returns an error while a thing that is as desired cannot be used yet, such as [reconcile.Wait] while the API is still preparing
	// it. With Ready, the step observes the thing once more after each creation and update. If ObserveOnly returns true, desired is the
	// zero value. Optional.
	Ready func(obj T, observed, desired S) error

	// The Secret with values of the thing. With the zero values, nothing is published.

	// Publish returns the Secret in which the step publishes values that the API has made, such as an address and credentials. nil means no
	// Secret. The Secret belongs to obj. It is written if it differs, and deleted with obj, or when Publish returns another name. If
	// somebody changes or deletes it, the step repairs it after an observation. A Secret of somebody else is not changed, and the reason is
	// OwnedByAnother. With Publish, the step observes the thing once more after each creation and update. The operator needs the verbs get,
	// list, watch, create, patch and delete on secrets. Optional.
	Publish func(obj T, state S) *corev1.Secret

	// Issue issues a credential that the API shows only once, such as a new password. It returns the values of the keys that Publish has
	// left empty. The step calls it after the creation, and whenever the Secret does not have the values that Issue returned last: the
	// process may have died before it wrote the Secret, or somebody may have changed or deleted the Secret. So Issue must make invalid what
	// it issued before. Optional.
	Issue func(ctx context.Context, c client.Client, obj T, ref Reference, observed S) (map[string][]byte, error)

	// How often the API is called. The zero values are an interval of 10 minutes, one server, and no limits.

	// Every is the interval at which the step observes and repairs the thing. Up to a tenth is added. Default: 10 minutes.
	Every time.Duration

	// EveryAtLeast is the shortest interval that [IntervalAnnotation] may set for an object. It must not be more than Every. Default: a
	// minute, or Every if that is less.
	EveryAtLeast time.Duration

	// Server returns the server of the thing, if the API has several servers. If a server does not answer, no object calls it for a while:
	// for a second at first, for 15 seconds at most. Then one object tries again, and the others wait. Objects of other servers are not
	// affected. Optional.
	Server func(obj T) string

	// Concurrency limits how many objects of one server are handled at a time, so that objects of other servers do not wait for a server
	// that hangs. It should be less than MaxConcurrentReconciles of the controller. Default: no limit.
	Concurrency int

	// Quota limits the calls of this process. Give the same limiter to all resources that share a quota. Polls leave a quarter of the burst
	// to objects that a person has changed. If the quota is used up, a pass ends and is repeated later, so that it does not block a worker.
	// A call that follows from another one, such as the observation of a created thing, is made at once even if the quota is used up, and
	// later passes wait longer. If several replicas share the quota, give each replica a part of it. Default: no limit.
	Quota *rate.Limiter

	// ObserveInPlans makes the plan of an upgrade (package upgrade) observe each thing, within Quota, so that the plan says what would be
	// updated. By default a plan does not call the API. It uses the record, and says that it did not compare the things.
	ObserveInPlans bool

	// Clock is the real clock, unless a test sets it.
	Clock clock.PassiveClock
}

const (
	defaultEvery        = 10 * time.Minute
	defaultEveryAtLeast = time.Minute
	defaultTimeout      = 10 * time.Second
)

// validate returns an error for each field that is missing or has an impossible value.
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

// keysOf returns the desired keys of an object, sorted and without duplicates.
func (r *Resource[T, S]) keysOf(obj T) []string {
	switch {
	case r.Keys != nil:
		return slices.Compact(slices.Sorted(slices.Values(r.Keys(obj))))
	case r.Key != nil:
		return []string{r.Key(obj)}
	}
	return []string{""} // ByID and ByToken need no key
}

// group returns the group of a key.
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
