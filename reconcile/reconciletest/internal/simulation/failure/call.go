package failure

import (
	"fmt"
	"time"
)

// maxCallTime is how much virtual time a function of the test's author may take.
const maxCallTime = 10 * time.Minute

// Call calls a function of the test's author on a goroutine of its own, and waits for it for at most ten minutes of virtual time. It
// returns the function's error. If the function panics, it returns an error that describes the panic. If the function does not return, it
// returns an error that says so, and that ends with remedy. what is the function's name in these errors.
func Call(what, remedy string, do func() error) error {
	ended := make(chan error, 1)
	go func() {
		defer close(ended)
		ended <- Recover(what, do)
	}()
	timer := time.NewTimer(maxCallTime)
	defer timer.Stop()
	select {
	case err, returned := <-ended:
		if !returned {
			return fmt.Errorf("%s has ended its goroutine, such as by t.FailNow or by package require: return an error instead", what)
		}
		return err
	case <-timer.C:
		return fmt.Errorf("%s has not returned after %s of virtual time: %s", what, maxCallTime, remedy)
	}
}
