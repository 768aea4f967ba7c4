package apply_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/opblocks/opblocks/ownedresources/overlay"
)

// A user's patch of a pod template may have a value that the API server refuses. Then the error names the path in the user's field, because
// users do not know the object that was built from it.
func TestRefusalBecauseOfAUserPatch(t *testing.T) {
	tests := map[string]struct {
		reason, patch, want string
	}{
		"a port of a sidecar": {
			"The sidecar is the second container of the Deployment, and the first of the patch.",
			`{"spec": {"containers": [{"name": "proxy", "image": "proxy:1", "ports": [{"containerPort": 99999}]}]}}`,
			"spec.template.spec.containers[1].ports[0].containerPort: Invalid value: 99999: must be between 1 and 65535, inclusive" +
				" (see spec.podTemplate.spec.containers[0].ports[0].containerPort of Shop ",
		},
		"a sidecar without an image": {
			"The patch has the container and not the field.", `{"spec": {"containers": [{"name": "proxy"}]}}`, "(see spec.podTemplate.spec.containers[0] of Shop ",
		},
		"two fields": {
			"Each is named.", `{"metadata": {"annotations": {"a b": "c"}}, "spec": {"priorityClassName": "a b"}}`,
			"(see spec.podTemplate.metadata.annotations, spec.podTemplate.spec.priorityClassName of Shop ",
		},
		"a removed volume": {
			"A mount of the template names it.", `{"spec": {"volumes": [{"name": "data", "$patch": "delete"}]}}`, "(see spec.podTemplate.spec.volumes[0] of Shop ",
		},
		"a variable": {
			"Its value stays hidden.", `{"spec": {"containers": [{"name": "web", "env": [{"name": "A=", "value": "s3cret"}]}]}}`,
			"(see spec.podTemplate.spec.containers[0].env[0].name of Shop ",
		},
	}
	for name, tc := range tests {
		for _, way := range []string{"created", "applied"} {
			t.Run(name+", "+way, func(t *testing.T) {
				env := newRealServer(t)
				patched := func(patch string) *appsv1.Deployment {
					env.Owner.Spec.PodTemplate = overlay.PodTemplate{Raw: []byte(patch)}
					d := env.Deployment()
					d.Spec.Template.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "data", MountPath: "/data"}}
					d.Spec.Template.Spec.Volumes = []corev1.Volume{{Name: "data"}}
					template, err := env.Owner.Spec.PodTemplate.Apply(d.Spec.Template, d.Spec.Selector)
					require.NoError(t, err)
					d.Spec.Template = template
					return d
				}
				if way == "applied" {
					env.MustApply(t, patched("{}"))
				}
				for range 2 { // the second time, the process remembers the refusal
					_, err := env.Apply(t, patched(tc.patch))
					require.True(t, apierrors.IsInvalid(err), "%v", err)
					require.ErrorContains(t, err, tc.want, tc.reason)
					require.NotContains(t, err.Error(), "s3cret")
				}
			})
		}
	}
	t.Run("a Pod", func(t *testing.T) { // a Pod is its own pod template
		env := newRealServer(t)
		env.Owner.Spec.PodTemplate = overlay.PodTemplate{Raw: []byte(`{"spec": {"containers": [{"name": "web", "ports": [{"containerPort": 99999}]}]}}`)}
		template, err := env.Owner.Spec.PodTemplate.Apply(corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "web:1"}}}}, nil)
		require.NoError(t, err)
		_, err = env.Apply(t, &corev1.Pod{ObjectMeta: env.Meta(), Spec: template.Spec})
		require.ErrorContains(t, err, "(see spec.podTemplate.spec.containers[0].ports[0].containerPort of Shop ")
	})
	t.Run("a mistake of the operator", func(t *testing.T) {
		env := newRealServer(t)
		env.Owner.Spec.PodTemplate = overlay.PodTemplate{Raw: []byte(`{"spec": {"containers": [{"name": "web", "env": [{"name": "A", "value": "b"}]}]}}`)}
		bad := env.Deployment()
		bad.Spec.Template.Spec.Containers[0].Image = ""
		_, err := env.Apply(t, bad)
		require.True(t, apierrors.IsInvalid(err), "%v", err)
		require.NotContains(t, err.Error(), "(see ", "the user can do nothing about it")
	})
}
