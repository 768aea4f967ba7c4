// Schedule is the first chapter of the demo. It shows when runs are due, by package schedule alone: it is built in less than a
// minute and needs no control plane, whose programs `make demo` builds afterwards.
//
//	go run ./demo/schedule
package main

import (
	"errors"
	"fmt"
	"os"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/opblocks/opblocks/examples/demo/style"
	"github.com/opblocks/opblocks/schedule"
)

func main() {
	if err := run(style.New()); err != nil {
		fmt.Fprintf(os.Stderr, "\ndemo: %v\n", err)
		os.Exit(1)
	}
}

func run(p style.Printer) error {
	p.Title("schedule: when a run is due")
	p.Say("This chapter calls package schedule, and runs neither a control plane nor an operator. A later chapter shows an operator " +
		"that restarts Deployments by such schedules.")
	for _, c := range []struct {
		text     string
		from     time.Time
		want     []string
		expected string
	}{
		{
			"the clocks are set forward on March 29th", time.Date(2026, 3, 27, 12, 0, 0, 0, time.UTC),
			[]string{"Sat Mar 28 02:30 CET", "Sun Mar 29 03:00 CEST", "Mon Mar 30 02:30 CEST"},
			"02:30 does not exist on that day: the run is due right after the jump",
		},
		{
			"the clocks are set back on October 25th", time.Date(2026, 10, 23, 12, 0, 0, 0, time.UTC),
			[]string{"Sat Oct 24 02:30 CEST", "Sun Oct 25 02:30 CEST", "Mon Oct 26 02:30 CET"},
			"02:30 comes twice on that day: the run is due once",
		},
	} {
		p.Say("30 2 * * * in Europe/Berlin: " + c.text)
		if err := next(p, c.from, c.want); err != nil {
			return err
		}
		p.Checked(c.expected)
	}
	if err := missed(p); err != nil {
		return err
	}
	return never(p)
}

// next prints the next times of a schedule, and returns an error if they are not as expected.
func next(p style.Printer, from time.Time, want []string) error {
	s, err := schedule.Parse("30 2 * * *", "Europe/Berlin")
	if err != nil {
		return err
	}
	at := from.In(s.Location())
	for _, expected := range want {
		at = s.Next(at)
		got := at.Format("Mon Jan 2 15:04 MST")
		p.Output("    " + got)
		if got != expected {
			return fmt.Errorf("expected %s", expected)
		}
	}
	return nil
}

// missed shows what is due after the operator was down for weeks.
func missed(p style.Printer) error {
	p.Say("The same schedule took effect on March 1st. The operator was down until March 29th, 09:00 UTC:")
	s, err := schedule.Parse("30 2 * * *", "Europe/Berlin")
	if err != nil {
		return err
	}
	since := metav1.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	d, err := schedule.Due(time.Date(2026, 3, 29, 9, 0, 0, 0, time.UTC), schedule.Input{Schedule: s, Since: &since})
	if err != nil {
		return err
	}
	got := fmt.Sprintf("%s for %s, %d missed", d.Verdict, d.ScheduledTime.Format(time.RFC3339), d.Missed)
	p.Output("    " + got)
	if want := "Start for 2026-03-29T01:00:00Z, 27 missed"; got != want {
		return fmt.Errorf("expected %s", want)
	}
	p.Checked("one run makes up for all that were missed")
	return nil
}

// never shows the error of a schedule that never comes.
func never(p style.Printer) error {
	p.Say("0 0 30 2 *, which is February 30th:")
	_, err := schedule.Parse("0 0 30 2 *", "UTC")
	if !errors.As(err, new(*schedule.Error)) {
		return fmt.Errorf("expected that February 30th is refused: %w", err)
	}
	p.Output("    " + err.Error())
	p.Checked("it is refused, and the error says why")
	return nil
}
