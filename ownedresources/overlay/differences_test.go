package overlay_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
)

// kubectl patch puts new items before the items that only the template has. Then a variable could come before a variable that it refers to,
// and a sidecar could become the first container.
func TestItemsOfTheTemplateKeepTheirPlaces(t *testing.T) {
	base := template(t, `{spec: {initContainers: [{name: prepare}, {name: warm}], containers: [{name: web, env: [{name: POD_NAME}, {name: LEVEL}, {name: MODE}]}]}}`)
	tests := map[string]struct {
		reason, patch       string
		env, inits, servers string
	}{
		"new ones":         {"They come last.", `{spec: {containers: [{name: proxy}, {name: web, env: [{name: NODE}]}], initContainers: [{name: import}]}}`, "POD_NAME LEVEL MODE NODE", "prepare warm import", "proxy web"},
		"before another":   {"The patch names an item of the template after it.", `{spec: {containers: [{name: web, env: [{name: Z}, {name: LEVEL}, {name: LAST}]}]}}`, "POD_NAME Z LEVEL MODE LAST", "prepare warm", "web"},
		"in another order": {"The order of the patch moves nothing of the template.", `{spec: {containers: [{name: web, env: [{name: MODE}, {name: NEW}, {name: POD_NAME}]}]}}`, "NEW POD_NAME LEVEL MODE", "prepare warm", "web"},
		"an order":         {"An order of the patch's own wins.", `{spec: {containers: [{name: web, $setElementOrder/env: [{name: MODE}, {name: NEW}, {name: LEVEL}, {name: POD_NAME}], env: [{name: NEW}]}]}}`, "MODE NEW LEVEL POD_NAME", "prepare warm", "web"},
		"an order of what is not there": {"It orders what is there.", `{spec: {containers: [{name: web, $setElementOrder/env: [{name: MODE}, {name: NONE}, {name: LEVEL}]}]}}`,
			"POD_NAME MODE LEVEL", "prepare warm", "web"},
		"one is deleted":   {"The others keep their places.", `{spec: {containers: [{name: web, env: [{name: LEVEL, $patch: delete}, {name: NEW}]}]}}`, "POD_NAME MODE NEW", "prepare warm", "web"},
		"all are replaced": {"The list of the patch is the list.", `{spec: {containers: [{name: web, env: [{$patch: replace}, {name: B}, {name: A}]}]}}`, "B A", "prepare warm", "web"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := patchOf(t, tc.patch).Apply(base, nil)
			require.NoError(t, err, tc.reason)
			require.Equal(t, tc.inits, namesOf(got.Spec.InitContainers, func(c corev1.Container) string { return c.Name }), tc.reason)
			for _, c := range got.Spec.Containers {
				if c.Name == "web" {
					require.Equal(t, tc.env, namesOf(c.Env, func(v corev1.EnvVar) string { return v.Name }), tc.reason)
				}
			}
		})
	}
}

