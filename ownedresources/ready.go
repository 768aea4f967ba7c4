package ownedresources

import (
	"strings"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/readiness"
)

// ready returns nil if the live object is ready by the rules of kstatus, a *FailedError if it does not become ready
// unless something changes, and a *WaitingError otherwise.
func (k *kind) ready(live client.Object) error {
	result, err := readiness.Compute(live, k.gvk)
	if err != nil {
		return err
	}
	switch result.Status {
	case status.CurrentStatus:
		return nil
	case status.FailedStatus:
		return &FailedError{reason: result.Reason, message: k.describe(live) + ": " + result.Message}
	}
	return &WaitingError{reason: result.Reason, message: k.describe(live) + ": " + result.Message}
}

// joinWaits returns one error for several children that are not ready, or nil for none. It has the reason of the first
// and the shortest of the delays that are set.
func joinWaits(waits []*WaitingError) error {
	if len(waits) == 0 {
		return nil
	}
	messages := make([]string, len(waits))
	var after time.Duration
	for i, w := range waits {
		messages[i] = w.message
		if w.after > 0 && (after == 0 || w.after < after) {
			after = w.after
		}
	}
	return &WaitingError{reason: waits[0].reason, message: strings.Join(messages, "; "), after: after}
}
