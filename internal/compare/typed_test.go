package compare

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/opblocks/opblocks/internal/applyschema"
)

// webDeployment returns a Deployment as an operator builds it.
func webDeployment() *appsv1.Deployment {
	labels := map[string]string{"app": "web"}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "shop", Labels: map[string]string{"app.kubernetes.io/name": "web"}},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(3)),
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{Containers: []corev1.Container{{
					Name:    "web",
					Image:   "nginx:1.27",
					Command: []string{"nginx", "-g", "daemon off;"},
					Env:     []corev1.EnvVar{{Name: "MODE", Value: "shop"}, {Name: "NODE", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "spec.nodeName"}}}},
					Ports:   []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}},
					Resources: corev1.ResourceRequirements{
						Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("0.1"), corev1.ResourceMemory: resource.MustParse("64Mi")},
					},
					ReadinessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromString("http")}}},
				}}},
			},
		},
	}
}

// serverDefaults returns a copy of d with the fields that the API server and the Deployment controller set.
func serverDefaults(d *appsv1.Deployment) *appsv1.Deployment {
	d = d.DeepCopy()
	d.UID, d.ResourceVersion, d.Generation = "6d1f", "42", 1
	d.Annotations = map[string]string{"deployment.kubernetes.io/revision": "1"}
	d.Spec.RevisionHistoryLimit = new(int32(10))
	d.Spec.ProgressDeadlineSeconds = new(int32(600))
	d.Spec.Strategy = appsv1.DeploymentStrategy{Type: appsv1.RollingUpdateDeploymentStrategyType}
	pod := &d.Spec.Template.Spec
	pod.RestartPolicy, pod.DNSPolicy, pod.SchedulerName = corev1.RestartPolicyAlways, corev1.DNSClusterFirst, "default-scheduler"
	pod.SecurityContext = &corev1.PodSecurityContext{}
	c := &pod.Containers[0]
	c.Ports[0].Protocol = corev1.ProtocolTCP
	c.Env[1].ValueFrom.FieldRef.APIVersion = "v1"
	c.Resources.Requests[corev1.ResourceCPU] = resource.MustParse("100m")
	c.ReadinessProbe.PeriodSeconds = 10
	d.Status.ReadyReplicas = 3
	return d
}

// compiled returns the Comparer for an object of a kind in client-go.
func compiled(t testing.TB, obj runtime.Object) *Comparer {
	t.Helper()
	kinds, _, err := scheme.Scheme.ObjectKinds(obj)
	require.NoError(t, err)
	p, err := Compile(obj, kinds[0], applyschema.BuiltIn)
	require.NoError(t, err)
	return p
}

func TestDefaultsAreNoDifference(t *testing.T) {
	want := webDeployment()
	p := compiled(t, want)
	require.Empty(t, p.Differences(want, serverDefaults(want)))
	require.True(t, p.Covers(want, serverDefaults(want)))
}

