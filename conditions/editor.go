package conditions

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Adapter teaches this package a condition struct other than metav1.Condition.
// It works on values: what it is given may belong to a shared cache, and what it returns is stored in a new slice.
type Adapter[C any] interface {
	// Read tells what c says. Fields that C lacks stay zero; a status other than True, False, Unknown counts as Unknown.
	Read(c C) metav1.Condition

	// Write returns c with everything in to that C has room for, keeping the fields that metav1.Condition does not know.
	// C's zero value stands for a new condition. The transition time in to is final: it moved only if the status did.
	// The time at is that of this change, in whole seconds: what a lastUpdateTime becomes.
	Write(c C, to metav1.Condition, at metav1.Time) C

	// Validate says what C's API would refuse; [Validate] is the check for structs with metav1.Condition's own patterns.
	// A type that is empty and a status other than True, False, Unknown never get here.
	Validate(c metav1.Condition) error
}

// Editor is this package over lists of C: its methods are the functions of the same name. It is created by [NewEditor].
type Editor[C any] struct {
	adapter Adapter[C]
	now     func() time.Time
}

// NewEditor returns the functions of this package over lists of C. Its clock is time.Now.
func NewEditor[C any](adapter Adapter[C]) Editor[C] {
	return Editor[C]{adapter: adapter, now: time.Now}
}

// Standard returns the Editor that the package's own functions use: metav1.Condition, time.Now.
func Standard() Editor[metav1.Condition] { return standard }

// WithClock returns the editor with another clock. A test holds the clock; a reconciler gives its own.
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
