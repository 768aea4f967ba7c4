package ownedresources

import (
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/owned/apply"
	"github.com/opblocks/opblocks/internal/owned/write"
)

func volume(name string, source corev1.VolumeSource) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: source}
}

var (
	claim      = corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}
	emptyDir   = corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}
	fromConfig = corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "settings"}}}
)

func (env *serverEnv) statefulSet() *appsv1.StatefulSet {
	template := env.deployment().Spec.Template
	return &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: appsv1.StatefulSetSpec{
			ServiceName: "web", Selector: &metav1.LabelSelector{MatchLabels: template.Labels}, Template: template,
		},
	}
}

// claiming returns a StatefulSet with claim templates for its volumes data and log.
func (env *serverEnv) claiming(volumes ...corev1.Volume) *appsv1.StatefulSet {
	s := env.statefulSet()
	s.Spec.Template.Spec.Volumes = volumes
	for _, name := range []string{"data", "log"} {
		s.Spec.VolumeClaimTemplates = append(s.Spec.VolumeClaimTemplates, corev1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: corev1.PersistentVolumeClaimSpec{
				AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
				Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
			},
		})
	}
	return s
}

func (env *serverEnv) nodePortService(nodePort int32) *corev1.Service {
	s := NewService(env.owner, map[string]string{"app": "web"}, corev1.ServicePort{Port: 80, NodePort: nodePort})
	s.Spec.Type = corev1.ServiceTypeNodePort
	return s
}

