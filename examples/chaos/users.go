package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// population is the objects of the users of one kind.
type population interface {
	// put creates or changes an object, with random content.
	put(ctx context.Context, name string, random *rand.Rand) error
	// repeat creates or changes an object as it was put last.
	repeat(ctx context.Context, name string) error
	// kind returns the kind and the namespace of the objects.
	kind() (kind schema.GroupVersionKind, namespace string)
	// drop deletes an object.
	drop(ctx context.Context, name string) error
	// names returns the names of the objects that should exist, sorted.
	names() []string
	// differences returns what is not as specified, in the cluster and outside.
	differences(ctx context.Context) ([]string, error)
}

// users create, change and delete objects, one at a time.
type users struct {
	cluster     *cluster
	mu          sync.Mutex // is held while something is changed
	random      *rand.Rand
	populations []population
	schedules   *schedules
	accounts    *accounts
	changes     atomic.Int64
	created     int
}

func newUsers(c *cluster, random *rand.Rand) *users {
	s, a := newSchedules(c), newAccounts(c)
	return &users{cluster: c, random: random, schedules: s, accounts: a, populations: []population{newMemcacheds(c), newApps(c), a, newCaches(c), s}}
}

// arrive creates the first objects.
func (u *users) arrive(ctx context.Context, objects int) error {
	say("creating %d objects", objects)
	for i := range objects {
		if err := u.add(ctx, u.populations[i%len(u.populations)]); err != nil {
			return err
		}
	}
	return nil
}

func (u *users) add(ctx context.Context, p population) error {
	u.created++
	u.changes.Add(1)
	return p.put(ctx, fmt.Sprintf("x%04d", u.created), u.random)
}

// live changes objects until the storm is over. The last change is done whole: a user who deletes an object tries until it is deleted. For
// each object that is deleted one is created, half of them with the same name.
func (u *users) live(ctx context.Context, over <-chan struct{}) error {
	for {
		select {
		case <-over:
			return nil
		default:
		}
		if err := u.change(ctx); err != nil {
			return err
		}
		if err := pause(ctx, time.Duration(u.random.IntN(400))*time.Millisecond); err != nil {
			return err
		}
	}
}

func (u *users) change(ctx context.Context) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	p := u.populations[u.random.IntN(len(u.populations))]
	names := p.names()
	name := names[u.random.IntN(len(names))]
	switch u.random.IntN(10) {
	case 0:
		u.changes.Add(1)
		if err := p.drop(ctx, name); err != nil {
			return err
		}
		return u.add(ctx, p)
	case 1:
		u.changes.Add(1)
		if err := p.drop(ctx, name); err != nil {
			return err
		}
	}
	u.changes.Add(1)
	return p.put(ctx, name, u.random)
}

// repeat puts every object as it was put last, and deletes those that should not exist. Users do so after etcd was restored from a copy.
func (u *users) repeat(ctx context.Context) error {
	for _, p := range u.populations {
		kind, namespace := p.kind()
		var found metav1.PartialObjectMetadataList
		found.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		if err := u.cluster.list(ctx, namespace, &found); err != nil {
			return err
		}
		names := p.names()
		for _, name := range namesOf(found.Items) {
			if slices.Contains(names, name) {
				continue
			}
			if err := p.drop(ctx, name); err != nil {
				return err
			}
		}
		for _, name := range names {
			if err := p.repeat(ctx, name); err != nil {
				return err
			}
		}
	}
	return nil
}

// leave deletes everything.
func (u *users) leave(ctx context.Context) error {
	for _, p := range u.populations {
		for _, name := range p.names() {
			if err := p.drop(ctx, name); err != nil {
				return err
			}
		}
	}
	return nil
}

func (u *users) differences(ctx context.Context) ([]string, error) {
	var all []string
	for _, p := range u.populations {
		some, err := p.differences(ctx)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	return all, nil
}

// apply creates or changes an object. It tries again, as a user does, while the API server is down or a deleted object of the
// name still exists.
func (c *cluster) apply(ctx context.Context, object map[string]any) error {
	return again(ctx, func() error {
		u := &unstructured.Unstructured{Object: object}
		var live metav1.PartialObjectMetadata
		live.SetGroupVersionKind(u.GroupVersionKind())
		err := c.client.Get(ctx, client.ObjectKeyFromObject(u), &live)
		if err == nil && live.DeletionTimestamp != nil {
			return errors.New("the deleted object of this name still exists")
		}
		if client.IgnoreNotFound(err) != nil {
			return err
		}
		return c.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), client.FieldOwner("user"), client.ForceOwnership)
	})
}

// remove deletes an object. It does not wait until it is gone.
func (c *cluster) remove(ctx context.Context, apiVersion, kind, namespace, name string) error {
	return again(ctx, func() error {
		u := &unstructured.Unstructured{}
		u.SetAPIVersion(apiVersion)
		u.SetKind(kind)
		u.SetNamespace(namespace)
		u.SetName(name)
		return client.IgnoreNotFound(c.client.Delete(ctx, u))
	})
}

// again tries for a minute. It does not try again if the object is invalid, which is a bug in this program.
func again(ctx context.Context, do func() error) error {
	const times = 300
	for i := 0; ; i++ {
		err := do()
		if err == nil || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || i == times {
			return err
		}
		if err := pause(ctx, 200*time.Millisecond); err != nil {
			return err
		}
	}
}
