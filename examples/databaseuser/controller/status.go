package controller

import (
	"errors"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/opblocks/opblocks/conditions"
	userv1alpha1 "github.com/opblocks/opblocks/examples/databaseuser/api/v1alpha1"
	"github.com/opblocks/opblocks/examples/internal/accounts"
	"github.com/opblocks/opblocks/reconcile"
)

// Reasons of the condition Ready.
const (
	reasonSucceeded   = "ProvisionSucceeded"
	reasonFailed      = "ProvisionFailed"
	reasonUnreachable = "DatabaseUnreachable"
	reasonExists      = "AccountExists"
	reasonLocked      = "AccountLocked"
	reasonExpired     = "PasswordExpired"
	reasonClaimed     = "AccountClaimed"
	reasonRelease     = "WaitingForRelease"
	reasonReleased    = "Released"
	reasonEmpty       = "PasswordEmpty"
	reasonAbandoned   = "Abandoned"
	reasonNoSecret    = "SecretNotFound"   // as an Error of package secrets has it
	reasonNoValue     = "SecretValueEmpty" // the reason of an Error of package secrets, never of a condition
	reasonLeft        = "AccountLeft"      // the reason of an event, never of a condition
)

// provisionError returns err with the reason and the words of the API. It returns waits and nil unchanged.
func provisionError(err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[reconcile.Waiter](err); ok {
		return err
	}
	reason := reasonFailed
	if unreachable, ok := errors.AsType[*accounts.UnreachableError](err); ok {
		// Without the error of the network: the client of the database spares a server itself.
		reason, err = reasonUnreachable, &accounts.UnreachableError{Address: unreachable.Address, Reason: unreachable.Reason}
	}
	shown := &failure{reason, err}
	if _, ok := errors.AsType[*accounts.InvalidError](err); ok {
		return reconcile.Stalled(reason, shown)
	}
	return shown
}

type failure struct {
	reason string
	err    error
}

func (f *failure) Error() string  { return "The user provisioning has failed: " + f.err.Error() }
func (f *failure) Unwrap() error  { return f.err }
func (f *failure) Reason() string { return f.reason }

// wait returns a wait that is retried after 30 seconds or the resync interval: the change that ends it may have no event.
func (o *Operator) wait(reason, format string, args ...any) error {
	return reconcile.Wait(reason, min(o.Resync, 30*time.Second), format, args...)
}

// Conditions edits the conditions of the API. Their update time changes with reason and message.
var Conditions = conditions.NewEditor[userv1alpha1.Condition](adapter{})

type adapter struct{}

func (adapter) Read(c userv1alpha1.Condition) metav1.Condition {
	return metav1.Condition{Type: c.Type, Status: c.Status, Reason: c.Reason, Message: c.Message, LastTransitionTime: c.LastTransitionTime}
}

func (adapter) Write(c userv1alpha1.Condition, to metav1.Condition, at metav1.Time) userv1alpha1.Condition {
	c.Type, c.Status, c.LastTransitionTime = to.Type, to.Status, to.LastTransitionTime
	c.Reason, c.Message, c.LastUpdateTime = to.Reason, to.Message, at
	return c
}

func (adapter) Validate(metav1.Condition) error { return nil } // its schema has no patterns

// recordedGrants returns the grants in the status.
func recordedGrants(u *userv1alpha1.DatabaseUser) []accounts.Grant {
	var all []accounts.Grant
	for _, g := range u.Status.Grants {
		all = append(all, accounts.Grant(g))
	}
	return all
}

func setRecordedGrants(u *userv1alpha1.DatabaseUser, grants []accounts.Grant) {
	u.Status.Grants = nil
	for _, g := range accounts.Normalize(grants) {
		u.Status.Grants = append(u.Status.Grants, userv1alpha1.AppliedGrant(g))
	}
}
