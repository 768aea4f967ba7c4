package overlay_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/opblocks/opblocks/ownedresources/overlay"
)

const base = `
metadata:
  labels: {app: web, tier: front}
  annotations: {note: base}
spec:
  serviceAccountName: web
  priorityClassName: low
  securityContext: {runAsNonRoot: true, runAsUser: 1000}
  nodeSelector: {disk: ssd, zone: a}
  tolerations:
  - {key: dedicated, operator: Exists}
  imagePullSecrets:
  - {name: registry}
  hostAliases:
  - {ip: 10.0.0.1, hostnames: [db]}
  initContainers:
  - {name: setup, image: "busybox:1.36"}
  containers:
  - name: web
    image: nginx:1.27
    command: [nginx]
    args: ["-g", "daemon off;"]
    env:
    - {name: MODE, value: shop}
    - {name: LEVEL, value: info}
    ports:
    - {name: http, containerPort: 8080}
    resources:
      requests: {cpu: 100m, memory: 64Mi}
    volumeMounts:
    - {name: data, mountPath: /data}
    - {name: conf, mountPath: /conf}
  - name: metrics
    image: exporter:1
  volumes:
  - name: data
    emptyDir: {sizeLimit: 1Gi}
  - name: conf
    configMap: {name: conf}
`

var selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}

func template(t testing.TB, manifest string) corev1.PodTemplateSpec {
	t.Helper()
	var p corev1.PodTemplateSpec
	require.NoError(t, yaml.UnmarshalStrict([]byte(manifest), &p))
	return p
}

// patchOf returns a patch from YAML.
func patchOf(t testing.TB, manifest string) *overlay.PodTemplate {
	t.Helper()
	b, err := yaml.YAMLToJSON([]byte(manifest))
	require.NoError(t, err)
	return rawPatch(string(b))
}

func rawPatch(json string) *overlay.PodTemplate { return &overlay.PodTemplate{Raw: []byte(json)} }

// applyCase is a patch of the base above.
type applyCase struct {
	reason string
	patch  string
	change func(*corev1.PodTemplateSpec) // changes the base into the expected result

	// elsewhere changes the expected result into the result of kubectl patch --type strategic, if the two differ.
	elsewhere func(*corev1.PodTemplateSpec)
}

