package external

import (
	"context"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/reconcile"
	"github.com/opblocks/opblocks/reconcile/external/internal/calls"
)

// firstLook is the delay after a creation or a deletion until the step looks again whether the API shows it.
const firstLook = 5 * time.Second

// outside makes the calls of a pass to the API, and compares their answers with the record.
type outside[T client.Object, S any] struct {
	resource *Resource[T, S]
	client   client.Client
	obj      T
	visit    *calls.Visit
	seen     S // the last observed state of a desired thing
}

// desired returns the desired state. The function of the resource may send requests to the cluster.
func (o *outside[T, S]) desired(ctx context.Context) (S, error) {
	return o.resource.Desired(ctx, o.client, o.obj)
}

// observe returns the state of a thing, even if the thing belongs to somebody else. If the API needs an ID or a token to find the thing,
// and the record has neither, observe returns ErrNotFound.
func (o *outside[T, S]) observe(ctx context.Context, ref Reference) (observed S, err error) {
	if ref.ID == "" && (o.resource.Identity == ByID || o.resource.Identity == ByToken && ref.Token == "") {
		return observed, ErrNotFound
	}
	return calls.Ask(ctx, o.visit, calls.Observe, func(ctx context.Context) (S, error) {
		return o.resource.Observe(ctx, o.client, o.obj, ref)
	})
}

// tell passes the state of a desired thing to the function Observed.
func (o *outside[T, S]) tell(observed S) {
	if o.seen = observed; o.resource.Observed != nil {
		o.resource.Observed(o.obj, observed)
	}
}

func (o *outside[T, S]) create(ctx context.Context, ref Reference, desired S) (id string, err error) {
	return calls.Ask(ctx, o.visit, calls.Create, func(ctx context.Context) (string, error) {
		return o.resource.Create(ctx, o.client, o.obj, ref, desired)
	})
}

func (o *outside[T, S]) update(ctx context.Context, ref Reference, observed, desired S) error {
	return o.call(ctx, calls.Update, func(ctx context.Context) error {
		return o.resource.Update(ctx, o.client, o.obj, ref, observed, desired)
	})
}

func (o *outside[T, S]) delete(ctx context.Context, ref Reference) error {
	return o.call(ctx, calls.Delete, func(ctx context.Context) error { return o.resource.Delete(ctx, o.client, o.obj, ref) })
}

func (o *outside[T, S]) admit(ctx context.Context, ref Reference, observed *S) error {
	return o.call(ctx, calls.Admit, func(ctx context.Context) error { return o.resource.Admit(ctx, o.client, o.obj, ref, observed) })
}

func (o *outside[T, S]) issue(ctx context.Context, ref Reference) (map[string][]byte, error) {
	seen := o.seen
	return calls.Ask(ctx, o.visit, calls.Issue, func(ctx context.Context) (map[string][]byte, error) {
		return o.resource.Issue(ctx, o.client, o.obj, ref, seen)
	})
}

// call calls a function of the resource that returns only an error.
func (o *outside[T, S]) call(ctx context.Context, f calls.Function, do func(ctx context.Context) error) error {
	_, err := calls.Ask(ctx, o.visit, f, func(ctx context.Context) (struct{}, error) { return struct{}{}, do(ctx) })
	return err
}

// isOurs reports whether the thing that was found is the recorded thing.
func (o *outside[T, S]) isOurs(ref Reference, observed S) bool {
	return !o.asks(ref) || o.resource.IsOurs(o.obj, ref, observed)
}

// asks reports whether isOurs has to call IsOurs for a thing.
func (o *outside[T, S]) asks(ref Reference) bool {
	r := o.resource
	return r.IsOurs != nil && (ref.Pending || r.Identity == ByKey && !r.MarksOnlyPending && !ref.Adopted)
}

// withID returns the reference, with the ID of the observed thing if it had no ID.
func (o *outside[T, S]) withID(ref Reference, observed S) Reference {
	if o.resource.ID != nil && ref.ID == "" {
		ref.ID = o.resource.ID(observed)
	}
	return ref
}

// isUnknown reports whether it cannot be found out if a creation had an effect: its answer was lost, and the API finds
// a thing only by an ID.
func (o *outside[T, S]) isUnknown(ref Reference) bool {
	return ref.Pending && ref.ID == "" && o.resource.Identity == ByID
}

// isLost reports whether it cannot be found out if a creation had an effect. That is also so for a thing with a token, if [Resource.ID]
// is nil: then Observe may not be able to find a thing by its token.
func (o *outside[T, S]) isLost(ref Reference) bool {
	return o.isUnknown(ref) || ref.Pending && ref.ID == "" && o.resource.Identity == ByToken && o.resource.ID == nil
}

// unknown returns the error for a creation whose answer was lost, if it cannot be found out whether the thing exists.
func unknown(ref Reference) error {
	return reconcile.Stalled(reasonUnknown, fmt.Errorf("the answer to the creation of %s was lost, so it may exist: it is not created again; "+
		"look for it in the API, and write its ID into the status, or remove pending from the status if it does not exist", ref))
}

// notFound returns the error with which the step waits for a thing that somebody else has to create.
func notFound(ref Reference, every time.Duration) error {
	return reconcile.LowPriority(reconcile.Wait(reasonNotFound, every, "%s does not exist, and is not to be created", ref))
}
