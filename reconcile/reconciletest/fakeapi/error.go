package fakeapi

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/outside"
)

// Error is an answer of an API that is an error. An operator's client translates it into what the real client returns. Errors of the
// network, such as a lost answer, have other types.
type Error struct {
	Status     int           // the status of HTTP: 404, 409 (the name is taken), 412 (another version), 429, 500 or 503
	RetryAfter time.Duration // how long the API asks to wait, with status 429; 0: it does not say
	About      string        // the thing, such as "account ann"; "" for an answer that is not about one
}

// Error returns the status, its text, and what it is about.
func (e *Error) Error() string {
	text := fmt.Sprintf("%d %s", e.Status, http.StatusText(e.Status))
	if e.About != "" {
		text += ": " + e.About
	}
	return text
}

// StatusOf returns the status of the [Error] that err is or wraps, and 0 if there is none: then it is not known whether the call had an effect.
func StatusOf(err error) int {
	if answer, ok := errors.AsType[*Error](err); ok {
		return answer.Status
	}
	return 0
}

// explain returns a refusal of the engine as an [Error].
func explain(err error) error {
	if refused, ok := errors.AsType[outside.Refusal](err); ok {
		return &Error{Status: refused.Status, RetryAfter: refused.RetryAfter}
	}
	return err
}
