package failure

import (
	"fmt"
	"time"
)

// maxCallTime is how much virtual time a function of the test's author may take.
const maxCallTime = 10 * time.Minute

// Call calls a function of the test's author on a goroutine of its own, and waits for it while at most ten minutes of virtual time pass. It
// returns the function's error, an error that describes its panic, or an error that says that the function does not return. That last error
// ends with remedy.
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