func applyCases(t testing.TB) map[string]applyCase {
	return map[string]applyCase{
		"Scalar": {
			reason: "A field of the patch replaces that of the base.",
			patch:  `{spec: {priorityClassName: high, terminationGracePeriodSeconds: 5, hostNetwork: true}}`,
			change: func(p *corev1.PodTemplateSpec) {
				p.Spec.PriorityClassName, p.Spec.TerminationGracePeriodSeconds, p.Spec.HostNetwork = "high", new(int64(5)), true
			},
		},
		"Container": {
			reason: "Containers are merged by name, their variables too, and what is new comes after what the base has, unless the patch names an item of the base after it.",
			patch:  `{spec: {containers: [{name: web, image: "nginx:1.28", env: [{name: MODE, value: sale}, {name: EXTRA, value: "1"}]}, {name: sidecar, image: proxy}]}}`,
			change: func(p *corev1.PodTemplateSpec) {
				web := &p.Spec.Containers[0]
				web.Image = "nginx:1.28"
				web.Env = []corev1.EnvVar{{Name: "MODE", Value: "sale"}, {Name: "LEVEL", Value: "info"}, {Name: "EXTRA", Value: "1"}}
				p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "sidecar", Image: "proxy"})
			},
			elsewhere: func(p *corev1.PodTemplateSpec) { // kubectl puts new items before the items that only the base has
				env, all := p.Spec.Containers[0].Env, p.Spec.Containers
				env[1], env[2], all[1], all[2] = env[2], env[1], all[2], all[1]
			},
		},
		"AtomicLists": {
			reason: "Lists without a key are replaced as a whole.",
			patch:  `{spec: {tolerations: [{key: gpu, operator: Exists}], containers: [{name: web, args: ["-v"]}]}}`,
			change: func(p *corev1.PodTemplateSpec) {
				p.Spec.Tolerations = []corev1.Toleration{{Key: "gpu", Operator: corev1.TolerationOpExists}}
				p.Spec.Containers[0].Args = []string{"-v"}
			},
		},
		"Maps": {
			reason: "Maps are merged by entry, and null removes one.",
			patch:  `{metadata: {labels: {tier: null, team: shop}, annotations: {note: user}}, spec: {nodeSelector: {zone: b}}}`,
			change: func(p *corev1.PodTemplateSpec) {
				p.Labels = map[string]string{"app": "web", "team": "shop"}
				p.Annotations["note"], p.Spec.NodeSelector["zone"] = "user", "b"
			},
		},
		"Nulls": {
			reason: "Null removes a field of the base, a whole list too, and is nothing where there is nothing to remove.",
			patch: `{spec: {priorityClassName: null, tolerations: null, dnsConfig: null, containers: [
				{name: web, command: null, livenessProbe: null}, {name: new, image: x, command: null, resources: {limits: {cpu: null, memory: 1Gi}}}]}}`,
			change: func(p *corev1.PodTemplateSpec) {
				p.Spec.PriorityClassName, p.Spec.Tolerations, p.Spec.Containers[0].Command = "", nil, nil
				added := template(t, `{spec: {containers: [{name: new, image: x, resources: {limits: {memory: 1Gi}}}]}}`).Spec.Containers[0]
				p.Spec.Containers = append(p.Spec.Containers, added)
			},
			elsewhere: func(p *corev1.PodTemplateSpec) {
				all := p.Spec.Containers
				all[1], all[2] = all[2], all[1]
				all[1].Resources.Limits["cpu"] = resource.Quantity{} // a limit of 0
			},
		},
		"DeleteItem": {
			reason: "$patch: delete removes the item of the base with the same key, and is nothing where there is none.",
			patch: `{spec: {containers: [{name: metrics, $patch: delete}, {name: none, $patch: delete},
				{name: web, env: [{name: LEVEL, $patch: delete}], volumeMounts: [{mountPath: /conf, $patch: delete}], ports: [{containerPort: 8080, $patch: delete}]}],
				volumes: [{name: conf, $patch: delete}], schedulingGates: [{name: none, $patch: delete}]}}`,
			change: func(p *corev1.PodTemplateSpec) {
				p.Spec.Containers = p.Spec.Containers[:1]
				web := &p.Spec.Containers[0]
				web.Env, web.VolumeMounts, web.Ports = web.Env[:1], web.VolumeMounts[:1], nil
				p.Spec.Volumes = p.Spec.Volumes[:1]
			},
		},
		"DeleteAndAddItem": {
			reason: "An item that is deleted and given again has nothing left of the base.",
			patch:  `{spec: {volumes: [{name: data, $patch: delete}, {name: data, hostPath: {path: /data, type: null}}]}}`,
			change: func(p *corev1.PodTemplateSpec) {
				hostPath := corev1.Volume{Name: "data", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/data"}}}
				p.Spec.Volumes = []corev1.Volume{hostPath, p.Spec.Volumes[1]}
			},
		},
		"DeleteAndAddItemWithNull": {
			reason: "Its nulls find nothing to remove, as in any new item.",
			patch:  `{spec: {containers: [{name: web, $patch: delete}, {name: web, image: x, resources: {requests: {cpu: null, memory: 1Gi}}}]}}`,
			change: func(p *corev1.PodTemplateSpec) {
				p.Spec.Containers[0] = template(t, `{spec: {containers: [{name: web, image: x, resources: {requests: {memory: 1Gi}}}]}}`).Spec.Containers[0]
			},
			elsewhere: func(p *corev1.PodTemplateSpec) { p.Spec.Containers[0].Resources.Requests["cpu"] = resource.Quantity{} },
		},
		"ReplaceList": {
			reason: "An item $patch: replace makes the list replace that of the base.",
			patch:  `{spec: {containers: [{name: web, env: [{$patch: replace}, {name: ONLY, value: x}], ports: [{$patch: replace}, {containerPort: 53, protocol: TCP}, {containerPort: 53, protocol: UDP}]}]}}`,
			change: func(p *corev1.PodTemplateSpec) {
				p.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "ONLY", Value: "x"}}
				p.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 53, Protocol: "TCP"}, {ContainerPort: 53, Protocol: "UDP"}}
			},
		},
		"ReplaceObject": {
			reason: "$patch: replace makes an object replace that of the base, and stand where the base has none.",
			patch: `{spec: {securityContext: {$patch: replace, runAsUser: 5, runAsGroup: null}, nodeSelector: {$patch: replace, only: "1"},
				dnsConfig: {$patch: replace, nameservers: [1.1.1.1]}}}`,
			change: func(p *corev1.PodTemplateSpec) {
				p.Spec.SecurityContext = &corev1.PodSecurityContext{RunAsUser: new(int64(5))}
				p.Spec.NodeSelector = map[string]string{"only": "1"}
				p.Spec.DNSConfig = &corev1.PodDNSConfig{Nameservers: []string{"1.1.1.1"}}
			},
			elsewhere: func(p *corev1.PodTemplateSpec) { p.Spec.DNSConfig = nil }, // kubectl loses the object
		},
		"DeleteObject": {
			reason: "$patch: delete empties an object of the base. Where there is none, there is none afterwards.",
			patch:  `{spec: {securityContext: {$patch: delete}, dnsConfig: {$patch: delete}}}`,
			change: func(p *corev1.PodTemplateSpec) { p.Spec.SecurityContext = &corev1.PodSecurityContext{} },
		},
		"RetainKeys": {
			reason: "$retainKeys removes what it does not name.",
			patch:  `{spec: {volumes: [{$retainKeys: [name, persistentVolumeClaim], name: data, persistentVolumeClaim: {claimName: data}}], nodeSelector: {$retainKeys: [disk]}}}`,
			change: func(p *corev1.PodTemplateSpec) {
				claim := &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}
				p.Spec.Volumes[0].VolumeSource = corev1.VolumeSource{PersistentVolumeClaim: claim}
				p.Spec.NodeSelector = map[string]string{"disk": "ssd"}
			},
		},
		"DeleteFromPrimitiveList": {
			reason: "$deleteFromPrimitiveList removes values of a list.",
			patch:  `{spec: {containers: [{name: web, $deleteFromPrimitiveList/args: ["daemon off;"], $deleteFromPrimitiveList/command: [none]}]}}`,
			change: func(p *corev1.PodTemplateSpec) { p.Spec.Containers[0].Args = []string{"-g"} },
		},
		"SetElementOrder": {
			reason: "$setElementOrder puts the items in an order, those of the base too.",
			patch: `{spec: {$setElementOrder/containers: [{name: metrics}, {name: web}], $setElementOrder/schedulingGates: [{name: gate}], schedulingGates: [{name: gate}],
				containers: [{name: web, $setElementOrder/env: [{name: LEVEL}, {name: NEW}, {name: MODE}], env: [{name: NEW, value: x}]}]}}`,
			change: func(p *corev1.PodTemplateSpec) {
				web, metrics := p.Spec.Containers[0], p.Spec.Containers[1]
				web.Env = []corev1.EnvVar{web.Env[1], {Name: "NEW", Value: "x"}, web.Env[0]}
				p.Spec.Containers = []corev1.Container{metrics, web}
				p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "gate"}}
			},
		},
		"DirectivesInNewItem": {
			reason: "Directives in an item that the base does not have change nothing of the base, and do not reach the API server.",
			patch: `{spec: {containers: [{name: new, image: x, securityContext: {$patch: replace, runAsUser: 5}, lifecycle: {$patch: delete},
				env: [{name: A, $patch: delete}, {name: B, value: b}], ports: [{$patch: replace}, {containerPort: 1}], $deleteFromPrimitiveList/args: [x]}]}}`,
			change: func(p *corev1.PodTemplateSpec) {
				added := corev1.Container{
					Name: "new", Image: "x", SecurityContext: &corev1.SecurityContext{RunAsUser: new(int64(5))},
					Env: []corev1.EnvVar{{Name: "B", Value: "b"}}, Ports: []corev1.ContainerPort{{ContainerPort: 1}},
				}
				p.Spec.Containers = append(p.Spec.Containers, added)
			},
			elsewhere: func(p *corev1.PodTemplateSpec) { // kubectl ignores the directives with a warning, and keeps the items that they should remove
				last := len(p.Spec.Containers) - 1
				p.Spec.Containers = append([]corev1.Container{p.Spec.Containers[last]}, p.Spec.Containers[:last]...)
				p.Spec.Containers[0].Lifecycle = &corev1.Lifecycle{}
				p.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "A"}, {Name: "B", Value: "b"}}
				p.Spec.Containers[0].Ports = []corev1.ContainerPort{{}, {ContainerPort: 1}}
			},
		},
		"Finalizers": {
			reason: "The only list of plain values that is merged.",
			patch:  `{metadata: {finalizers: [example.com/a, example.com/b]}}`,
			change: func(p *corev1.PodTemplateSpec) { p.Finalizers = []string{"example.com/a", "example.com/b"} },
		},
		"SameSelectorLabel": {
			reason: "A patch may repeat a label of the selector.",
			patch:  `{metadata: {labels: {$patch: replace, app: web}}}`,
			change: func(p *corev1.PodTemplateSpec) { p.Labels = map[string]string{"app": "web"} },
		},
		"QuantitiesAndPorts": {
			reason: "Quantities may be numbers, and target ports names or numbers.",
			patch:  `{spec: {containers: [{name: web, resources: {requests: {cpu: 2}}, readinessProbe: {httpGet: {port: http}}, livenessProbe: {tcpSocket: {port: 80}}}]}}`,
			change: func(p *corev1.PodTemplateSpec) {
				changed := template(t, `{spec: {containers: [{name: web, resources: {requests: {cpu: 2, memory: 64Mi}}, readinessProbe: {httpGet: {port: http}}, livenessProbe: {tcpSocket: {port: 80}}}]}}`)
				web := &p.Spec.Containers[0]
				web.Resources, web.ReadinessProbe, web.LivenessProbe = changed.Spec.Containers[0].Resources, changed.Spec.Containers[0].ReadinessProbe, changed.Spec.Containers[0].LivenessProbe
			},
		},
		"NothingInOtherForms": {
			reason: "An object without members changes nothing.",
			patch:  `{metadata: {}, spec: {containers: [], nodeSelector: {}}}`,
			change: func(*corev1.PodTemplateSpec) {},
		},
	}
}

