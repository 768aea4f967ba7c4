package main

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	storev1alpha1 "github.com/opblocks/opblocks/examples/cache/api/v1alpha1"
)

// caches are the Caches of the users: each with a number of replicas, a setting, and with or without a priority, for which it has a child outside
// of its namespace. Some have so many settings that the operator's cache holds the hash of their ConfigMap.
type caches struct {
	*cluster
	namespace string
	want      map[string]store
}

type store struct {
	replicas int32
	settings map[string]string
	priority bool
}

func newCaches(c *cluster) population {
	return &caches{cluster: c, namespace: "caches", want: map[string]store{}}
}

func (s *caches) names() []string { return slices.Sorted(maps.Keys(s.want)) }

func (s *caches) put(ctx context.Context, name string, random *rand.Rand) error {
	w := store{replicas: random.Int32N(3), priority: random.IntN(3) == 0, settings: map[string]string{"maxmemory": fmt.Sprintf("%dmb", 1+random.IntN(1000))}}
	if random.IntN(5) == 0 {
		w.settings["proc-title-template"] = strings.Repeat("x", 100<<10)
	}
	return s.set(ctx, name, w)
}

func (s *caches) repeat(ctx context.Context, name string) error {
	return s.set(ctx, name, s.want[name])
}

func (s *caches) kind() (kind schema.GroupVersionKind, namespace string) {
	return storev1alpha1.GroupVersion.WithKind("Cache"), s.namespace
}

func (s *caches) set(ctx context.Context, name string, w store) error {
	settings := map[string]any{}
	for key, value := range w.settings {
		settings[key] = value
	}
	spec := map[string]any{"replicas": int64(w.replicas), "settings": settings}
	if w.priority {
		spec["priority"] = int64(len(name))
	}
	err := s.apply(ctx, map[string]any{
		"apiVersion": storev1alpha1.GroupVersion.String(), "kind": "Cache",
		"metadata": map[string]any{"namespace": s.namespace, "name": name},
		"spec":     spec,
	})
	if err == nil {
		s.want[name] = w
	}
	return err
}

func (s *caches) drop(ctx context.Context, name string) error {
	delete(s.want, name)
	return s.remove(ctx, storev1alpha1.GroupVersion.String(), "Cache", s.namespace, name)
}

// differences checks the children of each Cache, and that the registry has each Cache and no other.
func (s *caches) differences(ctx context.Context) ([]string, error) {
	d := s.compare(s.namespace)
	var objects storev1alpha1.CacheList
	var sets appsv1.StatefulSetList
	var configMaps corev1.ConfigMapList
	var secrets corev1.SecretList
	var services corev1.ServiceList
	var policies networkingv1.NetworkPolicyList
	var budgets policyv1.PodDisruptionBudgetList
	var priorities schedulingv1.PriorityClassList
	if err := s.list(ctx, s.namespace, &objects, &sets, &configMaps, &secrets, &services, &policies, &budgets); err != nil {
		return nil, err
	}
	if err := s.list(ctx, "", &priorities); err != nil {
		return nil, err
	}
	pods := 0
	var registered, prioritized, found []string
	for _, name := range s.names() {
		registered = append(registered, s.namespace+"/"+name)
		if pods += int(s.want[name].replicas); s.want[name].priority {
			prioritized = append(prioritized, s.namespace+"."+name)
		}
	}
	for _, o := range objects.Items {
		d.equal("ready replicas of Cache "+o.Name, s.want[o.Name].replicas, o.Status.ReadyReplicas)
		d.equal("Ready of Cache "+o.Name, "True", ready(o.Status.Conditions))
		d.equal("observed generation of Cache "+o.Name, o.Generation, o.Status.ObservedGeneration)
	}
	for _, o := range configMaps.Items {
		for key, value := range s.want[strings.TrimSuffix(o.Name, "-settings")].settings {
			if !strings.Contains(o.Data["redis.conf"], key+" "+value) {
				d.add("ConfigMap %s lacks %s", o.Name, key)
			}
		}
	}
	for _, name := range namesOf(priorities.Items) {
		if strings.HasPrefix(name, s.namespace+".") {
			found = append(found, name)
		}
	}
	d.same("Cache", s.names(), namesOf(objects.Items))
	d.same("StatefulSet", s.names(), namesOf(sets.Items))
	d.equal("number of Secrets", len(s.want), len(secrets.Items))
	d.equal("number of Services", len(s.want), len(services.Items))
	d.equal("number of NetworkPolicies", len(s.want), len(policies.Items))
	d.same("PriorityClass", prioritized, found)
	d.same("entry of the registry", registered, slices.Sorted(maps.Keys(s.registry.Entries())))
	return d.found, d.pods(ctx, pods)
}
