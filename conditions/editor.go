package conditions

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Adapter converts between a condition struct C and metav1.Condition, so that this package works on lists of C.
// Its methods get and return values. They must not write through a pointer in a value, because a shared cache may own the
// target.
type Adapter[C any] interface {
	// Read converts c to a metav1.Condition. Fields that C does not have stay zero. A status other than True, False and
	// Unknown counts as Unknown.
	Read(c C) metav1.Condition

	// Write returns c with the values of to, if C has the fields. All other fields of c keep their values. For a new
	// condition c is the zero value of C. Write must store to.LastTransitionTime unchanged: it differs from the stored time
	// only if the status differs. at is the time of this change in whole seconds. If C has a field lastUpdateTime, set it
	// to at.
	Write(c C, to metav1.Condition, at metav1.Time) C

	// Validate returns an error if the API of C would refuse c. If C has the validation patterns of metav1.Condition, call
	// the function [Validate]. An empty type, and a status other than True, False and Unknown, are refused before Validate
	// is called.
	Validate(c metav1.Condition) error
}

// Editor has the functions of this package as methods, for lists of the condition struct C. [NewEditor] creates one.
// The zero value must not be used.
type Editor[C any] struct {
	adapter Adapter[C]
	now     func() time.Time
}

// NewEditor returns the functions of this package for lists of C. The clock is time.Now; see [Editor.WithClock].
func NewEditor[C any](adapter Adapter[C]) Editor[C] {
	return Editor[C]{adapter: adapter, now: time.Now}
}

// Standard returns the Editor for metav1.Condition, which the package's functions use. The clock is time.Now.
func Standard() Editor[metav1.Condition] { return standard }

// WithClock returns a copy of the editor that uses another clock, such as the clock of a test or of a reconciler.
func (e Editor[C]) WithClock(now func() time.Time) Editor[C] {
	e.now = now
	return e
}

var standard = NewEditor[metav1.Condition](standardAdapter{})

type standardAdapter struct{}

var _ Adapter[metav1.Condition] = standardAdapter{}

func (standardAdapter) Read(c metav1.Condition) metav1.Condition { return c }

func (standardAdapter) Write(_, to metav1.Condition, _ metav1.Time) metav1.Condition { return to }

func (standardAdapter) Validate(c metav1.Condition) error { return Validate(c) }
