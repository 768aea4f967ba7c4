package controllers

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// revisionHashLabel is the label of a ControllerRevision that has the hash of its content.
const revisionHashLabel = "controller.kubernetes.io/hash"

// revision is a pod template, and the name of the ControllerRevision that stores it.
type revision struct {
	name     string
	template corev1.PodTemplateSpec
}

// patch is what a ControllerRevision stores: a strategic merge patch that restores the template.
type patch struct {
	Spec struct {
		Template struct {
			corev1.PodTemplateSpec `json:",inline"`
			Directive              string `json:"$patch"`
		} `json:"template"`
	} `json:"spec"`
}

// revisionsOf returns the revision of a StatefulSet's pods before the current update, and the revision to which they are updated. If the
// second one is not stored yet, revisionsOf stores it.
func revisionsOf(ctx context.Context, c client.Client, set *appsv1.StatefulSet) (current, update revision, err error) {
	update = revision{set.Name + "-" + hashOf(&set.Spec.Template), set.Spec.Template}
	var stored appsv1.ControllerRevisionList
	if err := c.List(ctx, &stored, client.InNamespace(set.Namespace)); err != nil {
		return current, update, err
	}
	current = update
	found, latest := (*appsv1.ControllerRevision)(nil), int64(0)
	for i := range stored.Items {
		r := &stored.Items[i]
		if !metav1.IsControlledBy(r, set) {
			continue
		}
		latest = max(latest, r.Revision)
		if r.Name == update.name {
			found = r
		}
		if r.Name == set.Status.CurrentRevision {
			if current, err = restored(r); err != nil {
				return current, update, err
			}
		}
	}
	switch {
	case found == nil:
		return current, update, store(ctx, c, set, update, latest+1)
	case found.Revision < latest: // an earlier template is used again
		found.Revision = latest + 1
		return current, update, c.Update(ctx, found)
	}
	return current, update, nil
}

func restored(r *appsv1.ControllerRevision) (revision, error) {
	var p patch
	if err := json.Unmarshal(r.Data.Raw, &p); err != nil {
		return revision{}, fmt.Errorf("ControllerRevision %s: %w", r.Name, err)
	}
	return revision{r.Name, p.Spec.Template.PodTemplateSpec}, nil
}

// store creates the ControllerRevision. If a deleted StatefulSet with the same name and template has left a ControllerRevision of this
// name, the new StatefulSet becomes its owner.
func store(ctx context.Context, c client.Client, set *appsv1.StatefulSet, r revision, number int64) error {
	var p patch
	p.Spec.Template.PodTemplateSpec, p.Spec.Template.Directive = r.template, "replace"
	raw, err := json.Marshal(p)
	if err != nil {
		return err
	}
	made := &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: set.Namespace, Name: r.name, Annotations: set.Annotations, Labels: map[string]string{},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(set, statefulSetKind)},
		},
		Data: runtime.RawExtension{Raw: raw}, Revision: number,
	}
	maps.Copy(made.Labels, r.template.Labels)
	made.Labels[revisionHashLabel] = hashOf(&r.template)
	err = c.Create(ctx, made)
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	left := &appsv1.ControllerRevision{}
	if err := c.Get(ctx, client.ObjectKeyFromObject(made), left); err != nil {
		return err
	}
	left.OwnerReferences, left.Revision = made.OwnerReferences, number
	return c.Update(ctx, left)
}