// TestApplyReplacesWhatContradicts creates an object, changes the desired one twice, and lets somebody else edit the live
// one, where there is an edit.
func TestApplyReplacesWhatContradicts(t *testing.T) {
	tests := map[string]struct {
		reason string
		before func(*serverEnv) client.Object
		change func(client.Object) // changes the desired object
		edit   func(client.Object) // changes the live object, by hand
		holds  func(*testing.T, client.Object)
	}{
		"StrategyRecreate": {
			reason: "The parameters of the default strategy belong to nobody, and are forbidden beside Recreate.",
			before: func(env *serverEnv) client.Object { return env.deployment() },
			change: func(o client.Object) {
				o.(*appsv1.Deployment).Spec.Strategy.Type = appsv1.RecreateDeploymentStrategyType
			},
			holds: func(t *testing.T, o client.Object) {
				require.Equal(t, appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType}, o.(*appsv1.Deployment).Spec.Strategy)
			},
		},
		"StrategyDrifted": {
			reason: "Somebody has chosen another strategy.",
			before: func(env *serverEnv) client.Object {
				d := env.deployment()
				d.Spec.Strategy.Type = appsv1.RecreateDeploymentStrategyType
				return d
			},
			edit: func(o client.Object) {
				o.(*appsv1.Deployment).Spec.Strategy = appsv1.DeploymentStrategy{
					Type:          appsv1.RollingUpdateDeploymentStrategyType,
					RollingUpdate: &appsv1.RollingUpdateDeployment{MaxSurge: new(intstr.FromInt32(3)), MaxUnavailable: new(intstr.FromInt32(0))},
				}
			},
			holds: func(t *testing.T, o client.Object) {
				require.Equal(t, appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType}, o.(*appsv1.Deployment).Spec.Strategy)
			},
		},
		"StatefulSetOnDelete": {
			reason: "As with a Deployment's strategy.",
			before: func(env *serverEnv) client.Object { return env.statefulSet() },
			change: func(o client.Object) {
				o.(*appsv1.StatefulSet).Spec.UpdateStrategy.Type = appsv1.OnDeleteStatefulSetStrategyType
			},
			holds: func(t *testing.T, o client.Object) {
				require.Equal(t, appsv1.OnDeleteStatefulSetStrategyType, o.(*appsv1.StatefulSet).Spec.UpdateStrategy.Type)
			},
		},
		"VolumeSource": {
			reason: "A volume gets another source, and the default mode of the former one belongs to nobody.",
			before: func(env *serverEnv) client.Object {
				d := env.deployment()
				d.Spec.Template.Spec.Volumes = []corev1.Volume{volume("data", fromConfig)}
				return d
			},
			change: func(o client.Object) { o.(*appsv1.Deployment).Spec.Template.Spec.Volumes[0].VolumeSource = emptyDir },
			holds: func(t *testing.T, o client.Object) {
				require.Equal(t, []corev1.Volume{volume("data", emptyDir)}, o.(*appsv1.Deployment).Spec.Template.Spec.Volumes)
			},
		},
		"ClaimToEmptyDir": {
			reason: "Somebody has taken another claim before.",
			before: func(env *serverEnv) client.Object {
				d := env.deployment()
				d.Spec.Template.Spec.Volumes = []corev1.Volume{volume("data", claim)}
				return d
			},
			edit: func(o client.Object) {
				o.(*appsv1.Deployment).Spec.Template.Spec.Volumes[0].PersistentVolumeClaim.ReadOnly = true
			},
			change: func(o client.Object) { o.(*appsv1.Deployment).Spec.Template.Spec.Volumes[0].VolumeSource = emptyDir },
			holds: func(t *testing.T, o client.Object) {
				require.Equal(t, []corev1.Volume{volume("data", emptyDir)}, o.(*appsv1.Deployment).Spec.Template.Spec.Volumes)
			},
		},
		"VolumeDrifted": {
			reason: "Somebody has given our volume another source; their own volume stays.",
			before: func(env *serverEnv) client.Object {
				d := env.deployment()
				d.Spec.Template.Spec.Volumes = []corev1.Volume{volume("data", claim)}
				return d
			},
			edit: func(o client.Object) {
				d := o.(*appsv1.Deployment)
				d.Spec.Template.Spec.Volumes = []corev1.Volume{volume("data", emptyDir), volume("theirs", emptyDir)}
			},
			holds: func(t *testing.T, o client.Object) {
				require.ElementsMatch(t, []corev1.Volume{volume("data", claim), volume("theirs", emptyDir)}, o.(*appsv1.Deployment).Spec.Template.Spec.Volumes)
			},
		},
		"VolumeSourceBesideClaims": {
			reason: "The API server counts the volumes of a StatefulSet's claim templates before those of its pods.",
			before: func(env *serverEnv) client.Object {
				return env.claiming(volume("data", emptyDir), volume("settings", fromConfig))
			},
			edit: func(o client.Object) {
				o.(*appsv1.StatefulSet).Spec.Template.Spec.Volumes[1].ConfigMap.Optional = new(true)
			},
			change: func(o client.Object) { o.(*appsv1.StatefulSet).Spec.Template.Spec.Volumes[1].VolumeSource = emptyDir },
			holds: func(t *testing.T, o client.Object) {
				require.Equal(t, []corev1.Volume{volume("data", emptyDir), volume("settings", emptyDir)}, o.(*appsv1.StatefulSet).Spec.Template.Spec.Volumes)
			},
		},
		"VolumeBesideClaimsDrifted": {
			reason: "Somebody has given a volume of the pods another source.",
			before: func(env *serverEnv) client.Object {
				return env.claiming(volume("data", emptyDir), volume("cache", emptyDir), volume("settings", fromConfig))
			},
			edit: func(o client.Object) {
				o.(*appsv1.StatefulSet).Spec.Template.Spec.Volumes[2].VolumeSource = emptyDir
			},
			holds: func(t *testing.T, o client.Object) {
				volumes := o.(*appsv1.StatefulSet).Spec.Template.Spec.Volumes
				require.Len(t, volumes, 3)
				require.Nil(t, volumes[2].EmptyDir)
				require.NotNil(t, volumes[2].ConfigMap)
			},
		},
		"HostPort": {
			reason: "Somebody has renamed our container; its host port is ours.",
			before: func(env *serverEnv) client.Object {
				d := env.deployment()
				d.Spec.Template.Spec.Containers[0].Ports[0].HostPort = 8080
				return d
			},
			edit: func(o client.Object) { o.(*appsv1.Deployment).Spec.Template.Spec.Containers[0].Name = "renamed" },
			holds: func(t *testing.T, o client.Object) {
				var owners []string
				for _, c := range o.(*appsv1.Deployment).Spec.Template.Spec.Containers {
					for _, p := range c.Ports {
						owners = append(owners, c.Name)
						require.EqualValues(t, 8080, p.HostPort)
					}
				}
				require.Equal(t, []string{"web"}, owners)
			},
		},
		"UnnamedPort": {
			reason: "Two ports would need names.",
			before: func(env *serverEnv) client.Object { return env.nodePortService(0) },
			edit:   func(o client.Object) { o.(*corev1.Service).Spec.Ports[0].Port = 81 },
			holds: func(t *testing.T, o client.Object) {
				require.Len(t, o.(*corev1.Service).Spec.Ports, 1)
				require.EqualValues(t, 80, o.(*corev1.Service).Spec.Ports[0].Port)
			},
		},
		"NodePort": {
			reason: "Two ports must not have one node port; the API server answers 500.",
			before: func(env *serverEnv) client.Object { return env.nodePortService(30321) },
			edit:   func(o client.Object) { o.(*corev1.Service).Spec.Ports[0].Port = 81 },
			change: func(o client.Object) { o.(*corev1.Service).Spec.Ports[0].Port = 82 },
			holds: func(t *testing.T, o client.Object) {
				require.Len(t, o.(*corev1.Service).Spec.Ports, 1)
				require.EqualValues(t, 82, o.(*corev1.Service).Spec.Ports[0].Port)
				require.EqualValues(t, 30321, o.(*corev1.Service).Spec.Ports[0].NodePort, "it was fixed")
			},
		},
	}
	for name, tc := range tests {
		for _, form := range []string{"Typed", "Unstructured"} {
			t.Run(name+"/"+form, func(t *testing.T) {
				env := newServerEnv(t)
				asForm := func(o client.Object) client.Object {
					if form == "Typed" {
						return o.DeepCopyObject().(client.Object)
					}
					return asUnstructured(t, env, o)
				}
				want := tc.before(env)
				want.SetName("web")
				want.SetAnnotations(map[string]string{"example.com/dropped": "x"})
				_, err := env.apply(t, asForm(want), Recreate())
				require.NoError(t, err)
				want.SetAnnotations(map[string]string{"example.com/dropped": "x", "example.com/changed": "x"})
				_, err = env.apply(t, asForm(want), Recreate())
				require.NoError(t, err)
				if tc.edit != nil {
					live := want.DeepCopyObject().(client.Object)
					env.live(t, live)
					tc.edit(live)
					require.NoError(t, env.other.Update(t.Context(), live, client.FieldOwner("kubectl-edit")))
				}
				live := want.DeepCopyObject().(client.Object)
				env.live(t, live)
				uid := live.GetUID()
				annotations := live.GetAnnotations()
				annotations["example.com/theirs"] = "x"
				live.SetAnnotations(annotations)
				require.NoError(t, env.other.Update(t.Context(), live, client.FieldOwner("kubectl-edit")))

				if tc.change != nil {
					tc.change(want)
				}
				want.SetAnnotations(nil) // dropped at the same time
				changes, err := Diff(t.Context(), env.client, env.owner, asForm(want))
				require.NoError(t, err)
				require.GreaterOrEqual(t, len(changes[0].Differences), 2, "%v", changes[0].Differences)
				result, err := env.apply(t, asForm(want), Recreate())
				require.NoError(t, err, tc.reason)
				require.Equal(t, apply.Applied, result.Operation)
				env.live(t, live)
				tc.holds(t, live)
				require.Equal(t, uid, live.GetUID(), "it is not recreated")
				require.Equal(t, "x", live.GetAnnotations()["example.com/theirs"], "fields of others stay")
				require.NotContains(t, live.GetAnnotations(), "example.com/dropped")
				env.expect(t, asForm(want), apply.Unchanged, none...)

				want.SetAnnotations(map[string]string{"example.com/later": "x"})
				_, err = env.apply(t, asForm(want))
				require.NoError(t, err)
				want.SetAnnotations(nil)
				_, err = env.apply(t, asForm(want))
				require.NoError(t, err)
				env.live(t, live)
				require.NotContains(t, live.GetAnnotations(), "example.com/later", "our fields can be dropped afterwards")
				tc.holds(t, live)
				require.NoError(t, env.other.Delete(t.Context(), live)) // its node port is needed again
			})
		}
	}
}

