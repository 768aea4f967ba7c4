package controller

import eruv1 "github.com/opblocks/opblocks/examples/eru/api/v1"

// stop sets the phase of an Eru whose schedule does not run, and returns err. When the schedule runs again, due times count
// from then.
func stop(eru *eruv1.Eru, phase string, err error) error {
	eru.Status.Stop()
	eru.Status.Phase = phase
	return err
}
