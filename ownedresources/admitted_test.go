package ownedresources

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/owned"
	"github.com/opblocks/opblocks/internal/owned/apply"
)

// admittedEnv is a namespace in which admission changes Pods, Jobs and StatefulSets when they are created, as many policies do: it extends the
// node selector of a Pod, names a mirror in the image of a Job, and sets the storage class of a claim template. Nobody may change these
// fields afterwards.
func admittedEnv(t *testing.T) *serverEnv {
	t.Helper()
	env := newServerEnv(t)
	env.create(t, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: env.namespace, Name: "default"}}) // no controller makes it
	for kind, expression := range map[string]string{
		"pods":         `JSONPatch{op: "add", path: "/spec/nodeSelector", value: has(object.spec.nodeSelector) ? {"disk": dyn(object.spec.nodeSelector.disk), "pool": dyn("shop")} : {"pool": dyn("shop")}}`,
		"jobs":         `JSONPatch{op: "replace", path: "/spec/template/spec/containers/0/image", value: "mirror.example.com/" + object.spec.template.spec.containers[0].image}`,
		"statefulsets": `JSONPatch{op: "add", path: "/spec/volumeClaimTemplates/0/spec/storageClassName", value: "fast"}`,
	} {
		group := map[string]string{"pods": "", "jobs": "batch", "statefulsets": "apps"}[kind]
		name := env.namespace + "-" + kind
		policy := &admissionregistrationv1.MutatingAdmissionPolicy{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: admissionregistrationv1.MutatingAdmissionPolicySpec{
				ReinvocationPolicy: admissionregistrationv1.NeverReinvocationPolicy,
				MatchConstraints: &admissionregistrationv1.MatchResources{
					NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: env.namespace}},
					ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{RuleWithOperations: admissionregistrationv1.RuleWithOperations{
						Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
						Rule:       admissionregistrationv1.Rule{APIGroups: []string{group}, APIVersions: []string{"v1"}, Resources: []string{kind}},
					}}},
				},
				Mutations: []admissionregistrationv1.Mutation{{PatchType: admissionregistrationv1.PatchTypeJSONPatch, JSONPatch: &admissionregistrationv1.JSONPatch{Expression: "[" + expression + "]"}}},
			},
		}
		binding := &admissionregistrationv1.MutatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: admissionregistrationv1.MutatingAdmissionPolicyBindingSpec{PolicyName: name}}
		for _, obj := range []client.Object{policy, binding} {
			env.createForTest(t, obj)
		}
	}
	// Each try sends an object of its own: the answer to a try has fields, such as the selector of a Job, that a creation may not have.
	require.Eventually(t, func() bool {
		pod, job, set := env.admittedPod(), env.admittedJob(), env.admittedSet()
		for _, obj := range []client.Object{pod, job, set} {
			if env.other.Create(t.Context(), obj, client.DryRunAll) != nil {
				return false
			}
		}
		return pod.Spec.NodeSelector["pool"] == "shop" && job.Spec.Template.Spec.Containers[0].Image != "migrate:1" &&
			set.Spec.VolumeClaimTemplates[0].Spec.StorageClassName != nil
	}, time.Minute, 100*time.Millisecond, "the API server knows the policies")
	return env
}

func (env *serverEnv) admittedPod() *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: ObjectMeta(env.owner)}
	pod.Spec.Containers = []corev1.Container{{Name: "web", Image: "web:1"}}
	pod.Spec.NodeSelector = map[string]string{"disk": "ssd"}
	return pod
}

func (env *serverEnv) admittedJob() *batchv1.Job {
	return NewJob(env.owner, corev1.Container{Name: "migrate", Image: "migrate:1"})
}

func (env *serverEnv) admittedSet() *appsv1.StatefulSet {
	set := NewStatefulSet(env.owner, nil, corev1.Container{Name: "db", Image: "db:1"})
	set.Spec.VolumeClaimTemplates = claimTemplates("data", "1Gi")
	set.Spec.VolumeClaimTemplates[0].Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	return set
}

func label(obj client.Object, value string) { obj.GetLabels()["version"] = value }

