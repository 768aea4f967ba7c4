package controller

import (
	"context"
	"errors"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	userv1alpha1 "github.com/opblocks/opblocks/examples/databaseuser/api/v1alpha1"
	"github.com/opblocks/opblocks/examples/internal/accounts"
	"github.com/opblocks/opblocks/reconcile"
	"github.com/opblocks/opblocks/reconcile/external"
)

// progresses holds how far the statements for each DatabaseUser are that take several passes. It lives as long as package external remembers which
// accounts are done.
type progresses struct{ byName sync.Map } // types.NamespacedName → *progress

// progress is how far the statements for one DatabaseUser are. A later pass does not repeat what was refused, and does not set a password twice.
// The last one reports all that was refused.
type progress struct {
	uid        types.UID
	generation int64
	errs       []error
	refused    map[statement]bool
	kept       []accounts.Grant            // that could not be revoked
	passwords  map[accounts.Account]string // the versions that were set
}

// statement is one that grants or revokes.
type statement struct {
	account accounts.Account
	text    string
}

// of returns the progress of the passes before, and an empty one if the spec was another one.
func (p *progresses) of(u *userv1alpha1.DatabaseUser) *progress {
	name := client.ObjectKeyFromObject(u)
	if known, _ := p.byName.Load(name); known != nil {
		if last := known.(*progress); last.uid == u.UID && last.generation == u.Generation { //nolint:forcetypeassert // only these are stored
			return last
		}
	}
	none := &progress{uid: u.UID, generation: u.Generation, refused: map[statement]bool{}, passwords: map[accounts.Account]string{}}
	p.byName.Store(name, none)
	return none
}

func (p *progresses) forget(name types.NamespacedName) { p.byName.Delete(name) }

// goesOn reports whether a later pass goes on where the pass that returned err has stopped.
func goesOn(err error) bool {
	wait, ok := errors.AsType[reconcile.Waiter](err)
	if !ok {
		return false
	}
	switch reason, _ := wait.Waiting(); reason {
	case reconcile.Yielded, external.ReasonBusy, external.ReasonRateLimited, external.ReasonUnreachable, reasonUnreachable:
		return true
	}
	return false
}

// try sends a statement, unless it was refused before or the turn of the pass is over. A refusal that is of this statement only is kept. Any
// other error is returned.
func (p *progress) try(ctx context.Context, s statement, send func() error) (done bool, err error) {
	if p.refused[s] {
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
	p.refused[s], p.errs = true, append(p.errs, inField(s.text, err))
	return false, nil
}