// Server-side apply identifies ports by number and protocol, and spread constraints by two fields. A strategic merge uses only one of the
// two fields.
func TestKeysOfTwoFields(t *testing.T) {
	base := template(t, `{spec: {
		containers: [{name: web, ports: [{name: tcp, containerPort: 8301, protocol: TCP}, {name: udp, containerPort: 8301, protocol: UDP}, {name: dns, containerPort: 53, protocol: UDP}]}],
		topologySpreadConstraints: [{topologyKey: zone, whenUnsatisfiable: DoNotSchedule, maxSkew: 1}, {topologyKey: zone, whenUnsatisfiable: ScheduleAnyway, maxSkew: 1}]}}`)
	tests := map[string]struct{ reason, patch, ports, constraints string }{
		"the second protocol": {"It is not the first one.", `{spec: {containers: [{name: web, ports: [{containerPort: 8301, protocol: UDP, name: serf}]}]}}`, "tcp/TCP serf/UDP dns/UDP", "1 1"},
		"an empty protocol":   {"It is TCP too.", `{spec: {containers: [{name: web, ports: [{containerPort: 53, protocol: "", name: x}]}]}}`, "tcp/TCP udp/UDP dns/UDP x/", "1 1"},
		"an order of both": {"The patch names both protocols.", `{spec: {containers: [{name: web, $setElementOrder/ports: [{containerPort: 8301, protocol: UDP}, {containerPort: 53}, {containerPort: 8301, protocol: TCP}],
			ports: [{containerPort: 53, protocol: TCP, name: x}]}]}}`, "udp/UDP dns/UDP x/TCP tcp/TCP", "1 1"},
		"both in an order of numbers": {"An entry stands for both.", `{spec: {containers: [{name: web, $setElementOrder/ports: [{containerPort: 53}, {containerPort: 8301}],
			ports: [{containerPort: 53, protocol: TCP, name: a}, {containerPort: 53, protocol: UDP, name: b}]}]}}`, "b/UDP a/TCP tcp/TCP udp/UDP", "1 1"},
		"no protocol":                     {"TCP is the default.", `{spec: {containers: [{name: web, ports: [{containerPort: 8301, name: serf}]}]}}`, "serf/TCP udp/UDP dns/UDP", "1 1"},
		"another protocol":                {"It is another port.", `{spec: {containers: [{name: web, ports: [{containerPort: 53, protocol: TCP, name: dns-tcp}]}]}}`, "tcp/TCP udp/UDP dns/UDP dns-tcp/TCP", "1 1"},
		"one is deleted":                  {"The other stays.", `{spec: {containers: [{name: web, ports: [{containerPort: 8301, protocol: UDP, $patch: delete}]}]}}`, "tcp/TCP dns/UDP", "1 1"},
		"an order":                        {"An entry stands for both protocols.", `{spec: {containers: [{name: web, $setElementOrder/ports: [{containerPort: 53}, {containerPort: 8301}], ports: [{containerPort: 53, protocol: UDP, name: d}]}]}}`, "d/UDP tcp/TCP udp/UDP", "1 1"},
		"a constraint":                    {"Its second field is given.", `{spec: {topologySpreadConstraints: [{topologyKey: zone, whenUnsatisfiable: ScheduleAnyway, maxSkew: 3}]}}`, "tcp/TCP udp/UDP dns/UDP", "1 3"},
		"a constraint by its first field": {"It is the first one.", `{spec: {topologySpreadConstraints: [{topologyKey: zone, maxSkew: 3}]}}`, "tcp/TCP udp/UDP dns/UDP", "3 1"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := patchOf(t, tc.patch).Apply(base, nil)
			require.NoError(t, err, tc.reason)
			require.Equal(t, tc.ports, namesOf(got.Spec.Containers[0].Ports, func(p corev1.ContainerPort) string { return p.Name + "/" + string(p.Protocol) }), tc.reason)
			require.Equal(t, tc.constraints, namesOf(got.Spec.TopologySpreadConstraints, func(c corev1.TopologySpreadConstraint) string { return fmt.Sprint(c.MaxSkew) }), tc.reason)
		})
	}
}

