package apply_test

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/owned/apply"
	"github.com/opblocks/opblocks/internal/owned/ownedtest"
)

// withoutMemory proves that a process that has just started, and so remembers nothing, writes nothing.
func withoutMemory(t *testing.T, env *ownedtest.Server, want client.Object) {
	t.Helper()
	for range 2 {
		env.Applier = apply.New()
		env.Settled(t, want.DeepCopyObject().(client.Object))
	}
}

func TestRewrittenIsRecorded(t *testing.T) {
	tests := map[string]struct {
		reason string
		want   func(*ownedtest.Server) client.Object
		posted []string
	}{
		"RoleRefTyped": {
			reason: "An empty group is defaulted, although the struct has no omitempty.",
			want: func(*ownedtest.Server) client.Object {
				return &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "web"}, RoleRef: rbacv1.RoleRef{Kind: "Role", Name: "web"}}
			},
			posted: []string{"POST rolebindings", "PATCH rolebindings"},
		},
		"NodePort": {
			reason: "A node port of 0 is allocated.",
			want: func(env *ownedtest.Server) client.Object {
				nodePort := env.Service()
				nodePort.Spec.Type = corev1.ServiceTypeNodePort
				s := env.Unstructured(t, nodePort)
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
			want: func(env *ownedtest.Server) client.Object {
				return ownedtest.FromYAML(t, "{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: web}, spec: {podSelector: {}, policyTypes: [Ingress], ingress: []}}")
			},
			posted: []string{"POST networkpolicies"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			env := newServer(t)
			want := tc.want(env)
			env.Expect(t, want.DeepCopyObject().(client.Object), apply.Created, tc.posted...)
			withoutMemory(t, env, want)
			want.SetLabels(map[string]string{"example.com/changed": "x"})
			require.Equal(t, apply.Applied, env.MustApply(t, want.DeepCopyObject().(client.Object)).Operation)
			require.LessOrEqual(t, len(env.Requests.Sent()), 4, "the record has not changed")
			withoutMemory(t, env, want)
		})
	}
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
			env := newServer(t)
			bad := env.Deployment()
			tc.change(&bad.Spec.Template.Spec)
			for _, want := range []client.Object{bad, env.Unstructured(t, bad)} {
				_, err := env.Apply(t, want)
				require.True(t, apierrors.IsInvalid(err), "%v", err)
				require.ErrorContains(t, err, tc.path)
				require.NotContains(t, err.Error(), "hunter2")
				require.Len(t, env.Requests.Sent(), 1, "nothing but the read")
				require.False(t, env.Exists(t, env.Deployment()))
				_, err = env.Diff(t, want)
				require.ErrorContains(t, err, tc.path)
			}
			env.Expect(t, env.Deployment(), apply.Created, "POST deployments")
			_, err := env.Apply(t, bad)
			require.ErrorContains(t, err, tc.path)
			env.Settled(t, env.Deployment())
		})
	}
}

// rewriteImages makes the API server replace the image of every Deployment in the namespace, as an admission plug-in does.
func rewriteImages(t *testing.T, env *ownedtest.Server) {
	t.Helper()
	mutate(t, env, "apps", "deployments", `JSONPatch{op: "replace", path: "/spec/template/spec/containers/0/image", value: "mirror.example.com/nginx:1.27"}`,
		admissionregistrationv1.Create, admissionregistrationv1.Update)
	require.Eventually(t, func() bool { // the API server needs a moment until it uses the policy
		probe := env.Deployment()
		probe.Name = "probe"
		require.NoError(t, env.Other.Create(t.Context(), probe, client.DryRunAll))
		return probe.Spec.Template.Spec.Containers[0].Image != "nginx:1.27"
	}, 20*time.Second, 20*time.Millisecond)
}

func TestToleratedDifferences(t *testing.T) {
	if os.Getenv("OPBLOCKS_KUBERNETES") != "" {
		t.Skip("needs a MutatingAdmissionPolicy, which only Kubernetes 1.36 serves")
	}
	w := newRealServer(t)
	rewriteImages(t, w)
	rewritten := []string{"Deployment,spec.template.spec.containers[name=web].image=1"}
	w.Expect(t, w.Deployment(), apply.Created, "POST deployments", "PATCH deployments") // the second request stores a hash of what the API server changed
	w.Settled(t, w.Deployment())
	require.Equal(t, rewritten, ownedtest.Shown(t, w.Applier.Metrics, "opblocks_settled_differences"), "the metric names the field")

	for range 2 {
		w.Applier = apply.New() // after a restart, only the annotation of the object has the hash
		w.Settled(t, w.Deployment())
		require.Equal(t, rewritten, ownedtest.Shown(t, w.Applier.Metrics, "opblocks_settled_differences"))
	}

	changed := w.Deployment()
	changed.Spec.Replicas = new(int32(3))
	w.Expect(t, changed, apply.Applied, "GET deployments", "PATCH deployments", "PATCH deployments") // moves the ownership of the fields, and applies
	w.Expect(t, w.Deployment(), apply.Applied, "PATCH deployments")                                  // the hash has not changed, so it is not stored again
	w.Applier = apply.New()
	w.Settled(t, w.Deployment())

	ownedtest.ByHand(t, w, &appsv1.Deployment{}, func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(9)) })
	w.Expect(t, w.Deployment(), apply.Applied, "PATCH deployments") // another change by hand is repaired
	w.Settled(t, w.Deployment())
}
