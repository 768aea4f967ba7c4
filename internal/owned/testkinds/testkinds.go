// Package testkinds has custom resources for tests of the engine: their Go types, and their definitions in YAML files.
package testkinds

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Gadget is a custom resource with defaults, and with a list of each kind: gadgets.yaml.
type Gadget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              GadgetSpec `json:"spec"`
}

// GadgetSpec is the desired state of a Gadget.
type GadgetSpec struct {
	Size    int32                 `json:"size"`    // 0 is a desired value, and not the default
	Enabled bool                  `json:"enabled"` // false is a desired value, and not the default
	Note    string                `json:"note,omitempty"`
	Parts   []GadgetPart          `json:"parts,omitempty"`
	Tags    []string              `json:"tags,omitempty"`
	Steps   []GadgetStep          `json:"steps,omitempty"`
	Raw     *runtime.RawExtension `json:"raw,omitempty"`
}

// GadgetPart is an item of a list that server-side apply merges by name.
type GadgetPart struct {
	Name   string `json:"name"`
	Weight *int32 `json:"weight,omitempty"`
}

// GadgetStep is an item of a list that server-side apply replaces as a whole.
type GadgetStep struct {
	Run     string `json:"run"`
	Retries *int32 `json:"retries,omitempty"`
}

// DeepCopyObject implements [runtime.Object].
func (g *Gadget) DeepCopyObject() runtime.Object {
	c := *g
	g.ObjectMeta.DeepCopyInto(&c.ObjectMeta)
	return &c // a shallow copy suffices, because the tests do not change what the fields refer to
}

// GadgetKind is the kind of a [Gadget].
var GadgetKind = schema.GroupVersionKind{Group: "test.opblocks.dev", Version: "v1", Kind: "Gadget"}

// Widget is a custom resource with everything that a schema for server-side apply can declare: widgets.yaml.
type Widget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              WidgetSpec `json:"spec"`
}

// WidgetSpec is the desired state of a Widget.
type WidgetSpec struct {
	Image     string                 `json:"image"`
	Replicas  int32                  `json:"replicas"` // 0 is a wanted value
	Timeout   *metav1.Duration       `json:"timeout,omitempty"`
	Port      *intstr.IntOrString    `json:"port,omitempty"`
	Storage   *resource.Quantity     `json:"storage,omitempty"`
	Ratio     float64                `json:"ratio,omitempty"`
	Endpoints []WidgetEndpoint       `json:"endpoints,omitempty"`
	Selector  map[string]string      `json:"selector,omitempty"`
	TLS       *WidgetTLS             `json:"tls,omitempty"`
	Groups    map[string]WidgetGroup `json:"groups,omitempty"`
	Resources struct {
		Requests corev1.ResourceList `json:"requests,omitempty"`
	} `json:"resources,omitzero"`
	Env      []corev1.EnvVar       `json:"env,omitempty"`
	Template *runtime.RawExtension `json:"template,omitempty"`
}

// WidgetEndpoint is an item of a list that server-side apply merges by port and protocol.
type WidgetEndpoint struct {
	Port     int32    `json:"port"`
	Protocol string   `json:"protocol,omitempty"`
	Host     *string  `json:"host,omitempty"`
	Weight   *float64 `json:"weight,omitempty"`
}

// WidgetTLS is an object that server-side apply replaces as a whole.
type WidgetTLS struct {
	Secret     string `json:"secret,omitempty"`
	MinVersion string `json:"minVersion,omitempty"`
}

// WidgetGroup is a value of a map.
type WidgetGroup struct {
	Members []string `json:"members,omitempty"`
	Leader  string   `json:"leader,omitempty"`
}

// DeepCopyObject implements [runtime.Object].
func (w *Widget) DeepCopyObject() runtime.Object {
	c := *w
	w.ObjectMeta.DeepCopyInto(&c.ObjectMeta)
	return &c // a shallow copy suffices, because the tests do not change what the fields refer to
}

// WidgetKind is the kind of a [Widget].
var WidgetKind = schema.GroupVersionKind{Group: "corpus.opblocks.dev", Version: "v1", Kind: "Widget"}