// If fields exclude each other, the field of the patch replaces the field of the template: no API server accepts both.
func TestOneOfAChoice(t *testing.T) {
	base := template(t, `{spec: {
		securityContext: {seccompProfile: {type: Localhost, localhostProfile: a.json}},
		volumes: [{name: data, emptyDir: {}}, {name: disk, fc: {targetWWNs: [b], lun: 1}}],
		resourceClaims: [{name: gpu, resourceClaimName: one}],
		containers: [{name: web, env: [{name: LEVEL, value: info}, {name: NODE, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}],
			volumeMounts: [{name: data, mountPath: /data, subPath: a}], lifecycle: {preStop: {exec: {command: [stop]}}},
			livenessProbe: {periodSeconds: 5, httpGet: {path: /, port: 80}}}]}}`)
	tests := map[string]struct{ reason, patch, want string }{
		"a volume": {"The source is another one.", `{volumes: [{name: data, persistentVolumeClaim: {claimName: web}}]}`, `{spec: {volumes: [{name: data, persistentVolumeClaim: {claimName: web}}, {name: disk, fc: {targetWWNs: [b], lun: 1}}]}}`},
		"a volume and the removal of the other": {"The patch says both.", `{volumes: [{name: data, emptyDir: {$patch: delete}, hostPath: {path: /x}}]}`,
			`{spec: {volumes: [{name: data, hostPath: {path: /x}}, {name: disk, fc: {targetWWNs: [b], lun: 1}}]}}`},
		"a disk":                 {"The two ways to name it exclude each other.", `{volumes: [{name: disk, fc: {wwids: [a]}}]}`, `{spec: {volumes: [{name: data, emptyDir: {}}, {name: disk, fc: {wwids: [a]}}]}}`},
		"a probe":                {"Its period stays.", `{containers: [{name: web, livenessProbe: {tcpSocket: {port: 80}}}]}`, `{spec: {containers: [{livenessProbe: {periodSeconds: 5, tcpSocket: {port: 80}}}]}}`},
		"a hook":                 {"It sleeps now.", `{containers: [{name: web, lifecycle: {preStop: {sleep: {seconds: 5}}}}]}`, `{spec: {containers: [{lifecycle: {preStop: {sleep: {seconds: 5}}}}]}}`},
		"a variable by a source": {"The text goes.", `{containers: [{name: web, env: [{name: LEVEL, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]}]}`, `{spec: {containers: [{env: [{name: LEVEL, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]}]}}`},
		"a variable by a text":   {"The source goes.", `{containers: [{name: web, env: [{name: NODE, value: a}]}]}`, `{spec: {containers: [{env: [{name: NODE, value: a}]}]}}`},
		"another source":         {"One source is left.", `{containers: [{name: web, env: [{name: NODE, valueFrom: {secretKeyRef: {name: s, key: k}}}]}]}`, `{spec: {containers: [{env: [{name: NODE, valueFrom: {secretKeyRef: {name: s, key: k}}}]}]}}`},
		"a path in a volume":     {"The two exclude each other.", `{containers: [{name: web, volumeMounts: [{mountPath: /data, name: data, subPathExpr: $(NODE)}]}]}`, `{spec: {containers: [{volumeMounts: [{name: data, mountPath: /data, subPathExpr: $(NODE)}]}]}}`},
		"a claim of a resource":  {"A template takes the place of the claim.", `{resourceClaims: [{name: gpu, resourceClaimTemplateName: t}]}`, `{spec: {resourceClaims: [{name: gpu, resourceClaimTemplateName: t}]}}`},
		"a profile":              {"Only the type Localhost has the name of one.", `{securityContext: {seccompProfile: {type: RuntimeDefault}}}`, `{spec: {securityContext: {seccompProfile: {type: RuntimeDefault}}}}`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := patchOf(t, "{spec: "+tc.patch+"}").Apply(base, nil)
			require.NoError(t, err, tc.reason)
			want := template(t, tc.want).Spec
			if len(want.Volumes) > 0 {
				require.Equal(t, want.Volumes, got.Spec.Volumes, tc.reason)
			}
			if len(want.ResourceClaims) > 0 {
				require.Equal(t, want.ResourceClaims, got.Spec.ResourceClaims, tc.reason)
			}
			if want.SecurityContext != nil {
				require.Equal(t, want.SecurityContext, got.Spec.SecurityContext, tc.reason)
			}
			if len(want.Containers) > 0 {
				is, wanted := got.Spec.Containers[0], want.Containers[0]
				if wanted.LivenessProbe != nil {
					require.Equal(t, wanted.LivenessProbe, is.LivenessProbe, tc.reason)
				}
				if wanted.Lifecycle != nil {
					require.Equal(t, wanted.Lifecycle, is.Lifecycle, tc.reason)
				}
				if len(wanted.VolumeMounts) > 0 {
					require.Equal(t, wanted.VolumeMounts, is.VolumeMounts, tc.reason)
				}
				for _, v := range wanted.Env {
					require.Contains(t, is.Env, v, tc.reason)
				}
			}
		})
	}
}

// During the merge an item's key is replaced by a value of another type. After the merge no text is changed, not even
// a text with a NUL.
func TestTextsStay(t *testing.T) {
	base := template(t, `{metadata: {annotations: {base: "left\0right", containerPort: "80\0"}}, spec: {containers: [{name: web, ports: [{containerPort: 80}]}]}}`)
	got, err := patchOf(t, `{metadata: {annotations: {patch: "left\0right"}}, spec: {containers: [{name: web, ports: [{containerPort: 80, name: http}], env: [{name: A, value: "left\0right"}]}]}}`).Apply(base, nil)
	require.NoError(t, err)
	require.Equal(t, map[string]string{"base": "left\x00right", "patch": "left\x00right", "containerPort": "80\x00"}, got.Annotations)
	require.Equal(t, "left\x00right", got.Spec.Containers[0].Env[0].Value)
	require.Equal(t, []corev1.ContainerPort{{ContainerPort: 80, Name: "http"}}, got.Spec.Containers[0].Ports)
}

func namesOf[T any](items []T, name func(T) string) (joined string) {
	for i, item := range items {
		if i > 0 {
			joined += " "
		}
		joined += name(item)
	}
	return joined
}
