package overlay

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestOrigin(t *testing.T) {
	base := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}},
		Spec: corev1.PodSpec{
			Containers: []corev1.Container{{
				Name: "web", Image: "web:1", Env: []corev1.EnvVar{{Name: "MODE", Value: "shop"}},
				Ports:        []corev1.ContainerPort{{Name: "dns", ContainerPort: 53}, {Name: "dns-udp", ContainerPort: 53, Protocol: corev1.ProtocolUDP}},
				VolumeMounts: []corev1.VolumeMount{{Name: "data", MountPath: "/data"}},
			}},
			Volumes: []corev1.Volume{{Name: "data"}},
		},
	}
	container := func(i int, steps ...any) []any { return append([]any{"spec", "containers", i}, steps...) }
	tests := map[string]struct {
		reason string
		patch  string
		at     []any
		want   string
		none   bool
	}{
		"a field of a known container": {"It is set there.", `{"spec": {"containers": [{"name": "web", "image": " "}]}}`, container(0, "image"), "spec.containers[0].image", false},
		"the first item of the patch is another one": {
			"Items are found by their keys.", `{"spec": {"containers": [{"name": "proxy", "image": "proxy:1"}, {"name": "web", "env": [{"name": "A=", "value": "b"}]}]}}`,
			container(1, "env", 1, "name"), "spec.containers[1].env[0].name", false,
		},
		"a port of another protocol": {
			"The key has two fields.", `{"spec": {"containers": [{"name": "web", "ports": [{"containerPort": 53, "protocol": "UDP", "hostPort": 99999}]}]}}`,
			container(0, "ports", 1, "hostPort"), "spec.containers[0].ports[0].hostPort", false,
		},
		"the port of the template": {
			"The patch has the other one.", `{"spec": {"containers": [{"name": "web", "ports": [{"containerPort": 53, "protocol": "UDP", "hostPort": 99999}]}]}}`,
			container(0, "ports", 0, "name"), "", true,
		},
		"an entry of a map": {
			"The key of the map names it.", `{"metadata": {"annotations": {"a b": "c"}}}`, []any{"metadata", "annotations", "a b"}, "metadata.annotations[a b]", false,
		},
		"a map as a whole": {"The API server names the map only.", `{"metadata": {"labels": {"a b": "c"}}}`, []any{"metadata", "labels"}, "metadata.labels", false},
		"a field beside": {
			"A limit below the request is refused at the requests.", `{"spec": {"containers": [{"name": "web", "resources": {"limits": {"cpu": "1"}}}]}}`,
			container(0, "resources", "requests"), "spec.containers[0].resources", false,
		},
		"a new container without an image": {"The item is the patch's own.", `{"spec": {"containers": [{"name": "proxy", "env": [{"name": "A"}]}]}}`, container(1, "image"), "spec.containers[0]", false},
		"something deep that a new container lacks": {
			"The deepest place that the patch has.", `{"spec": {"containers": [{"name": "proxy", "readinessProbe": {"httpGet": {"path": "/"}}}]}}`,
			container(1, "readinessProbe", "httpGet", "port"), "spec.containers[0].readinessProbe.httpGet", false,
		},
		"a list that is replaced as a whole": {
			"It is the patch's own.", `{"spec": {"tolerations": [{"operator": "Exists"}, {"operator": "Sometimes"}]}}`, []any{"spec", "tolerations", 1, "operator"}, "spec.tolerations[1].operator", false,
		},
		"a field that is removed": {"The null stands there.", `{"spec": {"containers": [{"name": "web", "image": null}]}}`, container(0, "image"), "spec.containers[0].image", false},
		"a volume that is removed": {
			"A mount names it.", `{"spec": {"volumes": [{"name": "tmp", "emptyDir": {}}, {"name": "data", "$patch": "delete"}]}}`, container(0, "volumeMounts", 0, "name"), "spec.volumes[1]", false,
		},
		"all volumes are replaced": {
			"A mount names one of them.", `{"spec": {"volumes": [{"$patch": "replace"}, {"name": "tmp", "emptyDir": {}}]}}`, container(0, "volumeMounts", 0, "name"), "spec.volumes", false,
		},
		"another volume is removed": {
			"No mount names it.", `{"spec": {"volumes": [{"name": "tmp", "$patch": "delete"}]}}`, container(0, "volumeMounts", 0, "name"), "", true,
		},
		"something else is removed": {
			"It says nothing of an image.", `{"spec": {"priorityClassName": null}}`, container(0, "image"), "", true,
		},
		"a field of the template": {"The patch sets another field.", `{"spec": {"containers": [{"name": "web", "env": [{"name": "A", "value": "b"}]}]}}`, container(0, "image"), "", true},
		"another container":       {"The patch does not name it.", `{"spec": {"containers": [{"name": "proxy", "image": "proxy:1"}]}}`, container(0, "image"), "", true},
		"another field of the pod": {
			"The pod as a whole is too far.", `{"spec": {"nodeName": "a"}}`, []any{"spec", "restartPolicy"}, "", true,
		},
		"the whole pod":              {"It says nothing.", `{"spec": {"nodeName": "a"}}`, nil, "", true},
		"an index that is not there": {"The API server has validated another object.", `{"spec": {"containers": [{"name": "proxy", "image": "proxy:1"}]}}`, container(7, "image"), "", true},
		"no patch":                   {"There is nothing to look at.", ``, container(0, "image"), "", true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			patch := &PodTemplate{Raw: []byte(tc.patch)}
			merged, err := patch.Apply(base, nil)
			require.NoError(t, err)
			got, found := patch.Origin(&merged, tc.at)
			require.Equal(t, tc.want, got, tc.reason)
			require.Equal(t, !tc.none, found, tc.reason)
		})
	}
}

// An owner may have several patches. A patch that was not merged into the template is never the cause of the refusal.
func TestOriginOfAnotherTemplate(t *testing.T) {
	theirs := &PodTemplate{Raw: []byte(`{"spec": {"containers": [{"name": "proxy", "image": "proxy:1", "ports": [{"containerPort": 99999}]}]}}`)}
	other := &PodTemplate{Raw: []byte(`{"spec": {"containers": [{"name": "proxy", "image": "proxy:1", "ports": [{"containerPort": 9999}]}]}}`)}
	merged, err := theirs.Apply(corev1.PodTemplateSpec{}, nil)
	require.NoError(t, err)
	at := []any{"spec", "containers", 0, "ports", 0, "containerPort"}
	got, found := theirs.Origin(&merged, at)
	require.True(t, found)
	require.Equal(t, "spec.containers[0].ports[0].containerPort", got)
	_, found = other.Origin(&merged, at)
	require.False(t, found)
}