// What admission has set on creation and nobody may change must not keep other changes from being made.
func TestFieldsThatAdmissionHasSet(t *testing.T) {
	env := admittedEnv(t)
	tests := map[string]struct {
		reason string
		build  func() client.Object
		change func(obj client.Object)
		is     func(live client.Object) bool
	}{
		"a label of a Pod": {
			reason: "The node selector is replaced as a whole.", build: func() client.Object { return env.admittedPod() },
			change: func(obj client.Object) { label(obj, "2") }, is: func(live client.Object) bool { return live.GetLabels()["version"] == "2" },
		},
		"a label of a Pod without a node selector": {
			reason: "Nobody owns what admission has set alone.", build: func() client.Object {
				pod := env.admittedPod()
				pod.Spec.NodeSelector = map[string]string{}
				return pod
			},
			change: func(obj client.Object) { label(obj, "2") }, is: func(live client.Object) bool { return live.GetLabels()["version"] == "2" },
		},
		"a label of a Job": {
			reason: "The API server names only spec.template in its refusal.", build: func() client.Object { return env.admittedJob() },
			change: func(obj client.Object) { label(obj, "2") }, is: func(live client.Object) bool { return live.GetLabels()["version"] == "2" },
		},
		"the time to live of a Job": {
			reason: "It may be changed.", build: func() client.Object { return env.admittedJob() },
			change: func(obj client.Object) { obj.(*batchv1.Job).Spec.TTLSecondsAfterFinished = new(int32(60)) },
			is:     func(live client.Object) bool { return *live.(*batchv1.Job).Spec.TTLSecondsAfterFinished == 60 },
		},
		"the image of a StatefulSet": {
			reason: "The storage class is in a list that is replaced as a whole.", build: func() client.Object { return env.admittedSet() },
			change: func(obj client.Object) { obj.(*appsv1.StatefulSet).Spec.Template.Spec.Containers[0].Image = "db:2" },
			is: func(live client.Object) bool {
				return live.(*appsv1.StatefulSet).Spec.Template.Spec.Containers[0].Image == "db:2"
			},
		},
	}
	for name, tc := range tests {
		for options, recreate := range map[string][]childOption{"": nil, ", with Recreate": {withRecreate()}} {
			t.Run(name+options, func(t *testing.T) {
				env.applier = apply.New()
				if child := tc.build(); env.exists(t, child) { // the case before has left it
					require.NoError(t, env.other.Delete(t.Context(), child, client.GracePeriodSeconds(0), client.PropagationPolicy(metav1.DeletePropagationBackground)))
				}
				before, err := env.apply(t, tc.build(), recreate...)
				require.NoError(t, err)
				changed := tc.build()
				tc.change(changed)
				foreseen, err := Diff(t.Context(), env.client, env.owner, changed)
				require.NoError(t, err)
				require.NotEmpty(t, foreseen, "a plan foresees it")
				after, err := env.apply(t, changed, recreate...)
				require.NoError(t, err, tc.reason)
				require.True(t, tc.is(after.Object), tc.reason)
				require.Equal(t, before.Object.GetUID(), after.Object.GetUID(), "what has changed may be changed")
				quiet, err := env.apply(t, changed, recreate...)
				require.NoError(t, err)
				require.Equal(t, apply.Unchanged, quiet.Operation, "what admission has set is settled")
				env.applier = apply.New()
				quiet, err = env.apply(t, changed, recreate...)
				require.NoError(t, err)
				require.Equal(t, apply.Unchanged, quiet.Operation, "also for another process")
			})
		}
	}
}

// What was found out for an object costs no request when the object is changed again.
func TestFieldsThatAdmissionHasSetAreRemembered(t *testing.T) {
	env := admittedEnv(t)
	set := env.admittedSet()
	_, err := env.apply(t, set)
	require.NoError(t, err)
	for _, version := range []string{"2", "3", "4"} {
		set = env.admittedSet()
		set.Spec.Template.Spec.Containers[0].Image = "db:" + version
		_, err = env.apply(t, set)
		require.NoError(t, err)
		sent := env.sent.Sent()
		if version == "2" {
			require.Contains(t, sent, "POST statefulsets", "a dry run shows what admission makes of it")
			continue
		}
		require.Equal(t, []string{"GET statefulsets", "PATCH statefulsets"}, sent)
	}
}

// A new wish for a field that admission has set is not taken for the field of admission.
func TestNewWishForAFieldThatAdmissionHasSet(t *testing.T) {
	env := admittedEnv(t)
	wish := func() *corev1.Pod {
		pod := env.admittedPod()
		pod.Spec.NodeSelector["disk"] = "nvme"
		return pod
	}
	first, err := env.apply(t, env.admittedPod())
	require.NoError(t, err)
	_, err = env.apply(t, wish())
	require.True(t, apierrors.IsInvalid(err), "%v", err)
	require.ErrorContains(t, err, "the apply would change spec.nodeSelector", "it names the field")
	_, err = env.apply(t, wish(), withRecreate())
	require.Error(t, err, "the refusal is known")
	env.applier = apply.New()
	_, err = env.apply(t, wish(), withRecreate())
	require.ErrorAs(t, err, new(*owned.WaitingError))
	second, err := env.apply(t, wish(), withRecreate())
	require.NoError(t, err)
	require.NotEqual(t, first.Object.GetUID(), second.Object.GetUID())
	require.Equal(t, map[string]string{"disk": "nvme", "pool": "shop"}, second.Object.(*corev1.Pod).Spec.NodeSelector)
}

