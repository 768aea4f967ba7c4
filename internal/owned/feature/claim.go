package feature

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/owned"
)

// The storage request of a PersistentVolumeClaim cannot become smaller. If somebody else, such as an autoscaler of volumes, has raised the
// request of the live claim, the API server refuses the builder's smaller request, and with it every other change of the claim.

// requestPath is the path of the storage request in a PersistentVolumeClaim.
var requestPath = []string{"spec", "resources", "requests", "storage"}

// IsGrownClaim reports whether a live PersistentVolumeClaim requests more storage than the desired one.
func IsGrownClaim(d *owned.Desired, live client.Object) (bool, error) {
	if d.Kind.GVK != ClaimKind {
		return false, nil
	}
	want, requests, err := requestOf(d.Object)
	if err != nil || !requests {
		return false, err
	}
	have, requests, err := requestOf(live)
	return requests && want.Cmp(have) < 0, err
}

// WithoutRequest returns a copy of a PersistentVolumeClaim without its storage request.
func WithoutRequest(claim client.Object) client.Object {
	claim = claim.DeepCopyObject().(client.Object)
	switch claim := claim.(type) {
	case *corev1.PersistentVolumeClaim:
		delete(claim.Spec.Resources.Requests, corev1.ResourceStorage)
	case *unstructured.Unstructured:
		unstructured.RemoveNestedField(claim.Object, requestPath...)
	}
	return claim
}

// PhaseOf returns the phase of a live PersistentVolumeClaim.
func PhaseOf(live client.Object) (corev1.PersistentVolumeClaimPhase, error) {
	claim, err := asClaim(live)
	if err != nil {
		return "", err
	}
	return claim.Status.Phase, nil
}

func requestOf(obj client.Object) (size resource.Quantity, requests bool, err error) {
	claim, err := asClaim(obj)
	if err != nil {
		return size, false, err
	}
	size, requests = claim.Spec.Resources.Requests[corev1.ResourceStorage]
	return size, requests, nil
}

// asClaim returns a typed or unstructured PersistentVolumeClaim as a typed one.
func asClaim(obj client.Object) (*corev1.PersistentVolumeClaim, error) {
	switch obj := obj.(type) {
	case *corev1.PersistentVolumeClaim:
		return obj, nil
	case *unstructured.Unstructured:
		claim := &corev1.PersistentVolumeClaim{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, claim); err != nil {
			return nil, fmt.Errorf("claim %s: %w", client.ObjectKeyFromObject(obj), err)
		}
		return claim, nil
	}
	return nil, fmt.Errorf("%T is not a PersistentVolumeClaim", obj)
}
