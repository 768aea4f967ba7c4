package reconcile

import (
	"cmp"
	"errors"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrlreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// state is what became of a step.
type state int

const (
	succeeded state = iota
	skipped
	waiting
	conflicted // somebody wrote meanwhile, or the cache is behind: no failure
	failed
	terminal
)

func (s state) String() string {
	return [...]string{"succeeded", "skipped", "waiting", "conflicted", "failed", "terminal"}[s]
}

// outcome is what became of a step, ready to be shown.
type outcome struct {
	step            int // index of the step, or noStep
	state           state
	reason, message string
	after           time.Duration
	notBefore       time.Duration
	retries         bool // by backoff
	refused         bool // by backoff too, but only for a while
	halts           bool
	unshown         bool
	err             error
}

const (
	reasonSucceeded = "Succeeded"
	reasonSkipped   = "Skipped"
	reasonFailed    = "Failed"
	reasonInvalid   = "Invalid"
	reasonConflict  = "Conflict"
	reasonForbidden = "Forbidden"
)

// outcomeOf classifies a step's error. Of several joined errors each is looked at, and the worst
// is shown: a failure is never hidden by a wait, a conflict or a halt beside it.
func outcomeOf(err error) outcome {
	o := outcome{reason: reasonSucceeded}
	for _, leaf := range leaves(err) {
		one := outcomeOfOne(leaf)
		halts, after, retries, refused := o.halts || one.halts, o.after, o.retries || one.retries, o.refused || one.refused
		notBefore, unshown := max(o.notBefore, one.notBefore), o.unshown || one.unshown
		if one.after > 0 && (after == 0 || one.after < after) {
			after = one.after
		}
		if one.state > o.state || o.state == succeeded {
			o = one
		}
		o.halts, o.after, o.retries, o.refused, o.notBefore, o.unshown = halts, after, retries, refused, notBefore, unshown
	}
	if o.state != succeeded {
		o.err = err
		o.message = strings.ReplaceAll(err.Error(), "\n", "; ") // errors.Join puts each on a line
		o.message = strings.ToValidUTF8(o.message, "\uFFFD")    // as it is stored, or it would differ in each pass
	}
	return o
}

// joinedError is made of several, by errors.Join or fmt.Errorf.
type joinedError interface {
	error
	Unwrap() []error
}

// leaves takes joined errors apart.
func leaves(err error) []error {
	if err == nil {
		return nil
	}
	joined, ok := err.(joinedError) //nolint:errorlint // what it wraps is taken apart later
	if !ok {
		return []error{err}
	}
	var all []error
	for _, e := range joined.Unwrap() {
		all = append(all, leaves(e)...)
	}
	return all
}

// outcomeOfOne walks from the outermost error inwards: the first that says what it is decides, and one that is joined
// of several is taken apart.
func outcomeOfOne(err error) outcome {
	reason := ""
	for e := err; e != nil; e = errors.Unwrap(e) {
		if reasoned, ok := e.(Reasoner); ok { //nolint:errorlint // the chain is walked
			reason = cmp.Or(reason, reasoned.Reason())
		}
		if isTerminalError(e) {
			o := outcomeOf(errors.Unwrap(e))
			o.state, o.reason, o.after, o.retries, o.refused = terminal, cmp.Or(reason, reasonInvalid), 0, false, false
			return o
		}
		switch e := e.(type) { //nolint:errorlint // the same
		case *haltError:
			o := outcomeOf(e.err).because(reason)
			o.halts = true
			return o
		case *unshownError:
			o := outcomeOf(e.err).because(reason)
			o.unshown = true
			return o
		case *doneError:
			return outcome{reason: e.reason, message: e.message, after: e.again}
		case Waiter:
			o := outcome{state: waiting}
			o.reason, o.after = e.Waiting()
			return o
		case joinedError:
			return outcomeOf(e).because(reason)
		}
	}
	return outcomeOfLeaf(err).because(reason)
}

// because gives a failure the reason that an outer error has for it.
func (o outcome) because(reason string) outcome {
	if reason != "" && o.state >= conflicted {
		o.reason = reason
	}
	return o
}

// outcomeOfLeaf is for an error that does not say itself what it is.
func outcomeOfLeaf(err error) outcome {
	o := outcome{notBefore: retryAfter(err)}
	switch {
	case isConflict(err):
		o.state, o.reason, o.retries = conflicted, reasonConflict, true
	case apierrors.IsForbidden(err): // its message names the verb and the resource, or the quota
		o.state, o.reason, o.refused = terminal, reasonForbidden, true
	case isRefused(err):
		o.state, o.reason = terminal, reasonInvalid
	default:
		o.state, o.reason, o.retries = failed, reasonFailed, true
	}
	return o
}

func isConflict(err error) bool {
	return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || isNamesake(err)
}

// isNamesake recognises the answer to a patch with the UID of an object that has made room for one
// of the same name: not a conflict, but "invalid".
func isNamesake(err error) bool {
	cause, ok := apierrors.StatusCause(err, metav1.CauseTypeFieldValueInvalid)
	return ok && cause.Field == "metadata.uid"
}

// retryAfter gives how long the API server asks to wait; 0 if it does not.
func retryAfter(err error) time.Duration {
	seconds, _ := apierrors.SuggestsClientDelay(err)
	return time.Duration(seconds) * time.Second
}

// isTerminalError recognises [Stalled]'s error, and controller-runtime's, in this very place of a chain.
func isTerminalError(err error) bool {
	if _, own := err.(*terminalError); own { //nolint:errorlint // the chain is walked
		return true
	}
	theirs, ok := err.(interface{ Is(target error) bool })
	return ok && theirs.Is(ctrlreconcile.TerminalError(nil))
}

// isRefused recognises what the API server would answer again to the same request.
func isRefused(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) ||
		apierrors.IsMethodNotSupported(err) || apierrors.IsRequestEntityTooLargeError(err)
}