// A refusal of a whole template is explained by the fields that the apply would add, and not by what may be changed.
func TestRefusalOfATemplateNamesWhatIsAdded(t *testing.T) {
	env := admittedEnv(t)
	_, err := env.apply(t, env.admittedJob())
	require.NoError(t, err)
	changed := env.admittedJob()
	changed.Spec.TTLSecondsAfterFinished = new(int32(60))
	changed.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "MODE", Value: "shop"}}
	_, err = env.apply(t, changed)
	require.True(t, apierrors.IsInvalid(err), "%v", err)
	require.ErrorContains(t, err, `(the apply would change spec.template.spec.containers[name="migrate"].env)`)
}

// A field that is dropped is a new wish too, also if admission has set another one in the same list.
func TestDroppedFieldBesideOneThatAdmissionHasSet(t *testing.T) {
	env := admittedEnv(t)
	set := env.admittedSet()
	set.Spec.VolumeClaimTemplates[0].Spec.VolumeAttributesClassName = new("gold")
	_, err := env.apply(t, set)
	require.NoError(t, err)
	_, err = env.apply(t, env.admittedSet())
	require.True(t, apierrors.IsInvalid(err), "%v", err)
	live := &appsv1.StatefulSet{}
	env.live(t, live)
	require.NotNil(t, live.Spec.VolumeClaimTemplates[0].Spec.VolumeAttributesClassName)
}

// A change that the API server refuses costs no request as long as nothing else has changed, and is tried again after ten minutes.
func TestKnownRefusal(t *testing.T) {
	env := newServerEnv(t)
	clock := clocktesting.NewFakePassiveClock(time.Unix(0, 0))
	env.applier.Clock = clock
	_, err := env.apply(t, env.service())
	require.NoError(t, err)
	wrong := env.service()
	wrong.Spec.Ports[0].Port = 70000
	refusal := func() []string {
		_, err := env.apply(t, wrong)
		require.True(t, apierrors.IsInvalid(err), "%v", err)
		return env.sent.Sent()
	}
	require.Contains(t, refusal(), "PATCH services")
	require.Equal(t, []string{"GET services"}, refusal(), "the read of a cache, and no request")
	clock.SetTime(clock.Now().Add(10 * time.Minute))
	require.Contains(t, refusal(), "PATCH services", "the rules of the API server may have changed")
	byHand(t, env, &corev1.Service{}, func(s *corev1.Service) { s.Labels["by"] = "hand" })
	require.Contains(t, refusal(), "PATCH services", "somebody has changed the object")
	_, err = env.apply(t, env.service())
	require.NoError(t, err, "another wish is sent")
}

// An operator that lets the claim templates of a StatefulSet grow is not stopped by what admission has set in them.
func TestExpandVolumesThatAdmissionHasSet(t *testing.T) {
	env := admittedEnv(t)
	first, err := env.apply(t, env.admittedSet(), withExpandVolumes())
	require.NoError(t, err)
	larger := env.admittedSet()
	larger.Spec.VolumeClaimTemplates[0].Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse("2Gi")
	_, err = env.apply(t, larger, withExpandVolumes())
	var wait *owned.WaitingError
	require.ErrorAs(t, err, &wait)
	require.Equal(t, apply.ReasonRecreating, reasonOf(wait))
	require.NoError(t, env.other.Get(t.Context(), client.ObjectKeyFromObject(env.owner), env.owner))
	orphaning := &appsv1.StatefulSet{}
	env.live(t, orphaning)
	orphaning.Finalizers = nil // no collector runs
	require.NoError(t, env.other.Update(t.Context(), orphaning))
	second, err := env.apply(t, larger, withExpandVolumes())
	require.NoError(t, err)
	require.NotEqual(t, first.Object.GetUID(), second.Object.GetUID())
	template := second.Object.(*appsv1.StatefulSet).Spec.VolumeClaimTemplates[0].Spec
	require.Equal(t, "2Gi", template.Resources.Requests.Storage().String())
	require.Equal(t, "fast", *template.StorageClassName)
}

// The API server lets nobody remove a toleration of a Pod, and an apply replaces the list as a whole.
func TestTolerationsOfOthers(t *testing.T) {
	env := newServerEnv(t)
	env.create(t, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: env.namespace, Name: "default"}})
	toleration := func(key string) corev1.Toleration {
		return corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}
	}
	wish := func(version string, keys ...string) *corev1.Pod {
		pod := env.admittedPod()
		for _, key := range keys {
			pod.Spec.Tolerations = append(pod.Spec.Tolerations, toleration(key))
		}
		label(pod, version)
		return pod
	}
	_, err := env.apply(t, wish("1", "ours"))
	require.NoError(t, err)
	byHand(t, env, &corev1.Pod{}, func(p *corev1.Pod) { p.Spec.Tolerations = append(p.Spec.Tolerations, toleration("theirs")) })
	for _, keys := range [][]string{{"ours"}, {"ours", "more"}} {
		result, err := env.apply(t, wish("2", keys...))
		require.NoError(t, err)
		require.Equal(t, "2", result.Object.GetLabels()["version"])
		for _, key := range append(keys, "theirs") {
			require.Contains(t, result.Object.(*corev1.Pod).Spec.Tolerations, toleration(key))
		}
	}
}
