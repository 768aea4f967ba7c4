package forecast

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/opblocks/opblocks/reconcile/preview"
)

// SetEffects sets in c the consequences of the change, as the Kubernetes documentation describes them for each kind. live is the live
// object, or nil if the child does not exist.
func SetEffects(c *preview.Change, live runtime.Object) {
	tree := map[string]any{}
	if live != nil {
		if converted, err := runtime.DefaultUnstructuredConverter.ToUnstructured(live); err == nil {
			tree = converted
		}
	}
	switch c.Action {
	case Apply:
		c.Effects = append(c.Effects, effectsOfApply(c.Kind, c.Differences, tree)...)
	case Replace:
		if c.Effects = append(c.Effects, effectsOfApply(c.Kind, c.Differences, tree)...); len(c.Effects) == 0 {
			c.Effects = []string{"its pods run on"}
		}
	case Recreate, Delete:
		effect, losesData := effectOfDeletion(c.Kind, tree, c.Action == Recreate)
		if effect != "" {
			c.Effects = append(c.Effects, effect)
		}
		c.LosesData = c.LosesData || losesData
	case Create:
		if c.Kind == job {
			c.Effects = append(c.Effects, "it runs")
		}
	}
}

// The kinds whose effects are known.
var (
	deployment  = schema.GroupKind{Group: "apps", Kind: "Deployment"}
	statefulSet = schema.GroupKind{Group: "apps", Kind: "StatefulSet"}
	daemonSet   = schema.GroupKind{Group: "apps", Kind: "DaemonSet"}
	job         = schema.GroupKind{Group: "batch", Kind: "Job"}
	cronJob     = schema.GroupKind{Group: "batch", Kind: "CronJob"}
	service     = schema.GroupKind{Kind: "Service"}
	claim       = schema.GroupKind{Kind: "PersistentVolumeClaim"}
	volume      = schema.GroupKind{Kind: "PersistentVolume"}
	namespace   = schema.GroupKind{Kind: "Namespace"}

	networkPolicy = schema.GroupKind{Group: "networking.k8s.io", Kind: "NetworkPolicy"}
	budget        = schema.GroupKind{Group: "policy", Kind: "PodDisruptionBudget"}

	definition = schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}
)

func effectsOfApply(kind schema.GroupKind, differences []preview.Difference, live map[string]any) (effects []string) {
	template := false
	for _, d := range differences {
		switch {
		case strings.HasPrefix(d.Path, "spec.template.") || d.Path == "spec.template":
			template = true
		case d.Path == "spec.replicas" && d.Have != "" && d.Want != "":
			effects = append(effects, fmt.Sprintf("it scales from %s to %s", d.Have, d.Want))
		case kind == claim && d.Path == "spec.resources.requests.storage":
			effects = append(effects, "the volume grows, if its storage class allows it")
		case kind == service && d.Path == "spec.type":
			effects = append(effects, fmt.Sprintf("its type changes from %s to %s, and with it the ways to reach it", d.Have, d.Want))
		}
	}
	if template {
		if effect := effectOfTemplate(kind, live); effect != "" {
			effects = append(effects, effect)
		}
	}
	return effects
}

// effectOfTemplate returns what the controller of a workload does with its pods if the pod template changes.
func effectOfTemplate(kind schema.GroupKind, live map[string]any) string {
	text := func(fields ...string) string {
		value, _, _ := unstructured.NestedString(live, fields...)
		return value
	}
	replicas, set, _ := unstructured.NestedInt64(live, "spec", "replicas")
	switch kind {
	case deployment:
		paused, _, _ := unstructured.NestedBool(live, "spec", "paused")
		switch {
		case set && replicas == 0:
			return ""
		case paused:
			return "its pods are replaced as soon as it is not paused any more"
		case text("spec", "strategy", "type") == "Recreate":
			return "all its pods end before new ones start"
		}
		return "its pods are replaced"
	case statefulSet:
		partition, _, _ := unstructured.NestedInt64(live, "spec", "updateStrategy", "rollingUpdate", "partition")
		switch {
		case set && replicas == 0:
			return ""
		case text("spec", "updateStrategy", "type") == "OnDelete":
			return "its pods stay as they are until somebody deletes them"
		case partition > 0:
			return fmt.Sprintf("its pods from ordinal %d on are replaced", partition)
		}
		return "its pods are replaced"
	case daemonSet:
		if text("spec", "updateStrategy", "type") == "OnDelete" {
			return "its pods stay as they are until somebody deletes them"
		}
		return "its pods are replaced, on all nodes"
	}
	return ""
}

// effectOfDeletion returns what is lost if an object is deleted. created is true if the object is created again afterwards.
func effectOfDeletion(kind schema.GroupKind, live map[string]any, created bool) (effect string, losesData bool) {
	switch kind {
	case deployment, statefulSet, daemonSet:
		effect = "all its pods are deleted"
		if created {
			effect += ", and new ones start"
		}
		if policy, _, _ := unstructured.NestedString(live, "spec", "persistentVolumeClaimRetentionPolicy", "whenDeleted"); kind == statefulSet && policy == "Delete" {
			return effect + ", and its claims are deleted with their data", true
		}
		return effect, false
	case job, cronJob:
		effect = "its pods are deleted"
		if created && kind == job {
			effect += ", and it runs again"
		}
		return effect, false
	case service:
		if created {
			return "its cluster IP changes", false
		}
		return "nothing reaches its pods by its name any more", false
	case claim:
		if created {
			return "the new claim is empty; the old volume is kept only if its reclaim policy is Retain", true
		}
		return "its volume is deleted, unless the reclaim policy of the volume is Retain", true
	case volume:
		return "what has a claim for it has its data no more", true
	case networkPolicy:
		if !created {
			return "what it refused to let through is let through, unless another NetworkPolicy selects the pods", false
		}
	case budget:
		if !created {
			return "nothing limits evictions of its pods any more", false
		}
	case namespace:
		return "all that is in it is deleted", true
	case definition:
		return "all objects of its kind are deleted", true
	}
	return "", false
}
