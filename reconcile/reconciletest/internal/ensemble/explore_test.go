//go:build !race

// These tests are left out under the race detector: an exploration runs one pass at a time, so it has no races, and with the detector it
// takes ten times as long.

// Package ensemble_test has a sound operator of real size in the style of kubebuilder: it manages the members of a store, one at a time,
// which it registers outside of the cluster.
package ensemble_test

import (
	"context"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/reconcile/reconciletest"
)

// registry is outside of the cluster. It has the members of each ensemble.
type registry struct{ members map[string][]string }

func (r *registry) State() any { return maps.Clone(r.members) }

// processStore is the client of the registry in one process.
type processStore struct {
	*registry
	process *reconciletest.Process
}

func (s processStore) Members(ctx context.Context, ensemble string) (members []string, err error) {
	err = s.process.Query(ctx, "members of "+ensemble, func() error {
		members = slices.Clone(s.members[ensemble])
		return nil
	})
	return members, err
}

func (s processStore) Bootstrap(ctx context.Context, ensemble, first string) error {
	return s.process.Effect(ctx, "bootstrap "+first, func() error {
		if len(s.members[ensemble]) == 0 {
			s.members[ensemble] = []string{first}
		}
		return nil
	})
}

func (s processStore) Add(ctx context.Context, ensemble, member string) error {
	return s.process.Effect(ctx, "add "+member, func() error {
		if !slices.Contains(s.members[ensemble], member) {
			s.members[ensemble] = append(s.members[ensemble], member)
		}
		return nil
	})
}

func (s processStore) Remove(ctx context.Context, ensemble, member string) error {
	return s.process.Effect(ctx, "remove "+member, func() error {
		s.members[ensemble] = slices.DeleteFunc(s.members[ensemble], func(name string) bool { return name == member })
		return nil
	})
}

func (s processStore) Forget(ctx context.Context, ensemble string) error {
	return s.process.Effect(ctx, "forget "+ensemble, func() error {
		delete(s.members, ensemble)
		return nil
	})
}

// kubelet is a simulated controller. In each step it makes one pod ready.
func kubelet(ctx context.Context, c client.Client) error {
	var pods corev1.PodList
	if err := c.List(ctx, &pods); err != nil {
		return err
	}
	for i := range pods.Items {
		if pod := &pods.Items[i]; !isReady(pod) && pod.DeletionTimestamp == nil {
			pod.Status.Phase = corev1.PodRunning
			pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
			return c.Status().Update(ctx, pod)
		}
	}
	return nil
}

func TestEnsembleSurvives(t *testing.T) {
	scheme, err := newScheme()
	require.NoError(t, err)
	e := &Ensemble{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "store"}, Spec: EnsembleSpec{Size: 2, Version: "1"}}
	report := reconciletest.Explore(t, reconciletest.Scenario{
		Scheme: scheme, CRDs: []string{"testdata"},
		Start: func(p *reconciletest.Process) error {
			mgr := p.Manager()
			r := &EnsembleReconciler{
				Client: mgr.GetClient(), APIReader: mgr.GetAPIReader(), Scheme: mgr.GetScheme(),
				Store: processStore{p.External().(*registry), p},
			}
			return r.SetupWithManager(mgr)
		},
		External:             func() reconciletest.External { return &registry{members: map[string][]string{}} },
		SimulatedControllers: []reconciletest.SimulatedController{{Step: kubelet}},
		Actions: []reconciletest.Action{
			reconciletest.Create(e).Then(reconciletest.Ready(e)),
			reconciletest.Change(e, func(e *Ensemble) { e.Spec.Version = "2" }).Then(reconciletest.Ready(e)),
			reconciletest.Change(e, func(e *Ensemble) { e.Spec.Size = 1 }).Then(reconciletest.Ready(e)),
			reconciletest.Change(e, func(e *Ensemble) { e.Spec.Size = 3 }).Then(reconciletest.Ready(e)),
			reconciletest.Delete(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "store-1"}}).Then(reconciletest.Ready(e)),
			reconciletest.Delete(e),
		},
		Options: reconciletest.Options{Limit: 100},
	}) // only a sample: all 1,145 faults would take more than a minute
	assert.NotEmpty(t, report.Survived)
}
