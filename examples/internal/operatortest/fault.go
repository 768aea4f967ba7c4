package operatortest

import (
	"fmt"
	"testing"
)

// Fault is what goes wrong: the process ends at a write, or what is read is some writes old.
type Fault struct {
	// CrashAt is the number of the write at which the process ends; 0 for never. The first is 1.
	CrashAt int
	// Committed says that this write is done, although its answer is never seen.
	Committed bool
	// Lag is how many writes the reads are behind.
	Lag int
}

func (f Fault) String() string {
	switch {
	case f.Lag > 0:
		return fmt.Sprintf("reads %d writes old", f.Lag)
	case f.Committed:
		return fmt.Sprintf("crash after write %d", f.CrashAt)
	default:
		return fmt.Sprintf("crash before write %d", f.CrashAt)
	}
}

// EachFault tells a story that has that many writes with every fault there is, each in a test of its own: a crash before
// and after every write, and reads up to three writes old.
func EachFault(t *testing.T, writes int, tell func(*testing.T, Fault)) {
	var faults []Fault
	for lag := 1; lag <= 3; lag++ {
		faults = append(faults, Fault{Lag: lag})
	}
	for n := 1; n <= writes; n++ {
		faults = append(faults, Fault{CrashAt: n}, Fault{CrashAt: n, Committed: true})
	}
	for _, f := range faults {
		t.Run(f.String(), func(t *testing.T) {
			t.Parallel()
			tell(t, f)
		})
	}
}
