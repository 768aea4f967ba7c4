package run

import (
	"bytes"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/operator"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/request"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/result"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/state"
)

// refusedCreates returns each creation that the API server refused because the object exists, and that the pass treated as a success,
// though the existing object differs from what was sent. It leaves out objects whose content nobody can change. It also leaves out
// creations whose content differs from pass to pass, such as by a generated password: that content is meant for a new object only. ignore
// is the scenario's.
func (p *probes) refusedCreates(ignore func(*unstructured.Unstructured)) (refused []result.RefusedCreate) {
	p.world.Mu.Lock()
	defer p.world.Mu.Unlock()
	calls := p.calls()
	for i, probe := range calls {
		id := request.ObjectID{Kind: probe.Kind, Name: probe.Object}
		live := p.world.History.Present[id]
		if probe.Verb != "create" || probe.Subresource != "" || probe.External != "" || !apierrors.IsAlreadyExists(probe.Err) || live == nil || isFixed(id, live) ||
			!operator.VerdictOf(p.operator).Succeeds(probe.Pass) || asksAgain(calls[i+1:], probe) || !p.hasSent(probe) {
			continue
		}
		if fields := state.NotStored(probe.Body, live, ignore); len(fields) > 0 {
			refused = append(refused, result.RefusedCreate{Request: probe.String(), Fields: fields})
		}
	}
	return refused
}

// isFixed reports whether the content of an object cannot be changed, such as the data of an immutable ConfigMap.
func isFixed(id request.ObjectID, obj client.Object) bool {
	switch obj := obj.(type) {
	case *corev1.ConfigMap:
		return ptr.Deref(obj.Immutable, false)
	case *corev1.Secret:
		return ptr.Deref(obj.Immutable, false)
	case *corev1.PersistentVolumeClaim:
		return true
	}
	return result.Runs(id)
}

// asksAgain reports whether a later request of the same pass reads, writes or lists the object that could not be created.
func asksAgain(later []*request.Call, refused *request.Call) bool {
	return slices.ContainsFunc(later, func(r *request.Call) bool {
		return r.Pass == refused.Pass && r.External == "" && r.Kind == refused.Kind && (r.Object == refused.Object || r.Verb == "list")
	})
}

// hasSent reports whether a pass before the check has sent the same request.
func (p *probes) hasSent(probe *request.Call) bool {
	return slices.ContainsFunc(p.world.Log.All(), func(r request.Request) bool {
		return r.Pass <= p.pass && r.String() == probe.String() && bytes.Equal(r.Body, probe.Body)
	})
}
