package fakeapi

import (
	"cmp"
	"context"
	"sync"
	"time"

	"github.com/opblocks/opblocks/reconcile/reconciletest"
)

// API is a fake API outside of the cluster. It keeps things, such as accounts, and V is the type of their fields. It is a
// [reconciletest.External]. The zero value has no things, and names are unique. Set its fields before it is used.
//
// No faults happen at its methods Get, List, Create, Update and Delete. They are for what the user does outside of the cluster
// ([reconciletest.DoExternal]), and for the handler of [API.RoundTripper]. The operator calls the methods of a [Client].
type API[V any] struct {
	// Kind is the noun for a thing in names of calls and in messages, such as "account". Default: "thing".
	Kind string

	// GivesIDs reports whether the API gives each thing an ID, and allows several things of one name. By default the name is the ID. IDs need
	// not be excluded from the comparison of runs.
	GivesIDs bool

	// Existing are things that exist at the beginning. The operator may take them over.
	Existing []Thing[V]

	// Others are things that exist at the beginning and belong to somebody else. If the operator updates or deletes one, that is a
	// finding of the kind "changes what is not its own". [API.CreateForOthers] creates more of them.
	Others []Thing[V]

	// Lag is how long after a write a read may still return the state before that write. Default: 10 seconds.
	Lag time.Duration

	// OutageTime is how long an outage lasts. Default: a minute.
	OutageTime time.Duration

	begin sync.Once
	core  store[V]
}

var _ reconciletest.External = &API[int]{}

// Thing is an entry of the API. Fields is copied by assignment: do not change a map or a slice in it in place.
type Thing[V any] struct {
	ID     string // the API has given it; without [API.GivesIDs] it is the name
	Name   string // with [API.GivesIDs] it may be empty
	Owner  string // the owner in the operator's words, such as a tag or a comment. Optional
	Token  string // an idempotency key: with the token of a thing that exists, Create returns that thing. Optional
	Fields V      // what else the API keeps; see the comment of Thing

	// Version grows with each change of the thing. An update from another version than the present one is refused with status 412. If
	// Version is 0, it is not checked.
	Version int
}

// The defaults of the fields of an API.
const (
	defaultLag    = 10 * time.Second
	defaultOutage = time.Minute
)

// store returns the store of the API. The first call fills it with the things that exist at the beginning.
func (a *API[V]) store() *store[V] {
	a.begin.Do(func() {
		a.core.kind, a.core.givesIDs = cmp.Or(a.Kind, "thing"), a.GivesIDs
		a.core.lag = cmp.Or(a.Lag, defaultLag)
		for _, t := range a.Existing {
			a.core.insert(t, false)
		}
		for _, t := range a.Others {
			a.core.insert(t, true)
		}
	})
	return &a.core
}

// State implements [reconciletest.External]. It has the names, owners and fields of things. It leaves out IDs and tokens, which may differ
// between two runs with the same result.
func (a *API[V]) State() any { return a.store().state() }

// Things returns all things, sorted by name, for a check such as [reconciletest.Action.Then].
func (a *API[V]) Things() []Thing[V] {
	all, _ := a.List(context.Background()) // outside of a call of the operator it cannot fail
	return all
}

// Get returns the thing with the ID, or an [*Error] with status 404.
func (a *API[V]) Get(ctx context.Context, id string) (Thing[V], error) {
	return a.store().get(ctx, id)
}

// List returns all things, sorted by name. To find one by its owner, its name or its token, search the result.
func (a *API[V]) List(ctx context.Context) ([]Thing[V], error) { return a.store().list(ctx), nil }

// Create creates a thing, and returns it with its ID. It ignores t.ID. If a thing with the token of t exists, it returns that one, and
// creates none. If the name is taken, it returns an [*Error] with status 409, unless the API gives IDs.
func (a *API[V]) Create(ctx context.Context, t Thing[V]) (Thing[V], error) {
	return a.store().create(ctx, t)
}

// CreateForOthers is like Create, for [reconciletest.DoExternal]. The new thing belongs to somebody else, like a thing in [API.Others].
func (a *API[V]) CreateForOthers(ctx context.Context, t Thing[V]) (Thing[V], error) {
	made, err := a.store().create(ctx, t)
	if err == nil {
		a.store().giveAway(made.ID)
	}
	return made, err
}

// Update sets the fields of the thing with the ID t.ID. If the API gives no IDs, it may also be found by t.Name. If the name, owner or
// token of t is empty, it stays as it is. It returns an [*Error] with status 404 if the thing does not exist, and with status 412 if t was
// made from another version of it.
func (a *API[V]) Update(ctx context.Context, t Thing[V]) error { return a.store().update(ctx, t) }

// Delete deletes the thing with the ID. If there is none, it returns an [*Error] with status 404.
func (a *API[V]) Delete(ctx context.Context, id string) error { return a.store().remove(ctx, id) }
