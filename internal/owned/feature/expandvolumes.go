package feature

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/owned"
	"github.com/opblocks/opblocks/internal/record"
)

// The reason while a PersistentVolumeClaim cannot grow, and the delay before the next attempt.
const (
	ReasonClaimNotBound = "ClaimNotBound"
	// ClaimRecheck is the delay before claims are read again to see whether they are bound. They are not watched.
	ClaimRecheck = 30 * time.Second
)

func expandVolumesMistake(o *owned.Options, kind schema.GroupKind) error {
	if o.ExpandVolumes && kind != (schema.GroupKind{Group: appsv1.GroupName, Kind: "StatefulSet"}) {
		return errors.New("ExpandVolumes is for a StatefulSet: take it away; a claim that is a child itself grows without it")
	}
	return nil
}

// VolumeGrowth is a claim template of a StatefulSet that requests more storage than the live StatefulSet's template of this name.
type VolumeGrowth struct {
	Template string
	From, To resource.Quantity
}

// growthOf returns the claim templates that request more storage than the live StatefulSet's. If a template requests less, the error is
// Invalid.
func growthOf(name string, want, live []corev1.PersistentVolumeClaim) (grown []VolumeGrowth, err error) {
	var shrunk field.ErrorList
	for i := range want {
		j := slices.IndexFunc(live, func(c corev1.PersistentVolumeClaim) bool { return c.Name == want[i].Name })
		to, requests := want[i].Spec.Resources.Requests[corev1.ResourceStorage]
		if j < 0 || !requests {
			continue
		}
		from := live[j].Spec.Resources.Requests[corev1.ResourceStorage]
		switch to.Cmp(from) {
		case 1:
			grown = append(grown, VolumeGrowth{want[i].Name, from, to})
		case -1:
			path := field.NewPath("spec", "volumeClaimTemplates").Key(want[i].Name).Child("spec", "resources", "requests", "storage")
			shrunk = append(shrunk, field.Invalid(path, to.String(), fmt.Sprintf(
				"the live claim template requests %s, and volumes cannot shrink: request at least as much", from.String())))
		}
	}
	if len(shrunk) > 0 {
		return nil, apierrors.NewInvalid(schema.GroupKind{Group: appsv1.GroupName, Kind: "StatefulSet"}, name, shrunk)
	}
	return grown, nil
}

// AsStatefulSet returns a typed or unstructured StatefulSet as a typed one.
func AsStatefulSet(obj client.Object) (*appsv1.StatefulSet, error) {
	switch obj := obj.(type) {
	case *appsv1.StatefulSet:
		return obj, nil
	case *unstructured.Unstructured:
		set := &appsv1.StatefulSet{}
		return set, runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, set)
	}
	return nil, fmt.Errorf("%T is not a StatefulSet", obj)
}

// ExpansionOf returns what the owner's annotation with this key records about a StatefulSet that is being replaced by one with larger
// volumes. If this library would not write such a value under this key, it returns nil. Anybody who may change the owner can write any
// value there. So the record only says where to look: see package write.
func ExpansionOf(o *owned.Owner, key string) *record.Expansion {
	e := record.ParseExpansion(o.Object.GetAnnotations()[key])
	if e == nil || o.Namespace != "" && e.Namespace != o.Namespace ||
		key != record.Key(record.ExpansionPrefix, o.Namespace, &metav1.ObjectMeta{Namespace: e.Namespace, Name: e.Name}) {
		return nil
	}
	return e
}

// Growth returns the claim templates of a live StatefulSet that have to grow. If a template would shrink, the error is Invalid.
func Growth(d *owned.Desired, live client.Object) ([]VolumeGrowth, error) {
	want, err := AsStatefulSet(d.Object)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", d, err)
	}
	have, err := AsStatefulSet(live)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", d, err)
	}
	grown, err := growthOf(d.Object.GetName(), want.Spec.VolumeClaimTemplates, have.Spec.VolumeClaimTemplates)
	if err != nil {
		return nil, fmt.Errorf("apply %s: %w", d, err)
	}
	return grown, nil
}

// WithFormerSizes returns a copy of a StatefulSet in which the claim templates in grown request the storage that they requested before.
func WithFormerSizes(obj client.Object, grown []VolumeGrowth) (client.Object, error) {
	obj = obj.DeepCopyObject().(client.Object)
	switch obj := obj.(type) {
	case *appsv1.StatefulSet:
		for i := range obj.Spec.VolumeClaimTemplates {
			template := &obj.Spec.VolumeClaimTemplates[i]
			if g := slices.IndexFunc(grown, func(g VolumeGrowth) bool { return g.Template == template.Name }); g >= 0 {
				template.Spec.Resources.Requests[corev1.ResourceStorage] = grown[g].From
			}
		}
	case *unstructured.Unstructured:
		templates, _, err := unstructured.NestedSlice(obj.Object, "spec", "volumeClaimTemplates")
		if err != nil {
			return nil, err
		}
		for _, item := range templates {
			template, _ := item.(map[string]any)
			name, _, _ := unstructured.NestedString(template, "metadata", "name") // the API server refuses a template without a name
			if g := slices.IndexFunc(grown, func(g VolumeGrowth) bool { return g.Template == name }); g >= 0 {
				if err := unstructured.SetNestedField(template, grown[g].From.String(), "spec", "resources", "requests", "storage"); err != nil {
					return nil, err
				}
			}
		}
		return obj, unstructured.SetNestedSlice(obj.Object, templates, "spec", "volumeClaimTemplates")
	}
	return obj, nil
}

// The kinds that are read in addition to the StatefulSet.
var (
	ClaimKind = corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim")
	PodKind   = corev1.SchemeGroupVersion.WithKind("Pod")
)

// WantedSize returns the storage that a PersistentVolumeClaim has to request at least. If the claim does not belong to a claim template in
// grown, it returns false. set is the name of the StatefulSet.
func WantedSize(claim, set string, grown []VolumeGrowth) (resource.Quantity, bool) {
	for _, g := range grown {
		if ordinal, ok := strings.CutPrefix(claim, g.Template+"-"+set+"-"); ok && IsOrdinal(ordinal) {
			return g.To, true
		}
	}
	return resource.Quantity{}, false
}

// IsOrdinal reports whether a string can be the ordinal of a pod of a StatefulSet.
func IsOrdinal(text string) bool {
	_, err := strconv.ParseUint(text, 10, 31)
	return err == nil
}

// SetReplicas sets the number of replicas of a StatefulSet that is to be sent.
func SetReplicas(obj client.Object, replicas int32) {
	switch obj := obj.(type) {
	case *appsv1.StatefulSet:
		obj.Spec.Replicas = &replicas
	case *unstructured.Unstructured:
		if spec, ok := obj.Object["spec"].(map[string]any); ok {
			spec["replicas"] = int64(replicas)
		}
	}
}
