package ownedresources

import (
	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// RolloutState is how far an object is from what its spec says.
type RolloutState string

const (
	// RolloutComplete: it is there.
	RolloutComplete RolloutState = "Complete"
	// RolloutInProgress: it is on its way, or nobody has looked at the spec yet.
	RolloutInProgress RolloutState = "InProgress"
	// RolloutFailed: it will not get there unless something changes.
	RolloutFailed RolloutState = "Failed"
)

// Rollout is how far an object is, by the rules of kstatus.
type Rollout struct {
	State RolloutState
	// Reason, in CamelCase, and Message say why it is not complete.
	Reason, Message string
}

// RolloutOf observes an object of any kind, whoever owns it. Its type must be in the scheme.
func RolloutOf(obj client.Object, scheme *runtime.Scheme) (Rollout, error) {
	p, quick := quickProgress(obj)
	if !quick {
		k, err := builtInKinds.of(obj, scheme)
		if err != nil {
			return Rollout{}, err
		}
		if p, err = kstatusProgress(k, obj); err != nil {
			return Rollout{}, err
		}
	}
	switch p.status {
	case status.CurrentStatus:
		return Rollout{State: RolloutComplete}, nil
	case status.FailedStatus:
		return Rollout{RolloutFailed, p.reason, p.message}, nil
	}
	return Rollout{RolloutInProgress, p.reason, p.message}, nil
}
