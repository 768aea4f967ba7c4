package controller

import (
	"context"
	"errors"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	userv1alpha1 "github.com/opblocks/opblocks/examples/databaseuser/api/v1alpha1"
	"github.com/opblocks/opblocks/examples/internal/accounts"
	"github.com/opblocks/opblocks/reconcile"
)

// refusals holds what the server has refused of each DatabaseUser whose statements take several passes. A later pass does not repeat a statement
// that was refused, and the last one reports all of them.
type refusals struct{ byUID sync.Map }

// refused is what the server has refused of one DatabaseUser.
type refused struct {
	generation int64
	errs       []error
	known      map[statement]bool
	kept       []accounts.Grant // that could not be revoked
}

// statement is one that grants or revokes.
type statement struct {
	accounts.Account
	text string
}

// of returns what was refused in the passes before, and nothing if the spec was another one.
func (r *refusals) of(u *userv1alpha1.DatabaseUser) *refused {
	if last, _ := r.byUID.Load(u.UID); last != nil && last.(*refused).generation == u.Generation { //nolint:forcetypeassert // only these are stored
		return last.(*refused) //nolint:forcetypeassert // the same
	}
	none := &refused{generation: u.Generation, known: map[statement]bool{}}
	r.byUID.Store(u.UID, none)
	return none
}

// endPass forgets what was refused, unless the statements go on in a later pass.
func (r *refusals) endPass(uid types.UID, err error) {
	if wait, ok := errors.AsType[reconcile.Waiter](err); ok {
		if reason, _ := wait.Waiting(); reason == reconcile.Yielded {
			return
		}
	}
	r.byUID.Delete(uid)
}

// try sends a statement, unless it was refused before or the turn of the pass is over. A refusal that is of this statement only is kept. Any
// other error is returned.
func (r *refused) try(ctx context.Context, s statement, send func() error) (done bool, err error) {
	if r.known[s] {
		return false, nil
	}
	if err := reconcile.Yield(ctx); err != nil {
		return false, err
	}
	err = send()
	_, isStatement := errors.AsType[*accounts.StatementError](err)
	_, isInvalid := errors.AsType[*accounts.InvalidError](err)
	if !isStatement && !isInvalid {
		return err == nil, inField(s.text, err)
	}
	r.known[s], r.errs = true, append(r.errs, inField(s.text, err))
	return false, nil
}
