package calls

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/opblocks/opblocks/internal/passcontext"
)

// Function is the name of a function of the resource that calls the API.
type Function string

// The functions of a resource that call the API.
const (
	Observe Function = "Observe"
	Create  Function = "Create"
	Update  Function = "Update"
	Delete  Function = "Delete"
	Admit   Function = "Admit"
	Issue   Function = "Issue"
)

// Ask makes a call to the API. Its context ends after the timeout.
func Ask[A any](ctx context.Context, v *Visit, f Function, do func(ctx context.Context) (A, error)) (answer A, err error) {
	if err := v.pay(ctx); err != nil {
		return answer, err
	}
	c := v.calls
	begin := time.Now()
	limited, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	if f != Update && f != Delete { // after an error, the next pass would begin the function again, or would assume that the answer to a creation was lost
		limited = passcontext.WithoutTurn(limited)
	}
	answer, err = await(limited, &c.abandoned, v.uid, f, do)
	v.detached = c.abandoned.err(v.uid) != nil
	v.putOff = v.putOff || errors.Is(err, passcontext.ErrTurnOver) // the function itself has called Yield
	late := err != nil && limited.Err() != nil && ctx.Err() == nil
	if late {
		err = fmt.Errorf("no answer within %v: %w", c.timeout, err)
	}
	c.metrics.call(ctx, c, f, resultOf(err, late), begin)
	return answer, v.note(WithoutQueries(err), late)
}