func TestDifferences(t *testing.T) {
	tests := map[string]struct {
		reason string
		change func(live *appsv1.Deployment)
		want   []Difference
	}{
		"ChangedScalar": {
			reason: "somebody changed a wanted value",
			change: func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(1)) },
			want:   []Difference{{Path: "spec.replicas", Want: "3", Have: "1"}},
		},
		"RemovedPointer": {
			reason: "somebody removed a wanted value, so the difference has no live value",
			change: func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].ReadinessProbe = nil },
			want: []Difference{{
				Path: "spec.template.spec.containers[name=web].readinessProbe", Want: `{"tcpSocket":{"port":"http"}}`,
			}},
		},
		"InjectedContainer": {
			reason: "containers are keyed by name: others may add theirs",
			change: func(d *appsv1.Deployment) {
				pod := &d.Spec.Template.Spec
				pod.Containers = append([]corev1.Container{{Name: "mesh"}}, pod.Containers...)
			},
		},
		"AddedArgument": {
			reason: "command is atomic: one more argument is a difference of the whole list",
			change: func(d *appsv1.Deployment) {
				c := &d.Spec.Template.Spec.Containers[0]
				c.Command = append(c.Command, "-q")
			},
			want: []Difference{{
				Path: "spec.template.spec.containers[name=web].command",
				Want: `["nginx","-g","daemon off;"]`, Have: `["nginx","-g","daemon off;","-q"]`,
			}},
		},
		"VariablesOutOfOrder": {
			reason: "variables refer to earlier ones, so their order counts",
			change: func(d *appsv1.Deployment) {
				env := d.Spec.Template.Spec.Containers[0].Env
				env[0], env[1] = env[1], env[0]
			},
			want: []Difference{{
				Path: "spec.template.spec.containers[name=web].env[name=NODE]", Want: `"in order"`, Have: `"out of order"`,
			}},
		},
		"OtherProtocol": {
			reason: "ports are keyed by number and protocol; an unset protocol is TCP",
			change: func(d *appsv1.Deployment) {
				d.Spec.Template.Spec.Containers[0].Ports[0].Protocol = corev1.ProtocolUDP
			},
			want: []Difference{{
				Path: "spec.template.spec.containers[name=web].ports[containerPort=8080,protocol=TCP]",
				Want: `{"containerPort":8080,"name":"http"}`,
			}},
		},
		"AddedLabel": {
			reason: "labels are a map that several writers share",
			change: func(d *appsv1.Deployment) { d.Labels["team"] = "red" },
		},
		"SelectorWithAnotherLabel": {
			reason: "a selector is atomic: one more label selects other pods",
			change: func(d *appsv1.Deployment) {
				d.Spec.Selector.MatchLabels = map[string]string{"app": "web", "tier": "x"}
			},
			want: []Difference{{Path: "spec.selector.matchLabels", Want: `{"app":"web"}`, Have: `{"app":"web","tier":"x"}`}},
		},
		"SelectorWithExpressions": {
			reason: "one more field selects other pods, although nothing is wanted of that field",
			change: func(d *appsv1.Deployment) {
				d.Spec.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "x", Operator: metav1.LabelSelectorOpExists}}
			},
			want: []Difference{{Path: "spec.selector.matchExpressions", Have: `[{"key":"x","operator":"Exists"}]`}},
		},
		"RemovedLabel": {
			reason: "keys of maps are in brackets, since they may contain dots",
			change: func(d *appsv1.Deployment) { delete(d.Labels, "app.kubernetes.io/name") },
			want:   []Difference{{Path: "metadata.labels[app.kubernetes.io/name]", Want: `"web"`}},
		},
		"QuantityInAnotherNotation": {
			reason: "quantities are compared by their amount",
			change: func(d *appsv1.Deployment) {
				d.Spec.Template.Spec.Containers[0].Resources.Requests[corev1.ResourceMemory] = resource.MustParse("65536Ki")
			},
		},
		"OtherQuantity": {
			reason: "a changed amount is a difference",
			change: func(d *appsv1.Deployment) {
				d.Spec.Template.Spec.Containers[0].Resources.Requests[corev1.ResourceMemory] = resource.MustParse("1Mi")
			},
			want: []Difference{{
				Path: "spec.template.spec.containers[name=web].resources.requests[memory]", Want: `"64Mi"`, Have: `"1Mi"`,
			}},
		},
		"Status": {
			reason: "status belongs to controllers",
			change: func(d *appsv1.Deployment) { d.Status = appsv1.DeploymentStatus{} },
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			want := webDeployment()
			p := compiled(t, want)
			live := serverDefaults(want)
			tc.change(live)
			if diff := cmp.Diff(tc.want, p.Differences(want, live)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
			require.Equal(t, len(tc.want) == 0, p.Covers(want, live), "Covers and Differences agree")
		})
	}
}

