package controlplane_test

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/conversion"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// Gadget is the version v1 of a kind with webhooks.
type Gadget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Replicas          int `json:"replicas,omitempty"`
}

func (*Gadget) Hub() {}

func (g *Gadget) DeepCopyObject() runtime.Object {
	return &Gadget{TypeMeta: g.TypeMeta, ObjectMeta: *g.ObjectMeta.DeepCopy(), Replicas: g.Replicas}
}

// OldGadget is the version v1alpha1.
type OldGadget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Size              int `json:"size,omitempty"`
}

func (g *OldGadget) DeepCopyObject() runtime.Object {
	return &OldGadget{TypeMeta: g.TypeMeta, ObjectMeta: *g.ObjectMeta.DeepCopy(), Size: g.Size}
}

func (g *OldGadget) ConvertTo(hub conversion.Hub) error {
	to := hub.(*Gadget)
	to.ObjectMeta, to.Replicas = g.ObjectMeta, g.Size
	return nil
}

func (g *OldGadget) ConvertFrom(hub conversion.Hub) error {
	from := hub.(*Gadget)
	g.ObjectMeta, g.Size = from.ObjectMeta, from.Replicas
	return nil
}

func gadgetScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	scheme.AddKnownTypeWithName(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Gadget"}, &Gadget{})
	scheme.AddKnownTypeWithName(schema.GroupVersionKind{Group: "example.com", Version: "v1alpha1", Kind: "Gadget"}, &OldGadget{})
	for _, version := range []string{"v1", "v1alpha1"} {
		metav1.AddToGroupVersion(scheme, schema.GroupVersion{Group: "example.com", Version: version})
	}
	return scheme
}

// gadgetWebhooks are the webhooks of gadgets.
type gadgetWebhooks struct{}

func (gadgetWebhooks) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewWebhookManagedBy(mgr, &Gadget{}).WithDefaulter(gadgetWebhooks{}).WithValidator(gadgetWebhooks{}).Complete()
}

func (gadgetWebhooks) Default(_ context.Context, g *Gadget) error {
	g.Replicas = max(g.Replicas, 3)
	return nil
}

func (gadgetWebhooks) ValidateCreate(_ context.Context, g *Gadget) (admission.Warnings, error) {
	if g.Replicas > 9 {
		return nil, fmt.Errorf("%d replicas are too many", g.Replicas)
	}
	return nil, nil
}

func (w gadgetWebhooks) ValidateUpdate(ctx context.Context, _, g *Gadget) (admission.Warnings, error) {
	return w.ValidateCreate(ctx, g)
}

func (gadgetWebhooks) ValidateDelete(context.Context, *Gadget) (admission.Warnings, error) {
	return nil, nil
}
