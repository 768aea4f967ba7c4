package programs

import (
	"fmt"
	"os"
	"time"
)

const reportEvery = 10 * time.Second

func say(format string, arguments ...any) {
	fmt.Fprintf(os.Stderr, "opblocks: "+format+"\n", arguments...)
}

// progress prints what is being done, at once and then every ten seconds, until stop is called.
func progress(doing func() string, since time.Time) (stop func()) {
	say("%s, %.0f s", doing(), time.Since(since).Seconds())
	ticker, done := time.NewTicker(reportEvery), make(chan struct{})
	go func() {
		for {
			select {
			case <-ticker.C:
				say("%s, %.0f s", doing(), time.Since(since).Seconds())
			case <-done:
				return
			}
		}
	}()
	return func() {
		ticker.Stop()
		close(done)
	}
}