func TestApply(t *testing.T) {
	for name, tc := range applyCases(t) {
		t.Run(name, func(t *testing.T) {
			given := template(t, base)
			got, err := patchOf(t, tc.patch).Apply(given, selector)
			require.NoError(t, err, tc.reason)
			want := template(t, base)
			tc.change(&want)
			if diff := cmp.Diff(asJSON(t, want), asJSON(t, got)); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(template(t, base), given); diff != "" {
				t.Errorf("the base was changed:\n%s", diff)
			}
		})
	}
}

// asJSON returns the template's JSON, decoded so that cmp compares it field by field.
func asJSON(t testing.TB, p corev1.PodTemplateSpec) (sent map[string]any) {
	t.Helper()
	b, err := json.Marshal(p)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(b, &sent))
	return sent
}

func TestApplyWithoutPatch(t *testing.T) {
	given := template(t, base)
	for _, patch := range []string{"", "null", "{}", " {} "} {
		got, err := rawPatch(patch).Apply(given, selector)
		require.NoError(t, err)
		require.Same(t, &given.Spec.Containers[0], &got.Spec.Containers[0], "the base itself")
	}
	var none *overlay.PodTemplate
	require.Zero(t, testing.AllocsPerRun(100, func() {
		if _, err := none.Apply(given, selector); err != nil {
			t.Error(err)
		}
	}))
}

