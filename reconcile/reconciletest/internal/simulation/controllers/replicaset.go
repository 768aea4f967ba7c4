package controllers

import (
	"context"
	"maps"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// replicaSetsOf returns the ReplicaSet of a Deployment's current template, and the ReplicaSets of earlier templates. It creates or scales
// the current one if needed. If a ReplicaSet of another owner has the same name, such as a former Deployment, current is nil until the
// garbage collector has deleted that ReplicaSet.
func replicaSetsOf(ctx context.Context, c client.Client, d *appsv1.Deployment) (current *appsv1.ReplicaSet, earlier []*appsv1.ReplicaSet, err error) {
	var list appsv1.ReplicaSetList
	if err := c.List(ctx, &list, client.InNamespace(d.Namespace)); err != nil {
		return nil, nil, err
	}
	wanted := newReplicaSet(d)
	for i := range list.Items {
		set := &list.Items[i]
		switch {
		case !metav1.IsControlledBy(set, d) || set.DeletionTimestamp != nil:
			if set.Name == wanted.Name {
				return nil, nil, nil
			}
		case set.Name == wanted.Name:
			current = set
		default:
			earlier = append(earlier, set)
		}
	}
	switch {
	case current == nil:
		return wanted, earlier, c.Create(ctx, wanted)
	case *current.Spec.Replicas != *wanted.Spec.Replicas:
		current.Spec.Replicas = wanted.Spec.Replicas
		return current, earlier, c.Update(ctx, current)
	}
	return current, earlier, nil
}

// newReplicaSet returns the ReplicaSet of a Deployment's template. The hash of the template is in its name, its labels and its selector. It
// also sets generateName, since generated names are not compared between runs.
func newReplicaSet(d *appsv1.Deployment) *appsv1.ReplicaSet {
	hash := map[string]string{appsv1.DefaultDeploymentUniqueLabelKey: hashOf(&d.Spec.Template)}
	template, selector := d.Spec.Template.DeepCopy(), d.Spec.Selector.DeepCopy()
	template.Labels, selector.MatchLabels = with(template.Labels, hash), with(selector.MatchLabels, hash)
	return &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: d.Namespace, Name: d.Name + "-" + hash[appsv1.DefaultDeploymentUniqueLabelKey], GenerateName: d.Name + "-", Labels: template.Labels,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(d, appsv1.SchemeGroupVersion.WithKind("Deployment"))},
		},
		Spec: appsv1.ReplicaSetSpec{Replicas: new(int32(replicas(d))), MinReadySeconds: d.Spec.MinReadySeconds, Selector: selector, Template: *template},
	}
}

// with returns a map with further entries.
func with(labels, more map[string]string) map[string]string {
	all := maps.Clone(labels)
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, more)
	return all
}

func updateReplicaSetStatus(ctx context.Context, c client.Client, set *appsv1.ReplicaSet, current, ready int) error {
	status := appsv1.ReplicaSetStatus{
		ObservedGeneration: set.Generation, Replicas: int32(current), FullyLabeledReplicas: int32(current), ReadyReplicas: int32(ready), AvailableReplicas: int32(ready),
	}
	if equality.Semantic.DeepEqual(status, set.Status) {
		return nil
	}
	set.Status = status
	return c.Status().Update(ctx, set)
}
