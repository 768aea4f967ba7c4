//go:build !race

package controller_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	eruv1 "github.com/opblocks/opblocks/examples/eru/api/v1"
	"github.com/opblocks/opblocks/ownedresources/workload"
	"github.com/opblocks/opblocks/reconcile/reconciletest"
)

// is returns a check of all Deployments and all Erus, each as a line.
func is(want ...string) func(env *reconciletest.Env) error {
	return func(env *reconciletest.Env) error {
		var deployments appsv1.DeploymentList
		var erus eruv1.EruList
		if err := errors.Join(env.List(context.Background(), &deployments), env.List(context.Background(), &erus)); err != nil {
			return err
		}
		var now []string
		for _, d := range deployments.Items {
			now = append(now, "Deployment "+d.Name+text(" for ", d.Spec.Template.Annotations[workload.AnnotationRestartedAt])+text(" at ", d.Annotations[eruv1.AnnotationLastRestart]))
		}
		for _, e := range erus.Items {
			now = append(now, line(&e))
		}
		if slices.Sort(now); !slices.Equal(now, want) {
			return fmt.Errorf("there are\n%s\nand must be\n%s", strings.Join(now, "\n"), strings.Join(want, "\n"))
		}
		return nil
	}
}

// line returns the state of an Eru, and what the operator has recorded.
func line(e *eruv1.Eru) string {
	line := e.Name + ": " + state(e)
	if e.IsRequested() {
		line += ", requested"
	}
	for _, owner := range e.OwnerReferences {
		line += ", of " + owner.Name
	}
	s := e.Status
	line += at(", next ", s.NextScheduleTime) + at(", last ", s.LastScheduleTime) + at(" at ", s.LastRestartTime)
	if s.LastRolloutResult != "" {
		line += " " + s.LastRolloutResult
	}
	if s.MissedRuns > 0 {
		line += fmt.Sprintf(", missed %d", s.MissedRuns)
	}
	if !maps.Equal(e.Annotations, e.SpecAnnotations()) || s.ObservedGeneration != e.Generation {
		line += ", outdated"
	}
	return line
}

// at returns a time of day, without the time that the actions of a scenario take.
func at(before string, t *metav1.Time) string {
	if t == nil {
		return ""
	}
	return before + t.UTC().Truncate(5*time.Minute).Format("15:04")
}

func text(before, value string) string {
	t, err := time.Parse(time.RFC3339, value)
	if err != nil {
		return ""
	}
	return at(before, new(metav1.NewTime(t)))
}

// done returns the line of an Eru whose rollout of an hour is complete.
func done(name string, hour int) string {
	return fmt.Sprintf("%[1]s: Running: Restarted true RolloutComplete, of %[1]s, next %02[3]d:00, last %02[2]d:00 at %02[2]d:00 Complete", name, hour, hour+1)
}

// started returns a check of what the operator has written to the Deployment: when the restart was due, and when it started,
// unless that is empty.
func started(name, due, at string) func(env *reconciletest.Env) error {
	d := plain(name)
	d.Annotations = map[string]string{eruv1.AnnotationLastRestart: at}
	d.Spec.Template.Annotations = map[string]string{workload.AnnotationRestartedAt: due}
	return reconciletest.Has(d)
}

// history returns a check of the conditions of an Eru: the reason and the message of each contain one of the parts.
func history(name string, parts ...string) func(env *reconciletest.Env) error {
	return func(env *reconciletest.Env) error {
		e := eru(name, func(*eruv1.EruSpec) {})
		if err := env.Get(context.Background(), client.ObjectKeyFromObject(e), e); err != nil {
			return err
		}
		for i, c := range e.Status.Conditions {
			if len(e.Status.Conditions) != len(parts) || !strings.Contains(c.Reason+": "+c.Message, parts[i]) {
				return fmt.Errorf("the conditions are %v, and must have the parts %q", e.Status.Conditions, parts)
			}
		}
		return nil
	}
}