// If a result shared memory with the base or the patch, a caller could change a cached object through it.
func TestApplySharesNoMemory(t *testing.T) {
	given := template(t, base)
	patch := patchOf(t, `{spec: {containers: [{name: web, args: [x]}]}}`)
	got, err := patch.Apply(given, selector)
	require.NoError(t, err)
	got.Labels["app"], got.Spec.Containers[0].Image, got.Spec.Containers[0].Args[0] = "changed", "changed", "changed"
	*got.Spec.SecurityContext.RunAsUser = 0
	got.Spec.Tolerations[0].Key = "changed"
	require.Empty(t, cmp.Diff(template(t, base), given))
	require.JSONEq(t, `{"spec": {"containers": [{"name": "web", "args": ["x"]}]}}`, string(patch.Raw))
}

type spec struct {
	Value     overlay.PodTemplate  `json:"value,omitzero"`
	OmitEmpty overlay.PodTemplate  `json:"omitEmpty,omitempty"` //nolint:modernize // users may write this
	Pointer   *overlay.PodTemplate `json:"pointer,omitempty"`
}

func TestJSON(t *testing.T) {
	t.Run("KeepsBytes", func(t *testing.T) {
		const patch = `{"b": 1, "a": null, "a": 1.50}`
		var s spec
		require.NoError(t, json.Unmarshal([]byte(`{"value": `+patch+`, "pointer": `+patch+`}`), &s))
		require.Equal(t, patch, string(s.Value.Raw))
		require.Equal(t, patch, string(s.Pointer.Raw))
		b, err := json.Marshal(s)
		require.NoError(t, err)
		require.Equal(t, `{"value":{"b":1,"a":null,"a":1.50},"omitEmpty":{},"pointer":{"b":1,"a":null,"a":1.50}}`, string(b), "the encoder removes spaces only")
	})
	t.Run("NoPatch", func(t *testing.T) {
		for _, given := range []string{`{}`, `{"value": null, "omitEmpty": null, "pointer": null}`} {
			var s spec
			require.NoError(t, json.Unmarshal([]byte(given), &s))
			require.Equal(t, spec{}, s)
			b, err := json.Marshal(s)
			require.NoError(t, err)
			require.Equal(t, `{"omitEmpty":{}}`, string(b), "the schema refuses null")
		}
	})
	t.Run("NullResets", func(t *testing.T) {
		s := spec{Value: *rawPatch("{}")}
		require.NoError(t, json.Unmarshal([]byte(`{"value": null}`), &s))
		require.Nil(t, s.Value.Raw)
	})
	t.Run("SharesNoMemory", func(t *testing.T) {
		given := []byte(`{"a":1}`)
		p := rawPatch("kept")
		kept := p.Raw
		require.NoError(t, p.UnmarshalJSON(given))
		given[2] = 'z'
		require.Equal(t, `{"a":1}`, string(p.Raw))
		require.Equal(t, "kept", string(kept), "another field may share the former bytes")
	})
	t.Run("NotJSON", func(t *testing.T) {
		_, err := json.Marshal(rawPatch("{"))
		require.Error(t, err)
	})
}

func TestDeepCopy(t *testing.T) {
	p := rawPatch(`{"a":1}`)
	var into overlay.PodTemplate
	p.DeepCopyInto(&into)
	for _, c := range []*overlay.PodTemplate{p.DeepCopy(), &into} {
		require.Equal(t, p, c)
		c.Raw[0] = 'x'
		require.Equal(t, `{"a":1}`, string(p.Raw))
	}
	require.Nil(t, (*overlay.PodTemplate)(nil).DeepCopy())
	require.Nil(t, (&overlay.PodTemplate{}).DeepCopy().Raw)
}