func asUnstructured(t *testing.T, env *serverEnv, o client.Object) client.Object {
	t.Helper()
	k, err := env.applier.Kinds.Of(o, env.client.Scheme())
	require.NoError(t, err)
	body, err := k.Comparer.AppendApply(nil, o, k.GVK, "", "")
	require.NoError(t, err)
	u := &unstructured.Unstructured{}
	require.NoError(t, u.UnmarshalJSON(body))
	return u
}

func TestApplyReplacesNothingElse(t *testing.T) {
	env := newServerEnv(t)
	want := env.deployment()
	want.Spec.Replicas = nil
	_, err := env.apply(t, want)
	require.NoError(t, err)
	var live appsv1.Deployment
	byHand(t, env, &live, func(d *appsv1.Deployment) {
		pod := &d.Spec.Template
		pod.Annotations = map[string]string{"kubectl.kubernetes.io/restartedAt": "now"}
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: "mesh", Image: "mesh:1"})
		pod.Spec.Containers[0].Env = append(pod.Spec.Containers[0].Env, corev1.EnvVar{Name: "INJECTED", Value: "x"})
		d.Labels["team"] = "red"
		d.Spec.RevisionHistoryLimit = new(int32(3))
	})
	scale := &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: 7}}
	require.NoError(t, env.other.SubResource("scale").Update(t.Context(), &live, client.WithSubResourceBody(scale)))

	want.Spec.Strategy.Type = appsv1.RecreateDeploymentStrategyType
	want.Spec.Template.Spec.Containers[0].Image = "nginx:1.28"
	_, err = env.apply(t, want)
	require.NoError(t, err)
	check := func() {
		env.live(t, &live)
		require.Equal(t, appsv1.RecreateDeploymentStrategyType, live.Spec.Strategy.Type)
		require.EqualValues(t, 7, *live.Spec.Replicas)
		require.Equal(t, "now", live.Spec.Template.Annotations["kubectl.kubernetes.io/restartedAt"])
		require.Len(t, live.Spec.Template.Spec.Containers, 2)
		require.Len(t, live.Spec.Template.Spec.Containers[0].Env, 2)
		require.Equal(t, "red", live.Labels["team"])
		require.EqualValues(t, 3, *live.Spec.RevisionHistoryLimit)
	}
	check()
	env.expect(t, want, apply.Unchanged, none...)
	want.Spec.Template.Spec.Containers[0].Image = "nginx:1.29"
	_, err = env.apply(t, want)
	require.NoError(t, err)
	check()
}

