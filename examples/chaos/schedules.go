package main

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	eruv1 "github.com/opblocks/opblocks/examples/eru/api/v1"
	"github.com/opblocks/opblocks/ownedresources/workload"
)

// schedules are Erus, each with a Deployment that is restarted every minute.
type schedules struct {
	*cluster
	namespace string
	enabled   map[string]bool

	mu       sync.Mutex
	restarts map[types.UID]map[string]bool // by Deployment: the due times that it was restarted for
}

func newSchedules(c *cluster) *schedules {
	return &schedules{cluster: c, namespace: "schedules", enabled: map[string]bool{}, restarts: map[types.UID]map[string]bool{}}
}

func (s *schedules) names() []string { return slices.Sorted(maps.Keys(s.enabled)) }

func (s *schedules) put(ctx context.Context, name string, random *rand.Rand) error {
	return s.set(ctx, name, random.IntN(4) > 0)
}

func (s *schedules) repeat(ctx context.Context, name string) error {
	return s.set(ctx, name, s.enabled[name])
}

func (s *schedules) kind() (kind schema.GroupVersionKind, namespace string) {
	return appsv1.SchemeGroupVersion.WithKind("Deployment"), s.namespace
}

func (s *schedules) set(ctx context.Context, name string, enabled bool) error {
	labels := map[string]any{"app": name}
	if err := s.apply(ctx, map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment",
		"metadata": map[string]any{"namespace": s.namespace, "name": name},
		"spec": map[string]any{
			"replicas": int64(1),
			"selector": map[string]any{"matchLabels": labels},
			"template": map[string]any{
				"metadata": map[string]any{"labels": labels},
				"spec":     map[string]any{"containers": []any{map[string]any{"name": "web", "image": "nginx:1.27"}}},
			},
		},
	}); err != nil {
		return err
	}
	err := s.apply(ctx, map[string]any{
		"apiVersion": eruv1.GroupVersion.String(), "kind": "Eru",
		"metadata": map[string]any{"namespace": s.namespace, "name": name},
		"spec":     map[string]any{"enabled": enabled, "schedule": "* * * * *", "spreadSeconds": int64(20)},
	})
	if err == nil {
		s.enabled[name] = enabled
	}
	return err
}

// drop deletes the Deployment and waits until its Eru was deleted with it: an Eru that is applied before would be deleted, too.
func (s *schedules) drop(ctx context.Context, name string) error {
	delete(s.enabled, name)
	if err := s.remove(ctx, "apps/v1", "Deployment", s.namespace, name); err != nil {
		return err
	}
	return again(ctx, func() error {
		err := s.client.Get(ctx, types.NamespacedName{Namespace: s.namespace, Name: name}, &eruv1.Eru{})
		if err == nil {
			return fmt.Errorf("the Eru %s still exists", name)
		}
		return client.IgnoreNotFound(err)
	})
}

// watch records the due times that Deployments are restarted for. It lists them often enough to see each.
func (s *schedules) watch(ctx context.Context) {
	for pause(ctx, time.Second) == nil {
		var deployments appsv1.DeploymentList
		if s.list(ctx, s.namespace, &deployments) == nil {
			s.note(deployments.Items)
		}
	}
}

// snapshot returns a copy of the due times, for restore.
func (s *schedules) snapshot() map[types.UID]map[string]bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	copied := make(map[types.UID]map[string]bool, len(s.restarts))
	for uid, times := range s.restarts {
		copied[uid] = maps.Clone(times)
	}
	return copied
}

// restored notes the due times of Deployments that are as they were shortly after a snapshot.
func (s *schedules) restored(ctx context.Context, snapshot map[types.UID]map[string]bool) error {
	var deployments appsv1.DeploymentList
	if err := s.list(ctx, s.namespace, &deployments); err != nil {
		return err
	}
	s.mu.Lock()
	s.restarts = snapshot
	s.mu.Unlock()
	s.note(deployments.Items)
	return nil
}

func (s *schedules) note(deployments []appsv1.Deployment) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range deployments {
		d := &deployments[i]
		if at, ok := d.Spec.Template.Annotations[workload.AnnotationRestartedAt]; ok {
			if s.restarts[d.UID] == nil {
				s.restarts[d.UID] = map[string]bool{}
			}
			s.restarts[d.UID][at] = true
		}
	}
}

// differences checks that each Deployment was changed once for each due time, and that each Eru has the right status.
func (s *schedules) differences(ctx context.Context) ([]string, error) {
	d := s.compare(s.namespace)
	var objects eruv1.EruList
	var deployments appsv1.DeploymentList
	if err := s.list(ctx, s.namespace, &objects, &deployments); err != nil {
		return nil, err
	}
	s.note(deployments.Items)
	for i := range deployments.Items {
		o := &deployments.Items[i]
		times := s.restarts[o.UID]
		d.equal("changes of Deployment "+o.Name+" for its restarts", int64(len(times)), o.Generation-1)
		for at := range times {
			if moment, err := time.Parse(time.RFC3339, at); err != nil || moment.Second() != 0 {
				d.add("Deployment %s was restarted for %s, which is no due time", o.Name, at)
			}
		}
		if age := time.Since(o.CreationTimestamp.Time); len(times) > int(age.Minutes())+1 {
			d.add("Deployment %s was restarted %d times in %v", o.Name, len(times), age)
		}
	}
	for i := range objects.Items {
		o := &objects.Items[i]
		phase := eruv1.PhaseStopped
		if s.enabled[o.Name] {
			phase = eruv1.PhaseRunning
		}
		d.equal("phase of Eru "+o.Name, phase, o.Status.Phase)
		d.equal("observed generation of Eru "+o.Name, o.Generation, o.Status.ObservedGeneration)
		d.equal("owners of Eru "+o.Name, 1, len(o.OwnerReferences))
		if next := o.Status.NextScheduleTime; s.enabled[o.Name] && (next == nil || time.Since(next.Time) > 2*time.Minute) {
			d.add("Eru %s is not scheduled: %v", o.Name, fmt.Sprint(next))
		}
	}
	d.same("Eru", s.names(), namesOf(objects.Items))
	d.same("Deployment", s.names(), namesOf(deployments.Items))
	return d.found, nil
}