func TestAppendJSON(t *testing.T) {
	tests := map[string]struct {
		reason string
		obj    runtime.Object
		want   string
	}{
		"ServerOwned": {
			reason: "the API server owns status, uid and others; AppendApply adds the kind",
			obj: &corev1.Service{
				TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
				ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "x", ResourceVersion: "7", Generation: 2},
				Status:     corev1.ServiceStatus{Conditions: []metav1.Condition{{Type: "X"}}},
			},
			want: `{"metadata":{"name":"a"}}`,
		},
		"EmptyStructBehindPointer": {
			reason: "emptyDir: {} chooses the kind of the volume",
			obj: &corev1.Pod{Spec: corev1.PodSpec{
				Containers: []corev1.Container{},
				Volumes:    []corev1.Volume{{Name: "tmp", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}},
			}},
			want: `{"spec":{"containers":[],"volumes":[{"emptyDir":{},"name":"tmp"}]}}`,
		},
		"EmptyListItem": {
			reason: "ingress: [{}] allows everything; without its item it would deny everything",
			obj:    &networkingv1.NetworkPolicy{Spec: networkingv1.NetworkPolicySpec{Ingress: []networkingv1.NetworkPolicyIngressRule{{}}}},
			want:   `{"spec":{"ingress":[{}]}}`,
		},
		"PointerToZero": {
			reason: "replicas: 0 is a wanted value",
			obj:    &appsv1.Deployment{Spec: appsv1.DeploymentSpec{Replicas: new(int32(0))}},
			want:   `{"spec":{"replicas":0}}`,
		},
		"UnsetTargetPort": {
			reason: "encoding/json writes targetPort: 0, which the API server replaces by the port",
			obj:    &corev1.Service{Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}},
			want:   `{"spec":{"ports":[{"port":80}]}}`,
		},
		"BytesAndEscapes": {
			reason: "bytes are base64; control characters and invalid UTF-8 become valid JSON",
			obj:    &corev1.Secret{Data: map[string][]byte{"b": {0, 255}, "a\"\n\xff": nil}},
			want:   `{"data":{"a\"\u000a\ufffd":"","b":"AP8="}}`,
		},
		"CanonicalQuantities": {
			reason: "the bytes must not depend on the notation of a quantity",
			obj: &corev1.ResourceQuota{Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{
				corev1.ResourcePods: resource.MustParse("1000m"), corev1.ResourceCPU: resource.MustParse("1.5"),
			}}},
			want: `{"spec":{"hard":{"cpu":"1500m","pods":"1"}}}`,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := compiled(t, tc.obj).AppendJSON(nil, tc.obj)
			require.NoError(t, err)
			if diff := cmp.Diff(tc.want, string(got)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// gadget is a custom resource. It has no schema in these tests.
type gadget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              gadgetSpec `json:"spec"`
}

type gadgetSpec struct {
	Size    int32                 `json:"size"`
	Enabled bool                  `json:"enabled"`
	Period  metav1.Duration       `json:"period"`
	Raw     *runtime.RawExtension `json:"raw,omitempty"`
	Parts   []gadgetSpec          `json:"parts,omitempty"`
	Weight  float64               `json:"weight,omitempty"`
}

func (g *gadget) DeepCopyObject() runtime.Object { c := *g; return &c }

func TestTypeWithoutSchema(t *testing.T) {
	p, err := Compile(&gadget{}, schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Gadget"}, applyschema.BuiltIn)
	require.NoError(t, err)
	want := &gadget{Spec: gadgetSpec{Raw: &runtime.RawExtension{Raw: []byte(`{"b":1.0,"a":null,"c":[1]}`)}, Parts: []gadgetSpec{{Weight: 1.5}}}}
	got, err := p.AppendJSON(nil, want)
	require.NoError(t, err)
	require.Equal(t,
		`{"spec":{"enabled":false,"parts":[{"enabled":false,"period":"0s","size":0,"weight":1.5}],"period":"0s","raw":{"b":1.0,"c":[1]},"size":0}}`,
		string(got), "zeros without omitempty are sent, raw JSON is sent in canonical form, a type may contain itself")

	got, err = p.AppendApply(nil, want, schema.GroupVersionKind{Version: "v1", Kind: "Gadget"}, "", "")
	require.NoError(t, err)
	require.Contains(t, string(got), `"raw":{"a":null,"b":1.0,"c":[1]}`, "an apply has the nulls in raw JSON; recorded hashes never had them")

	live := &gadget{Spec: gadgetSpec{Raw: &runtime.RawExtension{Raw: []byte(`{"c":[1],"b":1}`)}, Parts: want.Spec.Parts}}
	require.Equal(t, []Difference{{Path: "spec.raw", Want: `{"b":1.0,"c":[1]}`, Have: `{"b":1,"c":[1]}`}}, p.Differences(want, live), "the null is gone")
	live.Spec.Raw.Raw = []byte(`{"c":[1],"b":1,"d":true,"a":null}`)
	require.True(t, p.Covers(want, live), "raw JSON is compared by value, and a field that was added is no difference")
	live.Spec.Size = 2
	require.False(t, p.Covers(want, live), "size: 0 is a wanted value")

	_, err = p.AppendJSON(nil, &gadget{Spec: gadgetSpec{Raw: &runtime.RawExtension{Raw: []byte(`{`)}}})
	var refused *EncodeError
	require.ErrorAs(t, err, &refused)
}

// An empty selector selects everything. If somebody adds a field to it, it selects less, so that must be a difference.
func TestEmptySelectorMustStayEmpty(t *testing.T) {
	want := &networkingv1.NetworkPolicy{Spec: networkingv1.NetworkPolicySpec{Ingress: []networkingv1.NetworkPolicyIngressRule{
		{From: []networkingv1.NetworkPolicyPeer{{NamespaceSelector: &metav1.LabelSelector{}}}},
	}}}
	pods, namespaces := want.DeepCopy(), want.DeepCopy()
	narrow := metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}
	pods.Spec.PodSelector = narrow
	*namespaces.Spec.Ingress[0].From[0].NamespaceSelector = narrow
	p := compiled(t, want)
	require.True(t, p.Covers(want, want))
	require.Equal(t, []Difference{{Path: "spec.podSelector.matchLabels", Have: `{"a":"b"}`}}, p.Differences(want, pods))
	require.Equal(t, []Difference{{Path: "spec.ingress[0].from[0].namespaceSelector.matchLabels", Have: `{"a":"b"}`}}, p.Differences(want, namespaces))
}

