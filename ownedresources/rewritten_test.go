package ownedresources

import (
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/opblocks/opblocks/internal/owned/apply"
)

// zeros says explicitly what is the same as to say nothing.
const zeros = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  minReadySeconds: 0
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}, annotations: {}}
    spec:
      nodeSelector: {}
      hostNetwork: false
      tolerations: []
      securityContext: {}
      volumes: [{name: scratch, emptyDir: {}}]
      containers:
      - name: web
        image: nginx:1.27
        args: []
        env: [{name: EMPTY, value: ""}]
        resources: {limits: {}}
        securityContext: {capabilities: {}, privileged: false}
        volumeMounts: [{name: scratch, mountPath: /scratch, readOnly: false}]
`

func unstructuredFrom(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	require.NoError(t, yaml.Unmarshal([]byte(text), &u.Object))
	return u
}

// withoutMemory proves that a process that remembers nothing writes nothing.
func withoutMemory(t *testing.T, env *serverEnv, want client.Object) {
	t.Helper()
	for range 2 {
		env.applier = apply.New()
		env.expect(t, want.DeepCopyObject().(client.Object), apply.Unchanged, none...)
	}
}

func TestExplicitZeros(t *testing.T) {
	env := newServerEnv(t)
	want := unstructuredFrom(t, zeros)
	env.expect(t, want, apply.Created, "POST deployments")
	withoutMemory(t, env, want)

	live := &appsv1.Deployment{}
	drifts := map[string]func(*corev1.PodTemplateSpec){
		"readOnly: true":           func(p *corev1.PodTemplateSpec) { p.Spec.Containers[0].VolumeMounts[0].ReadOnly = true },
		"a value of EMPTY":         func(p *corev1.PodTemplateSpec) { p.Spec.Containers[0].Env[0].Value = "x" },
		"arguments":                func(p *corev1.PodTemplateSpec) { p.Spec.Containers[0].Args = []string{"x"} },
		"no privileged: false":     func(p *corev1.PodTemplateSpec) { p.Spec.Containers[0].SecurityContext.Privileged = nil },
		"another source":           func(p *corev1.PodTemplateSpec) { p.Spec.Volumes[0].VolumeSource = claim },
		"no pod security context":  func(p *corev1.PodTemplateSpec) { p.Spec.HostNetwork = true },
		"no capabilities and more": func(p *corev1.PodTemplateSpec) { p.Spec.Containers[0].SecurityContext = nil },
	}
	for name, drift := range drifts {
		byHand(t, env, live, func(d *appsv1.Deployment) { drift(&d.Spec.Template) })
		env.applier = apply.New()
		result, err := env.apply(t, want)
		require.NoError(t, err, name)
		require.Equal(t, apply.Applied, result.Operation, "by hand: %s", name)
		withoutMemory(t, env, want)
	}
}

func TestRewrittenIsRecorded(t *testing.T) {
	tests := map[string]struct {
		reason string
		want   func(*serverEnv) client.Object
		posted []string
	}{
		"RoleRefTyped": {
			reason: "An empty group is defaulted, although the struct has no omitempty.",
			want: func(*serverEnv) client.Object {
				return &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "web"}, RoleRef: rbacv1.RoleRef{Kind: "Role", Name: "web"}}
			},
			posted: []string{"POST rolebindings", "PATCH rolebindings"},
		},
		"NodePort": {
			reason: "A node port of 0 is allocated.",
			want: func(env *serverEnv) client.Object {
				s := asUnstructured(t, env, env.nodePortService(0)).(*unstructured.Unstructured)
				ports, _, _ := unstructured.NestedSlice(s.Object, "spec", "ports")
				ports[0].(map[string]any)["nodePort"] = int64(0)
				require.NoError(t, unstructured.SetNestedSlice(s.Object, ports, "spec", "ports"))
				s.SetName("web")
				return s
			},
			posted: []string{"POST services", "PATCH services"},
		},
		"EmptyIngress": {
			reason: "An empty list is stored as none, which means the same.",
			want: func(env *serverEnv) client.Object {
				return unstructuredFrom(t, "{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: web}, spec: {podSelector: {}, policyTypes: [Ingress], ingress: []}}")
			},
			posted: []string{"POST networkpolicies"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			env := newServerEnv(t)
			want := tc.want(env)
			env.expect(t, want.DeepCopyObject().(client.Object), apply.Created, tc.posted...)
			withoutMemory(t, env, want)
			want.SetLabels(map[string]string{"example.com/changed": "x"})
			result, err := env.apply(t, want.DeepCopyObject().(client.Object))
			require.NoError(t, err)
			require.Equal(t, apply.Applied, result.Operation)
			require.LessOrEqual(t, len(env.sent.Sent()), 4, "the record has not changed")
			withoutMemory(t, env, want)
		})
	}
}

func TestEmptyRuleIsNoEmptyList(t *testing.T) {
	env := newServerEnv(t)
	want := unstructuredFrom(t, "{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: web}, spec: {podSelector: {}, policyTypes: [Ingress], ingress: [{}]}}")
	env.expect(t, want, apply.Created, "POST networkpolicies")
	byHand(t, env, &networkingv1.NetworkPolicy{}, func(p *networkingv1.NetworkPolicy) { p.Spec.Ingress = nil })
	result, err := env.apply(t, want)
	require.NoError(t, err)
	require.Equal(t, apply.Applied, result.Operation, "one empty rule allows everything, none denies everything")
	withoutMemory(t, env, want)
}

func TestRefusedValues(t *testing.T) {
	tests := map[string]struct {
		change func(*corev1.PodSpec)
		path   string
	}{
		"Env": {
			change: func(p *corev1.PodSpec) {
				p.Containers[0].Env = append(p.Containers[0].Env, corev1.EnvVar{Name: "MODE", Value: "hunter2"})
			},
			path: "spec.template.spec.containers[name=web].env[name=MODE]",
		},
		"Ports": {
			change: func(p *corev1.PodSpec) {
				p.Containers[0].Ports = append(p.Containers[0].Ports, corev1.ContainerPort{Name: "other", ContainerPort: 8080, Protocol: "TCP"})
			},
			path: "spec.template.spec.containers[name=web].ports[containerPort=8080,protocol=TCP]",
		},
		"Quantity": {
			change: func(p *corev1.PodSpec) {
				p.Containers[0].Resources.Limits = corev1.ResourceList{"cpu": resource.MustParse("1e999999999")}
			},
			path: "spec.template.spec.containers[name=web].resources.limits[cpu]: Invalid value: the exponent",
		},
		"ImagePullSecrets": {
			change: func(p *corev1.PodSpec) {
				p.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "a"}, {Name: "b"}, {Name: "a"}}
			},
			path: "spec.template.spec.imagePullSecrets[name=a]",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			env := newServerEnv(t)
			bad := env.deployment()
			tc.change(&bad.Spec.Template.Spec)
			for _, want := range []client.Object{bad, asUnstructured(t, env, bad)} {
				_, err := env.apply(t, want)
				require.True(t, apierrors.IsInvalid(err), "%v", err)
				require.ErrorContains(t, err, tc.path)
				require.NotContains(t, err.Error(), "hunter2")
				require.Len(t, env.sent.Sent(), 1, "nothing but the read")
				require.False(t, env.exists(t, env.deployment()))
				_, err = Diff(t.Context(), env.client, env.owner, want)
				require.ErrorContains(t, err, tc.path)
			}
			env.expect(t, env.deployment(), apply.Created, "POST deployments")
			_, err := env.apply(t, bad)
			require.ErrorContains(t, err, tc.path)
			env.expect(t, env.deployment(), apply.Unchanged, none...)
		})
	}
}
