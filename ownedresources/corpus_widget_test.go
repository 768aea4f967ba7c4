package ownedresources

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// widget is a custom resource with everything that a schema for server-side apply may say:
// testdata/widgets.yaml.
type widget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              widgetSpec `json:"spec"`
}

type widgetSpec struct {
	Image     string                 `json:"image"`
	Replicas  int32                  `json:"replicas"` // 0 is meant
	Timeout   *metav1.Duration       `json:"timeout,omitempty"`
	Port      *intstr.IntOrString    `json:"port,omitempty"`
	Storage   *resource.Quantity     `json:"storage,omitempty"`
	Ratio     float64                `json:"ratio,omitempty"`
	Endpoints []widgetEndpoint       `json:"endpoints,omitempty"`
	Selector  map[string]string      `json:"selector,omitempty"`
	TLS       *widgetTLS             `json:"tls,omitempty"`
	Groups    map[string]widgetGroup `json:"groups,omitempty"`
	Resources struct {
		Requests corev1.ResourceList `json:"requests,omitempty"`
	} `json:"resources,omitzero"`
	Env      []corev1.EnvVar       `json:"env,omitempty"`
	Template *runtime.RawExtension `json:"template,omitempty"`
}

type widgetEndpoint struct {
	Port     int32    `json:"port"`
	Protocol string   `json:"protocol,omitempty"`
	Host     *string  `json:"host,omitempty"`
	Weight   *float64 `json:"weight,omitempty"`
}

type widgetTLS struct {
	Secret     string `json:"secret,omitempty"`
	MinVersion string `json:"minVersion,omitempty"`
}

type widgetGroup struct {
	Members []string `json:"members,omitempty"`
	Leader  string   `json:"leader,omitempty"`
}

func (w *widget) DeepCopyObject() runtime.Object {
	c := *w
	w.ObjectMeta.DeepCopyInto(&c.ObjectMeta)
	return &c // what is deeper is not changed by these tests
}

var widgetKind = schema.GroupVersionKind{Group: "corpus.opblocks.dev", Version: "v1", Kind: "Widget"}
