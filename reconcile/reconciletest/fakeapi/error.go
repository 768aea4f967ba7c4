package fakeapi

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/outside"
)

// Error is the answer of an API that refuses a call or fails. The operator's adapter translates it into the error of the real client.
// Network errors, such as a lost answer, have other types.
type Error struct {
	Status     int           // the HTTP status: 404, 409 (the name is taken), 412 (another version), 429, 500 or 503
	RetryAfter time.Duration // how long the API asks to wait, with status 429; 0: it does not say
	About      string        // the thing, such as "account ann"; "" if the answer is not about one thing
}

// Error returns the status, its text, and what it is about.
func (e *Error) Error() string {
	text := fmt.Sprintf("%d %s", e.Status, http.StatusText(e.Status))
	if e.About != "" {
		text += ": " + e.About
	}
	return text
}

// StatusOf returns the status of the [Error] that err is or wraps. If there is none, it returns 0: then nobody knows whether the call had
// an effect.
func StatusOf(err error) int {
	if answer, ok := errors.AsType[*Error](err); ok {
		return answer.Status
	}
	return 0
}

// explain returns an [Error] if the engine of reconciletest has refused the call. It returns any other error as it is.
func explain(err error) error {
	if refused, ok := errors.AsType[outside.Refusal](err); ok {
		return &Error{Status: refused.Status, RetryAfter: refused.RetryAfter}
	}
	return err
}