func TestAppendApply(t *testing.T) {
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "stale"}, Data: map[string]string{"k": "v"}}
	got, err := compiled(t, cm).AppendApply(nil, cm, corev1.SchemeGroupVersion.WithKind("ConfigMap"), "u-1", "")
	require.NoError(t, err)
	require.Equal(t, `{"apiVersion":"v1","data":{"k":"v"},"kind":"ConfigMap","metadata":{"name":"a","uid":"u-1"}}`, string(got))
}

// AppendJSON writes the same as encoding/json, except for the rules in doc.go.
func TestAppendJSONEqualsEncodingJSON(t *testing.T) {
	d := webDeployment()
	got, err := compiled(t, d).AppendJSON(nil, d)
	require.NoError(t, err)
	b, err := json.Marshal(d)
	require.NoError(t, err)
	var want map[string]any
	require.NoError(t, json.Unmarshal(b, &want))
	delete(want, "status")
	container := want["spec"].(map[string]any)["template"].(map[string]any)["spec"].(map[string]any)["containers"].([]any)[0].(map[string]any)
	require.Equal(t, "100m", container["resources"].(map[string]any)["requests"].(map[string]any)["cpu"])
	delete(want["spec"].(map[string]any), "strategy")
	var have map[string]any
	require.NoError(t, json.Unmarshal(got, &have))
	if diff := cmp.Diff(want, have); diff != "" {
		t.Errorf("-encoding/json +AppendJSON:\n%s", diff)
	}
}

// An allocation costs about as much as a step of the walk. If the walk becomes more expensive, the number of allocations shows it on any
// machine.
func TestCoversAndAppendJSONAllocateLittle(t *testing.T) {
	want := webDeployment()
	p := compiled(t, want)
	live := serverDefaults(want)
	room := make([]byte, 0, 4096)
	require.LessOrEqual(t, testing.AllocsPerRun(100, func() { p.Covers(want, live) }), 40.0, "comparing")
	require.LessOrEqual(t, testing.AllocsPerRun(100, func() { room, _ = p.AppendJSON(room[:0], want) }), 250.0, "serialising")
}

func BenchmarkCoversDeployment(b *testing.B) {
	want := webDeployment()
	p := compiled(b, want)
	live := serverDefaults(want)
	b.ReportAllocs()
	for b.Loop() {
		if !p.Covers(want, live) {
			b.Fatal("not covered")
		}
	}
}

func BenchmarkAppendJSONDeployment(b *testing.B) {
	want := webDeployment()
	p := compiled(b, want)
	room := make([]byte, 0, 4096)
	b.ReportAllocs()
	for b.Loop() {
		room, _ = p.AppendJSON(room[:0], want)
	}
}