func TestApplyOfAWrongObject(t *testing.T) {
	env := newServerEnv(t)
	env.expect(t, env.deployment(), apply.Created, "POST deployments")
	bad := env.deployment()
	bad.Spec.Template.Spec.Containers[0].Ports[0].ContainerPort = 70000
	_, err := env.apply(t, bad)
	require.True(t, apierrors.IsInvalid(err), "%v", err)
	require.ErrorContains(t, err, "containerPort")
	require.LessOrEqual(t, len(env.sent.Sent()), 5+write.MaxAttempts, "a mistake ends the search soon")
	env.expect(t, env.deployment(), apply.Unchanged, none...)
}

// TestApplyEmptiesAStruct drops the last field of a struct that is still desired. A server-side apply would leave null in
// its place, which the schema of the custom resource forbids.
func TestApplyEmptiesAStruct(t *testing.T) {
	env := newServerEnv(t)
	require.NoError(t, controlPlane(t).InstallCRDs(t.Context(), "testdata/gadgets.yaml"))
	gadget := func(size int64, subject map[string]any) *unstructured.Unstructured {
		spec := map[string]any{"size": size}
		if subject != nil {
			spec["subject"] = subject
		}
		u := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
		u.SetGroupVersionKind(upgradeGadget)
		u.SetName("web")
		return u
	}
	named := map[string]any{"organization": "shop", "units": []any{"a"}}
	for _, start := range []int64{1, 2} {
		_, err := env.apply(t, gadget(start, named))
		require.NoError(t, err)
	}
	live := gadget(0, nil)
	env.live(t, live)
	live.SetLabels(map[string]string{"team": "red"})
	require.NoError(t, env.other.Update(t.Context(), live, client.FieldOwner("kubectl-edit")))

	for _, subject := range []map[string]any{{}, named, {}} {
		_, err := env.apply(t, gadget(3, subject))
		require.NoError(t, err)
		env.live(t, live)
		found, _, err := unstructured.NestedMap(live.Object, "spec", "subject")
		require.NoError(t, err)
		require.Equal(t, subject, found)
		require.Equal(t, "red", live.GetLabels()["team"])
		env.expect(t, gadget(3, subject), apply.Unchanged, none...)
	}
	_, err := env.apply(t, gadget(4, nil))
	require.NoError(t, err)
	env.live(t, live)
	_, there, _ := unstructured.NestedMap(live.Object, "spec", "subject")
	require.False(t, there, "it can be dropped altogether")
}
